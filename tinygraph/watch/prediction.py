"""How long a launch takes on a GPU that is not there: a roofline, from shapes.

    seconds = start + max(memory, arithmetic)

    memory      bytes / bandwidth: each array once for reading, once for writing; nothing of what a
                kernel reads twice, nothing that a cache saves
    arithmetic  operations / peak of the units that do them: float32, float64, tensor cores; with
                those beyond the edges of tiles, where the file states them
    start       what a launch costs beside others, however small: see `Host`

A grid that does not fill the GPU leaves multiprocessors idle: the busiest one has ceil(blocks /
multiprocessors) of them, and with fewer than four warps on it schedulers are idle too.

It is a bound from below, but for `start`: nobody waits for memory or at barriers, and instructions
that do no operation are for nothing.  It says where to look, and what cannot be had.

Source: Williams, Waterman and Patterson, "Roofline", Communications of the ACM 52(4), 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from tinygraph.base.precision import TENSOR_CORE_NUMBERS
from tinygraph.cuda.data_sheets import BYTES_A_CLOCK, SCHEDULERS, Gpu, find
from tinygraph.cuda.nvrtc.occupancy import WARP, occupancy
from tinygraph.cuda.recording import RecordedLaunch
from tinygraph.watch.costs import CostTable


class _Launching(NamedTuple):
    gap: float  # between the end of a kernel and the beginning of the next one
    python: float  # what the host takes for a launch and the op around it


class Host(Enum):
    """Who launches: assumptions, in seconds, none of them measured by us.

    The gaps are given as those that NVIDIA measured between short kernels on a V100 ("Getting
    Started with CUDA Graphs", 2019): 0.5 us in a graph, 0.9 us in a stream.  They were not checked
    against that text, which was not at hand.  To both comes 1 us, until the blocks of a kernel have
    started and the last of them has ended.  A host needs 20 us for a launch and the op around it;
    where kernels take less, they wait for it.
    """

    CAPTURED = _Launching(0.5e-6 + 1e-6, 0.0)
    EAGER = _Launching(0.9e-6 + 1e-6, 20e-6)


@dataclass(frozen=True)
class Prediction:
    """Seconds of a launch, by what they would be if nothing else took any.

    Attributes
    ----------
    memory, arithmetic, start : float
    """

    memory: float
    arithmetic: float
    start: float

    @property
    def seconds(self) -> float:
        return self.start + max(part for name, part in vars(self).items() if name != "start")

    @property
    def bound_by(self) -> str:
        """What the most of it is: "memory", "arithmetic" or "start".

        >>> Prediction(memory=3e-6, arithmetic=1e-6, start=1.5e-6).bound_by
        'memory'
        """
        parts = vars(self)
        return max(parts, key=lambda name: parts[name])


def predict(launch: RecordedLaunch, gpu: Gpu, host: Host = Host.CAPTURED) -> Prediction:
    """A launch's time on a GPU.

    Raises
    ------
    KernelCompileError
        There is no NVRTC, or the kernel does not compile for the GPU.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> from tinygraph.cuda.data_sheets import find
    >>> x = tg.Tensor(np.zeros(1_000_000, np.float32), device="emulator")
    >>> with tg.cuda.recording(execute=False) as launches:
    ...     y = tg.relu(x)
    >>> found = predict(launches[0], find("t4"))  # 8 MB at 320 GB/s
    >>> found.bound_by, round(found.memory * 1e6, 3)
    ('memory', 25.0)
    """
    return roofline(launch, gpu, resident_blocks(launch, gpu), host)


def roofline(
    launch: RecordedLaunch, gpu: Gpu, resident: int, host: Host = Host.CAPTURED
) -> Prediction:
    """The arithmetic of `predict`: `resident` blocks fit on a multiprocessor at a time."""
    blocks = math.prod(launch.grid)
    used = min(blocks, gpu.multiprocessors)
    bandwidth = min(gpu.bandwidth, used * BYTES_A_CLOCK * gpu.clock)
    operations = launch.issued_operations or 0
    return Prediction(
        memory=launch.bytes / bandwidth,
        arithmetic=idleness(launch, gpu, resident) * operations / _peak(launch, gpu),
        start=host.value.gap,
    )


def idleness(launch: RecordedLaunch, gpu: Gpu, resident: int) -> float:
    """How many times longer work takes on a GPU that the grid does not fill; 1 where it does."""
    blocks, threads = math.prod(launch.grid), math.prod(launch.block)
    busiest = math.ceil(blocks / gpu.multiprocessors)  # blocks of one multiprocessor
    idle = busiest * gpu.multiprocessors / blocks  # 1 where all have equally many
    warps = math.ceil(threads / WARP)
    return idle * SCHEDULERS / min(SCHEDULERS, min(busiest, max(resident, 1)) * warps)


def _peak(launch: RecordedLaunch, gpu: Gpu) -> float:
    """Operations a second of the units that a kernel works with, by its types and macros."""
    numbers = TENSOR_CORE_NUMBERS
    cores = {str(numbers["high"]): gpu.tf32, str(numbers["medium"]): gpu.bf16}
    peak = cores.get(dict(launch.kernel.source.defines).get("GEMM_MMA", ""))
    return peak or (gpu.fp64 if "double" in launch.kernel.name else gpu.fp32)


def resident_blocks(launch: RecordedLaunch, gpu: Gpu) -> int:
    """The blocks of a launch that a multiprocessor holds at a time."""
    found = launch.kernel.resources(gpu.arch)
    threads, shared = math.prod(launch.block), found.shared + launch.shared
    return occupancy(gpu.arch, threads, found.registers, shared).active_blocks


def step_seconds(kernels: float, launches: float, host: Host) -> float:
    """A step of kernels one after the other, and no faster than the host launches them.

    >>> round(step_seconds(100e-6, launches=10, host=Host.EAGER) * 1e6)
    200
    """
    return max(kernels, launches * host.value.python)


class PredictionsOn:
    """The predictions for one GPU, as columns of a table of costs."""

    def __init__(self, gpu: str | Gpu) -> None:
        self.gpu = find(gpu)

    def predict(self, launch: RecordedLaunch) -> Prediction:
        return predict(launch, self.gpu)

    def of(self, launch: RecordedLaunch) -> dict[str, Any]:
        found = self.predict(launch)
        return {"predicted_seconds": found.seconds, "bound_by": found.bound_by}

    def notes(self, table: CostTable) -> tuple[str, ...]:
        """What a step would take, and that nobody measured it."""
        gpu, total = self.gpu, table.total
        captured = total.predicted_seconds or 0.0
        gaps = total.calls * (Host.EAGER.value.gap - Host.CAPTURED.value.gap)
        eager = step_seconds(captured + gaps, total.calls, Host.EAGER)
        return (
            f"PREDICTED for {gpu.name} ({gpu.source}), not measured: {total.calls:g} launches take "
            f"{captured * 1e6:.1f} us captured, {eager * 1e6:.1f} us eager; a bound from below",
        )


def predictions_on(gpu: str | Gpu | PredictionsOn) -> PredictionsOn:
    """Predictions for a GPU; or those that are given, where somebody knows more of its kernels."""
    return gpu if isinstance(gpu, PredictionsOn) else PredictionsOn(gpu)
