"""gradcheck over many problems: one report that shows the smallest failure and names the mistake.

On an input of one element every mistake looks like a factor.  So the diagnoses of several failures
vote, each with as many votes as elements were compared (up to a limit), and the smallest problem
whose diagnosis won is shown.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tinygraph.testing.gradcheck import gradcheck
from tinygraph.testing.report import Report

MOST_VOTES = 24  # elements of one problem that count
UNEXPLAINED = "finite differences give"
Problem = tuple[Callable[..., Any], Sequence[Any], "Sequence[int] | None"]


def check_problems(problems: Iterable[Problem], seed: int = 0, enough: int = 6) -> Report:
    """gradcheck on each problem, until `enough` of them failed.

    Parameters
    ----------
    problems : iterable of (fn, inputs, wrt)
        As gradcheck takes them; `wrt` may be None.
    seed : int
        Of the upstream gradients.
    enough : int
        How many failures are looked at.

    Returns
    -------
    Report
        The smallest failure with the diagnosis that explains most; else a pass with the elements of
        all problems, or "inconclusive" where most of them sit on kinks.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> shapes = [(1,), (2, 3), (4, 4)]
    >>> check_problems((tg.tanh, [np.ones(shape)], None) for shape in shapes).checked
    23
    """
    failures: list[tuple[Report, int]] = []
    checked = kinks = 0
    last = Report("inconclusive", diagnosis="no problem was given")
    for fn, inputs, wrt in problems:
        last = gradcheck(fn, inputs, wrt, seed, raise_on_failure=False)
        checked, kinks = checked + last.checked, kinks + last.kinks
        if last.verdict == "fail":
            failures.append((last, sum([int(np.size(x)) for x in inputs])))
            if len(failures) >= enough:
                break
    if failures:
        return _elected(failures)
    verdict = "inconclusive" if kinks > checked else last.verdict if not checked else "pass"
    diagnosis = last.diagnosis if verdict == "inconclusive" else ""
    return replace(last, verdict=verdict, diagnosis=diagnosis, checked=checked, kinks=kinks)


def _elected(failures: list[tuple[Report, int]]) -> Report:
    """The smallest failure of the kind of diagnosis that has most votes."""
    votes: dict[str, float] = defaultdict(float)
    for report, _ in failures:
        votes[_kind(report)] += min(max(report.checked, 1), MOST_VOTES)
    for kind in votes:
        if UNEXPLAINED in kind:
            votes[kind] *= 0.01  # any explanation is better
    best = max(votes, key=lambda kind: votes[kind])
    chosen = [(size, k) for k, (report, size) in enumerate(failures) if _kind(report) == best]
    return failures[min(chosen)[1]][0]


def _kind(report: Report) -> str:
    """The diagnosis without its numbers and names."""
    if report.stage == "properties":
        return report.diagnosis
    return re.sub(r"[-+]?[\d.]+(e[-+]?\d+)?|\(.*?\)|\[.*?\]", "#", report.diagnosis)[:48]
