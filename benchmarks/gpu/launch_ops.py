"""Run one of the main works once, warmed up: the child process that the profiler watches.

python -m benchmarks.gpu.launch_ops WORK [--device cuda|emulator] [--small]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.gpu import ours
from benchmarks.workloads import seed_network

WORKS = ("sgemm", "tf32", "conv", "seed")


def work(name: str, device: str, small: bool) -> tuple[Callable[[], Any], str]:
    """What is run, and in which precision."""
    rng = np.random.default_rng(0)
    if name in ("sgemm", "tf32"):
        n = 40 if small else 4096
        a, b = (rng.standard_normal((n, n), np.float32) for _ in range(2))
        return ours.product(a, b, device), ours.TF32 if name == "tf32" else ours.STRICT
    if name == "conv":
        n, size = (2, 6) if small else (64, 56)
        x = rng.standard_normal((n, 64, size, size), np.float32)
        w = rng.standard_normal((64, 64, 3, 3), np.float32)
        return ours.convolution(x, w, x, 1, device)[1], ours.STRICT
    workload = seed_network(2, 4, size=8) if small else seed_network(1000, 256)
    return ours.steps(workload, device)[ours.BEST], ours.STRICT


def main() -> None:
    parser = argparse.ArgumentParser(description="Run one of the main works.")
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("--device", choices=("cuda", "emulator"), default="cuda")
    parser.add_argument("--small", action="store_true", help="for a rehearsal")
    args = parser.parse_args()
    run, precision = work(args.work, args.device, args.small)
    with ours.precision(precision):
        run()
    print(f"ran {args.work}", flush=True)


if __name__ == "__main__":
    main()
