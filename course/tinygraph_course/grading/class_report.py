"""The teacher's picture of a class: one page, which asks for nothing over the network.

Every bar stands beside its number, and what is told by a colour is told in words too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tinygraph import __version__
from tinygraph.base.page import Section, document, escape, folded, scroll, table
from tinygraph.files.sealed import write_atomically
from tinygraph_course.content.exercise import Exercise
from tinygraph_course.grading.classroom import Named, Unnamed, mistakes, points_of, reached, unnamed
from tinygraph_course.grading.grading import Result

_LEFT = "text-align:left"
_WHO = 8  # names that are told without being unfolded


def write_report(results: Sequence[Result], target: Path, private: bool = False) -> Path:
    """Write the page.

    Parameters
    ----------
    results : sequence of Result
        One for each submission and exercise.
    target : Path
    private : bool
        Whether private cases were tried.

    Returns
    -------
    Path
        The page.
    """
    return write_atomically(target, page(results, private).encode())


def page(results: Sequence[Result], private: bool = False) -> str:
    """The same as text."""
    asked = list({result.exercise.number: result.exercise for result in results}.values())
    count = len({result.submission for result in results})
    sections = [
        Section("progress", "How far the class is", _progress(asked, results, count)),
        Section("mistakes", "Commonest mistakes", _mistakes(mistakes(results), count)),
        Section("unnamed", "Failures without a name", _unnamed(unnamed(results))),
        Section("submissions", "Submissions", _submissions(asked, results)),
    ]
    if private:
        sections.insert(1, Section("private", "Private cases", _private(results)))
    if problems := [one for one in results if one.error or (one.problem and one.record is None)]:
        sections.append(Section("problems", "Not graded", _problems(problems)))
    return document("The course: a class", _head(results, count, private), sections)


def _head(results: Sequence[Result], count: int, private: bool) -> str:
    steps = [step for result in results for step in result.steps]
    right = sum(step.public == "right" for step in steps)
    tiles = {
        "submissions": f"{count}",
        "files graded": f"{sum(result.record is not None for result in results)}",
        "steps passed": f"{right} of {len(steps)}",
        "private cases": "tried" if private else "none",
        "graded": time.strftime("%Y-%m-%d %H:%M"),
        "tinygraph": __version__,
    }
    inner = "".join(
        f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in tiles.items()
    )
    return f'<dl class="tiles">{inner}</dl>'


def _progress(asked: Sequence[Exercise], results: Sequence[Result], count: int) -> str:
    parts = []
    for exercise in asked:
        steps = reached(exercise, results)
        whole = min(step.passed for step in steps)
        words = (
            f"{steps[0].handed_in} of {count} handed it in; "
            f"{whole} have passed all {len(steps)} steps."
        )
        rows = [
            f'<tr><th scope="row" style="{_LEFT}">{step.number} {escape(step.title)}</th>'
            f"<td>{_bar(step.passed, count)}</td><td>{step.passed} of {count}</td>"
            f"<td>{step.stopped}</td></tr>"
            for step in steps
        ]
        heads = f'<th scope="col" style="{_LEFT}">step</th>' + "".join(
            f'<th scope="col">{head}</th>' for head in ("share", "passed", "stopped here")
        )
        body = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        title = f"<h3>{exercise.number} {escape(exercise.title)}</h3><p>{escape(words)}</p>"
        parts.append(title + scroll(body))
    return "\n".join(parts)


def _bar(value: int, most: int) -> str:
    return f'<meter min="0" max="{max(1, most)}" value="{value}">{value} of {most}</meter>'


def _mistakes(found: Sequence[Named], count: int) -> str:
    if not found:
        return "<p>No mistake of the catalogue was made.</p>"
    parts = ["<p>By name, with what the learner reads. One learner may have made several.</p>"]
    for one in found:
        surely, likely = len(one.surely), len(one.likely)
        words = f"{surely + likely} of {count}"
        if likely:
            words += f", {likely} of them likely and not surely"
        title = f"{one.exercise.number}.{one.step} {one.name}"
        parts.append(
            f"<h3>{escape(title)}</h3><p>{_bar(surely + likely, count)} {escape(words)}</p>"
            f'<div class="text">{escape(one.says)}</div>{_who([*one.surely, *one.likely])}'
        )
    return "\n".join(parts)


def _unnamed(found: Sequence[Unnamed]) -> str:
    if not found:
        return "<p>Every failure has a name.</p>"
    parts = [
        "<p>No mistake of the catalogue does the same. What several learners do is a candidate "
        "for it. Of each kind the smallest case stands here.</p>"
    ]
    for one in found:
        failure = one.failure
        at = "the file" if one.step is None else f"step {one.step}"
        lines = [failure.text, failure.case]
        lines += [f"expected {failure.expected}"] if failure.expected else []
        lines += [f"got      {failure.got}"] if failure.got else []
        lines += [f"line {failure.line}: {failure.source}"] if failure.line else []
        text = "\n".join(line for line in lines if line)
        title = f"{one.exercise.number} {one.exercise.name}, {at}: {failure.kind}"
        parts.append(
            f"<h3>{escape(title)}</h3><p>{len(one.who)} times.</p>"
            f'<div class="text" style="font-family:monospace">{escape(text)}</div>{_who(one.who)}'
        )
    return "\n".join(parts)


def _who(names: Sequence[str]) -> str:
    told = ", ".join(names)
    if len(names) <= _WHO:
        return f'<p class="soft">{escape(told)}</p>'
    return folded(f"who: {len(names)}", f"<p>{escape(told)}</p>")


def _private(results: Sequence[Result]) -> str:
    """Who passes a step in public and not in private: an answer made for the cases it has seen."""
    steps = [(result, step) for result in results for step in result.steps]
    tried = [pair for pair in steps if pair[1].private in ("right", "wrong")]
    failed = [(result, step) for result, step in tried if step.private == "wrong"]
    words = (
        f"Tried of {len(tried)} steps that are passed; {len(tried) - len(failed)} pass them too."
    )
    if not failed:
        return f"<p>{escape(words)}</p>"
    rows = [
        [
            result.submission,
            f"{result.exercise.number}.{step.number} {step.title}",
            f"{step.hidden.kind} {step.hidden.text}".strip() if step.hidden else "",
            step.hidden.case if step.hidden else "",
        ]
        for result, step in failed
    ]
    heads = ["submission", "step", "what", "case"]
    return f"<p>{escape(words)}</p>{_long(len(rows), scroll(table(rows, heads, names=1)))}"


def _submissions(asked: Sequence[Exercise], results: Sequence[Result]) -> str:
    points = points_of(results)
    by = {(result.submission, result.exercise.number): result for result in results}
    rows = [
        [name, *(_cell(by[name, one.number]) for one in asked), f"{got} of {of}"]
        for name, (got, of) in points.items()
    ]
    heads = ["submission", *(f"{one.number} {one.name}" for one in asked), "points"]
    return _long(len(rows), scroll(table(rows, heads, names=1)))


def _cell(result: Result) -> str:
    if result.record is None:
        return "error" if result.error else "missing"
    return f"{result.points} of {result.of}"


def _problems(results: Sequence[Result]) -> str:
    rows = [
        [
            one.submission,
            one.exercise.file,
            f"the grader: {one.error}" if one.error else one.problem,
        ]
        for one in results
    ]
    return _long(len(rows), scroll(table(rows, ["submission", "file", "why"], names=2)))


def _long(count: int, body: str) -> str:
    """A table that is folded where it has many rows."""
    return body if count <= 4 * _WHO else folded(f"all {count}", body)
