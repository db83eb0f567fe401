"""results.json as Gradescope reads it.

The format: gradescope-autograders.readthedocs.io, "Autograder Specifications", sections "Output
format", "Controlling test case visibility", "Test case status", "Output String Formatting" and
"Leaderboards".  The top-level output is told to be plain text: the default there renders HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinygraph_course.checking.screen import WIDTH, words_of
from tinygraph_course.checking.steps import Failure
from tinygraph_course.grading.grading import WAITING, Result, StepResult

REVEAL = ("none", "sentence", "case")  # what is told of a private case that fails
_MOST = 20_000  # characters of an output
LATER = "private checks run at grading"
_STATES = {
    "not begun": "This step is not begun.",
    "not reached": "An earlier step comes first.",
}
_FAILED = "The grader failed, not your answer. Tell your teacher."
_LATE = "The grading ended before this was tried."
_SENTENCES = {
    "error": "it ends with an error",
    "type": "the answer has another type",
    "shape": "the answer has another shape",
    "dtype": "the answer has another dtype",
    "changed": "an argument is changed",
    "gradient": "a gradient is wrong",
    "values": "the values are wrong",
}


def results_json(
    results: Sequence[Result], reveal: str = "none", seconds: float = 0.0, ended: str = ""
) -> dict[str, Any]:
    """What goes into results.json for one submission.

    Parameters
    ----------
    results : sequence of Result
        One for each exercise that is asked for.
    reveal : {"none", "sentence", "case"}
        What a learner is told of a private case that fails.  With "none" the private tests are
        shown when the grades are published; Gradescope shows no total before.
    seconds : float
        How long it took.
    ended : str
        Why the grading is not whole; empty where it is.
    """
    tests = [
        test for result in results for step in result.steps for test in _tests(result, step, reveal)
    ]
    whole: dict[str, Any] = {
        "score": float(sum(result.points for result in results)),
        "execution_time": round(seconds),
        "output": _cut("\n".join([*([ended] if ended else []), *_heading(results, reveal)])),
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
        "leaderboard": _leaderboard(results),
    }
    return whole


def broken(words: str) -> dict[str, Any]:
    """The same where there is no result at all."""
    return {**results_json([], ended=words), "tests": [_informed("Grading", words)]}


def _informed(name: str, words: str) -> dict[str, Any]:
    return {
        "name": name,
        "number": "0",
        "score": 0.0,
        "max_score": 0.0,
        "status": "failed",
        "output": _cut(words),
        "output_format": "text",
        "visibility": "visible",
    }


def _heading(results: Sequence[Result], reveal: str) -> list[str]:
    """How many steps of each exercise, and what the private checks have to do with it."""
    steps = [step for result in results for step in result.steps]
    public = sum(step.public == "right" for step in steps)
    hidden = [step for step in steps if step.private != "none"]
    line = f"public {public} of {len(steps)}"
    if hidden and reveal == "none":
        line += f"; {LATER}"
    elif hidden:
        right = sum(step.private == "right" for step in hidden)
        line += f"; private {right} of {len(hidden)}"
    lines = [line]
    for result in results:
        name = f"{result.exercise.number} {result.exercise.title}"
        right = sum(step.public == "right" for step in result.steps)
        why = f" ({_why(result)})" if result.record is None else ""
        lines.append(f"  {name}: {right} of {len(result.steps)}{why}")
    return lines


def _why(result: Result) -> str:
    if not result.error:
        return result.problem
    return _LATE if result.error == WAITING else _FAILED


def _tests(result: Result, step: StepResult, reveal: str) -> list[dict[str, Any]]:
    """The public test of a step, and the private one where there is one."""
    name = f"{result.exercise.number}.{step.number} {step.title}"
    number = f"{result.exercise.number}.{step.number}"
    public = {
        "name": name,
        "number": number,
        "score": float(step.public == "right"),
        "max_score": 1.0,
        "status": "passed" if step.public == "right" else "failed",
        "output": _cut(_public(result, step)),
        "output_format": "text",
        "visibility": "visible",
    }
    if step.private == "none":
        return [public]
    private = {
        **public,
        "name": f"{name}, private",
        "number": f"{number}.2",
        "score": float(step.private == "right"),
        "status": "passed" if step.private == "right" else "failed",
        "output": _cut(_private(result, step, reveal)),
        "visibility": "after_published" if reveal == "none" else "visible",
    }
    return [public, private]


def _public(result: Result, step: StepResult) -> str:
    if step.public == "right":
        return "This step is right."
    if result.record is None:
        return _why(result)
    if step.public in _STATES:
        return _STATES[step.public]
    printed = result.record["public"]["printed"].strip()
    lines = _words(step.failure, result)
    return "\n".join([*lines, *(["", "printed:", printed] if printed else [])])


def _words(failure: Failure | None, result: Result) -> list[str]:
    if failure is None:
        return []
    picture = ["", failure.picture] if failure.picture else []
    return [*words_of(failure, result.exercise.file, WIDTH), *picture]


def _private(result: Result, step: StepResult, reveal: str) -> str:
    if step.private == "right":
        return "The private cases are right too."
    if result.record is None:
        return _why(result)
    if step.private in _STATES:
        return _STATES[step.private]
    if reveal == "none" or step.hidden is None:
        return "A private case is not right."
    if reveal == "sentence":
        kind = step.hidden.kind
        return f"A private case is not right: {_SENTENCES.get(kind, kind)}."
    return "\n".join(["A private case is not right:", *_words(step.hidden, result)])


def _leaderboard(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Counted bytes of the steps that have a goal of bytes and are passed; fewer are better."""
    return [
        {
            "name": f"{result.exercise.number}.{number} bytes",
            "value": count,
            "order": "asc",
        }
        for result in results
        if result.record
        for number, count in result.record["bytes"].items()
    ]


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[:_MOST]}\n..."
