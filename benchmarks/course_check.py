"""How long each step of the course takes to be checked: part of `make bench`.

Solutions are checked, so that every step tries all that it has.  Cold is the first check of a
process that has nothing of the file in its cache: it starts the learner's process, and kernels are
compiled; the emulator itself is there, as after `tinygraph course start`.  Warm is the same check
once more.

    python -m benchmarks.course_check              all exercises
    python -m benchmarks.course_check gemm pool    these
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from tinygraph.cli.machine import warmed
from tinygraph_course.checking.check import opened
from tinygraph_course.content.exercise import Exercise, exercises, find

ROUNDS = 3
GOALS = {"warm": ("numpy", 0.5), "cold": ("kernel", 2.0)}  # seconds for a step of which kind


def seconds_of(exercise: Exercise) -> dict[str, list[float]]:
    """Seconds of a cold and a warm check: until the file is loaded, then of each step."""
    found = {}
    with tempfile.TemporaryDirectory() as room:
        file = Path(room) / exercise.file
        file.write_text(exercise.solution, encoding="utf-8")
        for how in ("cold", "warm"):
            times = [time.perf_counter()]
            with opened(exercise, file) as learner:
                times.append(time.perf_counter())
                for step in exercise.steps:
                    failure = step.run(exercise, learner)
                    times.append(time.perf_counter())
                    if failure is not None:
                        raise RuntimeError(f"{exercise.name}, step {step.number}: {failure}")
            found[how] = [after - before for before, after in pairwise(times)]
    return found


def measured(name: str, cache: str) -> dict[str, list[float]]:
    """The same in a process of its own, with its own cache."""
    command = [sys.executable, "-m", "benchmarks.course_check", "--one", name]
    environment = {**os.environ, "TINYGRAPH_CACHE": f"{cache}/cache"}
    done = subprocess.run(
        command, env=environment, check=True, capture_output=True, encoding="utf-8"
    )
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def show(exercise: Exercise) -> None:
    """A line for each step, and which of them is over its goal."""
    rounds = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            rounds.append(measured(exercise.name, cache))
    names = ["the process, and loading", *(f"{s.number} {s.title}" for s in exercise.steps)]
    print(f"{exercise.number} {exercise.title}")
    kind = "kernel" if exercise.is_kernel else "numpy"
    for at, name in enumerate(names):
        line = f"  {name[:40]:40}"
        for how in ("cold", "warm"):
            values = [one[how][at] for one in rounds]
            of, most = GOALS[how]
            over = at > 0 and kind == of and statistics.median(values) > most
            line += f"  {how} {statistics.median(values):5.2f} s (from {min(values):.2f})"
            line += f", over {most:g} s" if over else ""
        print(line, flush=True)
    for how in ("cold", "warm"):
        whole = [sum(one[how]) for one in rounds]
        print(f"  {'all, ' + how:40}  {statistics.median(whole):10.2f} s (from {min(whole):.2f})")


def main(names: list[str]) -> None:
    if names[:1] == ["--one"]:
        exercise = find(names[1])
        if exercise.is_kernel:
            warmed()
        print(json.dumps(seconds_of(exercise)))
        return
    for exercise in [find(name) for name in names] or exercises():
        show(exercise)


if __name__ == "__main__":
    main(sys.argv[1:])
