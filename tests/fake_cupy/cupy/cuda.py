"""cupy.cuda: the device, streams, memory."""

import types

from cupy._memory import Memory, MemoryPointer, MemoryPool, OutOfMemoryError, using_allocator
from cupy._module import CNumpyArray, Module, set_attribute
from cupy._stream import (
    ERROR_MEMORY_ALLOCATION,
    CUDADriverError,
    CUDARuntimeError,
    Event,
    Graph,
    Stream,
    get_current_stream,
    get_elapsed_time,
    synchronize,
)

memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
function = types.SimpleNamespace(CNumpyArray=CNumpyArray)
driver = types.SimpleNamespace(
    CUDADriverError=CUDADriverError,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
    funcSetAttribute=set_attribute,
)
runtime = types.SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError,
    errorMemoryAllocation=ERROR_MEMORY_ALLOCATION,
    getDeviceProperties=lambda number: {"name": b"rehearsal"},
    driverGetVersion=lambda: 13000,
    getDeviceCount=lambda: 1,
)
__all__ = [
    "Device",
    "Event",
    "Graph",
    "Memory",
    "MemoryPointer",
    "MemoryPool",
    "Module",
    "Stream",
    "driver",
    "function",
    "get_current_stream",
    "get_elapsed_time",
    "is_available",
    "memory",
    "runtime",
    "using_allocator",
]


def is_available():
    return True


class Device:
    """GPU 0."""

    compute_capability = "90"

    def __init__(self, device=None):
        self.id = 0

    def synchronize(self):
        synchronize()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass
