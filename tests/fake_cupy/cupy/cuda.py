"""cupy.cuda: the device, streams, memory."""

import types

from cupy import _nccl as nccl
from cupy._device import COUNT, Device
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
    getDeviceCount=lambda: COUNT,
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
    "nccl",
    "runtime",
    "using_allocator",
]


def is_available():
    return True
