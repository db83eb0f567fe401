"""`make gpu` on the real CuPy without a GPU: each section, and the processes that it starts.

Left out there, and on the page by name: what compute-sanitizer, ncu and PyTorch would say.
"""

import re
import types

import pytest

from benchmarks import children
from benchmarks.gpu import SECTIONS, counts, page, profile, rehearsal, safe, section, verdicts
from benchmarks.gpu.machine import find_gpu
from benchmarks.gpu.room import EventClock, Room

# What the page must say of a section, beside its title; the middle of a row, most of all.
SAYS = {
    "smoke": r"\| training steps, captured \| \S+ \| yes \|",
    "suite": r"test_relu.py` \| [1-9]\d* \| 0 \| 0 \| 0 \|(.|\n)*that of CuPy without a GPU",
    "ceilings": r"\| numpy, 64 x 64, tf32 \|",
    "steps": r"\| tinygraph compiled, captured \| ",
    "gemm": r"\| 48 \| ",
    "conv": r", padding 1 \| forward and backward \| ",
    "profile": r"left out: ncu is absent: nothing is profiled",
    "safe": r"\| nothing \| [1-9]\d* \| 0 \|",
    "variants": r", compiled \| launch by launch \| ",
    "host_time": r"\| seed step, captured \| ",
    "compiled": r"left out: torch.compile: not rehearsed",
    "verdicts": r"`launched transpose_padded`",
    "counts": r"left out: ncu is absent",
}


@pytest.fixture
def room(rehearsed_cuda, monkeypatch):
    for module in (counts, profile, safe, verdicts):
        monkeypatch.setattr(module, "shutil", types.SimpleNamespace(which=lambda name: None))
    return Room("cuda", EventClock(rehearsed_cuda), rehearse=True)


def test_it_says_something_of_each_section():
    assert SAYS.keys() == SECTIONS.keys()


@pytest.mark.second
@pytest.mark.parametrize("name", SAYS)
def test_a_section(room, tmp_path, name):
    made = page.Page(tmp_path / "page.md", list(SECTIONS), rehearse=True)
    made.begin("A title", "- about", keep=False)
    assert section.measure(name, room, made), made.sections[name].text
    assert re.search(SAYS[name], made.sections[name].text), made.sections[name].text


@pytest.mark.second
def test_the_command_hands_cupy_down_to_its_children(machine, tmp_path):
    words = ["--rehearse", "--only", "smoke", "--output", str(tmp_path)]
    done = children.run(rehearsal.command("benchmarks.gpu", *words), 100)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.md")
    found = page.read_sections(path.read_text())["smoke"]
    assert found.state == page.FINISHED and re.search(SAYS["smoke"], found.text), found.text


def test_what_cuda_does_not_allow_ends_a_program_with_1(machine, tmp_path):
    """Though it went on."""
    program = tmp_path / "frees_what_is_not_there.py"
    program.write_text(
        "import cupy\n"
        "try:\n"
        "    cupy.cuda.runtime.free(4096)\n"
        "except cupy.cuda.runtime.CUDARuntimeError:\n"
        "    print('went on')\n"
    )
    path = {"PYTHONPATH": str(tmp_path)}
    done = children.run(rehearsal.command(program.stem), 100, path)
    assert (done.returncode, done.stdout) == (1, "went on\n")
    assert "CUDA does not allow: freed what cudaMalloc has not given" in done.stderr


def test_it_is_not_taken_for_a_gpu(machine):
    cupy, missing = find_gpu()
    assert cupy is None and "has no GPU" in missing
