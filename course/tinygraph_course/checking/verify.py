"""An exercise as its writer tries it: is every mistake named, and each answer judged rightly?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tinygraph.base.errors import ArgumentError
from tinygraph_course.checking.check import Outcome, check
from tinygraph_course.checking.steps import NOT_BEGUN
from tinygraph_course.content.exercise import Exercise
from tinygraph_course.content.pages import Answer, Mistake

HINTS = 3
_GAP = re.compile(r"TODO step (\d+) ")


def tried(exercise: Exercise) -> Iterator[tuple[str, str]]:
    """What was tried, and what is wrong with it; nothing where it is as it should be.

    Examples
    --------
    >>> from tinygraph_course.content.exercise import find
    >>> next(tried(find("pool")))
    ('steps, gaps and hints', '')
    """
    yield "steps, gaps and hints", _numbers(exercise)
    untouched = _outcome(exercise, exercise.stub)
    begun = untouched.passed or untouched.failure is None or untouched.failure.kind != NOT_BEGUN
    yield "the stub passes no step", f"it is answered with {_words(untouched)}" if begun else ""
    solved = _outcome(exercise, exercise.solution)
    yield "the solution passes every step", "" if solved.ok else _words(solved)
    for mistake in exercise.mistakes:
        yield f"step {mistake.step}, {mistake.name}", _named(exercise, mistake)
    for answer in exercise.answers:
        yield f"step {answer.step}, {answer.verdict}: {answer.name}", judged(exercise, answer)


def _numbers(exercise: Exercise) -> str:
    numbers = [step.number for step in exercise.steps]
    gaps = sorted({int(number) for number in _GAP.findall(exercise.stub)})
    if numbers != list(range(1, len(numbers) + 1)) or gaps != numbers:
        return f"steps are numbered {numbers}, and gaps {gaps}: both go from 1 on"
    few = [step.number for step in exercise.steps if len(step.hints) != HINTS]
    return f"steps {few} have another number of hints than {HINTS}" if few else ""


def _named(exercise: Exercise, mistake: Mistake) -> str:
    """What is wrong with a mistake, in the first of its ways that is not named."""
    try:
        texts = exercise.variants(mistake)
    except ArgumentError as error:
        return str(error)
    for text in texts:
        outcome = _outcome(exercise, text)
        failure = outcome.failure
        if failure is None:
            return "it passes: no case shows it"
        if outcome.step != mistake.step:
            return f"it fails earlier: {_words(outcome)}"
        if failure.mistake is not mistake:
            other = f"is called {failure.mistake.name}" if failure.mistake else "has no name"
            return f"it {other}: {_words(outcome)}"
        if not failure.sure:
            return "it is not named surely: other numbers are drawn, or a fingerprint is old"
    return ""


def judged(exercise: Exercise, answer: Answer) -> str:
    """What is wrong with the verdict of an answer; nothing where it is as its file says."""
    outcome = _outcome(exercise, answer.text)
    failure = outcome.failure
    if answer.verdict == "right" or failure is None:
        right = (answer.verdict == "right") == outcome.ok
        return "" if right else _words(outcome)
    if outcome.step != answer.step:
        return f"it fails at another step: {_words(outcome)}"
    name = failure.mistake.name if failure.mistake else ""
    known = {"unknown": not name or not failure.sure, "unnamed": not name}
    if known.get(answer.verdict, name == answer.verdict):
        return ""
    return f"it is called {name}: {_words(outcome)}" if name else f"no name: {_words(outcome)}"


def _outcome(exercise: Exercise, text: str) -> Outcome:
    with TemporaryDirectory() as room:
        file = Path(room) / exercise.file
        file.write_text(text, encoding="utf-8")
        return check(exercise, file)


def _words(outcome: Outcome) -> str:
    failure = outcome.failure
    if failure is None:
        return "all steps are right"
    return f"step {outcome.step}, {failure.kind}: {failure.text or failure.case}"
