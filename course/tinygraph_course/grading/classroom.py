"""What a class has reached, and which mistakes were made how often: of the results of a grading."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tinygraph_course.checking.steps import NOT_BEGUN, Failure
from tinygraph_course.content.exercise import Exercise
from tinygraph_course.grading.grading import Result

COLUMNS = (
    *("submission", "exercise", "step", "title", "public", "private", "points", "of"),
    *("kind", "mistake", "sure", "words"),
)


class Named(NamedTuple):
    """A known mistake, and who made it; `likely` are those of whom it only looks like it."""

    exercise: Exercise
    step: int
    name: str
    says: str
    surely: list[str]
    likely: list[str]


class Unnamed(NamedTuple):
    """Failures of one kind at one step that no known mistake explains, and the smallest of them."""

    exercise: Exercise
    step: int | None
    failure: Failure
    who: list[str]


class Reached(NamedTuple):
    """Of a step, how many have handed its file in, have passed it, and are stopped by it."""

    number: int
    title: str
    handed_in: int
    passed: int
    stopped: int


def mistakes(results: Iterable[Result]) -> list[Named]:
    """The known mistakes that were made, the commonest first."""
    found: dict[tuple[str, int, str], Named] = {}
    for result in results:
        for step in result.steps:
            failure = step.failure
            if failure is None or failure.mistake is None:
                continue
            mistake = failure.mistake
            key = (result.exercise.name, mistake.step, mistake.name)
            fresh = Named(result.exercise, mistake.step, mistake.name, mistake.says, [], [])
            one = found.setdefault(key, fresh)
            (one.surely if failure.sure else one.likely).append(result.submission)
    return sorted(found.values(), key=lambda one: -len(one.surely) - len(one.likely))


def unnamed(results: Iterable[Result]) -> list[Unnamed]:
    """Failures without a name, the commonest first, each with the smallest case of its kind."""
    found: dict[tuple[str, int | None, str], Unnamed] = {}
    for result in results:
        for step in result.steps:
            failure = step.failure
            if failure is None or failure.mistake is not None or failure.kind == NOT_BEGUN:
                continue
            at = result.record["public"]["step"] if result.record else None
            key = (result.exercise.name, at, failure.kind)
            one = found.setdefault(key, Unnamed(result.exercise, at, failure, []))
            one.who.append(result.submission)
            if _size(failure) < _size(one.failure):
                found[key] = one._replace(failure=failure)
    return sorted(found.values(), key=lambda one: -len(one.who))


def _size(failure: Failure) -> tuple[int, str]:
    words = f"{failure.case}{failure.expected}{failure.got}{failure.text}"
    return len(words), words


def reached(exercise: Exercise, results: Sequence[Result]) -> list[Reached]:
    """How far a class is in one exercise, step by step."""
    rows = [result.steps for result in results if result.exercise.name == exercise.name]
    found = []
    for at, step in enumerate(exercise.steps):
        words = [row[at].public for row in rows]
        there = [word for word in words if word not in ("missing", "error")]
        stopped = sum(word in ("wrong", NOT_BEGUN) for word in there)
        found.append(Reached(step.number, step.title, len(there), words.count("right"), stopped))
    return found


def csv_text(results: Iterable[Result]) -> str:
    """A line for each step of each submission."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for result in results:
        for step in result.steps:
            failure = step.failure
            mistake = failure.mistake if failure else None
            words = result.error or result.problem or (failure.text if failure else "")
            writer.writerow(
                [
                    _plain(result.submission),
                    result.exercise.name,
                    step.number,
                    step.title,
                    step.public,
                    step.private,
                    step.points,
                    step.of,
                    failure.kind if failure else "",
                    mistake.name if mistake else "",
                    "" if mistake is None or failure is None else "yes" if failure.sure else "no",
                    _plain(" ".join(words.split())),
                ]
            )
    return out.getvalue()


def _plain(text: str) -> str:
    """Text that no spreadsheet takes for a formula: learners name their folders."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t") else text


def points_of(results: Sequence[Result]) -> dict[str, tuple[int, int]]:
    """Of each submission its points, and how many there are."""
    found: dict[str, tuple[int, int]] = {}
    for result in results:
        points, of = found.get(result.submission, (0, 0))
        found[result.submission] = points + result.points, of + result.of
    return found
