"""cupy.cuda: the device, streams, memory."""

import types

from cupy._memory import MemoryPool, OutOfMemoryError, using_allocator
from cupy._module import Module
from cupy._stream import (
    CUDARuntimeError,
    Event,
    Graph,
    Stream,
    get_current_stream,
    refuse_while_capturing,
)

memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
driver = types.SimpleNamespace(
    CUDADriverError=type("CUDADriverError", (RuntimeError,), {}),
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
    funcSetAttribute=lambda function, attribute, value: None,
)
runtime = types.SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError, getDeviceProperties=lambda number: {"name": b"rehearsal"}
)
__all__ = [
    "Device",
    "Event",
    "Graph",
    "MemoryPool",
    "Module",
    "Stream",
    "driver",
    "get_current_stream",
    "get_elapsed_time",
    "is_available",
    "memory",
    "runtime",
    "using_allocator",
]


def is_available():
    return True


def get_elapsed_time(start, end):
    """Milliseconds; nothing is timed here."""
    return 1.0


class Device:
    """GPU 0."""

    compute_capability = "90"

    def __init__(self, device=None):
        self.id = 0

    def synchronize(self):
        refuse_while_capturing("device.synchronize")
        get_current_stream().run()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass
