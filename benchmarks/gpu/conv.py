"""Convolution beside cuDNN, through PyTorch: forward, and forward with both gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.gpu import ours
from benchmarks.gpu.page import Result
from benchmarks.gpu.room import Room
from benchmarks.report import Table
from benchmarks.timing import Ratio, Times

TITLE = "Convolution beside cuDNN"
AIM = 0.6  # times as fast as cuDNN
# Against the largest number of a result: sums of float32 in another order; tf32 has 10 bits.
BOUND = {ours.STRICT: 1e-4, ours.TF32: 1e-2}
RESULTS = ("output", "gradient of x", "gradient of w")


class Problem(NamedTuple):
    n: int
    channels: int
    size: int
    filters: int
    kernel: int
    padding: int

    def __str__(self) -> str:
        return (
            f"{self.n}x{self.channels}x{self.size}x{self.size}, {self.filters} filters "
            f"{self.kernel}x{self.kernel}, padding {self.padding}"
        )


FULL = [
    Problem(100, 1, 28, 256, 3, 0),
    Problem(1000, 1, 28, 256, 3, 0),
    Problem(1000, 1, 28, 32, 3, 0),
    Problem(64, 3, 32, 32, 3, 1),
    Problem(64, 32, 32, 32, 3, 1),
    Problem(64, 64, 16, 64, 3, 1),
    Problem(64, 128, 8, 128, 3, 1),
    Problem(256, 64, 56, 64, 1, 0),
    Problem(64, 64, 56, 64, 5, 2),
]
REHEARSED = [Problem(2, 1, 6, 4, 3, 0), Problem(2, 3, 5, 4, 3, 1)]


def run(room: Room) -> Result:
    result = Result(TITLE)
    if room.torch is None:
        result.left_out.append("cuDNN: PyTorch is not there, so the table has our times only")
    for precision in (ours.STRICT, ours.TF32):
        if not ours.has(precision):
            result.left_out.append(ours.NO_TF32)
            continue
        peer = room.peer("cuDNN", "PyTorch on the CPU")
        shown = Table(["problem", "pass", "ours ms", f"{peer} ms", "times as fast"])
        result.blocks += [f"**{precision}**", shown]
        for problem in room.choose(FULL, FULL[:5], REHEARSED):
            with ours.precision(precision):
                shown.rows += _compare(room, result, problem, precision)
            room.tell(result)
    return result


def _compare(room: Room, result: Result, problem: Problem, precision: str) -> list[list[str]]:
    """Two rows: forward, and forward with backward."""
    rng = np.random.default_rng(0)
    n, c, size, d, k, padding = problem
    x = rng.standard_normal((n, c, size, size), np.float32)
    w = rng.standard_normal((d, c, k, k), np.float32) / np.float32(np.sqrt(c * k * k))
    out = size + 2 * padding - k + 1
    gy = rng.standard_normal((n, d, out, out), np.float32)
    sides = {"ours": ours.convolution(x, w, gy, padding, room.device)}
    if precision == ours.TF32:
        _note_missing_tf32(result, x, w, gy, padding, room.device)
    if room.torch is None:
        return _rows(room, result, problem, precision, sides)
    with room.torch.precision(precision == ours.TF32):
        sides["cuDNN"] = room.torch.convolution(x, w, gy, padding)
        doubles = [array.astype(np.float64) for array in (x, w, gy)]
        exact = room.torch.convolution(*doubles, padding)[2]()
        for side, (_, _, results) in sides.items():
            for name, own, want in zip(RESULTS, results(), exact, strict=True):
                worst = np.abs(own - want).max() / np.abs(want).max()
                if not worst < BOUND[precision]:
                    line = f"{problem}, {precision}: {name} of {side} is off by {worst:.2g}"
                    result.left_out.append(f"{line} of its largest number, from that in float64")
                    if side == "ours":
                        result.failed = "a convolution of ours is wrong"
                        return []
        return _rows(room, result, problem, precision, sides)


def _note_missing_tf32(
    result: Result, x: np.ndarray, w: np.ndarray, gy: np.ndarray, padding: int, device: str
) -> None:
    """Say so where our convolution gives the same bits in both precisions."""
    found = []
    for precision in (ours.STRICT, ours.TF32):
        with ours.precision(precision):
            found.append(ours.convolution(x, w, gy, padding, device)[2]())
    line = "tf32 of ours: convolutions give the bits of float32, whatever is asked for"
    same = all(np.array_equal(one, other) for one, other in zip(*found, strict=True))
    if same and line not in result.left_out:
        result.left_out.append(line)


def _rows(
    room: Room,
    result: Result,
    problem: Problem,
    precision: str,
    sides: dict[str, tuple[Callable[[], Any], Callable[[], Any], Any]],
) -> list[list[str]]:
    rows = []
    for at, name in enumerate(("forward", "forward and backward")):
        times: dict[str, Times] = room.in_turns({side: runs[at] for side, runs in sides.items()})
        if "cuDNN" not in times:
            rows.append([str(problem), name, times["ours"].text(), "left out", "left out"])
            continue
        ratio = Ratio.of(times["ours"], times["cuDNN"])
        rows.append([str(problem), name, times["ours"].text(), times["cuDNN"].text(), ratio.text()])
        what = f"conv {problem}, {name}, {precision}, times as fast as cuDNN"
        result.aim(what, ratio.median, AIM)
    return rows
