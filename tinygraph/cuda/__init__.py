"""CUDA kernels, typed and checked: on a GPU through CuPy, on any CPU through the emulator.

    from tinygraph import cuda

    scale = cuda.Kernel("scale.cu", "scale<float>")
    scale(cuda.blocks(x.size, 256), 256, x, y, 2.0, x.size)          # numpy arrays: the emulator
    report = scale.check(4, 256, x, cuda.Out(y), 2.0, x.size)        # races, bounds, barriers, ...

Kernels of ops lie beside their ops; a user's own lie where he likes.
"""

from typing import TYPE_CHECKING

from tinygraph.base.lazy import lazy
from tinygraph.cuda.devices import device_count, is_available, set_memory_limit
from tinygraph.cuda.extents import blocks
from tinygraph.cuda.kernel import Kernel
from tinygraph.cuda.launch import BoundLaunch, In, InOut, Launch, Out
from tinygraph.cuda.op_kernels import op_kernel
from tinygraph.cuda.recording import RecordedLaunch, checking, recording

if TYPE_CHECKING:
    from tinygraph.cuda.emulator.findings import Finding, Report
    from tinygraph.plan.captured_step import CapturedStep, capture
else:
    _FOUND = "tinygraph.cuda.emulator.findings"
    __getattr__, __dir__ = lazy(__name__, {"Finding": _FOUND, "Report": _FOUND}, "cuda")

__all__ = [
    "BoundLaunch",
    "CapturedStep",
    "Finding",
    "In",
    "InOut",
    "Kernel",
    "Launch",
    "Out",
    "RecordedLaunch",
    "Report",
    "blocks",
    "capture",
    "checking",
    "device_count",
    "is_available",
    "op_kernel",
    "recording",
    "set_memory_limit",
]
