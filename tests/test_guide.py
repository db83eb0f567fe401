"""The guide to adding an op, followed to the letter in a copy of the project.

Each test runs in the copy what would look at a new op here, so that the four places which the guide
names are all that there are.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.test_docs import ROOT, code_blocks, script

PAGE = "docs/add_an_op.md"
NAMES = {"elliott": "elementwise", "tanhexp": "elementwise", "scale_norm": "normalization"}
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")

# Files of tests that go over all ops, or over all kernels.
OVER_ALL = [
    "tests/test_registry.py",
    "tests/test_cases.py",
    "tests/test_docs.py",
    "tests/test_import.py",
    "tests/cases/test_planted_mistakes.py",
    "tests/ops/test_operands.py",
    "tests/testing/test_gradcheck_mutants.py",
    "tests/cuda/test_instances.py",
    "tests/cuda/test_operation_counts.py",
    "tests/cuda/test_mutations.py",
]


def python_blocks():
    """The files of the guide: elliott, tanhexp and scale_norm, each with its test."""
    return [source for kind, source in code_blocks(PAGE) if kind == "python"]


def export_line(name):
    (line,) = re.findall(rf"^    (from tinygraph\.ops\.\w+\.{name} import .*)$", TEXT, re.MULTILINE)
    return line


@pytest.fixture
def copy(tmp_path):
    """A copy of the project, of what git would take."""
    root = tmp_path / "project"
    for folder in ("tinygraph", "tests", "docs"):
        ignored = shutil.ignore_patterns("__pycache__", "_build", "generated")
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored)
    beside = [*ROOT.glob("*.toml"), *ROOT.glob("*.py"), *ROOT.glob("*.md"), ROOT / "LICENSE"]
    for path in beside:
        shutil.copy(path, root)
    return root


def write(copy, *paths_and_texts):
    for path, text in paths_and_texts:
        (copy / path).write_text(text, encoding="utf-8")


def export(copy, name):
    """The export line, where the alphabet puts it."""
    path = copy / "tinygraph/ops/exports.py"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line > export_line(name))
    at = max(at, next(i for i, line in enumerate(lines) if line.startswith("from ")))
    lines.insert(at, export_line(name) + "\n")
    path.write_text("".join(lines), encoding="utf-8")


def run_tests(copy, *arguments):
    """Pytest in the copy: whether all passed, and what it printed."""
    tiers = ["-m", "second or not second"]
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *tiers, *arguments]
    env = {**os.environ, "PYTHONPATH": str(copy)}
    run = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True)
    return run.returncode == 0, run.stdout + run.stderr


@pytest.mark.second
def test_an_op_that_is_not_complete_is_told_all_that_is_missing(copy):
    """What the guide shows for the op's file alone, and no other op is held up."""
    op = python_blocks()[0]
    write(copy, ("tinygraph/ops/elementwise/elliott.py", op))
    passed, output = run_tests(copy, "tests/test_registry.py", "-k", "elliott or tanh")
    (shown,) = re.findall(r"^```text\n(elliott: .*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert not passed and "1 failed, 1 passed" in output, output
    told = dict.fromkeys(re.findall(r"^E +(elliott: .*)$", output, re.MULTILINE))
    assert list(told) == shown.splitlines()


@pytest.mark.second
def test_the_ops_of_the_guide_take_the_places_that_it_names(copy):
    """Their printed tests pass, and so does every test that goes over all ops or all kernels."""
    elliott, test_elliott, tanhexp, test_tanhexp, scale_norm, test_scale_norm = python_blocks()
    elliott_kernel, scale_norm_kernel = script("refresh_output").blocks(TEXT, "cuda")
    write(
        copy,
        ("tinygraph/ops/elementwise/elliott.py", elliott),
        ("tinygraph/ops/elementwise/elliott.cu", elliott_kernel),
        ("tests/ops/test_elliott.py", test_elliott),
        ("tinygraph/ops/elementwise/tanhexp.py", tanhexp),
        ("tests/ops/test_tanhexp.py", test_tanhexp),
        ("tinygraph/ops/normalization/scale_norm.py", scale_norm),
        ("tinygraph/ops/normalization/scale_norm.cu", scale_norm_kernel),
        ("tests/ops/test_scale_norm.py", test_scale_norm),
    )
    for name in NAMES:
        export(copy, name)
    about_them = (
        " or ".join(NAMES) + " or waiting_lists or every_kind or table or import or many_ops"
    )
    own = [f"tests/ops/test_{name}.py" for name in NAMES]
    own += [f"tinygraph/ops/{wing}/{name}.py" for name, wing in NAMES.items()]
    passed, output = run_tests(copy, "-k", about_them, *own, *OVER_ALL)
    assert passed, output
    for name in (
        r"TestElliott::test_kernel_equals_reference.*emulator",
        r"TestTanhexp::test_kernel_equals_reference.*emulator",
        r"TestTanhexp::test_kernel_under_the_checker",
        "elliott.elliott",
        "tanhexp.tanhexp",
        r"test_an_op_is_complete\[elliott",
        r"test_an_op_is_complete\[tanhexp",
        r"test_an_op_is_complete\[scale_norm",
        r"emulator_counts\w+\[scale_norm",
        r"test_a_wrong_gradient_is_found\[elliott",
        r"emulator_counts\w+\[elliott",
        r"test_mutant(_again)?\[elliott",
        r"test_mutant(_again)?\[scale_norm",
        "test_the_table_of_ops_has_every_op",
    ):
        assert re.search(f"{name}.* PASSED", output), f"{name} was not run:\n{output}"
