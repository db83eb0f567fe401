"""How fast kernels run on the CPU, and what compiling and checking cost: part of `make bench`.

    empty launch    Kernel.__call__ with a kernel of one thread that does nothing
    GEMM 512^3      the 64x64 register tile on one thread and on all, and the 16x16 shared tile;
                    numpy's product as a yardstick
    im2col          3x3 windows of 8 images of 16x28x28; numpy's copy of the same windows
    compiling       the first launch of a kernel: compiled, from the cache of another process, and
                    again in this one
    checking        a launch under the checker, and with counts, against a plain one

These are times of this CPU.  They say nothing of a GPU.  Everything that is compared takes turns,
so that a machine whose speed drifts slows all alike; a figure is the median of the rounds, with the
smallest and the largest.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from tinygraph.cuda import Kernel, Out, blocks, op_kernel
from tinygraph.cuda.emulator.compiler import find_compiler
from tinygraph.cuda.emulator.native import threads

F = np.float32
SIZE = 512
WORKERS = "TINYGRAPH_EMULATOR_THREADS"
EMPTY = "__global__ void empty() {}"

# Run in a fresh process with a cache of its own: seconds of the first launch and of the next one.
FIRST_LAUNCH = """
import sys, time
import numpy as np
from tinygraph.cuda import Kernel, op_kernel
Kernel("__global__ void empty() {}", "empty")(1, 1)  # the run time is there
x = np.ones((16, 16), np.float32)
kernel = op_kernel("matmul", "matmul", np.float32, GEMM_TILE=64)
times = []
for _ in range(2):
    start = time.perf_counter()
    kernel(1, 256, x, x, np.zeros_like(x), 16, 16, 16, 1, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0)
    times.append(time.perf_counter() - start)
print(*times)
"""


def seconds(run: Callable[[], object], count: int) -> float:
    """Mean seconds of one call over a few in a row."""
    start = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - start) / count


def in_turns(
    runs: dict[str, Callable[[], object]], count: int, rounds: int
) -> dict[str, list[float]]:
    """Seconds of each run in each round, after one round to warm up."""
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(seconds(run, count))
    return times


def show(name: str, values: list[float], unit: str) -> None:
    """A median with its range."""
    low, high = min(values), max(values)
    middle = statistics.median(values)
    print(f"{name:<46} {middle:9.3g} {unit:<8} ({low:.3g} to {high:.3g})", flush=True)


def with_workers(count: str, run: Callable[[], object]) -> Callable[[], object]:
    """The run on this many threads of the operating system."""

    def limited() -> None:
        before = os.environ.get(WORKERS)
        os.environ[WORKERS] = count
        try:
            run()
        finally:
            if before is None:
                del os.environ[WORKERS]
            else:
                os.environ[WORKERS] = before

    return limited


def product(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, tile: int
) -> tuple[Kernel, tuple[int, int], tuple[object, ...]]:
    """The kernel of C = A B with one tile a block, its launch, its arguments."""
    m, k = a.shape
    n = b.shape[1]
    kernel = op_kernel("matmul", "matmul", a.dtype, GEMM_TILE=tile)
    grid = blocks(m, tile) * blocks(n, tile)
    return kernel, (grid, 256), (a, b, Out(c), m, n, k, 1, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0)


def bench_gemm() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((SIZE, SIZE)).astype(F) for _ in range(2))
    c = np.zeros_like(a)
    runs: dict[str, Callable[[], object]] = {}
    for tile, name in ((64, "64x64 register tile"), (16, "16x16 shared tile")):
        kernel, launch, arguments = product(a, b, c, tile)

        def run(kernel=kernel, launch=launch, arguments=arguments):  # type: ignore[no-untyped-def]
            kernel(*launch, *arguments)

        run()
        np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-3)
        for count in sorted({1, threads()}):
            runs[f"{name}, {count} thread{'s'[: count > 1]}"] = with_workers(str(count), run)
    runs["numpy"] = lambda: np.matmul(a, b, out=c)
    for name, times in in_turns(runs, 1, 9).items():
        show(f"GEMM {SIZE}^3, {name}", [2 * SIZE**3 / t / 1e9 for t in times], "GFLOP/s")


def bench_im2col() -> None:
    n, channels, size, window = 8, 16, 28, 3
    out = size - window + 1
    x = np.random.default_rng(0).standard_normal((n, channels, size, size)).astype(F)
    cols = np.zeros((n, channels * window * window, out * out), F)
    kernel = op_kernel("im2col", "im2col", F, WIDE=0)
    numbers = (n, channels, size, size, window, window, out, out, 1, 1, 0, 0, 1, 1)

    def by_kernel() -> None:
        kernel(blocks(cols.size, 256), 256, x, Out(cols), *numbers)

    view = np.lib.stride_tricks.sliding_window_view(x, (window, window), axis=(2, 3))
    view = view.transpose(0, 1, 4, 5, 2, 3)

    def by_numpy() -> None:
        cols.reshape(view.shape)[...] = view

    by_kernel()
    np.testing.assert_array_equal(cols.reshape(view.shape), view)
    for name, times in in_turns({"kernel": by_kernel, "numpy": by_numpy}, 3, 9).items():
        show(f"im2col of {n}x{channels}x{size}x{size}, {name}", [1e3 * t for t in times], "ms")


def bench_compiling(rounds: int = 3) -> None:
    """Fresh processes: the first finds an empty cache, the second a full one."""
    compiled, found, again = [], [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "TINYGRAPH_CACHE": f"{cache}/cache"}
            for times in (compiled, found):
                out = subprocess.run(
                    [sys.executable, "-c", FIRST_LAUNCH],
                    env=environment,
                    check=True,
                    capture_output=True,
                    encoding="utf-8",
                ).stdout
                first, second = map(float, out.split())
                times.append(1e3 * first)
                again.append(1e3 * second)
    show("first launch of GEMM, compiled", compiled, "ms")
    show("first launch of GEMM, from the cache", found, "ms")
    show("second launch of GEMM (16^3)", again, "ms")


def bench_checking() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((128, 128)).astype(F) for _ in range(2))
    kernel, launch, arguments = product(a, b, np.zeros_like(a), 64)
    runs: dict[str, Callable[[], object]] = {
        "plain": with_workers("1", lambda: kernel(*launch, *arguments)),
        "checked": lambda: kernel.check(*launch, *arguments),
        "checked, with counts": lambda: kernel.check(*launch, *arguments, profile=True),
    }
    times = in_turns(runs, 1, 5)
    for name in list(runs)[1:]:
        ratios = [t / plain for t, plain in zip(times[name], times["plain"], strict=True)]
        show(f"GEMM 128^3, {name} against plain", ratios, "times")


def main() -> None:
    print(
        f"emulator on {platform.machine()}, {threads()} threads, {find_compiler().name}, "
        f"Python {platform.python_version()}; no figure of a GPU"
    )
    kernel = Kernel(EMPTY, "empty")
    times = in_turns({"empty": lambda: kernel(1, 1)}, 2000, 9)["empty"]
    show("empty launch", [1e6 * t for t in times], "us")
    bench_gemm()
    bench_im2col()
    bench_compiling()
    bench_checking()


if __name__ == "__main__":
    main()
