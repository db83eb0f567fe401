"""How known mistakes in kernels behave, made anew.

python -m tinygraph_course.checking.fingerprints           of all exercises with kernels
python -m tinygraph_course.checking.fingerprints 21 map    of these
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tinygraph.base.json_text import to_json
from tinygraph_course.checking.child import Limits
from tinygraph_course.checking.kernel_step import KernelStep
from tinygraph_course.checking.learner import Learner
from tinygraph_course.content.exercise import Exercise, exercises, find

LIMITS = Limits(seconds=60.0)


def made(exercise: Exercise) -> dict[str, Any]:
    """The fingerprints of each mistake in its step, one for each way to make it."""
    found: dict[str, Any] = {}
    for mistake in exercise.mistakes:
        step = next(step for step in exercise.steps if step.number == mistake.step)
        if isinstance(step, KernelStep):
            texts = exercise.variants(mistake)
            found[mistake.name] = [_of_text(exercise, step, text) for text in texts]
    return found


def _of_text(exercise: Exercise, step: KernelStep, text: str) -> list[Any]:
    with TemporaryDirectory() as room:
        file = Path(room) / exercise.file
        file.write_text(text + exercise.harness, encoding="utf-8")
        with Learner(file, LIMITS) as learner:
            return step.fingerprint(step.observe(learner))


def write(names: Sequence[str] = ()) -> None:
    """One file for each of these exercises that has kernels."""
    for exercise in [find(name) for name in names] or exercises():
        if exercise.is_kernel:
            text = to_json("fingerprints.json", made(exercise), separators=(",", ":"))
            (exercise.folder / "fingerprints.json").write_text(f"{text}\n", encoding="utf-8")
            print(f"wrote {exercise.folder / 'fingerprints.json'}, {len(text):,} bytes")


if __name__ == "__main__":
    write(sys.argv[1:])
