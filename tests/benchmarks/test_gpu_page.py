"""`make gpu`: rehearsed without a GPU; the page it writes, and the room that it measures in."""

import importlib
import os
import re
import shutil
import subprocess
import sys
import types
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gpu import gemm, machine, ours, page, steps, torch_side
from benchmarks.gpu.__main__ import DONE, FAILED, NO_GPU, SECTIONS, main
from benchmarks.gpu.room import EventClock, Room, WallClock
from benchmarks.timing import Ratio, Times, Timing
from benchmarks.workloads import seed_network

ROOT = Path(__file__).parents[2]


class TorchStandIn:
    """In PyTorch's place: the numpy bodies of tinygraph; `bias` makes its losses wrong."""

    def __init__(self, bias=0.0):
        self.bias, self.precisions = bias, []

    def about(self):
        return "a stand-in"

    @contextmanager
    def precision(self, tf32):
        self.precisions.append(tf32)
        yield

    def convolution(self, x, w, gy, padding):
        return ours.convolution(x, w, gy, padding, "cpu")

    def step(self, workload, mode):
        step = ours.steps(workload, "cpu")["eager"]
        return lambda: step() + self.bias


class CountingClock:
    """A clock that writes down who was called, and gives times made up beforehand."""

    def __init__(self):
        self.calls = []

    def timing(self, run, repeats):
        run()
        self.calls.append((run(), repeats))
        return Timing(0.5, 0.5)


# ---- the room


def test_runs_take_turns_after_warming_up():
    clock = CountingClock()
    times = Room("cpu", clock, quick=True).in_turns({"a": lambda: "a", "b": lambda: "b"})
    assert [name for name, _ in clock.calls] == list("aabb" + "ab" * 5)
    assert set(clock.calls) == {("a", 1), ("b", 1)}
    assert len(times["a"].rounds) == 5 and times["b"].median == 0.5


def test_a_short_run_is_repeated():
    class Fast(CountingClock):
        def timing(self, run, repeats):
            super().timing(run, repeats)
            return Timing(1e-3, 1e-3)

    clock = Fast()
    Room("cpu", clock).in_turns({"a": lambda: "a"})
    assert clock.calls[-1] == ("a", 20)


def test_median_range_and_mark():
    seen = Times((Timing(1e-3, 1.1e-3), Timing(3e-3, 3e-3), Timing(2e-3, 2e-3)))
    assert seen.text() == "2 (1 to 3)" and not seen.marked
    unseen = Times((Timing(1e-4, 5e-3),) * 3)
    assert unseen.marked and unseen.text() == "0.1* (0.1 to 0.1)"


def test_a_ratio_is_taken_round_by_round():
    own = Times(tuple(Timing(t, t) for t in (1.0, 2.0, 4.0)))
    other = Times(tuple(Timing(t, t) for t in (3.0, 4.0, 4.0)))
    assert Ratio.of(own, other).values == (3.0, 2.0, 1.0)
    assert Ratio.of(own, other).text() == "2.00 (1.00 to 3.00)"


def test_events_are_recorded_around_the_repeats():
    said = []

    class Event:
        def record(self, stream):
            said.append(stream)

    cuda = types.SimpleNamespace(
        Event=Event,
        Stream=types.SimpleNamespace(null="null"),
        Device=lambda: types.SimpleNamespace(synchronize=lambda: said.append("wait")),
        get_elapsed_time=lambda first, last: 12.0,
    )
    clock = EventClock(types.SimpleNamespace(cuda=cuda))
    timing = clock.timing(lambda: said.append("run"), 3)
    assert said == ["wait", "null", "run", "run", "run", "null", "wait"]
    assert timing.events == pytest.approx(0.004) and 0 < timing.wall < 0.004


# ---- the page


def test_sections_can_be_read_back_and_what_lost_stands_on_top():
    result = page.Result("Title", blocks=["words"], left_out=["a tool is absent"])
    result.aim("slow thing", 0.4, 0.85)
    result.aim("fast thing", 0.9, 0.85)
    result.aim("no number", float("nan"), 0.85)
    broken = page.error_text("Conv", "Traceback: no memory", rehearse=False)
    sections = {"gemm": page.section_text(result, {}, rehearse=False), "conv": broken}
    text = page.page_text("GPU, today", "- about", sections, rehearse=False)
    assert page.read_sections(text) == sections
    top = text.partition("<!-- section")[0]
    assert "- slow thing: 0.40, the aim is 0.85" in top and "- no number: nan" in top
    assert "fast thing" not in top and "Sections that failed: conv." in top
    assert "- left out: a tool is absent" in text and "no memory" in text
    assert page.REHEARSAL not in text


def test_a_rehearsal_says_so_and_nothing_lost_or_won():
    result = page.Result("Title")
    result.aim("slow thing", 0.4, 0.85)
    section = page.section_text(result, {}, rehearse=True)
    text = page.page_text("T", "", {"gemm": section}, rehearse=True)
    assert "slow thing" not in text and "Nothing was measured." in text
    assert text.count(page.REHEARSAL) == 2


# ---- the sections


def rehearsal(torch=None):
    return Room("emulator", WallClock(), torch, rehearse=True)


def test_a_wrong_product_is_not_timed(monkeypatch):
    monkeypatch.setattr(ours, "product", lambda a, b, device: lambda: 0 * a)
    with pytest.raises(ArithmeticError, match="size 32 is wrong"):
        gemm.run(rehearsal())


def test_error_of_a_product():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((80, 80)).astype(np.float32) for _ in range(2))
    assert gemm.error(np, a, b, a @ b) < 1e-6
    rounded = a.astype(np.float16).astype(np.float32) @ b  # 10 bits, as tf32 has
    assert 1e-5 < gemm.error(np, a, b, rounded) < 2e-3


def test_cublas_is_asked_for_the_precision():
    said = []
    linalg = types.SimpleNamespace(
        get_compute_type=lambda dtype: 4, set_compute_type=lambda dtype, kind: said.append(kind)
    )
    cupy = types.SimpleNamespace(_core=types.SimpleNamespace(_routines_linalg=linalg))
    for precision in (ours.STRICT, ours.TF32):
        with gemm.cublas_precision(cupy, precision):
            said.append("run")
    assert said == [1, "run", 4, 7, "run", 4]


@pytest.mark.second
def test_a_side_that_disagrees_is_left_out(monkeypatch):
    monkeypatch.setattr(steps, "workloads", lambda room: [seed_network(2, 4, size=8)])
    result = steps.run(rehearsal(TorchStandIn(bias=0.1)))
    text = "\n".join(result.blocks)
    assert "| tinygraph eager |" in text and "| PyTorch eager |" not in text
    assert any("PyTorch eager: AssertionError" in line for line in result.left_out)
    assert not result.failed


def test_the_faster_compiled_side_is_the_one_to_beat(monkeypatch):
    monkeypatch.setattr(steps, "workloads", lambda room: [seed_network(2, 4, size=8)])
    seconds = {
        "tinygraph eager": 4.0,
        "PyTorch eager": 12.0,
        "PyTorch compiled": 10.0,
        "PyTorch compiled, CUDA graphs": 2.0,
    }

    def in_turns(self, runs):
        assert set(seconds) <= set(runs)
        return {name: Times((Timing(s, s),) * 2) for name, s in seconds.items()}

    monkeypatch.setattr(Room, "in_turns", in_turns)
    torch = TorchStandIn()
    result = steps.run(Room("emulator", WallClock(), torch, quick=True))
    name = "seed network, batch 2, 4 filters"
    line = f"| {name} | tinygraph eager | 4e+03 (4e+03 to 4e+03) | 3.00 (3.00 to 3.00) | 0.50 ("
    assert line in result.blocks[1]
    lost = f"{name}, strict float32, times as fast as PyTorch"
    assert result.lost[:2] == [
        f"{lost} eager: 3.00, the aim is 10.00",
        f"{lost} compiled: 0.50, the aim is 4.00",
    ]
    assert torch.precisions[0] is False


def test_a_step_of_ours_that_disagrees_fails(monkeypatch):
    monkeypatch.setattr(steps, "workloads", lambda room: [seed_network(2, 4, size=8)])
    real = ours.steps

    def wrong(workload, device):
        found = real(workload, "cpu")
        return {"eager": found["eager"] if device == "cpu" else lambda: found["eager"]() + 1}

    monkeypatch.setattr(ours, "steps", wrong)
    assert "disagrees with numpy" in steps.run(rehearsal()).failed


# ---- the command


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


def test_a_section_fails_alone(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(torch_side, "find", lambda gpu: None)
    conv = importlib.import_module("benchmarks.gpu.conv")
    monkeypatch.setattr(conv, "run", lambda room: 1 / 0)
    words = ["--rehearse", "--only", "conv", "--only", "gemm", "--output", str(tmp_path)]
    assert main(words) == FAILED
    (path,) = tmp_path.glob("*.md")
    sections = page.read_sections(path.read_text())
    assert list(sections) == ["gemm", "conv"]
    assert "ZeroDivisionError" in sections["conv"] and "| 48 |" in sections["gemm"]
    assert "conv ... FAILED" in capsys.readouterr().out


@pytest.mark.second
def test_rehearsal_of_every_section(monkeypatch, tmp_path, capsys):
    torch = TorchStandIn()
    monkeypatch.setattr(torch_side, "find", lambda gpu: torch)
    assert main(["--rehearse", "--output", str(tmp_path)]) == DONE, capsys.readouterr().out
    (path,) = tmp_path.glob("*.md")
    text = path.read_text()
    assert text.startswith(f"# {page.REHEARSAL}") and "Nothing was measured." in text
    sections = page.read_sections(text)
    assert list(sections) == list(SECTIONS)
    for section in sections.values():
        assert page.REHEARSAL in section.splitlines()[0]
    for device in ("cuda", "emulator"):
        row = rf"\| {device} \| [1-9]\d* \| 0 \| 0 \| 0 \|"
        assert re.search(row, sections["suite"]), sections["suite"]
    assert "| checker | 2 of 2 | 0 of 1 |" in sections["verdicts"]
    assert "share of numpy" in sections["gemm"] and "cuBLAS |" not in sections["gemm"]
    assert "PyTorch on the CPU ms" in sections["conv"]
    fused = r"tinygraph eager \| [\d.]+ \([\d.]+ to [\d.]+\) \| [\d.]+ \([\d.]+ to [\d.]+\) \|"
    assert re.search(fused, sections["steps"]), sections["steps"]
    assert False in torch.precisions
    pictures = re.findall(r"!\[.*\]\((.*)\)", text)
    assert pictures and all(page.REHEARSAL in (tmp_path / p).read_text() for p in pictures)
