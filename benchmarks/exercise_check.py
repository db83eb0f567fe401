"""How long the checker takes for the kernels of one exercise: part of `make bench`.

Seven kernels of one file (exercise.cu) are checked by a process of its own, as the check of an
exercise does: with nothing of them in the cache, and with all of them there.  The run time and the
headers of the emulator are compiled before; their time is shown by itself.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tinygraph.cuda import Kernel, Out, blocks

FILE = Path(__file__).with_name("exercise.cu")
ROUNDS = 5


def check_all() -> list[tuple[str, float]]:
    """Check the seven kernels; seconds of each."""
    rng = np.random.default_rng(0)
    rows, cols = 33, 70
    n = rows * cols
    x, y = rng.standard_normal((2, rows, cols)).astype(np.float32)
    of_row, turned = np.zeros(rows, np.float32), np.zeros((cols, rows), np.float32)
    tiles = blocks(cols, 32), blocks(rows, 32)
    launches = {
        "relu": (blocks(n, 256), 256, x, Out(np.zeros_like(x)), n),
        "relu_backward": (blocks(n, 256), 256, x, y, Out(np.zeros_like(x)), n),
        "axpy": (4, 256, 0.5, x, y, n),
        "scale_columns": (blocks(n, 256), 256, y, x[0].copy(), rows, cols),
        "transpose": (tiles, (32, 8), x, Out(turned), rows, cols),
        "row_sums": (rows, 128, x, Out(of_row), cols),
        "row_maxima": (blocks(rows, 4), 128, x, Out(np.zeros_like(of_row)), rows, cols),
    }
    taken = []
    for name, (grid, block, *arguments) in launches.items():
        start = time.perf_counter()
        report = Kernel(FILE, name).check(grid, block, *arguments)
        taken.append((name, time.perf_counter() - start))
        if not report.ok:
            raise AssertionError(report.text())
    return taken


CHILD = """
import sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np
from tinygraph.cuda import Kernel
start = time.perf_counter()
Kernel("__global__ void empty() {}", "empty").check(1, 1)
made = time.perf_counter()
from benchmarks.exercise_check import check_all
taken = check_all()
print(made - start, *(seconds for _, seconds in taken))
"""


def child(cache: str) -> tuple[float, list[float]]:
    """Seconds until the emulator is there, and of the seven checks, in a process of its own."""
    out = subprocess.run(
        [sys.executable, "-c", CHILD, str(FILE.parents[1])],
        env={**os.environ, "TINYGRAPH_CACHE": f"{cache}/cache"},
        check=True,
        capture_output=True,
        encoding="utf-8",
    ).stdout
    first, *rest = map(float, out.split())
    return first, rest


def show(name: str, values: list[float]) -> None:
    low, high = min(values), max(values)
    print(f"{name:<58} {statistics.median(values):7.2f} s ({low:.2f} to {high:.2f})", flush=True)


def main() -> None:
    made, cold, first, warm = [], [], [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            seconds, checks = child(cache)
            made.append(seconds)
            cold.append(sum(checks))
            first.append(checks[0])
            warm.append(sum(child(cache)[1]))
    show("the emulator itself, compiled, and one empty kernel", made)
    show("seven kernels of one file, checked, nothing of them cached", cold)
    show("    the first of them", first)
    show("seven kernels of one file, checked, from the cache", warm)


if __name__ == "__main__":
    main()
