"""The test suite on the GPU: what passed and failed on each device."""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

from benchmarks import children
from benchmarks.gpu.page import Result
from benchmarks.gpu.room import Room
from benchmarks.report import table

TITLE = "Test suite"
LIMIT = 3600  # seconds
MOST_NAMES = 30  # of failed tests on the page
OUTCOMES = ("passed", "failed", "error", "skipped")
VARIABLES = {"TINYGRAPH_REHEARSE_CUDA": "1"}  # of tests/conftest.py: device "cuda" is tested too
DEVICES = ("cuda", "emulator", "cpu")


def command(room: Room, report: Path) -> list[str]:
    """How pytest is called, together with VARIABLES.

    A rehearsal runs a few tests of one small op, those of "cuda" on the tests' stand-in for CuPy.
    """
    pytest = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--tb=line",
        "-p",
        "no:cacheprovider",
        "--continue-on-collection-errors",
        f"--junitxml={report}",
    ]
    if room.rehearse:
        return [*pytest, "tests/ops/test_relu.py", "-k", "more_than_one_block and not checker"]
    pytest += ["-p", "benchmarks.gpu.real_cuda"]
    if room.quick:
        return [*pytest, "tests/ops", "-k", "cuda"]
    parallel = ["-n", "4"] if importlib.util.find_spec("xdist") else []
    return [*pytest, "tests", *parallel]


def read_report(text: str) -> tuple[dict[str, Counter[str]], list[str]]:
    """Outcomes of a JUnit report by device, and the names of the tests that failed.

    A test belongs to the device in the brackets of its name, as in `test_forward[cuda-float32]`,
    or to "other".
    """
    outcomes: dict[str, Counter[str]] = {}
    failed = []
    for case in ElementTree.fromstring(text).iter("testcase"):
        name, tags = case.get("name", ""), {child.tag for child in case}
        parameters = re.search(r"\[(.*)\]", name)
        words = re.split(r"[-_ ]", parameters[1]) if parameters else []
        device = next((d for d in DEVICES if d in words), "other")
        outcome = (
            "failed"
            if "failure" in tags
            else "error"
            if "error" in tags
            else "skipped"
            if "skipped" in tags
            else "passed"
        )
        outcomes.setdefault(device, Counter())[outcome] += 1
        if outcome in ("failed", "error"):
            failed.append(f"{case.get('classname', '')}::{name}")
    return outcomes, failed


def run(room: Room) -> Result:
    result = Result(TITLE)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = command(room, report)
        done = children.run(words, LIMIT, VARIABLES)
        if not report.exists():
            raise RuntimeError(f"pytest left no report:\n{(done.stdout + done.stderr)[-2000:]}")
        outcomes, failed = read_report(report.read_text(encoding="utf-8"))
    rows = [
        [device, *(str(outcomes[device][outcome]) for outcome in OUTCOMES)]
        for device in (*DEVICES, "other")
        if device in outcomes
    ]
    shown = " ".join(word for word in words[1:] if not word.startswith("--junitxml"))
    result.blocks += [f"`python {shown}`", table(["device", *OUTCOMES], rows)]
    if failed:
        result.failed = f"{len(failed)} tests"
        result.blocks.append("\n".join(f"- `{name}`" for name in failed[:MOST_NAMES]))
        if len(failed) > MOST_NAMES:
            result.blocks.append(f"and {len(failed) - MOST_NAMES} more")
    if room.rehearse:
        result.blocks.append('Device "cuda" stands here for the tests\' own stand-in for CuPy.')
    if "cuda" not in outcomes:
        result.failed = (result.failed + "; " if result.failed else "") + (
            "no test ran on device 'cuda'"
        )
    return result
