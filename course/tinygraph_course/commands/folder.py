"""The learner's folder: his files, and what he has reached.

08_pool.py           a file for each exercise, made once and never written over
08_pool.md           its text
.course/state.json   steps that were passed, hints that were read, predictions
.course/backups/     files that `reset` has replaced
.course/pages/       launches that failed, to be gone through step by step
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tinygraph.base.errors import ArgumentError
from tinygraph.base.json_files import parse, read_text
from tinygraph.base.paths import typed
from tinygraph.files.sealed import write_atomically, write_json
from tinygraph_course.checking.check import Outcome
from tinygraph_course.content.exercise import Exercise, exercises

_OWN = ".course"
_README = Path(__file__).with_name("README.md")


class CourseFolder:
    """A folder with the files of the course.

    Parameters
    ----------
    path : Path

    Raises
    ------
    ArgumentError
        The course was not started there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        for inner in (path / _OWN, path / _OWN / "pages", path / _OWN / "backups"):
            if inner.is_symlink():  # of a stranger: what is written there would go elsewhere
                expected, got = (
                    "a folder of the course that is no link",
                    f"one to {inner.readlink()}",
                )
                way_out = "put a folder in its place"
                raise ArgumentError("course", str(inner), expected, got, way_out)
        if not (path / _OWN).is_dir():
            way_out = f"tinygraph course start {typed(path)} begins it there"
            raise ArgumentError("course", "folder", "one with the course", str(path), way_out)

    @classmethod
    def start(cls, path: Path) -> tuple[CourseFolder, list[Path]]:
        """The folder, with the files that were not there yet, and which they are."""
        try:
            (path / _OWN).mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise ArgumentError("course start", "folder", "a folder", f"{path}, a file") from None
        folder = cls(path)
        texts = {path / "README.md": _README.read_text(encoding="utf-8")}
        for exercise in exercises():
            texts[folder.file(exercise)] = exercise.stub
            texts[folder.file(exercise).with_suffix(".md")] = exercise.text
        fresh = [file for file in texts if not file.exists()]
        for file in fresh:
            write_atomically(file, texts[file].encode())
        return folder, fresh

    @classmethod
    def around(cls, path: Path) -> CourseFolder:
        """The folder of the course that a path lies in."""
        for place in (path, *path.parents):
            if (place / _OWN).is_dir():
                return cls(place)
        return cls(path)

    def file(self, exercise: Exercise) -> Path:
        """The learner's file."""
        return self.path / exercise.file

    def page(self, exercise: Exercise) -> Path:
        """The page of the launch that failed last; a browser that has it open loads it again."""
        return self.path / _OWN / "pages" / f"{self.file(exercise).stem}.html"

    def reset(self, exercise: Exercise) -> Path | None:
        """Put an untouched file in the place of the learner's, which is kept."""
        file, kept = self.file(exercise), None
        if file.exists():
            stamp = time.strftime("%Y-%m-%d-%H%M%S")
            kept = self.path / _OWN / "backups" / f"{file.stem}-{stamp}{file.suffix}"
            while kept.exists():
                kept = kept.with_name(f"{kept.stem}x{kept.suffix}")
            write_atomically(kept, file.read_bytes())
        write_atomically(file, exercise.stub.encode())
        self.note(exercise, {"passed": [], "failures": 0, "last": ""})
        return kept

    # ---- what was reached -------------------------------------------------------------------

    def state(self) -> dict[str, dict[str, Any]]:
        """By exercise: `passed`, `hints`, `failures` and so on; empty where it cannot be read."""
        try:
            found = parse(read_text(self.path / _OWN / "state.json"))
        except (OSError, ValueError):
            return {}
        good = isinstance(found, dict) and all(isinstance(own, dict) for own in found.values())
        return found if good else {}

    def of(self, exercise: Exercise) -> dict[str, Any]:
        """What was reached in one exercise."""
        own = self.state().get(exercise.name, {})
        fresh = {"passed": [], "hints": {}, "failures": 0, "last": "", "predicted": None}
        return fresh | own

    def note(self, exercise: Exercise, changes: Mapping[str, Any]) -> None:
        """Write down what was reached."""
        state = self.state()
        state[exercise.name] = {**self.of(exercise), **changes}
        write_json(self.path / _OWN / "state.json", state)

    def take(self, outcome: Outcome) -> int:
        """Note what a check found; how often in a row it was the same failure."""
        exercise, failure = outcome.exercise, outcome.failure
        words = "" if failure is None else f"{outcome.step} {failure.kind} {failure.text}"
        before = self.of(exercise)
        times = int(before["failures"]) + 1 if words and words == before["last"] else 1
        self.note(exercise, {"passed": list(outcome.passed), "failures": times, "last": words})
        return times

    def hint(self, exercise: Exercise, step: int) -> tuple[int, str]:
        """The next hint for a step, and its number; the last one again at the end."""
        read = dict(self.of(exercise)["hints"])
        hints = next(each.hints for each in exercise.steps if each.number == step)
        number = min(int(read.get(str(step), 0)) + 1, len(hints))
        self.note(exercise, {"hints": {**read, str(step): number}})
        return number, hints[number - 1]

    def answers(self, exercise: Exercise) -> list[str]:
        """What the learner had predicted, and how it is: once, when all steps are passed."""
        said = self.of(exercise)["predicted"] or []
        if not self.whole(exercise) or not any(said):
            return []
        self.note(exercise, {"predicted": []})
        lines = ["Before you wrote you predicted:"]
        for word, asked in zip(said, exercise.predictions, strict=False):
            if word:
                lines += ["", asked["question"], f"  You: {word}", f"  It is {asked['answer']}."]
                lines += [f"  {asked['why']}"]
        return lines

    def current(self) -> Exercise:
        """The first exercise that is not whole; the last one where all are."""
        known = exercises()
        return next((exercise for exercise in known if not self.whole(exercise)), known[-1])

    def finished(self) -> Exercise:
        """What can be run: the current exercise if it was begun, else the last one that is whole.

        Of those that have a network; the current one where none is whole.
        """
        current = self.current()
        file = self.file(current)
        if current.network and file.exists() and file.read_bytes() != current.stub.encode():
            return current
        whole = [one for one in exercises() if one.network and self.whole(one)]
        return whole[-1] if whole else current

    def whole(self, exercise: Exercise) -> bool:
        """Whether all of its steps are passed."""
        return len(self.of(exercise)["passed"]) == len(exercise.steps)
