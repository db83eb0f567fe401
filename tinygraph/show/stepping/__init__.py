"""Pages that are stepped through: one file each, with its own script, which loads nothing.

shell.py, shell.js, shell.css   what such pages share: policy, head, controls, keys, colours
"""
