"""Host time of device "cuda": microseconds of Python for each op and step, where no GPU works.

    python -m benchmarks.host_time
    python -m benchmarks.host_time --before ../other-checkout --output docs/benchmarks/PAGE.md

It runs on the real CuPy with the driver of tests/real_cupy, which does nothing with a launch: what
is left is what the host does, in Python and in CuPy's C++.  A real driver adds 2 to 3 microseconds
to a launch.  Each checkout has a process of its own; they take turns, call by call.

What is counted is the time of the thread on its processor: other programs on the machine take none
of it, though they may slow it down through the caches.
"""

from __future__ import annotations

import argparse
import gc
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import host
from benchmarks.report import table, write_page

ROOT = Path(__file__).parents[1]
ROUNDS = 15
SAMPLE = 0.02  # seconds of one round
KERNEL = 'extern "C" __global__ void copy(const float* x, float* y, int n) { y[n] = x[n]; }'

Call = Callable[[], Any]


# ---- in the process of one checkout


def calls(cupy: Any, device: str = "cuda") -> dict[str, Call]:
    """What is timed, by name; without CuPy nothing of its own."""
    import tinygraph as tg

    found = {**(_of_cupy(cupy) if cupy else {}), **_ops(tg, device)}
    for name, captured in (("eager", False), ("captured", True))[: 2 if device == "cuda" else 1]:
        found[f"seed step, {name}"] = _seed_step(tg, device, captured)
    return found


def _of_cupy(cupy: Any) -> dict[str, Call]:
    x, y, n = cupy.empty((64, 64), "f4"), cupy.empty((64, 64), "f4"), np.int32(5)
    launch = cupy.RawKernel(KERNEL, "copy").kernel
    return {
        "CuPy: launch": lambda: launch((1,), (1,), (x, y, n)),
        "CuPy: empty": lambda: cupy.empty((64, 64), "f4"),
    }


def _ops(tg: Any, device: str) -> dict[str, Call]:
    def tensor(*shape: int) -> Any:
        return tg.Tensor(np.ones(shape, "f4"), device=device)

    x, y, w, b = tensor(64, 64), tensor(64, 64), tensor(64, 64), tensor(64)

    def within_no_grad() -> None:
        with tg.no_grad():
            tg.relu(x)

    return {
        "relu(x)": lambda: tg.relu(x),
        "x + y": lambda: x + y,
        "x * 2.0": lambda: x * 2.0,
        "linear(x, w, b)": lambda: tg.linear(x, w, b),
        "x @ y": lambda: tg.matmul(x, y),
        "with no_grad(): relu(x)": within_no_grad,
    }


def _seed_step(tg: Any, device: str, captured: bool) -> Call:
    """A step of the seed network: batch 10, 256 filters; nothing reads the loss."""
    tg.manual_seed(0)
    nn = tg.nn
    layers = nn.Conv2d(1, 256, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(43264, 10)
    model = nn.Sequential(*layers).to(device)
    sgd = tg.optim.SGD(model.parameters(), lr=0.01)

    def step(x: Any, labels: Any) -> Any:
        loss = tg.softmax_cross_entropy(model(x), labels)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        return loss

    x = tg.Tensor(np.ones((10, 1, 28, 28), "f4"), device=device)
    labels = tg.Tensor(np.arange(10), device=device)
    run = tg.cuda.capture(step) if captured else step
    return lambda: run(x, labels)


def serve(checkout: Path) -> None:
    """Answer names from the standard input with microseconds and launches of one call."""
    sys.path.insert(0, str(checkout))
    import tinygraph  # this checkout's; the driver comes from ours, for every checkout

    sys.path[0] = str(ROOT)
    from tests.real_cupy.machine import start

    assert Path(tinygraph.__file__).is_relative_to(checkout), tinygraph.__file__
    machine = start()
    machine.library.machine_memory(64 << 30)
    machine.library.machine_idle(True)
    found, counts = calls(machine.cupy), {}
    for name, call in found.items():
        warm_up(call)
        machine.forget_calls()
        call()
        launches = machine.calls()
        counts[name] = launches["cuLaunchKernel"] + launches["cudaGraphLaunch"]
    gc.collect()
    gc.freeze()
    print("|".join(found), flush=True)
    for line in sys.stdin:
        name = line.strip()
        print(_microseconds(found[name]), counts[name], flush=True)


def warm_up(call: Call) -> None:
    """What is made once; the third call of a captured step records."""
    for _ in range(5):
        call()


def thread_seconds(call: Call, repeats: int) -> float:
    """Of the thread's time for one call, over many."""
    begin = time.thread_time()
    for _ in range(repeats):
        call()
    return (time.thread_time() - begin) / repeats


def _microseconds(call: Call) -> float:
    once = thread_seconds(call, 3)
    return thread_seconds(call, max(round(SAMPLE / once), 1)) * 1e6


# ---- the process that asks


class Side:
    """A process for one checkout, and what it answered."""

    def __init__(self, label: str, checkout: Path) -> None:
        self.label = label
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.host_time", "--serve", str(checkout)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        self.names = self._answer().split("|")
        self.times: dict[str, list[float]] = {name: [] for name in self.names}
        self.launches: dict[str, int] = {}

    def _answer(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.label}: the process ended with {self.process.wait()}")
        return line.strip()

    def time(self, name: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        microseconds, launches = self._answer().split()
        self.times[name].append(float(microseconds))
        self.launches[name] = int(launches)

    def cells(self, name: str) -> list[str]:
        """Median and quartiles in microseconds, and launches."""
        low, median, high = statistics.quantiles(self.times[name], n=4)
        return [f"{median:.1f} ({low:.1f} to {high:.1f})", str(self.launches[name])]


def measure(sides: Sequence[Side], rounds: int) -> str:
    """The table; sides take turns in every round of every call."""
    for _ in range(rounds):
        for name in sides[0].names:
            for side in sides:
                side.time(name)
    head = ["", *(word for side in sides for word in (f"{side.label}, us", "launches"))]
    return table(head, [[n, *(c for s in sides for c in s.cells(n))] for n in sides[0].names])


def about(rounds: int) -> str:
    """What was measured, where and when."""
    return (
        f"# Host time of device cuda, {date.today()}\n\n"
        "**No GPU took part.** Time of the host alone, on the real CuPy with a driver that does "
        "nothing with a\nlaunch (tests/real_cupy): microseconds of the thread for one call, median "
        f"and quartiles of {rounds} rounds in\nwhich all took turns. Ops: 64x64, float32, of "
        "tensors that require no gradient. Seed step: batch 10, 256 filters.\n\n"
        f"{host.processor()}, {host.cores()} cores, load {host.load()}; Python "
        f"{platform.python_version()}, numpy {np.__version__}.\n\n"
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", type=Path, help="another checkout, to take turns with this one")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--output", type=Path, help="a page to write")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.serve:
        serve(options.serve.resolve())
        return 0
    sides = [Side("before", options.before)] if options.before else []
    sides.append(Side("now", ROOT))
    page = about(options.rounds) + measure(sides, options.rounds) + "\n"
    print(page)
    if options.output:
        write_page(options.output, page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
