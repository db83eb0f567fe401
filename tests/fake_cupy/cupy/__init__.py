"""A rehearsal of CuPy on the CPU: what tinygraph asks of it, with the strictness of a GPU.

    array      numpy memory that only `get` and `set` bring across; no arithmetic, no numpy function
    stream     a queue of work that runs at the last moment at which CUDA would have to have run it
    graph      the work that was queued while a stream was capturing, queued again at each launch
    Module     machine code, whose kernel tinygraph's emulator runs

So what passes here neither leaves device memory unseen nor waits where it should not, and an order
that no event enforces gives wrong numbers.  It says nothing about speed.
"""

from cupy import cuda
from cupy._array import asarray, ascontiguousarray, broadcast_to, empty, from_dlpack, ndarray, zeros
from cupy._memory import get_default_memory_pool

__version__ = "14.0.0+rehearsal"
__all__ = [
    "asarray",
    "ascontiguousarray",
    "broadcast_to",
    "cuda",
    "empty",
    "from_dlpack",
    "get_default_memory_pool",
    "ndarray",
    "zeros",
]
