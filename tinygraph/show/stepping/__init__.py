"""Pages that are stepped through: one file each, with its own script, which loads nothing.

shell.py, shell.js, shell.css   what such pages share: policy, head, controls, keys, colours

A step of a graph:

steps.py       show.steps: the page          graph.js, graph.css, maps.js
recorder.py    what happens in a step, taken down by a runner
arrays.py      each array once, of large ones a corner
formulas.py    the mathematics of an op, from its docstring
origins.py     what a number comes from, by the op's own backward
forms.py       a convolution as image, columns and product
"""
