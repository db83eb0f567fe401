"""What a launch takes if it only waited for instructions: a third part of a predicted time.

    seconds = start + max(memory, arithmetic, issue)        tinygraph/watch/prediction.py has two

    issue       instructions / issue rate.  Instructions are passes of the main loop times what a
                pass issues (main_loop.py).  Passes: as many as do the launch's operations, or load
                its arrays once, whichever is more.  What stands outside of the loop is for nothing

A scheduler issues one instruction a clock.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from benchmarks.machine_code.main_loop import MainLoop, main_loop
from tinygraph.cuda import nvrtc
from tinygraph.cuda.data_sheets import Gpu
from tinygraph.cuda.nvrtc.occupancy import WARP
from tinygraph.cuda.reading.source import Source
from tinygraph.cuda.recording import RecordedLaunch
from tinygraph.watch.prediction import (
    Prediction,
    PredictionsOn,
    idleness,
    predict,
    resident_blocks,
)


@dataclass(frozen=True)
class Issued(Prediction):
    """A prediction that knows what the machine code issues, in seconds."""

    issue: float = 0.0


class IssuedOn(PredictionsOn):
    """The predictions for one GPU, with what the machine code of each kernel issues."""

    def predict(self, launch: RecordedLaunch) -> Issued:
        found, kernel = predict(launch, self.gpu), launch.kernel
        loop = _main_loop(kernel.source, kernel.name, self.gpu.arch)
        issue = issue_seconds(launch, self.gpu, loop, resident_blocks(launch, self.gpu))
        return Issued(**vars(found), issue=issue)


def issue_seconds(launch: RecordedLaunch, gpu: Gpu, loop: MainLoop, resident: int) -> float:
    """The instructions of a launch at the rate of a GPU that its grid may not fill."""
    return idleness(launch, gpu, resident) * instructions(launch, loop) / gpu.issue_rate


def instructions(launch: RecordedLaunch, loop: MainLoop) -> float:
    """The instructions that the warps of a launch issue, as far as the main loop tells."""
    if not loop.is_loop:
        warps = math.ceil(math.prod(launch.block) / WARP)
        return float(math.prod(launch.grid) * warps * loop.instructions)
    multiply_adds = sum(times * multiply_adds_of(opcode) for opcode, times in loop.opcodes.items())
    loaded = WARP * loop.loads * (loop.bytes_a_load or 0.0)
    read = sum(use.bytes for use in launch.arrays if use.reads)
    done = (launch.issued_operations or 0) / 2
    passes = max(done / multiply_adds if multiply_adds else 0.0, read / loaded if loaded else 0.0)
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


@lru_cache(maxsize=1024)
def _main_loop(source: Source, name: str, arch: str) -> MainLoop:
    return main_loop(nvrtc.compile(source, [name], arch)[0])
