"""The sides: each is one way of taking a training step, and where it is compared."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.cpu.workloads import COMPARED, GRID, POINTS, W1
from benchmarks.networks import NETWORKS

LIBRARIES = "benchmarks.cpu.libraries"
BY_LAYERS = (W1, "w2", "w3", "w4")  # written out of single ops

# glibc keeps what a step frees, in pages of 2 MB: fresh memory would cost more than the computing.
KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "THP_MEM_ALLOC_ENABLE": "1",
}
BLAS_VARIABLES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


@dataclass(frozen=True, eq=False)
class Side:
    """One row of the tables.

    Attributes
    ----------
    name : str
    peer : str
        The environment that it runs in; "" is tinygraph's own.
    module, variant : str
        Who makes the training, and which kind.
    points : tuple of str
        Where it is measured.
    threads : int or None
        None: as many as the run says.
    variables : mapping
        Added to the environment of its process.
    """

    name: str
    peer: str
    module: str
    variant: str = ""
    points: tuple[str, ...] = BY_LAYERS
    threads: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        return self.peer in ("", "fast")


EAGER, COMPILED, FAST = "tinygraph", "tinygraph compiled", "tinygraph compiled, fast"
TORCH, KEPT, BARE = "PyTorch", "PyTorch, kept memory", "PyTorch, no optimiser, 1 thread"

_OURS, _TORCH = f"{LIBRARIES}.tinygraph_steps", f"{LIBRARIES}.torch_steps"

SIDES = (
    Side(EAGER, "", _OURS, "eager", POINTS),
    Side(COMPILED, "", _OURS, "compiled", POINTS),
    Side(FAST, "fast", _OURS, "fast", POINTS),
    Side(TORCH, "torch", _TORCH, "eager", POINTS),
    Side(KEPT, "torch", _TORCH, "eager", (*NETWORKS, *GRID), variables=KEEP_MEMORY),
    Side(BARE, "torch", _TORCH, "bare", ("w4",), threads=1),
    Side("PyTorch, channels_last", "torch", _TORCH, "channels_last", ("w3",)),
    Side("torch.compile", "torch", _TORCH, "compiled", COMPARED),
    Side("JAX jit", "jax", f"{LIBRARIES}.jax_steps", points=COMPARED),
    Side("tinygrad", "tinygrad", f"{LIBRARIES}.tinygrad_steps", points=COMPARED),
    Side("MyGrad", "mygrad", f"{LIBRARIES}.mygrad_steps"),
    Side("DeZero", "dezero", f"{LIBRARIES}.dezero_steps"),
)
SLOW_TO_START = ("torch.compile",)  # left out of a quick run: compiling takes minutes

# The strongest way of the library that most people would use instead.
BASELINES = {**dict.fromkeys(NETWORKS, TORCH), "w1": KEPT, "w2": TORCH, "w3": TORCH, "w4": BARE}


def baseline(point: str) -> str:
    """The side that a point's ratios refer to.

    >>> baseline("w1:100:256"), baseline("w3")
    ('PyTorch, kept memory', 'PyTorch')
    """
    return BASELINES[point.split(":")[0]]


def at_point(sides: Sequence[Side], point: str) -> list[Side]:
    return [side for side in sides if point in side.points]


def environment(side: Side, threads: int, native_blas: bool) -> dict[str, str]:
    """The environment variables of a side's process.

    Where something has exported OPENBLAS_CORETYPE, numpy may run on kernels of an older processor;
    `native_blas` takes that back for every side.
    """
    variables = dict(os.environ)
    if native_blas:
        for name in BLAS_VARIABLES:
            variables.pop(name, None)
    count = str(side.threads or threads)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        variables[name] = count
    return {**variables, **side.variables}
