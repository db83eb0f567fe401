"""The process of one side: builds its training, then does what it is told, line by line.

    python -m benchmarks.cpu.worker MODULE VARIANT POINT THREADS

Requests come on standard input, answers go to standard output, each a line of JSON:

    (started)         {"about": "PyTorch 2.13.0, 2 threads"}, once
    losses 3          {"losses": [2.4, 2.3, 2.2]}      three steps
    run 5             {"seconds": 0.51, "loss": 2.1}   of five steps together, after one not timed
    peak              {"bytes": 104857600}             most memory ever held

A side that cannot be answers {"not offered": why} or {"error": what} and ends with code 1.  What a
library prints goes to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.cpu import workloads
from benchmarks.cpu.training import NotOffered, Training


def main(arguments: list[str]) -> int:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    try:
        module, variant, point, threads = arguments
        _stay_on_cores(int(threads))
        make = importlib.import_module(module).make
        training: Training = make(workloads.build(point), variant, int(threads))
        answer({"about": training.about})
        for line in sys.stdin:
            request, *numbers = line.split()
            answer(REQUESTS[request](training, *map(int, numbers)))
    except NotOffered as reason:
        answer({"not offered": str(reason)})
        return 1
    except Exception as error:
        answer({"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"})
        return 1
    return 0


def losses(training: Training, count: int) -> dict[str, Any]:
    return {"losses": [training.value(training.step()) for _ in range(count)]}


def run(training: Training, count: int) -> dict[str, Any]:
    """One step to warm the caches that other sides have filled, then so many by the clock."""
    training.value(training.step())
    start = time.perf_counter()
    for _ in range(count):
        loss = training.step()
    value = training.value(loss)
    return {"seconds": time.perf_counter() - start, "loss": value}


def peak(training: Training) -> dict[str, Any]:
    """The most memory that this process has held.

    Linux keeps it in VmHWM.  What getrusage says may include the process that started this one, so
    it is the second choice.
    """
    status = Path("/proc/self/status")
    found = (
        re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))
        if status.exists()
        else None
    )
    if found:
        return {"bytes": int(found[1]) * 1024}
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"bytes": most if sys.platform == "darwin" else most * 1024}


REQUESTS: dict[str, Callable[..., dict[str, Any]]] = {"losses": losses, "run": run, "peak": peak}


def _stay_on_cores(count: int) -> None:
    """Run on so many cores, for libraries whose threads cannot be told (JAX takes all cores)."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
