"""What the learner sees of a check: the steps, and the one that is not passed."""

from __future__ import annotations

import textwrap

from tinygraph.course.check import Outcome, begun
from tinygraph.course.steps import Failure

WIDTH, PRINTED = 88, 5
_CODES = {"bold": "1", "red": "31", "green": "32", "grey": "90"}


def screen(outcome: Outcome, colour: bool = False, offer_hint: bool = False) -> list[str]:
    """The lines; more than 24 of them only where a picture needs it."""

    def paint(text: str, *codes: str) -> str:
        on = "".join(f"\x1b[{_CODES[code]}m" for code in codes)
        return f"{on}{text}\x1b[0m" if colour else text

    exercise = outcome.exercise
    heading = f"{exercise.number} {exercise.title}"
    lines = [f"{paint(heading, 'bold')}  {paint(exercise.file, 'grey')}"]
    for step in exercise.steps:
        word, codes = "", ("grey",)
        if step.number in outcome.passed:
            word, codes = "ok", ("green",)
        elif step.number == outcome.step:
            word, codes = ("wrong", ("red",)) if begun(outcome) else ("next", ("bold",))
        lines.append(paint(f"  {word:6}{step.number:2}  {step.title}", *codes))
    if outcome.failure is not None and begun(outcome):
        lines += ["", *_told(outcome.failure, exercise.file)]
        if offer_hint:
            lines += ["", "The same three times: `tinygraph course hint` helps."]
    if outcome.ok:
        lines += ["", paint(f"All {len(outcome.passed)} steps are right.", "green", "bold")]
    if printed := outcome.printed.strip().splitlines():
        cut = printed[-PRINTED:]
        more = f" (the last {PRINTED} lines of {len(printed)})" if len(printed) > PRINTED else ""
        lines += ["", f"printed{more}:", *(f"  {line[:WIDTH]}" for line in cut)]
    return lines


def _told(failure: Failure, file: str) -> list[str]:
    """The mistake by name, then the smallest case that shows it."""
    lines: list[str] = []
    if failure.mistake is not None:
        lead = "" if failure.sure else "It looks like this: "
        lines += [*f"{lead}{failure.mistake.says}".splitlines(), ""]
    if failure.line is not None:
        lines += [f"{file}, line {failure.line}: {failure.source}"]
    if failure.text:
        lines += textwrap.wrap(failure.text, WIDTH, break_long_words=False)
    if failure.case:
        lines += [line[:WIDTH] for line in failure.case.splitlines()]
    if failure.expected:
        lines += [f"  expected {_short(failure.expected)}"]
    if failure.got:
        lines += [f"  got      {_short(failure.got)}"]
    if failure.picture:
        lines += ["", *failure.picture.splitlines()]
    return lines


def _short(text: str) -> str:
    return text if len(text) <= WIDTH - 11 else f"{text[: WIDTH - 15]} ..."
