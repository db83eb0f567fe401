"""Bodies compiled by numba, for a few ops of a plan; the extra `fast`.  The ops stay numpy.

One file for each chain of ops: loops as mathematics, and the op that calls them.
"""

from tinygraph.plan.fast.choice import NoNumba, with_compiled_bodies
from tinygraph.plan.fast.jit import CompiledBody, compiled_body

__all__ = ["CompiledBody", "compiled_body", "NoNumba", "with_compiled_bodies"]
