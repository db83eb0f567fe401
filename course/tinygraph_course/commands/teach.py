"""`tinygraph course`: the teacher's commands."""

from __future__ import annotations

import os
import signal
import threading
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from tinygraph.base.disk import followed
from tinygraph.base.errors import ArgumentError
from tinygraph.base.text_table import aligned
from tinygraph.cli.options import Options, whole_number
from tinygraph.files.sealed import write_atomically, write_json
from tinygraph.training import Stopped
from tinygraph_course.commands.learn import needed, say
from tinygraph_course.content.exercise import Exercise, exercises, find
from tinygraph_course.grading.autograder import write_autograder
from tinygraph_course.grading.class_report import write_report
from tinygraph_course.grading.classroom import csv_text, mistakes, points_of, reached, unnamed
from tinygraph_course.grading.crew import PATIENCE, Job, grade
from tinygraph_course.grading.gradescope import REVEAL, broken, results_json
from tinygraph_course.grading.grading import WAITING, Record, Result, graded, key_of, result_of
from tinygraph_course.grading.private import CASES, Pack
from tinygraph_course.grading.stripped import write_stripped
from tinygraph_course.grading.submissions import Submission, files_of, submissions

EVERY = 5.0  # seconds between two lines about how far it is
ROWS = 15  # of a table in the terminal; the page has them all

EXERCISES: Options = {
    "--exercise N": (
        "one that is asked for, by number or name; may be given again "
        "(default: those of which somebody has handed in a file)",
        {"action": "append", "default": [], "dest": "asked"},
    )
}
GRADE: Options = {
    "FOLDER": (
        "a submission, or a folder with a folder or zip archive for each",
        {"nargs": "+", "dest": "folders"},
    ),
    **EXERCISES,
    "--private PACK": "private cases too: a file that `course private` wrote",
    "--out DIR": (
        "where results are kept, and report.html; a second run grades what has changed "
        "(default grades)",
        {"default": "grades"},
    ),
    "--csv FILE": "a line for each step of each submission",
    "--gradescope FILE": "results.json of one submission",
    "--reveal HOW": (
        "what results.json tells of a private case that fails: none, sentence or case; default "
        "none",
        {"choices": REVEAL, "default": "none"},
    ),
    "--jobs N": ("processes; default: one for each core", {"type": whole_number(1, 512)}),
    "--patience N": (
        f"seconds that one file may take; default {PATIENCE:g}",
        {"type": whole_number(1), "default": PATIENCE},
    ),
    "--again": "grade also what was graded before",
}
PRIVATE: Options = {
    "SEED": (
        "a whole number that learners do not know",
        {"type": whole_number(0, 2**63 - 1), "dest": "seed"},
    ),
    "OUT": ("the file to write, such as pack.toml", {"dest": "out"}),
    "--cases N": (
        f"for each step of a function or an op; a fourth of it for kernels; default {CASES}",
        {"type": whole_number(1, 10_000), "default": CASES},
    ),
}


BUILD: Options = {
    "OUT": ("the folder for the wheel", {"dest": "out"}),
    "--stripped": "without the solutions of the course; `pip wheel` makes the whole package",
}
GRADESCOPE: Options = {
    "OUT.zip": ("the archive to write", {"dest": "out"}),
    **EXERCISES,
    "--private PACK": "private cases too: a file that `course private` wrote",
    "--reveal HOW": GRADE["--reveal HOW"],
}


def grade_all(args: Namespace) -> dict[str, Any]:
    """Grade one submission or a class."""
    begun, target = time.perf_counter(), args.gradescope and followed(Path(args.gradescope))
    if target:  # whatever happens from here on, there is a file that Gradescope can read
        write_json(target, broken("The grading was begun and did not end."))
    try:
        with stoppable():
            return _graded(args, begun)
    except BaseException as error:
        if target and not isinstance(error, Stopped | KeyboardInterrupt):
            write_json(target, broken(f"The grader failed: {error}. Tell your teacher."))
        raise


def _graded(args: Namespace, begun: float) -> dict[str, Any]:
    needed()
    out, known = Path(args.out), exercises()
    chosen = [find(word) for word in args.asked]
    pack = Pack.load(Path(args.private)) if args.private else None
    folders = [Path(folder) for folder in args.folders]
    if args.gradescope and len(folders) != 1:
        got = f"{len(folders)} folders"
        raise ArgumentError("course grade", "--gradescope", "one submission", got)
    found = submissions(folders, known, [out], alone=bool(args.gradescope))
    asked = chosen or [one for one in known if any(each.has(one) for each in found)] or known
    class_ = _Class(found, asked, pack)
    count = args.jobs or os.cpu_count() or 1
    told = time.perf_counter()
    for at, (key, record, _) in enumerate(
        grade(class_.jobs, out / "results", count, args.again, args.patience), 1
    ):
        class_.take(key, record)
        now, last = time.perf_counter(), at == class_.different
        if args.gradescope:
            words = "" if last else "The grading was stopped before its end."
            seconds = now - begun
            write_json(
                followed(Path(args.gradescope)),
                results_json(class_.results(), args.reveal, seconds, words),
            )
        if now - told >= EVERY or last:
            told = now
            say(f"{at:6,} of {class_.different:,} files after {now - begun:.0f} s")
    results = class_.results()
    if args.gradescope and not class_.jobs:
        write_json(
            followed(Path(args.gradescope)),
            results_json(results, args.reveal, time.perf_counter() - begun),
        )
    if args.csv:
        write_atomically(followed(Path(args.csv)), csv_text(results).encode())
    report = write_report(results, out / "report.html", pack is not None)
    errors = [result for result in results if result.error]
    _show(results, asked, len(found))
    written = [str(file) for file in (report, args.csv, args.gradescope) if file]
    say("\n".join(f"wrote {file}" for file in written))
    return {
        "ok": not errors,
        "submissions": [_row(one.name, results) for one in found],
        "mistakes": [
            {
                "exercise": one.exercise.name,
                "step": one.step,
                "mistake": one.name,
                "surely": len(one.surely),
                "likely": len(one.likely),
            }
            for one in mistakes(results)
        ],
        "files": written,
        "seconds": round(time.perf_counter() - begun, 3),
    }


class _Class:
    """Submissions and exercises, what of them is to grade, and what came out."""

    def __init__(
        self, found: Sequence[Submission], asked: Sequence[Exercise], pack: Pack | None
    ) -> None:
        self.found, self.asked = found, asked
        self.records: dict[str, Record] = {}
        self.jobs: list[Job] = []
        self.keys: dict[tuple[str, str], str] = {}
        self.private = {one.name: [s.number for s in pack.of(one)] if pack else [] for one in asked}
        text = pack.content.decode() if pack else ""
        for exercise in asked:
            for submission in found:
                names = files_of(exercise)
                files = {name: submission.files[name] for name in names if name in submission.files}
                if files.keys() != set(names):
                    continue
                key = key_of(exercise, files, pack)
                self.keys[submission.name, exercise.name] = key
                self.jobs.append(Job(key, exercise.name, files, text))
        self.different = len({job.key for job in self.jobs})

    def take(self, key: str, record: Record) -> None:
        self.records[key] = record

    def results(self) -> list[Result]:
        """One for each submission and exercise; what is not graded yet counts as an error."""
        waiting: Record = {"error": WAITING}
        found = []
        for submission in self.found:
            for exercise in self.asked:
                key = self.keys.get((submission.name, exercise.name))
                record = None if key is None else self.records.get(key, waiting)
                private = self.private[exercise.name]
                found.append(result_of(submission, exercise, record, private))
        return found


def _row(name: str, results: Sequence[Result]) -> dict[str, Any]:
    own = [result for result in results if result.submission == name]
    return {
        "submission": name,
        "points": sum(result.points for result in own),
        "of": sum(result.of for result in own),
        "exercises": {
            result.exercise.name: {
                "points": result.points,
                "of": result.of,
                "problem": result.problem,
                "error": result.error,
            }
            for result in own
        },
    }


def _show(results: Sequence[Result], asked: Sequence[Exercise], count: int) -> None:
    """The table of the class, or of the few who are in it, and its commonest mistakes."""
    points = points_of(results)
    if count <= ROWS:
        rows = [[name, f"{got} of {of}"] for name, (got, of) in points.items()]
        say("\n".join(["", *aligned([["submission", "points"], *rows])]))
    rows = []
    for exercise in asked:
        steps = reached(exercise, results)
        rows.append(
            [
                f"{exercise.number} {exercise.title}",
                f"{steps[0].handed_in} of {count}",
                f"{min(step.passed for step in steps)}",
                f"{max(steps, key=lambda step: step.stopped).number}"
                if any(step.stopped for step in steps)
                else "-",
            ]
        )
    head = ["exercise", "handed in", "whole", "most stop at step"]
    say("\n".join(["", *aligned([head, *rows])]))
    made = mistakes(results)
    if made:
        rows = [
            [
                f"{one.exercise.number}.{one.step} {one.name}",
                f"{len(one.surely)}",
                f"{len(one.likely)}",
            ]
            for one in made[:ROWS]
        ]
        say("\n".join(["", *aligned([["mistake", "surely", "likely"], *rows])]))
        if len(made) > ROWS:
            say(f"and {len(made) - ROWS} more")
    if nameless := unnamed(results):
        say(f"\n{sum(len(one.who) for one in nameless)} failures have no name; the report has them")
    for result in results:
        if result.error:
            say(f"error: {result.submission}, {result.exercise.file}: {result.error}")
    say("")


def private(args: Namespace) -> dict[str, Any]:
    """Write a private pack, once the solutions have passed it."""
    needed()
    pack = Pack.made(args.seed, args.cases)
    rows = []
    for exercise in exercises():
        hidden = [step.number for step in pack.of(exercise)]
        files = {name: exercise.solution.encode() for name in files_of(exercise)}
        result = graded(exercise, files, pack)
        failed = [number for number, one in result["private"].items() if not one["ok"]]
        if failed or len(result["private"]) != len(hidden):
            step = failed[0] if failed else hidden[0]
            expected = "the solution to pass all private cases"
            way_out = "another seed; and tell us, for this one shows a mistake of ours"
            raise ArgumentError(
                "course private", f"{exercise.name}, step {step}", expected, "a failure", way_out
            )
        without = [step.number for step in exercise.steps if step.number not in hidden]
        words = f"; none for step {', '.join(map(str, without))}" if without else ""
        say(f"{exercise.number:2} {exercise.title}: {len(hidden)} steps{words}")
        rows.append({"exercise": exercise.name, "steps": hidden, "without": without})
    write_atomically(followed(Path(args.out)), pack.content)
    say(f"wrote {args.out}")
    return {"file": str(args.out), "seed": args.seed, "exercises": rows}


def gradescope(args: Namespace) -> dict[str, Any]:
    """Write the archive of an autograder."""
    asked = [find(word) for word in args.asked] or exercises()
    pack = Pack.load(Path(args.private)) if args.private else None
    target = write_autograder(followed(Path(args.out)), asked, pack, args.reveal)
    steps = sum(len(exercise.steps) for exercise in asked)
    hidden = sum(len(pack.of(exercise)) for exercise in asked) if pack else 0
    say(f"{len(asked)} exercises: {steps} points for steps, {hidden} for private cases")
    say(f"wrote {target}")
    return {"file": str(target), "points": steps + hidden, "exercises": [e.name for e in asked]}


def build(args: Namespace) -> dict[str, Any]:
    """Write a wheel for learners, without the solutions."""
    if not args.stripped:
        way_out = "pip wheel --no-deps . builds the whole package in a checkout"
        raise ArgumentError("course build", "--stripped", "to be given", "nothing", way_out)
    wheel = write_stripped(Path(args.out))
    say(f"wrote {wheel}")
    say("with it learners have files, texts and hints; their answers are checked by the grader")
    return {"file": str(wheel)}


@contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM, as of a time limit, ends what is under way as Ctrl-C does."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped("stopped; the same command goes on where this one was", number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if signal.getsignal(signal.SIGTERM) in (signal.SIG_IGN, None):  # it stays ignored
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
