"""`tinygraph course`: the learner's commands."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any, NamedTuple

from tinygraph.base.errors import ArgumentError, install
from tinygraph.cli.machine import warmed
from tinygraph.cli.options import Options
from tinygraph_course.checking.check import Outcome, Unusable, check, judged, opened
from tinygraph_course.checking.learner import Died
from tinygraph_course.checking.network import draw, trained
from tinygraph_course.checking.own import Own, Stumbled
from tinygraph_course.checking.screen import WIDTH, screen, wrapped
from tinygraph_course.checking.verify import tried
from tinygraph_course.commands.folder import CourseFolder
from tinygraph_course.commands.page import address, write_page
from tinygraph_course.commands.protocol import verified
from tinygraph_course.content.exercise import Exercise, exercises, find
from tinygraph_course.content.marks import bare

SAME = 3  # so many equal failures in a row, and a hint is offered
OFFER = "The same three times: `tinygraph course hint {}` helps."  # the number of the exercise
PAGE = "this launch, step by step:"

EXERCISE: Options = {
    "N": ("an exercise, by number or name (default: the current one)", {"nargs": "?", "dest": "of"})
}
OWN: Options = {"N": ("the exercise, by number or name", {"dest": "of"})}
PROTOCOL: Options = {
    "FILE": ("a protocol, as the text of exercise 16 has one of each kind", {"dest": "file"}),
    "--data-dir DIR": "the folder with T91 and Set5 (default: the one that $TINYGRAPH_DATA names)",
}
FOLDER: Options = {"FOLDER": ("where the files lie or shall lie", {"dest": "folder"})}


def start(args: Namespace) -> dict[str, Any]:
    """Make the files of all exercises, where there are none, and the emulator ready."""
    needed()  # now, not at the first check
    folder, made = CourseFolder.start(Path(args.folder))
    for file in made:
        if file.suffix != ".md":
            print(f"wrote {file}")
    if made:
        print(f"their texts, and {folder.path / 'README.md'}")
    else:
        print(f"{folder.path}: nothing to write, all files are there")
    warm = warmed()
    current = folder.current()
    print(f"open {folder.file(current)} in an editor, and `tinygraph course` in {folder.path}")
    return {"folder": str(folder.path), "files": [str(file) for file in made], "warm": warm}


def check_one(args: Namespace) -> dict[str, Any]:
    """Check an exercise once."""
    folder, exercise = asked(args)
    found = checked(folder, exercise)
    return {**found.outcome.to_dict(), "page": found.page}


def hint(args: Namespace) -> dict[str, Any]:
    """The next hint for the step that is not passed."""
    folder, exercise = asked(args)
    passed = folder.of(exercise)["passed"]
    step = next((step for step in exercise.steps if step.number not in passed), None)
    if step is None:
        print(f"{exercise.number} {exercise.name}: all steps are right")
        return {"exercise": exercise.name, "step": None, "hint": None}
    number, words = folder.hint(exercise, step.number)
    told = f"{exercise.number} {exercise.name}, step {step.number}"
    text = f"{told}, hint {number} of {len(step.hints)}: {words}"
    print("\n".join(wrapped(text, width())))
    return {"exercise": exercise.name, "step": step.number, "number": number, "hint": words}


def status(args: Namespace) -> dict[str, Any]:
    """How many steps of each exercise are passed."""
    folder = folder_here()
    of = vars(args).get("of")  # where the watch is
    current = find(of) if of else folder.current()
    rows = []
    for exercise in exercises():
        passed, of = len(folder.of(exercise)["passed"]), len(exercise.steps)
        mark = ">" if exercise.name == current.name else " "
        line = f"{mark} {exercise.number:2}  {passed} of {of}  {exercise.title}"
        file = f"  ({exercise.file})"
        print(line + file if len(line + file) <= width() else line)
        rows.append({"exercise": exercise.name, "passed": passed, "of": of})
    return {"folder": str(folder.path), "current": current.name, "exercises": rows}


def reset(args: Namespace) -> dict[str, Any]:
    """Begin an exercise anew; the file as it was is kept."""
    folder, exercise = asked(args)
    kept = folder.reset(exercise)
    if kept:
        print(f"kept {kept}")
    print(f"wrote {folder.file(exercise)}")
    return {"file": str(folder.file(exercise)), "kept": str(kept) if kept else None}


def solution(args: Namespace) -> dict[str, Any]:
    """Print the solution of an exercise whose steps are all passed, or with --anyway."""
    folder, exercise = asked(args)
    judged(exercise, "course solution")
    if not folder.whole(exercise) and not args.anyway:
        expected, got = "an exercise whose steps are all right", exercise.name
        way_out = f"tinygraph course hint {exercise.number}; or --anyway"
        raise ArgumentError("course solution", "exercise", expected, got, way_out)
    print(bare(exercise.marked), end="")
    return {"exercise": exercise.name, "solution": bare(exercise.marked)}


def run(args: Namespace) -> dict[str, Any]:
    """Train a network with what the learner wrote, in a file whose steps are all right."""
    folder = folder_here()
    exercise = find(args.of) if args.of else folder.finished()
    file, network = folder.file(exercise), exercise.network
    if network is None:
        known = ", ".join(str(each.number) for each in exercises() if each.network)
        expected, way_out = f"one with a network: {known}", "projects have `course protocol FILE`"
        raise ArgumentError("course run", "exercise", expected, exercise.name, way_out)
    print(f"checking {file.name} ...", flush=True)
    outcome = check(exercise, file)
    folder.take(outcome)
    if not outcome.ok:
        expected = f"all {len(exercise.steps)} steps to be right before a network takes them"
        way_out = f"tinygraph course check {exercise.number}"
        raise ArgumentError("course run", file.name, expected, len(outcome.passed), way_out)
    _told(f"{network.__doc__}")
    page = file.with_suffix(".html")
    try:
        with opened(exercise, file) as learner:
            model, rows = trained(network, Own(exercise, learner), _told)
            draw(model, rows, f"{exercise.number} {exercise.title}", page)
    except Stumbled as error:
        place = f"{file.name}, line {error.line}: {error.source}\n" if error.line else ""
        print(f"{place}{error}")
        return {"ok": False, "exercise": exercise.name, "error": str(error), "line": error.line}
    except (Died, Unusable) as error:
        print(error)
        return {"ok": False, "exercise": exercise.name, "error": str(error), "line": None}
    print(f"wrote {page}")
    return {"ok": True, "exercise": exercise.name, "epochs": rows, "files": [str(page)]}


def verify(args: Namespace) -> dict[str, Any]:
    """Try an exercise as its writer: what is printed behind a dash is wrong."""
    needed()
    exercise, faults = find(args.of), {}
    for what, fault in tried(exercise):
        if fault:
            faults[what] = fault
        say(f"  {'wrong' if fault else 'ok   '}  {what}{' - ' if fault else ''}{fault}")
    return {"ok": not faults, "exercise": exercise.name, "faults": faults}


def protocol(args: Namespace) -> dict[str, Any]:
    """Look at the protocol of a project: seal what it states, or compute its figures again."""
    data_dir = None if args.data_dir is None else Path(args.data_dir)
    rows = verified(Path(args.file), data_dir)
    for row in rows:
        words = wrapped(f"{row.what}{' - ' if row.why else ''}{row.why}", width() - 9)
        say("\n".join([f"  {row.state:5}  {words[0]}", *(f"         {w}" for w in words[1:])]))
    wrong = [row for row in rows if row.state != "ok"]
    if not wrong:
        say("all figures hold")
    return {"ok": not wrong, "file": args.file, "rows": [row._asdict() for row in rows]}


def _told(line: str) -> None:
    say("\n".join(wrapped(line, width())))


def say(line: str) -> None:
    print(line, flush=True)


def folder_here() -> CourseFolder:
    return CourseFolder.around(Path.cwd())


def asked(args: Namespace) -> tuple[CourseFolder, Exercise]:
    folder = folder_here()
    return folder, find(args.of) if args.of else folder.current()


class Checked(NamedTuple):
    """What a check found, the address of the page of the launch that failed, a hint's offer."""

    outcome: Outcome
    page: str
    offer: str


def checked(folder: CourseFolder, exercise: Exercise, offer: str = OFFER) -> Checked:
    """A check that is noted and shown; then the page of the launch that failed."""
    needed()
    # what hypothesis keeps beside its examples stands with what is ours
    kept = folder.path / ".course" / "hypothesis"
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(kept))
    outcome = check(exercise, folder.file(exercise))
    offer = offer.format(exercise.number) if folder.take(outcome) >= SAME else ""
    wiped()
    failure = outcome.failure
    where = address(folder.page(exercise), failure) if failure and failure.request else ""
    show(outcome, where, offer)
    if answers := folder.answers(exercise):
        say("\n".join(["", *(part for line in answers for part in wrapped(line, width()) or [""])]))
    page = write_page(outcome, folder.page(exercise))
    link(page)
    return Checked(outcome, page, offer)


def show(outcome: Outcome, page: str, offer: str) -> None:
    """What a check found; a screen has room below it for the address of a page, if there is one."""
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    high = height()
    if high and page:
        high -= 2 + len(f"{PAGE} {page}") // width()
    say("\n".join(screen(outcome, colour, offer, width(), high)))


def link(page: str) -> None:
    if page:
        say(f"\n{PAGE} {page}")


def needed() -> None:
    """Raise ArgumentError where the extra of the course is not installed."""
    if importlib.util.find_spec("hypothesis") is None:
        raise ArgumentError("course", "hypothesis", "the package", "none", install("course"))


def wiped() -> None:
    """Write over "checking ..."."""
    if sys.stdout.isatty():
        print("\r\x1b[K", end="")


def height() -> int:
    """How many lines fit, beside those about keys; 0 for any number."""
    return shutil.get_terminal_size().lines - 3 if sys.stdout.isatty() else 0


def width() -> int:
    """How many characters fit into a line."""
    return min(WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else WIDTH
