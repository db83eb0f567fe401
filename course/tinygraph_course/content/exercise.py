"""Exercises: a folder of exercises/ each, or of a folder that TINYGRAPH_EXERCISES names.

exercise.toml    number, title, minutes, forbidden, predictions
solution.py|.cu  the solution, with marks around what the learner writes (marks.py)
steps.py         STEPS: what is tried, from small to large
hints.md         title and hints of each step (pages.py)
mistakes.md      what goes wrong, as edits of the solution
answers.md       other right and wrong answers, which `course verify` tries; optional
text.md          formula, drawn picture, worked example, what to read afterwards; optional
network.py       what the learner may train with it, a Network (checking/network.py)
harness.py|.cu   what tries the learner's functions, put behind his file
fingerprints.json  how each wrong kernel behaves, made when the package is built

A package that was built without solutions has no steps, mistakes and answers.
"""

from __future__ import annotations

import copy
import importlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import tinygraph_course.exercises as package
from tinygraph.base.errors import ArgumentError, nearest
from tinygraph.base.text_file import read_text
from tinygraph_course.content import marks, pages
from tinygraph_course.content.edits import edited
from tinygraph_course.content.pages import Answer, Mistake

_VARIABLE = "TINYGRAPH_EXERCISES"


class Exercise:
    """What belongs to one exercise; `name` is that of its folder."""

    def __init__(self, folder: Path) -> None:
        self.name, self.folder = folder.name, folder
        about = tomllib.loads(read_text(self.folder / "exercise.toml"))
        self._about: dict[str, Any] = about
        self.number: int = about["number"]
        self.title: str = about["title"]
        self.minutes: int = about["minutes"]
        self.predictions: list[dict[str, str]] = about.get("predictions", [])

    @property
    def is_kernel(self) -> bool:
        return self._solution_file.suffix == ".cu"

    @property
    def file(self) -> str:
        """The name of the learner's file."""
        return f"{self.number:02d}_{self.name}{self._solution_file.suffix}"

    @property
    def _solution_file(self) -> Path:
        return next(self.folder.glob("solution.*"))

    @cached_property
    def marked(self) -> str:
        """The solution with its marks."""
        return read_text(self._solution_file)

    @property
    def solution(self) -> str:
        return marks.clean(self.marked)

    @property
    def stub(self) -> str:
        return marks.stub(self.marked)

    @property
    def harness(self) -> str:
        """What is put behind the learner's file."""
        file = self.folder / f"harness{self._solution_file.suffix}"
        return read_text(file) if file.exists() else ""

    @property
    def text(self) -> str:
        file = self.folder / "text.md"
        if file.exists():
            return read_text(file)
        return f"# Exercise {self.number}: {self.title}\n\nWhat to do stands in `{self.file}`.\n"

    @property
    def stripped(self) -> bool:
        """Whether the solution was left out, as `course build --stripped` does."""
        return not (self.folder / "steps.py").exists()

    @cached_property
    def steps(self) -> Sequence[Any]:
        """The steps with their titles and hints; where they are left out, these alone."""
        told = {titled.number: titled for titled in pages.titles(self._page("hints.md"))}
        if self.stripped:
            return list(told.values())
        steps = self._module("steps").STEPS
        if set(told) != {step.number for step in steps}:
            expected = f"a section for each of {[step.number for step in steps]}"
            raise ArgumentError("course", f"{self.folder / 'hints.md'}", expected, list(told))
        return [
            replace(step, title=told[step.number].title, hints=told[step.number].hints)
            for step in steps
        ]

    @cached_property
    def mistakes(self) -> list[Mistake]:
        return [] if self.stripped else pages.mistakes(self._page("mistakes.md"))

    @cached_property
    def answers(self) -> list[Answer]:
        """What somebody might write, right and wrong; nothing where nobody has collected it."""
        file = self.folder / "answers.md"
        return pages.answers(file, self.marked) if file.exists() else []

    def _page(self, name: str) -> Path:
        file = self.folder / name
        if not file.exists():
            way_out = "docs/course/writing.md says what belongs to an exercise"
            raise ArgumentError(
                "course", self.name, f"a file {name}", f"none in {file.parent}", way_out
            )
        return file

    @cached_property
    def fingerprints(self) -> dict[str, Any]:
        file = self.folder / "fingerprints.json"
        found: dict[str, Any] = json.loads(read_text(file)) if file.exists() else {}
        return found

    @property
    def forbidden(self) -> list[str]:
        """Names of the framework that are what the learner is to write."""
        return list(self._about.get("forbidden", []))

    @property
    def network(self) -> Any:
        """The class of the network that trains with what the learner wrote; None for none."""
        return self._module("network").Network if (self.folder / "network.py").exists() else None

    def variants(self, mistake: Mistake) -> list[str]:
        """The solution with a mistake put in, for each way to make it."""
        return [edited(self.solution, way) for way in mistake.ways]

    def of_step(self, step: int) -> list[Mistake]:
        """The known mistakes of a step."""
        return [mistake for mistake in self.mistakes if mistake.step == step]

    def with_steps(self, steps: Sequence[Any]) -> Exercise:
        """The same exercise with other steps, of which no mistake is known."""
        made = copy.copy(self)
        made.steps, made.mistakes, made.fingerprints = steps, [], {}
        return made

    def _module(self, part: str) -> ModuleType:
        return importlib.import_module(f"{package.__name__}.{self.name}.{part}")


def exercises() -> list[Exercise]:
    """All exercises, in their order.

    Raises
    ------
    ArgumentError
        TINYGRAPH_EXERCISES names what is no folder, or two exercises have one number or one name.
    """
    found = [Exercise(file.parent) for at in _places() for file in at.glob("*/exercise.toml")]
    found.sort(key=lambda exercise: exercise.number)
    for one, other in combinations(found, 2):
        if one.number == other.number or one.name == other.name:
            got = f"{one.number} in {one.folder} and {other.number} in {other.folder}"
            expected = "a number and a name of its own for each exercise"
            raise ArgumentError("course", _VARIABLE, expected, got)
    return found


def _places() -> list[Path]:
    places = [Path(place) for place in package.__path__]
    for place in places:
        if not place.is_dir():
            raise ArgumentError("course", _VARIABLE, "folders of exercises", f"{place}")
    return places


def find(word: str) -> Exercise:
    """An exercise by its number, its name, or the name of its file.

    Raises
    ------
    ArgumentError
        There is none.

    >>> find("8").name, find("08_pool.py").name
    ('pool', 'pool')
    """
    known = exercises()
    bare = Path(word).stem
    for exercise in known:
        if bare in (exercise.name, str(exercise.number), Path(exercise.file).stem):
            return exercise
    numbers = ", ".join(f"{e.number} {e.name}" for e in known)
    hint = nearest(bare, [e.name for e in known])
    raise ArgumentError("course", "exercise", f"one of {numbers}", repr(word), hint)
