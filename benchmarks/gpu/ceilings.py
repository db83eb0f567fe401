"""What this GPU reaches with its vendor's own code: the yardstick of all other sections."""

from __future__ import annotations

import numpy as np

from benchmarks.gpu import gemm, ours
from benchmarks.gpu.page import Result
from benchmarks.gpu.room import Room
from benchmarks.report import Table

TITLE = "Ceilings"


def run(room: Room) -> Result:
    result = Result(TITLE)
    library = gemm.vendors(room)
    shown = Table(["what", "ms", "reached"])
    result.blocks.append(shown)
    count = room.choose([1 << 28], [1 << 28], [1 << 16])[0]
    source, target = library.zeros(count, np.float32), library.zeros(count, np.float32)
    times = room.in_turns({"copy": lambda: library.copyto(target, source)})["copy"]
    speed = 2 * source.nbytes / times.median / 1e12
    size = f"{source.nbytes / 2**20:.4g} MiB"
    shown.rows.append([f"copy of {size}, read and written", times.text(), f"{speed:.3g} TB/s"])
    room.tell(result)
    n = room.choose([4096], [4096], [64])[0]
    a, b = (library.ones((n, n), np.float32) for _ in range(2))
    for precision in (ours.STRICT, ours.TF32):
        with gemm.cublas_precision(library, precision):
            run = {"product": lambda: library.matmul(a, b)}
            times = room.in_turns(run)["product"]
        speed = 2 * n**3 / times.median / 1e12
        name = f"{room.peer('cuBLAS', 'numpy')}, {n} x {n}, {precision}"
        shown.rows.append([name, times.text(), f"{speed:.3g} TFLOP/s"])
        room.tell(result)
    return result
