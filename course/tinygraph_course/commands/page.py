"""The page on which a learner goes through his own failing launch, thread by thread."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from tinygraph.files.sealed import write_atomically
from tinygraph_course.checking.check import Outcome
from tinygraph_course.checking.goals import COUNTS
from tinygraph_course.checking.learner import Died, Learner
from tinygraph_course.checking.steps import Failure, answer_of


def write_page(outcome: Outcome, target: Path) -> str:
    """Make the launch that failed once more, recorded: what `Kernel.steps` writes of it.

    It runs in a process of its own, as in the check, and takes about a second: a check is shown
    before.

    Parameters
    ----------
    outcome : Outcome
    target : Path
        The page.

    Returns
    -------
    str
        Its address; empty where no launch failed, or it cannot be recorded.
    """
    failure, exercise = outcome.failure, outcome.exercise
    if failure is None or failure.request is None:
        return ""
    request = {**failure.request, "do": "page"}
    with TemporaryDirectory() as room:
        file = Path(room) / exercise.file
        file.write_text(outcome.text + exercise.harness, encoding="utf-8")
        with Learner(file, forbidden=exercise.forbidden) as learner:
            try:
                page = answer_of(learner.ask(request)[0])
            except Died:
                return ""
    if not isinstance(page, str):
        return ""
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, page.encode())
    return address(target, failure)


def address(page: Path, failure: Failure) -> str:
    """The address that opens a page, at the mistake where the checker has found one."""
    where = "" if failure.kind in {"values", *COUNTS} else "&step=mistake"
    return f"{page.resolve().as_uri()}#block={failure.block}{where}"
