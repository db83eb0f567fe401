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

from benchmarks.gpu import SECTIONS, gemm, machine, ours, page, section, smoke, steps
from benchmarks.gpu.__main__ import DONE, FAILED, NO_GPU, main
from benchmarks.gpu.room import EventClock, Room, WallClock
from benchmarks.gpu.torch_side import COMPILED, TorchSide
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


def test_sections_can_be_read_back_and_what_lost_stands_on_top(tmp_path):
    result = page.Result("Title", blocks=["words"], left_out=["a tool is absent"])
    result.aim("slow thing", 0.4, 0.85)
    result.aim("fast thing", 0.9, 0.85)
    result.aim("no number", float("nan"), 0.85)
    broken = page.error_text("Conv", "Traceback: no memory", rehearse=False)
    made = page.Page(tmp_path / "page.md", ["gemm", "conv"])
    made.begin("GPU, today", "- about", keep=False)
    made.put("conv", broken, page.FAILED)
    made.put("gemm", page.section_text(result, {}, rehearse=False), page.FINISHED)
    assert list(made.sections) == ["gemm", "conv"]  # the order of the list, not of arrival
    assert made.sections["conv"] == page.Section(broken, page.FAILED)
    text = made.path.read_text()
    top = text.partition("<!-- section")[0]
    assert top.startswith("# GPU, today\n\n- about\n\n## What lost")
    assert "- slow thing: 0.40, the aim is 0.85" in top and "- no number: nan" in top
    assert "fast thing" not in top and "Sections that failed: conv." in top
    assert "- left out: a tool is absent" in text and "no memory" in text
    assert page.REHEARSAL not in text
    made.begin("GPU, today", "- about", keep=True)
    assert made.path.read_text() == text
    made.begin("GPU, today", "- about", keep=False)
    assert not made.sections


def test_a_rehearsal_says_so_and_nothing_lost_or_won(tmp_path):
    result = page.Result("Title")
    result.aim("slow thing", 0.4, 0.85)
    made = page.Page(tmp_path / "page.md", ["gemm"], rehearse=True)
    made.begin("T", "", keep=False)
    made.put("gemm", page.section_text(result, {}, rehearse=True), page.FINISHED)
    text = made.path.read_text()
    assert "slow thing" not in text and "Nothing was measured." in text
    assert text.count(page.REHEARSAL) == 2


def test_what_a_stopped_section_had_found_stays(tmp_path):
    made = page.Page(tmp_path / "page.md", ["gemm"])
    made.begin("T", "", keep=False)
    result = page.Result("GEMM", blocks=["| 256 | 0.5 |"])
    room = Room("cpu", WallClock())
    room.on_news(lambda r: made.put("gemm", page.section_text(r, {}, False), page.BEGUN))
    room.tell(result)
    made.stop("gemm", "stopped at its limit of 150 s", "a last word")
    found = made.sections["gemm"]
    assert found.state == page.BEGUN and "| 256 | 0.5 |" in found.text
    assert "**Stopped:** stopped at its limit of 150 s" in found.text
    assert "a last word" in found.text
    assert "stopped before their end: gemm." in made.path.read_text()


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
    text = "\n".join(map(str, result.blocks))
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
    room = Room("emulator", WallClock(), torch, quick=True)
    result = steps.measured(room, "T", steps.workloads(room), COMPILED)
    name = "seed network, batch 2, 4 filters"
    line = f"| {name} | tinygraph eager | 4e+03 (4e+03 to 4e+03) | 3.00 (3.00 to 3.00) | 0.50 ("
    assert line in str(result.blocks[1])
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


def test_a_section_that_breaks_has_its_error_on_the_page(monkeypatch, tmp_path):
    """Under what it had found before."""

    def breaks(room):
        result = page.Result(conv.TITLE, blocks=["a first row"])
        room.tell(result)
        return 1 / 0

    conv = importlib.import_module("benchmarks.gpu.conv")
    monkeypatch.setattr(conv, "run", breaks)
    made = page.Page(tmp_path / "page.md", list(SECTIONS), rehearse=True)
    made.begin("T", "", keep=False)
    assert not section.measure("conv", rehearsal(), made)
    found = made.sections["conv"]
    assert found.state == page.FAILED and "ZeroDivisionError" in found.text
    assert "a first row" in found.text and found.text.count(conv.TITLE) == 1


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


def test_a_wrong_first_result_is_seen(monkeypatch):
    right = smoke._matmul
    monkeypatch.setattr(
        smoke, "_matmul", lambda device, s: [r + (device != "cpu") for r in right(device, s)]
    )
    result = smoke.run(rehearsal())
    assert result.failed.startswith("matmul 20x30x25 is wrong")
    assert "| relu | 0.0e+00 | yes |" in str(result.blocks[0])
    assert "130x70" not in str(result.blocks[0])


def test_torch_compile_begins_afresh_for_each_network():
    """Dynamo goes eager in silence after it has compiled one function several times."""
    said = []

    def compile(function, mode):
        said.append("compile")
        return function

    torch = types.SimpleNamespace(
        backends=types.SimpleNamespace(cudnn=types.SimpleNamespace()),
        tensor=lambda array, device: types.SimpleNamespace(requires_grad_=lambda: None),
        optim=types.SimpleNamespace(SGD=lambda parameters, lr: None),
        nn=types.SimpleNamespace(functional=types.SimpleNamespace(cross_entropy=None)),
        compile=compile,
        _dynamo=types.SimpleNamespace(reset=lambda: said.append("reset")),
    )
    side = TorchSide(torch, "cuda")
    for mode in (None, *COMPILED.values()):
        side.step(seed_network(2, 4, size=8), mode)
    assert said == ["reset", "compile"] * len(COMPILED)


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
        assert section.measure(name, rehearsal(torch), made), made.sections[name].text
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
    assert pictures and all(page.REHEARSAL in (tmp_path / p).read_text() for p in pictures)
