"""Ranks beside threads: a training step in one process and on two, and arithmetic for a thousand.

    python -m benchmarks.distributed                       writes docs/benchmarks/distributed.md
    python -m benchmarks.distributed --only w2 --rounds 5  one network
    python -m benchmarks.distributed --page                writes the page again from its figures

Three sides take turns, each a launch of its own that waits without computing while others have
their turn:

    one thread     one process: the compiled step
    two threads    the same with two
    two ranks      mpiexec -n 2: the compiled step in two shards, one thread each

Efficiency is the time of one thread over twice that of two ranks, round by round.  What other
programs have taken of the cores meanwhile is measured too: rounds go on until enough were
undisturbed, or the least disturbed ones are kept.

    worker.py    a side's process, or ranks      turns.py      rounds
    network.py   closed forms for a network      recipes.py    what the recipes would send
    page.py      the page, from page.md and the figures in distributed.json

switch.py is a program of its own: layers that are split among ranks, see docs/model_parallel.md.
"""
