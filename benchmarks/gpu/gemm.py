"""Square matrix products as a share of cuBLAS (through CuPy), strict float32 and tf32 apart.

The error column shows that both sides work in the precision that the table says: the largest
difference from the product in float64, over the largest sum of absolute terms, on a few rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.gpu import ours
from benchmarks.gpu.page import Result
from benchmarks.gpu.room import Room
from benchmarks.report import Plot, Table
from benchmarks.timing import Ratio, digits

TITLE = "GEMM beside cuBLAS"
SIZES = [256, 512, 1024, 2048, 4096, 8192]
AIMS = {ours.STRICT: 0.85, ours.TF32: 0.60}  # share of cuBLAS, at the size below
AIM_SIZE = 4096
ROWS = 64  # that the error is measured on
BOUND = {ours.STRICT: 1e-5, ours.TF32: 2e-3}  # of the error

# CuPy's public switch, CUPY_TF32, is read once and cannot be taken back: these are the numbers of
# cupy._core._routines_linalg, COMPUTE_TYPE_DEFAULT and COMPUTE_TYPE_TF32.
_COMPUTE_DEFAULT, _COMPUTE_TF32 = 1, 7


def run(room: Room) -> Result:
    result = Result(TITLE)
    library = vendors(room)
    sizes = room.choose(SIZES, [1024, 4096], [32, 48])
    for precision in (ours.STRICT, ours.TF32):
        if not ours.has(precision):
            result.left_out.append(ours.NO_TF32)
            continue
        with ours.precision(precision), cublas_precision(library, precision):
            _compare(room, result, library, precision, sizes)
    return result


def _compare(room: Room, result: Result, library: Any, precision: str, sizes: list[int]) -> None:
    """The table of one precision, and its plot."""
    peer = room.peer("cuBLAS", "numpy")
    head = ["size", "ours ms", f"{peer} ms", "ours TFLOP/s", f"{peer} TFLOP/s"]
    shown = Table([*head, f"share of {peer}", "our error", f"error of {peer}"])
    result.blocks += [f"**{precision}**", shown]
    own_line, their_line = [], []
    for n in sizes:
        rng = np.random.default_rng(n)
        a, b = (rng.standard_normal((n, n), np.float32) for _ in range(2))
        multiply = ours.product(a, b, room.device)
        a, b = library.asarray(a), library.asarray(b)
        runs = {"ours": multiply, "theirs": lambda a=a, b=b: library.matmul(a, b)}
        errors = [error(library, a, b, _brought(run(), library)) for run in runs.values()]
        if not errors[0] < BOUND[precision]:
            raise ArithmeticError(f"our product of size {n} is wrong: error {errors[0]:.2g}")
        times = room.in_turns(runs)
        share = Ratio.of(times["ours"], times["theirs"])
        speeds = [2 * n**3 / times[side].median / 1e12 for side in ("ours", "theirs")]
        own_line.append((n, speeds[0]))
        their_line.append((n, speeds[1]))
        shown.rows.append(
            [
                str(n),
                times["ours"].text(),
                times["theirs"].text(),
                *map(digits, speeds),
                share.text(),
                *(f"{e:.1e}" for e in errors),
            ]
        )
        if n == AIM_SIZE:
            result.aim(f"GEMM {n}, {precision}, share of cuBLAS", share.median, AIMS[precision])
        elif share.median < AIMS[precision]:
            result.lost.append(f"GEMM {n}, {precision}: {share.median:.2f} of cuBLAS")
        room.tell(result)
    name = "gemm-tf32" if precision == ours.TF32 else "gemm-float32"
    result.plots.append(
        Plot(
            name, f"GEMM, {precision}", "size", "TFLOP/s", {"tinygraph": own_line, peer: their_line}
        )
    )


def vendors(room: Room) -> Any:
    """CuPy, whose products are those of cuBLAS; in a rehearsal numpy."""
    if room.rehearse:
        return np
    import cupy

    return cupy


def _brought(array: Any, library: Any) -> Any:
    """The array where the library can read it: a rehearsal's may lie on a device."""
    return array.get() if library is np and hasattr(array, "get") else array


def error(library: Any, a: Any, b: Any, c: Any) -> float:
    """The largest difference from float64 over the largest sum of absolute terms.

    >>> a = np.ones((2, 2), np.float32)
    >>> error(np, a, a, 2 * a + np.float32(1))
    0.5
    """
    left, right = a[:ROWS].astype(np.float64), b.astype(np.float64)
    difference = library.abs(c[:ROWS] - left @ right).max()
    return float(difference / (library.abs(left) @ library.abs(right)).max())


@contextmanager
def cublas_precision(library: Any, precision: str) -> Iterator[None]:
    """Within it CuPy asks cuBLAS for float32 or for tf32; numpy has but one."""
    if library is np:
        yield
        return
    linalg = library._core._routines_linalg
    before = linalg.get_compute_type(np.float32)
    wanted = _COMPUTE_TF32 if precision == ours.TF32 else _COMPUTE_DEFAULT
    linalg.set_compute_type(np.float32, wanted)
    try:
        yield
    finally:
        linalg.set_compute_type(np.float32, before)
