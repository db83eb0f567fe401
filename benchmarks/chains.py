"""Elementwise chains, forward and backward: the body in numpy beside the one that numba compiles.

    python -m benchmarks.chains     prints two tables; docs/plan.md sums up those of one machine

    a step      a plan's forward, and its backward with a random upstream gradient: of the ops one
                by one in numpy, of the chain in numpy, of the chain compiled.  On two threads each
                does a half of the values, with a plan of its own.
    compiling   in fresh processes: importing numba, and making a chain ready (three loops: forward,
                and backward for an upstream gradient that is an array or one number), first with an
                empty cache on disk, then with what that has left there

The sides take turns, and have to agree before they are timed; a figure is the median of the rounds,
with the smallest and the largest.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import tinygraph as tg
from benchmarks import host
from benchmarks.timing import Ratio, Times
from tinygraph.engine.graph import topological_order
from tinygraph.plan.code import Code, code_of
from tinygraph.plan.fast import with_compiled_bodies
from tinygraph.plan.rewrites import rewritten
from tinygraph.plan.rewrites.elementwise_chains import find_elementwise_chains
from tinygraph.plan.runner import Plan

COLUMNS = 1024
BODIES = "op by op", "numpy", "numba"
FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "(x - y) * 0.5 + x * y": lambda x, y: (x - y) * 0.5 + x * y,
    "relu(x + y) * 0.5": lambda x, y: tg.relu(x + y) * 0.5,
    "x / (1 + abs(y))": lambda x, y: x / (1.0 + abs(y)),
    "x * sigmoid(x)": lambda x, y: x * tg.sigmoid(x),
    "gelu(x), with tanh": lambda x, y: (
        0.5 * x * (1.0 + tg.tanh(0.7978846 * x * (1.0 + 0.044715 * x * x)))
    ),
    "exp(-(x - y)^2)": lambda x, y: tg.exp(-((x - y) * (x - y))),
    "log(x^2 + y^2 + 1)": lambda x, y: tg.log(x * x + y * y + 1.0),
}

# Run in a fresh process: seconds of importing numba, and of making one chain ready, then another.
FIRST_CALL = """
import time
from benchmarks.chains import FORMULAS, code_of_chain
start = time.perf_counter()
import numba
print(time.perf_counter() - start)
for name in ("x * sigmoid(x)", "gelu(x), with tanh"):
    start = time.perf_counter()
    code_of_chain(FORMULAS[name], 16, "numba")
    print(time.perf_counter() - start)
"""


def code_of_chain(formula: Callable[[Any, Any], Any], samples: int, body: str) -> Code:
    """A plan's code for forward and backward, on two leaves with random values."""
    rng = np.random.default_rng(samples)
    leaves = [tg.Parameter(rng.standard_normal((samples, COLUMNS), np.float32)) for _ in range(2)]
    node = formula(*leaves)
    code = code_of(topological_order([node]), [], node)
    if body != "op by op":
        code = rewritten(code, lambda code: find_elementwise_chains(code, 0))
    return with_compiled_bodies(code, body == "numba")


class Part:
    """One thread's share of the samples, and the plan that runs it."""

    def __init__(self, formula: Callable[[Any, Any], Any], samples: int, body: str) -> None:
        code = code_of_chain(formula, samples, body)
        self.plan = Plan(code)
        self.leaves = [
            made.tensor
            for made in code.instructions
            if made.tensor is not None and made.tensor.requires_grad
        ]
        rng = np.random.default_rng(samples + 1)
        self.upstream = rng.standard_normal((samples, COLUMNS), np.float32)
        for _ in range(2):  # buffers are laid out, and two sets of gradients made
            self.step()

    def step(self) -> None:
        for leaf in self.leaves:
            leaf.grad = None
        self.plan.run([], self.upstream)

    def gradients(self) -> list[Any]:
        return [leaf.grad for leaf in self.leaves if leaf.grad is not None]


def timed(name: str, kibibytes: int, threads: int, rounds: int) -> str:
    """A line of the table."""
    samples = (kibibytes << 10) // (4 * COLUMNS * threads)
    sides = {body: [Part(FORMULAS[name], samples, body) for _ in range(threads)] for body in BODIES}
    for body in BODIES[1:]:
        for a, b in zip(sides[body][0].gradients(), sides[BODIES[0]][0].gradients(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    count = max(1, 4096 // kibibytes)  # steps in a row, where they are short
    seconds: dict[str, list[float]] = {body: [] for body in BODIES}
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(rounds):
            for body, parts in sides.items():
                start = time.perf_counter()
                list(pool.map(lambda part: [part.step() for _ in range(count)], parts))
                seconds[body].append((time.perf_counter() - start) / count)
    times = {body: Times.by_wall(found) for body, found in seconds.items()}
    cells = [f"`{name}`", f"{kibibytes / 1024:g}", str(threads)]
    cells += [times[body].text() for body in BODIES]
    cells += [Ratio.of(times[body], times["numba"]).text() for body in BODIES[:2]]
    return f"| {' | '.join(cells)} |"


def compiling(rounds: int) -> str:
    """The second table."""
    found: list[list[list[float]]] = [[], []]
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            settings = {**os.environ, "TINYGRAPH_CACHE": f"{cache}/cache"}
            settings.pop("NUMBA_CACHE_DIR", None)
            for runs in found:
                out = subprocess.run(
                    [sys.executable, "-c", FIRST_CALL],
                    env=settings,
                    check=True,
                    capture_output=True,
                    encoding="utf-8",
                ).stdout
                runs.append([float(line) for line in out.split()])
    lines = ["| seconds | empty cache | next process |", "|---|---|---|"]
    for i, what in enumerate(("import numba", "the first chain", "the second chain")):
        cells = [Times.by_wall([run[i] for run in runs]).text(1.0) for runs in found]
        lines.append(f"| {what} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chains")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--kibibytes", type=int, nargs="+", default=[256, 1024, 8192, 65536])
    args = parser.parse_args()
    print(f"{host.processor()}, {host.cores()} cores, numpy {np.__version__}, load {host.load()}\n")
    print(
        "| chain | MiB | threads | op by op, ms | numpy, ms | numba, ms | numba / op by op "
        "| numba / numpy |\n|---|---|---|---|---|---|---|---|"
    )
    for kibibytes in args.kibibytes:
        for threads in (1, 2):
            for name in FORMULAS:
                print(timed(name, kibibytes, threads, args.rounds), flush=True)
    print("\n" + compiling(3))


if __name__ == "__main__":
    main()
