"""How known mistakes in kernels behave, made anew: python -m tinygraph.course.fingerprints."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tinygraph.course.child import Limits
from tinygraph.course.exercise import Exercise, exercises
from tinygraph.course.kernel_step import KernelStep, fingerprint
from tinygraph.course.learner import Learner

LIMITS = Limits(seconds=60.0)


def made(exercise: Exercise) -> dict[str, Any]:
    """The fingerprint of each mistake in its step."""
    found = {}
    for mistake in exercise.mistakes:
        step = next(step for step in exercise.steps if step.number == mistake.step)
        if isinstance(step, KernelStep):
            with TemporaryDirectory() as room:
                file = Path(room) / exercise.file
                file.write_text(exercise.edited(mistake) + exercise.harness, encoding="utf-8")
                with Learner(file, LIMITS) as learner:
                    found[mistake.name] = fingerprint(step.observe(learner))
    return found


def write() -> None:
    """One file for each exercise with kernels."""
    for exercise in exercises():
        if exercise.is_kernel:
            text = json.dumps(made(exercise), separators=(",", ":"))
            (exercise.folder / "fingerprints.json").write_text(f"{text}\n")
            print(f"wrote {exercise.folder / 'fingerprints.json'}, {len(text):,} bytes")


if __name__ == "__main__":
    write()
