"""NVRTC: NVIDIA's run-time compiler, which needs no GPU; what a kernel takes, and occupancy."""

from tinygraph.cuda.nvrtc.compiling import (
    ARCHITECTURES,
    Compiled,
    Resources,
    architecture_for,
    build,
    compile,
    resources,
    resources_of_all,
)
from tinygraph.cuda.nvrtc.library import version
from tinygraph.cuda.nvrtc.limits import Limits, limits
from tinygraph.cuda.nvrtc.occupancy import MULTIPROCESSORS, Occupancy, occupancy

__all__ = [
    "ARCHITECTURES",
    "MULTIPROCESSORS",
    "Compiled",
    "Limits",
    "Occupancy",
    "Resources",
    "architecture_for",
    "build",
    "compile",
    "limits",
    "occupancy",
    "resources",
    "resources_of_all",
    "version",
]
