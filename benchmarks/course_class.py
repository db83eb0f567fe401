"""A made-up class, graded by one command: how long it takes, and whether each mistake is named.

Each learner hands in some exercises; among them is every mistake of the catalogue once, the
solution and the untouched file.  A line with the learner's name tells the files apart, so that each
is graded by itself.

    python -m benchmarks.course_class                          200 learners, five files each
    python -m benchmarks.course_class --learners 40 --folder class
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tinygraph_course.content.exercise import Exercise, exercises


def answers(exercise: Exercise) -> list[tuple[str, str]]:
    """Names and texts: every mistake, the solution, the untouched file."""
    made = [(mistake.name, exercise.variants(mistake)[0]) for mistake in exercise.mistakes]
    return [*made, ("", exercise.solution), ("", exercise.stub)]


def make(folder: Path, learners: int, files: int) -> dict[tuple[str, str], str]:
    """Write a class; which mistake stands in which exercise of which learner."""
    draw = random.Random(0)
    waiting = {exercise.name: answers(exercise) for exercise in exercises()}
    for texts in waiting.values():
        draw.shuffle(texts)
    made: dict[tuple[str, str], str] = {}
    for number in range(learners):
        name = f"learner{number:03d}"
        (folder / name).mkdir(parents=True)
        # those of which most has not been handed in by anybody come first
        order = sorted(exercises(), key=lambda one: -len(waiting[one.name]))
        for exercise in order[:files]:
            left = waiting[exercise.name]
            mistake, text = left.pop() if left else draw.choice(answers(exercise))
            mark = "//" if exercise.is_kernel else "#"
            (folder / name / exercise.file).write_text(f"{text}{mark} {name}\n", encoding="utf-8")
            made[name, exercise.name] = mistake
    if left_out := {name: len(texts) for name, texts in waiting.items() if texts}:
        print(f"too few learners for all mistakes; left out: {left_out}")
    return made


def run(folder: Path, out: Path) -> tuple[float, dict[str, Any], list[dict[str, str]]]:
    """Grade it: seconds, what --json says, and the rows of the csv."""
    command = [sys.executable, "-m", "tinygraph", "course", "grade", str(folder), "--json"]
    table = out / "grades.csv"
    begun = time.perf_counter()
    done = subprocess.run(
        [*command, "--out", str(out), "--csv", str(table)], stdout=subprocess.PIPE, encoding="utf-8"
    )
    seconds = time.perf_counter() - begun
    with table.open(encoding="utf-8", newline="") as lines:
        return seconds, json.loads(done.stdout), list(csv.DictReader(lines))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--learners", type=int, default=200)
    parser.add_argument("--files", type=int, default=5)
    parser.add_argument("--folder", help="where to keep class and grades (default: nowhere)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        place = Path(args.folder or room)
        made = make(place / "class", args.learners, args.files)
        print(f"{args.learners} learners, {len(made)} files, {os.cpu_count()} cores", flush=True)
        seconds, found, rows = run(place / "class", place / "grades")
        errors = not found["ok"]
        print(f"graded in {seconds:.0f} s, {seconds / len(made):.2f} s for a file", end="")
        print(", with errors of the grader" if errors else "")
        again, _, _ = run(place / "class", place / "grades")
        print(f"once more, with nothing changed: {again:.1f} s")
        told = [row for row in rows if row["mistake"]]
        named = {(row["submission"], row["exercise"]): row["mistake"] for row in told}
        right = sum(named.get(who, "") == mistake for who, mistake in made.items())
        pairs = [(*who, mistake, named.get(who, "")) for who, mistake in made.items()]
        wrong = [pair for pair in pairs if pair[2] != pair[3]]
        kinds = {(who[1], mistake) for who, mistake in made.items() if mistake}
        print(f"{len(kinds)} different mistakes; {right} of {len(made)} files named as they are")
        for who, name, mistake, called in wrong:
            print(f"  {who} {name}: made {mistake or 'none'}, called {called or 'nothing'}")
        for one in found["mistakes"][:15]:
            name = f"{one['exercise']} {one['step']} {one['mistake']}"
            print(f"  {name:44} surely {one['surely']:3}  likely {one['likely']:3}")


if __name__ == "__main__":
    main()
