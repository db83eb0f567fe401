"""`make gpu`, the command: its codes, the order of sections, and a rehearsal of all of them."""

import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

from benchmarks.gpu import SECTIONS, machine, page, section
from benchmarks.gpu.__main__ import DONE, FAILED, NO_GPU, main
from benchmarks.gpu.room import Room, WallClock
from tests.benchmarks.torch_stand_in import TorchStandIn

ROOT = Path(__file__).parents[2]


def test_without_a_gpu_there_is_one_clear_line(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert main([]) == NO_GPU == 3
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1
    assert "CuPy cannot be imported" in err and "ARGS=--rehearse" in err


def test_cupy_without_a_driver_is_told_apart(monkeypatch):
    class CUDARuntimeError(RuntimeError):
        pass

    def count():
        raise CUDARuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")

    runtime = types.SimpleNamespace(getDeviceCount=count)
    cupy = types.ModuleType("cupy")
    cupy.cuda = types.SimpleNamespace(runtime=runtime)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert machine.find_gpu()[1].startswith("CuPy sees no GPU (cudaErrorInsufficientDriver")
    runtime.getDeviceCount = lambda: 1
    assert machine.find_gpu() == (cupy, "")
    cupy.__version__ = "14.0.0+rehearsal"
    assert machine.find_gpu()[0] is None


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_calls_the_command():
    words = [
        "make",
        "-n",
        "--no-print-directory",
        "gpu",
        f"PYTHON={sys.executable}",
        "ARGS=--only gemm",
    ]
    # not as a part of a make that runs these tests: that one's flags would come along
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    made = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert made.stdout.strip() == f"{sys.executable} -m benchmarks.gpu --only gemm"


def commanded(monkeypatch, tmp_path, words, outcomes):
    """Run the command with sections in the place of which something is put on the page."""
    ran = []

    def run(command, limit):
        name, path = command[3:5]
        ran.append(name)
        assert limit == SECTIONS[name] and "--rehearse" in command
        state = outcomes.get(name, page.FINISHED)
        made = page.Page(Path(path), list(SECTIONS), rehearse=True)
        made.put(name, f"## {name}\n", page.BEGUN if isinstance(state, Exception) else state)
        if isinstance(state, Exception):
            raise state
        return subprocess.CompletedProcess(command, state == page.FAILED, "", "")

    monkeypatch.setattr("benchmarks.children.run", run)
    code = main(["--rehearse", "--output", str(tmp_path), *words])
    (path,) = tmp_path.glob("*.md")
    return code, ran, {name: s.state for name, s in page.read_sections(path.read_text()).items()}


def test_every_section_runs_in_its_order(monkeypatch, tmp_path):
    code, ran, states = commanded(monkeypatch, tmp_path, [], {"gemm": page.FAILED})
    assert code == FAILED and ran == list(states) == list(SECTIONS)
    assert ran[:2] == ["smoke", "suite"]  # right before fast
    assert states["gemm"] == page.FAILED and states["conv"] == page.FINISHED
    assert all(limit <= 600 for limit in SECTIONS.values())


def test_a_first_wrong_number_ends_it(monkeypatch, tmp_path, capsys):
    code, ran, _ = commanded(monkeypatch, tmp_path, [], {"smoke": page.FAILED})
    assert code == FAILED and ran == ["smoke"]
    assert "nothing is measured before it is right" in capsys.readouterr().out


def test_it_goes_on_where_it_was_stopped(monkeypatch, tmp_path):
    late = {"conv": subprocess.TimeoutExpired("conv", 150, stderr="slow")}
    _, _, states = commanded(monkeypatch, tmp_path, ["--only", "gemm", "--only", "conv"], late)
    assert states == {"gemm": page.FINISHED, "conv": page.BEGUN}
    code, ran, states = commanded(monkeypatch, tmp_path, ["--continue"], {})
    assert code == DONE and "gemm" not in ran and "conv" in ran
    assert set(states.values()) == {page.FINISHED} and list(states) == list(SECTIONS)


def test_no_section_begins_that_may_not_end_in_time(monkeypatch, tmp_path, capsys):
    words = ["--minutes", "2.6", "--only", "safe", "--only", "conv"]
    code, ran, _ = commanded(monkeypatch, tmp_path, words, {})
    assert code == FAILED and ran == ["conv"]
    assert "safe: left for --continue" in capsys.readouterr().out


@pytest.mark.second
def test_the_command_runs_a_section_of_its_own(tmp_path, capsys):
    assert main(["--rehearse", "--only", "ceilings", "--output", str(tmp_path)]) == DONE
    (path,) = tmp_path.glob("*.md")
    found = page.read_sections(path.read_text())
    assert list(found) == ["ceilings"] and "TB/s" in found["ceilings"].text
    assert "ceilings ... done" in capsys.readouterr().out


@pytest.mark.second
def test_rehearsal_of_every_section(tmp_path):
    torch = TorchStandIn()
    made = page.Page(tmp_path / "page.md", list(SECTIONS), rehearse=True)
    made.begin(f"{page.REHEARSAL}: a title", "- about", keep=False)
    for name in SECTIONS:
        assert section.measure(name, Room("emulator", WallClock(), torch, rehearse=True), made), (
            made.sections[name].text
        )
    text = made.path.read_text()
    assert text.startswith(f"# {page.REHEARSAL}") and "Nothing was measured." in text
    sections = {name: found.text for name, found in made.sections.items()}
    assert list(sections) == list(SECTIONS)
    for found in sections.values():
        assert page.REHEARSAL in found.splitlines()[0]
    row = r"\| `tests/ops/test_relu.py` \| [1-9]\d* \| 0 \| 0 \| 0 \|"
    assert re.search(row, sections["suite"]), sections["suite"]
    assert "| checker | 2 of 2 | 0 of 1 |" in sections["verdicts"]
    assert re.search(r"\| nothing \| [1-9]\d* \| 0 \|", sections["safe"]), sections["safe"]
    assert "share of numpy" in sections["gemm"] and "cuBLAS |" not in sections["gemm"]
    assert "PyTorch on the CPU ms" in sections["conv"]
    fused = r"tinygraph eager \| [\d.]+ \([\d.]+ to [\d.]+\) \| [\d.]+ \([\d.]+ to [\d.]+\) \|"
    assert re.search(fused, sections["steps"]), sections["steps"]
    assert False in torch.precisions
    pictures = re.findall(r"!\[.*\]\((.*)\)", text)
    assert len(set(pictures)) == len(pictures) == 4
    assert all(page.REHEARSAL in (tmp_path / p).read_text() for p in pictures)
