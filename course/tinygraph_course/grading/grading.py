"""Grading: what `course check` says of each file of each submission, and with which points.

A step that is passed is a point; with a private pack it is another one if it also passes the cases
of the pack.  There is one path: `check` of check.py, for the learner and for the grader.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tinygraph
from tinygraph.base.errors import ArgumentError, TinygraphError
from tinygraph.base.frozen import frozen
from tinygraph.base.json_files import parse, read_text
from tinygraph_course.checking.check import Outcome, Unusable, check, opened, text_of
from tinygraph_course.checking.kernel_step import KernelStep
from tinygraph_course.checking.learner import Died
from tinygraph_course.checking.steps import NOT_BEGUN, Failure
from tinygraph_course.content.exercise import Exercise, Mistake, exercises
from tinygraph_course.grading.private import Pack
from tinygraph_course.grading.submissions import Submission, files_of

WAITING = "not graded yet"  # the error of what was not come to
_PRINTED = 2000  # characters of what the code prints that are kept
Record = dict[str, Any]


def graded(exercise: Exercise, files: Mapping[str, bytes], pack: Pack | None = None) -> Record:
    """Check one exercise of one submission.

    Parameters
    ----------
    exercise : Exercise
    files : mapping from str to bytes
        The learner's files of this exercise, by name.
    pack : Pack, optional
        Private cases: tried of the steps that are passed, each by itself.

    Returns
    -------
    dict
        As JSON takes it: `public`, what `Outcome.to_dict` gives; `private`, for each step that has
        private cases and was passed, the same; `has_private`, which steps have some; `bytes`, for
        each step with a goal of bytes that is passed what its largest launch moves; `seconds`.

    Raises
    ------
    ArgumentError
        A step has executed nothing: that is no pass.
    """
    begun = time.perf_counter()
    with TemporaryDirectory() as room:
        for name, content in files.items():
            (Path(room) / name).write_bytes(content)
        file = Path(room) / exercise.file
        try:
            public = check(exercise, file)
        except ArgumentError as error:
            if _is_text(exercise, file):
                raise
            words = f"{file.name} is no text in UTF-8: {error}" if file.exists() else _gone(file)
            public = Outcome(exercise, [], None, Failure("error", words))
        hidden = pack.of(exercise) if pack else []
        private = {
            str(step.number): check(exercise.with_steps([step]), file).to_dict()
            for step in hidden
            if step.number in public.passed
        }
        counted = _bytes(exercise, file, public.passed)
    record = public.to_dict()
    record["printed"] = record["printed"][-_PRINTED:]
    for one in private.values():
        one["printed"] = ""  # it may have printed the private case
        if one["failure"]:
            one["failure"]["printed"] = ""
    return {
        "exercise": exercise.name,
        "public": record,
        "private": private,
        "has_private": [step.number for step in hidden],
        "bytes": counted,
        "seconds": round(time.perf_counter() - begun, 3),
    }


def _is_text(exercise: Exercise, file: Path) -> bool:
    try:
        text_of(exercise, file)
    except (OSError, ValueError):
        return False
    return True


def _gone(file: Path) -> str:
    return f"{file.name} was not handed in"


def _bytes(exercise: Exercise, file: Path, passed: Sequence[int]) -> dict[str, int]:
    """What the launches with a goal of bytes move, of the steps that are passed: the largest."""
    wanted = {
        step.number: launch
        for step in exercise.steps
        if isinstance(step, KernelStep) and step.number in passed
        for launch in step.launches
        if "bytes" in launch.most
    }
    if not wanted:
        return {}
    try:
        with opened(exercise, file) as learner:
            replies = learner.ask(*(launch.request() for launch in wanted.values()))
    except (Died, Unusable):
        return {}
    counts = {
        str(number): reply.get("value", {}).get("bytes")
        for number, reply in zip(wanted, replies, strict=True)
        if isinstance(reply.get("value", {}), dict)
    }
    return {number: int(count) for number, count in counts.items() if isinstance(count, int)}


def key_of(exercise: Exercise, files: Mapping[str, bytes], pack: Pack | None) -> str:
    """Under which a result is kept: what was handed in, and all that judges it."""
    digest = hashlib.sha256()
    parts = [tinygraph.__version__.encode(), _judges(exercise.folder)]
    parts += [pack.content if pack else b""]
    for name, content in sorted(files.items()):
        parts += [name.encode(), content]
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:40]


@cache
def _judges(folder: Path) -> bytes:
    """A digest of what the exercise and the course consist of."""
    digest = hashlib.sha256()
    engine = sorted(Path(__file__).parent.glob("*.py"))
    for path in [*engine, *sorted(path for path in folder.iterdir() if path.is_file())]:
        digest.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
    return digest.digest()


def able() -> None:
    """Try the grader itself: an untouched file of the first exercise.

    Raises
    ------
    TinygraphError
        It gives another answer than that nothing is begun: no process can be started, or too little
        memory is left.  Learners would be blamed for it.
    """
    exercise = exercises()[0]
    with TemporaryDirectory() as room:
        file = Path(room) / exercise.file
        file.write_text(exercise.stub, encoding="utf-8")
        found = check(exercise, file).failure
    if found is None or found.kind != NOT_BEGUN:
        got = "nothing wrong" if found is None else f"{found.kind}: {found.text}"
        raise TinygraphError(
            f"course grade: expected an untouched {exercise.file} to be answered with "
            f"'{NOT_BEGUN}', got {got}. Way out: more memory, or more processes for this user"
        )


@frozen
class StepResult:
    """One step of one exercise of one submission.

    Attributes
    ----------
    number, title : int, str
    public, private : str
        "right", "wrong", "not begun", "not reached" where an earlier step is not passed, "missing"
        where there is no file, "error" where the grader failed; and "none", for no private cases.
    points, of : int
    failure, hidden : Failure or None
        What the public and what the private checks say.
    """

    number: int
    title: str
    public: str
    private: str
    failure: Failure | None = None
    hidden: Failure | None = None

    @property
    def points(self) -> int:
        return (self.public == "right") + (self.private == "right")

    @property
    def of(self) -> int:
        return 1 + (self.private != "none")


@frozen
class Result:
    """One exercise of one submission.

    Attributes
    ----------
    submission : str
    exercise : Exercise
    record : dict or None
        See `graded`; None where no file was handed in.
    problem : str
        Why there is no record: the file cannot be read, or is not there.
    error : str
        What went wrong in the grader: nothing is known about the answer then.
    private : sequence of int
        The steps that have private cases.
    """

    submission: str
    exercise: Exercise
    record: Record | None
    problem: str = ""
    error: str = ""
    private: Sequence[int] = ()

    @property
    def steps(self) -> list[StepResult]:
        """All steps of the exercise."""
        if self.record is None:
            words = "error" if self.error else "missing"
            return [self._step(step, words) for step in self.exercise.steps]
        public, failure = self.record["public"], failure_of(self.record["public"]["failure"])
        found, stopped = [], False
        for step in self.exercise.steps:
            if step.number in public["passed"]:
                found.append(self._step(step, "right"))
                continue
            words = "not reached" if stopped else "wrong"
            if words == "wrong" and failure is not None and failure.kind == NOT_BEGUN:
                words = NOT_BEGUN
            found.append(self._step(step, words, None if stopped else failure))
            stopped = True
        return found

    def _step(self, step: Any, public: str, failure: Failure | None = None) -> StepResult:
        private, hidden = "none", None
        if step.number in self.private:
            private = public if public in ("error", "missing") else "not reached"
            if self.record and (one := self.record["private"].get(str(step.number))):
                private = "right" if one["ok"] else "wrong"
                hidden = failure_of(one["failure"])
        return StepResult(step.number, step.title, public, private, failure, hidden)

    @property
    def points(self) -> int:
        return sum(step.points for step in self.steps)

    @property
    def of(self) -> int:
        return sum(step.of for step in self.steps)


def failure_of(record: Mapping[str, Any] | None) -> Failure | None:
    """A failure as it was before `Outcome.to_dict`; of a mistake the edits are gone."""
    if record is None:
        return None
    fields = dict(record)
    if fields["mistake"]:
        fields["mistake"] = Mistake(**fields["mistake"], ways=[])
    return Failure(**fields)


def result_of(
    submission: Submission, exercise: Exercise, record: Record | None, private: Sequence[int] = ()
) -> Result:
    """A result: of the record, of an error in it, or of what is missing."""
    if record is not None and "error" in record:
        return Result(submission.name, exercise, None, "", record["error"], private)
    problem = ""
    if record is None:
        names = files_of(exercise)
        told = [
            f"{name} {submission.problems[name]}" for name in names if name in submission.problems
        ]
        problem = submission.problem or "; ".join(told) or f"{exercise.file} was not handed in"
    return Result(submission.name, exercise, record, problem, "", private)


def read(path: Path) -> Record | None:
    """A record that was kept; None where there is none, or none that can be read."""
    try:
        found = parse(read_text(path))
    except (OSError, ValueError):
        return None
    whole = isinstance(found, dict) and {"exercise", "public", "private", "bytes"} <= set(found)
    return found if whole else None
