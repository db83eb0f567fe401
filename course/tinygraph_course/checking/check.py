"""A check: the steps of an exercise, one after the other, until one is not passed."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tinygraph.base.errors import ArgumentError
from tinygraph.base.frozen import frozen
from tinygraph.base.paths import typed
from tinygraph.base.text_file import python_text, source_text
from tinygraph.cuda.reading.tokens import without_comments
from tinygraph_course.checking.learner import DEFAULT, Died, Learner, Limits
from tinygraph_course.checking.rules import broken_rules
from tinygraph_course.checking.steps import (
    NOT_BEGUN,
    NOT_COMPILED,
    Failure,
    Raised,
    answer_of,
    said,
)
from tinygraph_course.content.exercise import Exercise


@frozen
class Outcome:
    """What a check found.

    Attributes
    ----------
    exercise : Exercise
    passed : sequence of int
        Numbers of the steps that are right.
    step : int or None
        The first one that is not; None where all are, or the file could not be loaded.
    failure : Failure or None
    printed : str
        What the learner's code printed.
    seconds : float
    text : str
        The file as it was tried; empty where it could not be.
    """

    exercise: Exercise
    passed: Sequence[int]
    step: int | None
    failure: Failure | None
    printed: str = ""
    seconds: float = 0.0
    text: str = ""

    @property
    def ok(self) -> bool:
        return self.failure is None

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it."""
        failure = None if self.failure is None else asdict(self.failure)
        if failure:
            failure.pop("request")
        if failure and failure["mistake"]:
            failure["mistake"] = {key: failure["mistake"][key] for key in ("step", "name", "says")}
        return {
            "exercise": self.exercise.name,
            "ok": self.ok,
            "passed": list(self.passed),
            "of": len(self.exercise.steps),
            "step": self.step,
            "failure": failure,
            "printed": self.printed,
            "seconds": round(self.seconds, 3),
        }


def judged(exercise: Exercise, op: str) -> None:
    """Raise ArgumentError where the package has no solution of an exercise."""
    if exercise.stripped:
        expected = f"a package with the solution of {exercise.name}"
        way_out = "hand the file in: the grader, whose package has it, checks it"
        raise ArgumentError(op, "solution", expected, "one built without solutions", way_out)


class Unusable(Exception):
    """A file of which nothing can be tried; `failure` says why."""

    def __init__(self, failure: Failure, printed: str = "") -> None:
        super().__init__(failure.text)
        self.failure, self.printed = failure, printed


def check(exercise: Exercise, path: Path, limits: Limits = DEFAULT) -> Outcome:
    """Try a file.

    Raises
    ------
    ArgumentError
        The file is absent, or no text; or it can be loaded, and there is no solution in this
        package by which it could be judged.
    """
    begun, text = time.perf_counter(), ""
    try:
        with opened(exercise, path, limits) as learner:
            judged(exercise, "course check")
            found = _tried(exercise, learner)
            printed, text = learner.output(), learner.text.removesuffix(exercise.harness)
    except Unusable as unusable:
        found, printed = ([], None, unusable.failure), unusable.printed
    return Outcome(exercise, *found, printed, time.perf_counter() - begun, text)


@contextmanager
def opened(exercise: Exercise, path: Path, limits: Limits = DEFAULT) -> Iterator[Learner]:
    """A process with a file that keeps the rules, and that could be loaded.

    Raises
    ------
    ArgumentError
        The file is absent, or no text.
    Unusable
    """
    try:
        text = text_of(exercise, path)
    except FileNotFoundError:
        raise ArgumentError(
            "course check",
            "file",
            f"{path}",
            "none",
            f"tinygraph course start {typed(path.parent)} makes it",
        ) from None
    except (OSError, ValueError) as error:
        raise ArgumentError("course check", "file", f"{path} as text", f"{error}") from None
    if words := _without_code(exercise, text):
        raise Unusable(Failure("error", words))
    if broken := broken_rules(exercise, text):
        line, words = broken[0]
        source = text.splitlines()[line - 1].strip() if line else ""
        raise Unusable(Failure("rule", words, line=line or None, source=source))
    with TemporaryDirectory() as room:
        file = Path(room) / path.name
        behind = exercise.harness if exercise.is_kernel else ""
        file.write_text(text + behind, encoding="utf-8")
        with Learner(file, limits, exercise.forbidden) as learner:
            if not exercise.is_kernel:
                _load(learner, exercise.harness)
            yield learner


def text_of(exercise: Exercise, path: Path) -> str:
    """The text of a learner's file; OSError, and ValueError of what is no text."""
    return source_text(path) if exercise.is_kernel else python_text(path)


def _without_code(exercise: Exercise, text: str) -> str:
    """What is said of a file in which there is nothing to try; nothing of others."""
    if exercise.is_kernel:
        code = without_comments(text).strip()
    else:
        try:
            code = "".join(ast.unparse(line) for line in ast.parse(text).body if not _is_text(line))
        except (SyntaxError, ValueError):  # loading it says where
            return ""
    if code:
        return ""
    return "there are only comments in the file" if text.strip() else "the file is empty"


def _is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def _load(learner: Learner, harness: str) -> None:
    try:
        loaded = answer_of(learner.ask({"do": "load", "harness": harness})[0])
    except Died as died:
        raise Unusable(Failure("error", str(died)), learner.output()) from None
    if isinstance(loaded, Raised):
        text = said(loaded).removeprefix("error: ")
        failure = Failure("error", text, line=loaded.line, source=loaded.text)
        raise Unusable(failure, learner.output())


def _tried(exercise: Exercise, learner: Learner) -> tuple[list[int], int | None, Failure | None]:
    """The steps that are passed, the first that is not, and why."""
    passed: list[int] = []
    current: int | None = None
    try:
        for step in exercise.steps:
            current, before = step.number, learner.answered
            failure = step.run(exercise, learner)
            if failure is not None and failure.kind == NOT_COMPILED:
                return passed, None, failure  # it is the file, not this step
            if failure is not None:
                return passed, current, failure
            if learner.answered == before:
                expected = "at least one call that is tried"
                raise ArgumentError("course check", f"step {current}", expected, "none")
            passed.append(current)
    except Died as died:
        return passed, current, Failure("error", str(died))
    if not passed:
        raise ArgumentError("course check", "steps", "at least one that is tried", "none")
    return passed, None, None


def begun(outcome: Outcome) -> bool:
    """Whether the step that is not passed was begun."""
    return outcome.failure is not None and outcome.failure.kind != NOT_BEGUN
