"""The pages about kernels tell the truth: their commands print what they show, their code runs.

Where the first test fails: python docs/refresh_output.py, look at what has changed, and commit it.
"""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.test_docs import ROOT, code_blocks, run_page, script
from tinygraph.base.errors import KernelCompileError
from tinygraph.cli.check_kernel import arguments_of, parse_launch
from tinygraph.cuda import Kernel
from tinygraph.cuda.emulator.compiler import find_compiler
from tinygraph.cuda.emulator.findings import CAUSES
from tinygraph.cuda.reading.source import kernel_files

pytestmark = pytest.mark.usefixtures("following")

PAGES = sorted((ROOT / "docs/kernels").glob("*.md"))
WITH_CODE = [page for page in PAGES if "```py" in page.read_text()]
SOURCES = [p.read_text() for p in [*kernel_files(), *kernel_files(".cuh")]]


def compiler_family():
    try:
        return find_compiler().family
    except KernelCompileError:
        return "none"


@pytest.fixture(scope="module")
def output():
    """docs/refresh_output.py as a module."""
    return script("refresh_output")


def in_folder_of(page, output, monkeypatch, tmp_path):
    """Go to a folder that has the files of the page."""
    for name, text in output.files(page.read_text()).items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


@pytest.mark.second
@pytest.mark.skipif(compiler_family() != "gcc", reason="the pages show what a build by g++ says")
@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda p: p.name)
def test_commands_print_what_the_page_shows(page, output):
    text = page.read_text(encoding="utf-8")
    assert output.refreshed(text) == text


@pytest.mark.second
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: p.name)
def test_the_code_of_a_page_runs_in_order(page, output, monkeypatch, tmp_path):
    in_folder_of(page, output, monkeypatch, tmp_path)
    run_page(str(page.relative_to(ROOT)))


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda p: p.name)
def test_excerpts_stand_in_our_kernels(page, output):
    """A block of CUDA is a file of the page, or it is copied from one of tinygraph."""
    text = page.read_text()
    whole = set(output.files(text).values())
    for block in output.blocks(text, "cuda"):
        assert block in whole or any(block in source for source in SOURCES), block


def test_the_op_file_holds_the_python_excerpt():
    blocks = code_blocks("docs/kernels/reading_a_kernel.md")
    (excerpt,) = [source for kind, source in blocks if kind == "python"]
    body = (ROOT / "tinygraph/ops/elementwise/unary.py").read_text()
    assert all(line.strip() in body for line in excerpt.splitlines()[1:])


def test_the_gallery_has_every_kind_and_only_kernels_of_the_test_gallery(output):
    page = (ROOT / "docs/kernels/gallery.md").read_text()
    names = set(output.files(page))
    assert names <= {path.name for path in output.WRONG.glob("*.cu")} and len(names) >= 16
    assert set(re.findall(r"^([a-z-]+)  \S*$", page, re.MULTILINE)) == set(CAUSES)
    for folder, word in (("wrong", "wrong"), ("right", "Right|right")):
        (number,) = re.findall(rf"(\d+) (?:{word}) kernels", page)
        assert int(number) == len([*(output.WRONG.parent / folder).glob("*.cu")])


def test_the_marks_of_the_page_are_needed(output):
    """Without them the checker reports a race: the page does not show marks that do nothing."""
    text = output.files((ROOT / "docs/kernels/checker.md").read_text())["relay.cu"]
    bare = re.sub(r"TG_HAPPENS_\w+\(turn\);", "", text)
    assert bare != text
    launch = parse_launch(
        "--grid 4 --block 32 --arg 'x=rng.random(32)' --arg 'cell=zeros(32)' --arg 'turn=zeros(1)'"
    )
    kernel = Kernel(bare, "relay")
    report = kernel.check(launch.grid, launch.block, *arguments_of(kernel.signature, launch))
    assert {finding.kind for finding in report.findings} == {"race"}


@pytest.mark.second
def test_the_test_of_the_page_passes_and_fails_where_it_should(output, monkeypatch, tmp_path):
    page = ROOT / "docs/kernels/your_own_kernels.md"
    in_folder_of(page, output, monkeypatch, tmp_path)
    blocks = code_blocks("docs/kernels/your_own_kernels.md")
    (test,) = [source for kind, source in blocks if kind == "python"]
    (tmp_path / "test_row_sums.py").write_text(test)
    assert run_pytest(tmp_path).returncode == 0
    kernel = tmp_path / "row_sums.cu"
    kernel.write_text(kernel.read_text().replace("__syncthreads();", ""))
    wrong = run_pytest(tmp_path)
    assert wrong.returncode == 1 and "race" in wrong.stdout


def test_the_kernel_of_the_readme_gives_the_right_numbers_by_chance(output):
    text = output.files((ROOT / "README.md").read_text())["shift.cu"]
    x = np.arange(257, dtype=np.float32)
    Kernel(text, "shift")(1, 256, x)
    np.testing.assert_array_equal(x[:256], np.arange(1, 257))
    fence = text.replace("x[threadIdx.x] = right", "__syncthreads(); x[threadIdx.x] = right")
    assert fence != text and Kernel(fence, "shift").check(1, 256, x).ok


def run_pytest(folder):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tinygraph_pytest", "--rootdir", "."]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


def test_the_pictures_of_kernels_are_up_to_date(tmp_path):
    """Where this fails: python docs/draw_kernels.py, look at the pictures, and commit them."""
    for drawn in script("draw_kernels").draw_all(tmp_path):
        assert drawn.read_bytes() == (ROOT / "docs/images" / drawn.name).read_bytes(), drawn.name


def test_a_changed_page_would_be_noticed(output):
    page = (ROOT / "docs/kernels/index.md").read_text()
    changed = page.replace("block (3, 0, 0)", "block (2, 0, 0)")
    assert changed != page and output.refreshed(changed) == page
