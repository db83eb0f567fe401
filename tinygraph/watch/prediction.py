"""How long a launch takes on a GPU that is not there: a roofline, from shapes and machine code.

    seconds = start + max(memory, issue, arithmetic)

    memory      bytes / bandwidth: each array once for reading, once for writing; nothing of what a
                kernel reads twice, nothing that a cache saves
    issue       instructions / issue rate.  Instructions are passes of the main loop times what a
                pass issues (machine_code/main_loop.py).  Passes: as many as do the launch's
                operations, or load its arrays once, whichever is more
    arithmetic  operations / peak of the units that do them: float32, float64, tensor cores; with
                those beyond the edges of tiles, where the file states them
    start       what a launch costs beside others, however small: see `Host`

A grid that does not fill the GPU leaves multiprocessors idle: the busiest one has ceil(blocks /
multiprocessors) of them, and with fewer than four warps on it schedulers are idle too.

It is a bound from below, but for `start`: nobody waits for memory or at barriers, and what stands
outside of the main loop is for nothing.  It says where to look, and what cannot be had.

Source: Williams, Waterman and Patterson, "Roofline", Communications of the ACM 52(4), 2009.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from tinygraph.cuda import nvrtc
from tinygraph.cuda.machine_code.data_sheets import BYTES_A_CLOCK, SCHEDULERS, Gpu, find
from tinygraph.cuda.machine_code.main_loop import MainLoop, main_loop
from tinygraph.cuda.machine_code.occupancy import WARP, occupancy
from tinygraph.cuda.reading.source import Source
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
    memory, issue, arithmetic, start : float
    instructions : float
        That warps issue, as far as the main loop tells.
    """

    memory: float
    issue: float
    arithmetic: float
    start: float
    instructions: float = 0.0

    @property
    def seconds(self) -> float:
        return self.start + max(self.memory, self.issue, self.arithmetic)

    @property
    def bound_by(self) -> str:
        """What the most of it is: "memory", "issue", "arithmetic" or "start".

        >>> Prediction(memory=3e-6, issue=2e-6, arithmetic=1e-6, start=1.5e-6).bound_by
        'memory'
        """
        parts = {
            "memory": self.memory,
            "issue": self.issue,
            "arithmetic": self.arithmetic,
            "start": self.start,
        }
        return max(parts, key=lambda name: parts[name])


def predict(launch: RecordedLaunch, gpu: Gpu, host: Host = Host.CAPTURED) -> Prediction:
    """A launch's time on a GPU.

    Raises
    ------
    KernelCompileError
        There is no NVRTC or no nvdisasm, or the kernel does not compile for the GPU.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> from tinygraph.cuda.machine_code.data_sheets import find
    >>> x = tg.Tensor(np.zeros(1_000_000, np.float32), device="emulator")
    >>> with tg.cuda.recording(execute=False) as launches:
    ...     y = tg.relu(x)
    >>> found = predict(launches[0], find("t4"))  # 8 MB at 320 GB/s
    >>> found.bound_by, round(found.memory * 1e6, 3)
    ('memory', 25.0)
    """
    kernel = launch.kernel
    loop = _main_loop(kernel.source, kernel.name, gpu.arch)
    return roofline(launch, gpu, loop, _resident(launch, gpu), host)


def roofline(
    launch: RecordedLaunch, gpu: Gpu, loop: MainLoop, resident: int, host: Host = Host.CAPTURED
) -> Prediction:
    """The arithmetic of `predict`: `resident` blocks fit on a multiprocessor at a time."""
    blocks, threads = math.prod(launch.grid), math.prod(launch.block)
    busiest = math.ceil(blocks / gpu.multiprocessors)  # blocks of one multiprocessor
    idle = busiest * gpu.multiprocessors / blocks  # 1 where all have equally many
    warps = math.ceil(threads / WARP)
    idle *= SCHEDULERS / min(SCHEDULERS, min(busiest, max(resident, 1)) * warps)
    used = min(blocks, gpu.multiprocessors)
    bandwidth = min(gpu.bandwidth, used * BYTES_A_CLOCK * gpu.clock)
    operations = launch.issued_operations or 0
    instructions = _instructions(launch, loop, operations, blocks * warps)
    return Prediction(
        memory=launch.bytes / bandwidth,
        issue=idle * instructions / gpu.issue_rate,
        arithmetic=idle * operations / _peak(gpu, launch.kernel.name, loop),
        start=host.value.gap,
        instructions=instructions,
    )


def _instructions(launch: RecordedLaunch, loop: MainLoop, operations: float, warps: int) -> float:
    if not loop.is_loop:
        return float(warps * loop.instructions)
    multiply_adds = sum(times * multiply_adds_of(opcode) for opcode, times in loop.opcodes.items())
    loaded = WARP * loop.loads * (loop.bytes_a_load or 0.0)
    read = sum(use.bytes for use in launch.arrays if use.reads)
    passes = max(
        operations / 2 / multiply_adds if multiply_adds else 0.0, read / loaded if loaded else 0.0
    )
    return passes * loop.instructions


def multiply_adds_of(opcode: str) -> int:
    """Multiply-adds of one instruction of a warp.

    A tensor core's instruction names its tile: 1688 is 16 x 8 outputs, 8 products each.

    >>> multiply_adds_of("FFMA"), multiply_adds_of("HMMA.1688.F32.TF32"), multiply_adds_of("IADD3")
    (32, 1024, 0)
    >>> multiply_adds_of("HMMA.16816.F32.BF16") == 16 * 8 * 16
    True
    """
    base = opcode.partition(".")[0]
    tile = re.search(r"\.(16|8)8(4|8|16|32)(?:\.|$)", opcode)
    if base in ("HMMA", "IMMA", "DMMA") and tile:
        return int(tile[1]) * 8 * int(tile[2])
    return {"FFMA": WARP, "DFMA": WARP, "FFMA2": 2 * WARP}.get(base, 0)


def _peak(gpu: Gpu, kernel: str, loop: MainLoop) -> float:
    """Operations a second of the units that the main loop works with."""
    if loop.kind == "HMMA":
        tf32 = any("TF32" in opcode for opcode in loop.opcodes)
        return (gpu.tf32 if tf32 else gpu.bf16) or gpu.fp32
    double = loop.kind == "DFMA" if loop.kind else "double" in kernel
    return gpu.fp64 if double else gpu.fp32


@lru_cache(maxsize=1024)
def _main_loop(source: Source, name: str, arch: str) -> MainLoop:
    return main_loop(nvrtc.compile(source, [name], arch)[0])


def _resident(launch: RecordedLaunch, gpu: Gpu) -> int:
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

    def of(self, launch: RecordedLaunch) -> dict[str, Any]:
        found = predict(launch, self.gpu)
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
