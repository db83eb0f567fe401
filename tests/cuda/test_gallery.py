"""Kernels as strangers write them: each wrong one is named at its line, no right one is blamed.

A kernel of tests/cuda/gallery says in comments at its top how it is launched and what must be said.

    // launch: --kernel NAME --grid 4 --block 256 --arg ...   (several lines make one launch)

    // about: what is wrong                                   in wrong/
    // expect: race                                           (of several kinds, any is right)
    // also: uninitialized                                    (an honest consequence, allowed)
    // array: y                                               (where no line is at fault)

    // why: what makes it right, though it looks risky        in right/
    // equals: y = 2 * x                                      (results = numpy on the inputs;
    //     goes on here)

The folder more/ has the same, for the second tier, to which those belong too whose threads wait
until their time is over.

`// <- here` marks the lines that a finding may name: a race has two ends.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tinygraph.cli.check_kernel import arguments_of, kernel_of, parse_launch
from tinygraph.cuda.emulator.findings import CAUSES
from tinygraph.cuda.launch import InOut, Out
from tinygraph.engine.device import get_device

pytestmark = pytest.mark.usefixtures("following")

GALLERY = Path(__file__).parent / "gallery"
TOLERANCE = 1e-5
KEYS = {"about", "why", "launch", "expect", "also", "array", "equals"}


@dataclass(frozen=True)
class Case:
    """One kernel of the gallery and what its header says."""

    path: Path

    @property
    def text(self):
        return self.path.read_text()

    def header(self, key):
        """The values of one key, in order."""
        found = re.findall(rf"^// {key}: (.*(?:\n//     .*)*)", self.text, re.MULTILINE)
        return [" ".join(value.split("\n//     ")) for value in found]

    @property
    def expected(self):
        return self.header("expect")[0].split(", ")

    @property
    def marked(self):
        """The numbers of the lines that a finding may name."""
        lines = self.text.splitlines()
        return {n for n, line in enumerate(lines, 1) if line.endswith("// <- here")}

    def launch(self):
        """The launch, its kernel, and its arguments by name, freshly filled."""
        launch = parse_launch(" ".join(self.header("launch")))
        kernel = kernel_of(self.path, launch)
        names = [parameter.name for parameter in kernel.signature.parameters]
        return launch, kernel, dict(zip(names, arguments_of(kernel.signature, launch), strict=True))

    def run(self, checked, device="emulator"):
        """Launch once: the report (None for a plain launch), the inputs and the results by name."""
        launch, kernel, arguments = self.launch()
        results = {
            name: value.array if isinstance(value, (Out, InOut)) else value
            for name, value in arguments.items()
        }
        inputs = {name: np.copy(value) for name, value in results.items()}
        if device == "cuda":
            arguments = results = _on_gpu(results)
        start = kernel.check if checked else kernel
        report = start(launch.grid, launch.block, *arguments.values(), shared=launch.shared)
        if device == "cuda":
            results = {n: x.get() if hasattr(x, "get") else x for n, x in results.items()}
        return report, inputs, results

    def is_at_fault(self, finding):
        """Whether the finding has the right kind, and names the faulty line or array."""
        if finding.kind not in self.expected:
            return False
        named = self.header("array")
        if named:
            return finding.array == named[0]
        return Path(finding.file).name == self.path.name and finding.line in self.marked


def _on_gpu(arguments):
    """The arrays on device "cuda"; numbers as they are."""
    gpu = get_device("cuda")
    return {n: gpu.from_numpy(x) if np.ndim(x) else x for n, x in arguments.items()}


def cases(folder):
    """A pytest parameter for each kernel of one folder."""
    found = []
    for path in sorted(GALLERY.glob(f"{folder}/*.cu")):
        waits = path.stem.startswith(("deadlock_", "timeout_"))  # until its time is over
        marks = [pytest.mark.second] if waits or folder.startswith("more/") else []
        found.append(pytest.param(Case(path), id=path.stem, marks=marks))
    return found


WRONG, RIGHT = cases("wrong") + cases("more/wrong"), cases("right") + cases("more/right")
WITH_NUMBERS = [p for p in RIGHT if p.values[0].header("equals")]


@pytest.fixture(autouse=True)
def two_seconds(monkeypatch):
    """A kernel that spins is stopped soon."""
    monkeypatch.setenv("TINYGRAPH_KERNEL_TIMEOUT", "2")


def assert_equations(case, inputs, results):
    """The left side on what the kernel left behind = the right side on what it was given."""
    for equation in case.header("equals"):
        left, right = equation.split(" = ", 1)
        got = np.asarray(eval(left, {"np": np, **results}))
        want = np.asarray(eval(right, {"np": np, **inputs}))
        assert got.shape == want.shape, f"{equation}: {got.shape} and {want.shape}"
        np.testing.assert_allclose(got, want, TOLERANCE, TOLERANCE, err_msg=equation)


@pytest.mark.parametrize("case", WRONG)
def test_wrong_kernel_is_named(case):
    report, _, _ = case.run(checked=True)
    assert any(case.is_at_fault(finding) for finding in report.findings), report.text()
    allowed = {*case.expected, *case.header("also")}
    assert {finding.kind for finding in report.findings} <= allowed, report.text()


@pytest.mark.parametrize("case", RIGHT)
def test_right_kernel_is_not_blamed(case):
    report, inputs, results = case.run(checked=True)
    assert report.ok, report.text()
    assert_equations(case, inputs, results)


@pytest.mark.parametrize("case", WITH_NUMBERS)
def test_right_kernel_gives_the_numbers_of_numpy(case, kernel_device):
    _, inputs, results = case.run(False, kernel_device)
    assert_equations(case, inputs, results)


def test_the_gallery_is_large_and_has_every_kind():
    assert len(WRONG) >= 44 and len(RIGHT) >= 34
    assert len(WITH_NUMBERS) == len(RIGHT)
    assert {kind for p in WRONG for kind in p.values[0].expected} == set(CAUSES)


@pytest.mark.parametrize("case", WRONG + RIGHT)
def test_header_is_complete(case):
    top = re.match(r"(//.*\n)+", case.text).group()
    assert all(re.match(rf"//     |// ({'|'.join(KEYS)}): \S", line) for line in top.splitlines())
    wrong = case.path.parent.name == "wrong"
    for key in ("about", "expect") if wrong else ("why",):
        assert len(case.header(key)) == 1, key
    assert case.launch()
    if wrong:
        assert {*case.expected, *case.header("also")} <= set(CAUSES)
        assert bool(case.marked) != bool(case.header("array"))
    else:
        assert not case.marked and not case.header("expect")


@pytest.mark.parametrize("case", WRONG + RIGHT)
def test_readme_lists_the_kernel(case):
    said = (case.header("about") + case.header("why"))[0]
    assert f"- `{case.path.name}`\n  {said}\n" in (GALLERY / "README.md").read_text()
