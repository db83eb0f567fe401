"""The page that steps through a launch of a kernel, warp by warp: `Kernel.steps`.

    Trace --events--> events of a block --lockstep--> steps of warps --cells--> memory after each

page.py     a launch, in both orders of its threads, as a page
data.py     traces as the JSON that the script draws
steps.py    the steps of one block, what each costs and leaves in memory
events.py   the events of one block, and where lanes meet in them
cells.py    what an array holds
launch.js   what is so after each step, and the words for it      kernel.css
lanes.js    threads and what they have
memory.js   shared memory as banks, global memory as sectors
kernel.js   the source, mistakes, the whole of a step
"""
