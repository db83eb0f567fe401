"""The tests of the GPU path on the GPU: a process for each file, several at a time.

An access outside of its arrays poisons the process in which it happens, so that all tests after it
fail: here only those of the same file do.  The table has a row for each file as soon as it is done;
`--continue` leaves out the files that have one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from benchmarks import children
from benchmarks.gpu import rehearsal
from benchmarks.gpu.page import Result
from benchmarks.gpu.room import Room
from benchmarks.report import table
from tests.real_cupy import selection

TITLE = "Tests of the GPU path"
LIMIT = 200  # seconds of one file
AT_ONCE = 12
MOST_NAMES = 30  # of failed tests on the page
MOST_OF_AN_ERROR = 200  # letters
OUTCOMES = ("passed", "failed", "error", "skipped")
HEAD = ["file", *OUTCOMES, "s"]
# In a rehearsal device "cuda" is the tests' stand-in for CuPy; see tests/conftest.py.
VARIABLES = {"TINYGRAPH_REHEARSE_CUDA": "1", "HYPOTHESIS_PROFILE": "ci"}
SELECTION = "tests.real_cupy.selection"  # a plugin: the tests that mean device "cuda"


@dataclass
class Outcome:
    """What became of the tests of one file."""

    counts: Counter[str]
    failed: list[str]
    seconds: float = 0.0
    words: str = ""  # why there are no counts

    @property
    def good(self) -> bool:
        return not (self.counts["failed"] or self.counts["error"] or self.words)

    def row(self, file: str) -> list[str]:
        counts = [str(self.counts[name]) for name in OUTCOMES] if not self.words else ["?"] * 4
        return [f"`{file}`", *counts, f"{self.seconds:.0f}"]


def files(room: Room) -> list[str]:
    """The test files; in a rehearsal the one of a small op."""
    if room.rehearse:
        return ["tests/ops/test_relu.py"]
    return [str(p.relative_to(children.ROOT)) for p in selection.files(children.ROOT / "tests")]


def command(file: str, report: Path, rehearse: bool) -> list[str]:
    """How pytest is called, together with VARIABLES.

    A rehearsal runs the tests of "cuda" on the tests' stand-in for CuPy, or on the real one without
    a GPU.
    """
    options = ["-q", "--tb=line", "-p", "no:cacheprovider", f"--junitxml={report}"]
    of_rehearsal = "tests.real_cupy.plugin" if rehearsal.cupy() else SELECTION
    plugin = ["-p", of_rehearsal if rehearse else "benchmarks.gpu.real_cuda"]
    tiers = ["-m", "second or not second"]
    few = ["-k", "more_than_one_block"] if rehearse else []
    return [sys.executable, "-m", "pytest", *options, *plugin, *tiers, *few, file]


def read_report(text: str) -> tuple[Counter[str], list[str]]:
    """Outcomes of a JUnit report, and the tests that failed: the name and the error of each."""
    outcomes: Counter[str] = Counter()
    failed = []
    marks = {"failure": "failed", "error": "error", "skipped": "skipped"}
    for case in ElementTree.fromstring(text).iter("testcase"):
        why = next((child for child in case if child.tag in marks), None)
        outcome = "passed" if why is None else marks[why.tag]
        outcomes[outcome] += 1
        if why is not None and outcome != "skipped":
            name = f"{case.get('classname', '')}::{case.get('name', '')}"
            message = " ".join(why.get("message", "").split())[:MOST_OF_AN_ERROR]
            failed.append(f"`{name}`: {message}" if message else f"`{name}`")
    return outcomes, failed


def tested(file: str, room: Room) -> Outcome:
    """Run the tests of a file."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        start = os.times().elapsed
        try:
            done = children.run(command(file, report, room.rehearse), LIMIT, VARIABLES)
        except subprocess.TimeoutExpired:
            return Outcome(Counter(), [], LIMIT, f"stopped after {LIMIT} s")
        seconds = os.times().elapsed - start
        if not report.exists():
            said = (done.stdout + done.stderr).strip().splitlines()
            why = f"ended with {done.returncode}: {said[-1][:200] if said else ''}"
            return Outcome(Counter(), [], seconds, why)
        return Outcome(*read_report(report.read_text(encoding="utf-8")), seconds)


def done_before(text: str) -> dict[str, list[str]]:
    """The rows of files that passed whole, from what an earlier call has left on the page."""
    rows = {}
    for line in re.findall(r"^\| (`tests/.*) \|$", text, re.MULTILINE):
        cells = line.split(" | ")
        if len(cells) == len(HEAD) and cells[2:4] == ["0", "0"]:
            rows[cells[0].strip("`")] = cells
    return rows


def run(room: Room) -> Result:
    result = Result(TITLE)
    rows = done_before(room.before)
    wrong: list[str] = []
    with ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1)) as pool:
        left = [file for file in files(room) if file not in rows]
        running = {pool.submit(tested, file, room): file for file in left}
        for future in as_completed(running):
            file, outcome = running[future], future.result()
            rows[file] = outcome.row(file)
            wrong += [f"- {test}" for test in outcome.failed]
            wrong += [f"- `{file}`: {outcome.words}"] if outcome.words else []
            _write(result, rows, wrong)
            room.tell(result)
    _write(result, rows, wrong)
    if not any(int(row[1]) for row in rows.values() if row[1].isdigit()):
        result.failed = (result.failed + "; " if result.failed else "") + "no test passed"
    if room.rehearse:
        behind = "CuPy without a GPU" if rehearsal.cupy() else "the tests' own stand-in for CuPy"
        result.blocks.append(f'Device "cuda" is here that of {behind}.')
    return result


def _write(result: Result, rows: dict[str, list[str]], wrong: list[str]) -> None:
    sums = [str(sum(int(r[i]) for r in rows.values() if r[i].isdigit())) for i in range(1, 5)]
    body = [*(rows[file] for file in sorted(rows)), ["together", *sums, ""]]
    result.blocks = [f"`pytest -p {SELECTION}`, a process for each file", table(HEAD, body)]
    if wrong:
        result.failed = f"{len(wrong)} tests or files"
        more = [f"and {len(wrong) - MOST_NAMES} more"] if len(wrong) > MOST_NAMES else []
        result.blocks.append("\n".join([*wrong[:MOST_NAMES], *more]))
