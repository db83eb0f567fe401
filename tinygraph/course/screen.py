"""What the learner sees of a check: the steps, and the one that is not passed."""

from __future__ import annotations

import textwrap

from tinygraph.course.check import Outcome, begun
from tinygraph.course.steps import Failure
from tinygraph.show.text import printable

WIDTH, PRINTED = 88, 5
_CODES = {"bold": "1", "red": "31", "green": "32", "grey": "90"}


def screen(
    outcome: Outcome, colour: bool = False, offer: str = "", width: int = WIDTH, height: int = 0
) -> list[str]:
    """The lines; more than 24 of them only where a picture needs it.

    `offer` is said below a failure: how to get a hint.  Where `height` lines are too few for all,
    the step that is not passed stands alone.
    """

    def paint(text: str, *codes: str) -> str:
        on = "".join(f"\x1b[{_CODES[code]}m" for code in codes)
        return f"{on}{text}\x1b[0m" if colour else text

    exercise = outcome.exercise
    heading, file = _cut(f"{exercise.number} {exercise.title}", width), exercise.file
    fits = len(heading) + 2 + len(file) <= width
    first = paint(heading, "bold") + (f"  {paint(file, 'grey')}" if fits else "")
    steps, current = [], []
    for step in exercise.steps:
        word, codes = "", ("grey",)
        if step.number in outcome.passed:
            word, codes = "ok", ("green",)
        elif step.number == outcome.step:
            word, codes = ("wrong", ("red",)) if begun(outcome) else ("next", ("bold",))
        line = paint(_cut(f"  {word:6}{step.number:2}  {step.title}", width), *codes)
        steps.append(line)
        current += [line] if step.number == outcome.step else []
    lines: list[str] = []
    if outcome.failure is not None and begun(outcome):
        lines += ["", *_told(outcome.failure, file, width)]
        if offer:
            lines += ["", offer]
    if outcome.ok:
        lines += ["", paint(f"All {len(outcome.passed)} steps are right.", "green", "bold")]
    lines += _printed(outcome, width)
    too_high = 0 < height < 1 + len(steps) + len(lines)
    return [first, *(current if too_high else steps), *lines]


def _printed(outcome: Outcome, width: int) -> list[str]:
    """The end of what the learner's code printed."""
    printed = outcome.printed.strip().splitlines()
    if not printed:
        return []
    more = f" (the last {PRINTED} lines of {len(printed)})" if len(printed) > PRINTED else ""
    shown = [_cut(f"  {printable(line.expandtabs())}", width) for line in printed[-PRINTED:]]
    return ["", f"printed{more}:", *shown]


def _told(failure: Failure, file: str, width: int) -> list[str]:
    """The mistake by name, then the smallest case that shows it."""
    lines: list[str] = []
    if failure.mistake is not None:
        lead = "" if failure.sure else "It looks like this: "
        lines += [*wrapped(f"{lead}{failure.mistake.says}", width), ""]
    if failure.line is not None:
        lines.append(_cut(f"{file}, line {failure.line}: {failure.source}", width))
    lines += wrapped(failure.text, width)
    lines += [_cut(line, width) for line in failure.case.splitlines()]
    if failure.expected:
        lines.append(_cut(f"  expected {failure.expected}", width))
    if failure.got:
        lines.append(_cut(f"  got      {failure.got}", width))
    if failure.picture:
        lines += ["", *(_cut(line, width) for line in failure.picture.splitlines())]
    return lines


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most that width; those that fit stay as they were written."""
    lines = text.splitlines()
    if all(len(line) <= width for line in lines):
        return lines
    return textwrap.wrap(" ".join(lines), width, break_long_words=False)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 4]} ..."
