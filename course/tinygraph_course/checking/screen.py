"""What the learner sees of a check: the steps, and the one that is not passed."""

from __future__ import annotations

import textwrap

from tinygraph.base.page_text import printable
from tinygraph_course.checking.check import Outcome, begun
from tinygraph_course.checking.steps import Failure

WIDTH, PRINTED = 88, 5
_CODES = {"bold": "1", "red": "31", "green": "32", "grey": "90"}


def screen(
    outcome: Outcome, colour: bool = False, offer: str = "", width: int = WIDTH, height: int = 0
) -> list[str]:
    """The lines; more than 24 of them only where a picture needs it.

    `offer` is said below a failure: how to get a hint.  Where `height` lines are too few for all,
    the step that is not passed stands alone, and if need be without its picture.
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
    told, drawn = [], []
    if outcome.failure is not None and begun(outcome):
        told = ["", *words_of(outcome.failure, file, width)]
        drawn = _drawn(outcome.failure, width)
    lines = ["", offer] if offer and told else []
    if outcome.ok:
        lines += ["", paint(f"All {len(outcome.passed)} steps are right.", "green", "bold")]
    lines += _printed(outcome, width)
    below = len(told) + len(lines)
    if 0 < height < 1 + len(steps) + below + len(drawn):
        steps = current
    if 0 < height < 1 + len(steps) + below + len(drawn):
        drawn = []  # the words say more; the page of the launch has it too
    return [first, *steps, *told, *drawn, *lines]


def _printed(outcome: Outcome, width: int) -> list[str]:
    """The end of what the learner's code printed: in the call that is shown, if it did there."""
    of_call = outcome.failure.printed.strip().splitlines() if outcome.failure else []
    printed = of_call or outcome.printed.strip().splitlines()
    if not printed:
        return []
    who = "this call printed" if of_call else "printed"
    more = f" (the last {PRINTED} lines of {len(printed)})" if len(printed) > PRINTED else ""
    shown = [_cut(f"  {printable(line.expandtabs())}", width) for line in printed[-PRINTED:]]
    return ["", f"{who}{more}:", *shown]


def words_of(failure: Failure, file: str, width: int) -> list[str]:
    """The mistake by name, then the smallest case that shows it."""
    lines: list[str] = []
    if failure.mistake is not None:
        lead = "" if failure.sure else "It looks like this: "
        lines += [*wrapped(f"{lead}{failure.mistake.says}", width), ""]
    if failure.line is not None:
        lines.append(_cut(f"{file}, line {failure.line}: {failure.source}", width))
    lines += wrapped(failure.text, width)
    lines += [_cut(line, width) for line in failure.case.splitlines()]
    expected, got = _from_where_they_differ(failure.expected, failure.got, width - 11)
    if failure.expected:
        lines.append(_cut(f"  expected {expected}", width))
    if failure.got:
        lines.append(_cut(f"  got      {got}", width))
    return lines


def _from_where_they_differ(expected: str, got: str, width: int) -> tuple[str, str]:
    """Both without what they begin with in common, where the rest would be cut off."""
    pairs = enumerate(zip(expected, got, strict=False))
    same = next((i for i, (one, other) in pairs if one != other), 0)
    begin = expected.rfind(" ", 0, same)  # of the first number that differs
    if not got or max(len(expected), len(got)) <= width or begin < width // 2:
        return expected, got
    begin = expected.find(" ", begin - width // 4)
    return f"...{expected[begin:]}", f"...{got[begin:]}"


def _drawn(failure: Failure, width: int) -> list[str]:
    """The picture; its last line is words."""
    if not failure.picture:
        return []
    *rows, legend = failure.picture.splitlines()
    return ["", *(_cut(row, width) for row in rows), *wrapped(legend, width)]


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most that width, as far in as the first; those that fit stay as they are."""
    lines = text.splitlines()
    if all(len(line) <= width for line in lines):
        return lines
    indent = " " * (len(text) - len(text.lstrip(" ")))
    return textwrap.wrap(" ".join(lines), width, subsequent_indent=indent, break_long_words=False)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 4]} ..."
