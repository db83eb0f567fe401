"""The registry of ops after all of ours are loaded."""

from tinygraph import ops
from tinygraph.engine import op

for _name in ops.EXPORTS:
    getattr(ops, _name)
registry = op._registry
