"""`make bench`: page, aims and plots; the command; the environments of the peers."""

import contextlib
import doctest
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import children, host
from benchmarks.cpu import __main__ as command
from benchmarks.cpu import aims, page, peers, plots, sides, workloads
from benchmarks.cpu.measure import Measured, Point
from benchmarks.cpu.sides import BARE, COMPILED, EAGER, KEPT, Side
from benchmarks.timing import Times

ROOT = Path(__file__).parents[2]
MADE_UP = "tests.benchmarks.cpu_made_up_peer"


def measured(*seconds, peak=1e8):
    return Measured(Times.by_wall(seconds), int(peak), "made up 1.0", (3.0, 2.0, 1.0))


def grid():
    """w1 at every point: compiled takes 0.1, ..., 0.7 of the baseline, in the order of the grid."""
    points = {}
    for number, name in enumerate(workloads.GRID, start=1):
        points[name] = Point(
            name,
            {
                COMPILED: measured(0.1 * number, 0.1 * number, peak=3e8 + 1e7 * number),
                KEPT: measured(1.0, 1.0, peak=4.9e9),
            },
        )
    points["w4"] = Point("w4", {EAGER: measured(2e-4, 3e-4), BARE: measured(1e-4, 1e-4)})
    return points


# ---- aims


def test_what_is_reached_is_worst_and_median_of_the_grid_and_peak_memory():
    points = grid()
    values = {(aim.what, aim.side): aims.reached(aim, points) for aim in aims.AIMS}
    assert values[aims.LARGEST_RATIO, COMPILED] == pytest.approx(0.7)
    assert values[aims.MEDIAN_RATIO, COMPILED] == pytest.approx(0.4)
    assert values[aims.MEMORY, COMPILED] == pytest.approx(340)
    assert values["w4", EAGER] == pytest.approx(2.5)
    assert values["w2", COMPILED] is None and values[aims.LARGEST_RATIO, sides.FAST] is None


def test_a_grid_that_is_not_complete_says_so():
    points = grid()
    del points["w1:250:256"]
    shown = {row[0]: row[2] for row in aims.rows(points) if row[1] == COMPILED}
    assert shown[aims.MEDIAN_RATIO] == "0.45 (6 of 7 points)" and shown["w2"] == ""
    assert "points" not in str(aims.rows(grid()))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.2, "reached"),
        (0.22, "reached"),
        (0.3, 'within "at most"'),
        (0.4, "falls short"),
        (float("nan"), "falls short"),
        (None, "not measured"),
    ],
)
def test_verdicts(value, words):
    aim = aims.Aim("w1", COMPILED, 0.35, 0.22)
    assert words in aims.verdict(aim, value)
    assert aims.verdict(aims.Aim("w1", COMPILED, None, 0.22), 0.3) == "short of the aim"


# ---- the page


def test_page_has_ratios_memory_and_what_was_left_out(tmp_path):
    points = grid()
    points["w4"].left_out.append("w4, DeZero: ImportError: no module")
    points["w4"].failed.append("w4, tinygraph compiled: ValueError: no")
    path = page.write(tmp_path, "cpu-x", "A title", ["date: today"], list(points.values()))
    text = path.read_text()
    assert text.startswith("# A title\n\n- date: today\n- side: made up 1.0\n")
    assert f"| {COMPILED} | 0.10 (0.10 to 0.10) |" in text  # w1 beside the kept memory
    assert f"| {EAGER} |  | 2.50 (2.00 to 3.00) |" in text
    assert f"| {COMPILED} | 0.10 | 0.20 | 0.30 | 0.40 | 0.50 | 0.60 | 0.70 |" in text
    assert f"| w1:1000:256 | {KEPT} | 1000 (1000 to 1000) | 1.00 (1.00 to 1.00) | 4900 |" in text
    assert "## Left out\n\n- w4, DeZero: ImportError: no module\n" in text
    assert "## Failed\n\n- w4, tinygraph compiled: ValueError: no\n" in text
    assert f"{text.count('**falls short**')} of {len(aims.AIMS)} fall short." in text
    pictures = re.findall(r"!\[.*\]\((.*)\)", text)
    assert pictures == ["cpu-x-time.svg", "cpu-x-memory.svg", "cpu-x-ratios.svg"]
    assert all((tmp_path / name).read_text().count("<svg") == 1 for name in pictures)
    raw = json.loads((tmp_path / "cpu-x.json").read_text())
    assert raw["points"]["w4"][EAGER]["seconds"] == [2e-4, 3e-4]


def test_times_alone_need_no_baseline(tmp_path):
    alone = Point("w2", {EAGER: measured(1.0)})
    text = page.write(tmp_path, "x", "A title", [], [alone]).read_text()
    assert "No baseline was measured" in text and "w1 at batch:filters" not in text
    assert f"| w2 | {EAGER} | 1000 (1000 to 1000) |  | 100 |" in text


def test_a_point_as_plain_text():
    point = grid()["w4"]
    point.measured["other"] = measured(1e-3)
    del point.measured[BARE]
    point.left_out.append("w4, JAX jit: gone")
    first, *lines = page.point_lines(point).splitlines()
    assert first == "w4: MLP 2-8-1, batch 4"
    assert re.fullmatch(r" +tinygraph +0\.25 \(0\.2 to 0\.3\) ms +no baseline +100 MB", lines[0])
    assert lines[-1] == "    left out: w4, JAX jit: gone"


def test_lines_over_the_batch_need_two_batches():
    points = grid()
    lines = plots.over_batch(points, lambda found: found.times.median)
    assert lines[COMPILED] == [(100, 0.1), (250, 0.2), (500, pytest.approx(0.3)), (1000, 0.4)]
    one = {name: points[name] for name in ("w1:100:256", "w4")}
    assert plots.over_batch(one, lambda found: 1.0) == {}


def test_no_plot_without_a_ratio(tmp_path):
    alone = {"w2": Point("w2", {EAGER: measured(1.0)})}
    assert plots.draw(alone, tmp_path, "x") == {} and not list(tmp_path.iterdir())


# ---- the command


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--peers", "torch theano"], "no such peer: theano; there are torch jax"),
        (["--only", "w9"], "no such point: w9; there are lenet5 resnet18"),
        (["--threads", "0"], "must be at least 1"),
        (["--rounds", "-1"], "must be at least 1"),
    ],
)
def test_arguments_that_cannot_be(arguments, words, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2 and words in capsys.readouterr().err


def test_points_of_a_run():
    def points(*arguments):
        return command._points(command._parse(arguments))

    assert points() == list(workloads.POINTS) and points("--quick") == list(workloads.QUICK)
    assert points("--only", "w1") == list(workloads.GRID)
    assert points("--quick", "--only", "w1") == [workloads.W1]
    assert points("--quick", "--only", workloads.LARGEST) == [workloads.LARGEST]


@pytest.mark.second
@pytest.mark.parametrize(("variant", "code"), [("right", command.DONE), ("wrong", command.FAILED)])
def test_the_command_measures_and_writes_a_page(variant, code, monkeypatch, tmp_path, capsys):
    """PyTorch's place is taken by a network derived by hand; `wrong` is a wrong side of ours."""
    chosen = (
        Side(BARE, "torch", MADE_UP, "right"),
        Side(COMPILED, "", MADE_UP, variant),
        Side("JAX jit", "jax", MADE_UP, "right"),
    )
    monkeypatch.setattr(command, "SIDES", chosen)
    here = Path(command.sys.executable)
    monkeypatch.setattr(peers, "gather", lambda *_: ({"torch": here}, ["jax: not asked for"]))
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    asked = ["--only", "w4", "--rounds", "2", "--threads", "1", "--output", str(tmp_path)]
    assert command.main(asked) == code
    out = capsys.readouterr().out
    assert "left out: jax: not asked for" in out
    assert "OPENBLAS_CORETYPE=Haswell was exported and is taken back for every side" in out
    text = Path(out.splitlines()[-1]).read_text()
    assert "- side: made up, 1 threads" in text and "- left out: jax: not asked for" in text
    assert ("## Failed" in text) == (variant == "wrong")
    assert (f"| {COMPILED} | " in text.split("## Ratios")[1]) == (variant == "right")


def test_a_command_that_is_ended_takes_its_workers_along(tmp_path):
    script = f"""
import runpy, sys
from benchmarks.cpu import sides
sides.SIDES = (sides.Side({EAGER!r}, "", {MADE_UP!r}, "hangs"),)
sys.argv[1:] = ["--only", "w4", "--peers", "", "--output", {str(tmp_path)!r}]
runpy.run_module("benchmarks.cpu", run_name="__main__")
"""
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE)
    children_of = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    deadline = time.monotonic() + 60
    workers = []
    while not workers:
        assert time.monotonic() < deadline and parent.poll() is None
        time.sleep(0.1)
        with contextlib.suppress(OSError):  # a child of another kind that ends just now
            commands = {
                int(pid): Path(f"/proc/{pid}/cmdline").read_text()
                for pid in children_of.read_text().split()
            }
            workers = [pid for pid, line in commands.items() if "benchmarks.cpu.worker" in line]
    time.sleep(0.1)
    parent.terminate()
    parent.communicate(timeout=60)
    assert parent.returncode == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(workers[0], 0)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ([], "--quick"),
        (["PEERS=torch jax"], '--peers "torch jax"'),
        (["ARGS=--only w1"], "--only w1"),
        (["PEERS=jax", "ARGS=--quick"], '--peers "jax" --quick'),
    ],
)
def test_make_calls_the_command(given, want):
    make = shutil.which("make")
    if make is None:
        raise RuntimeError("this test needs make")
    # what a make that runs these tests has exported is not for this one
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("MAKE") and key not in ("ARGS", "PEERS")
    }
    out = subprocess.run(
        [make, "-n", "bench", *given],
        cwd=ROOT,
        env=clean,
        text=True,
        capture_output=True,
        check=True,
    ).stdout
    (line,) = (line for line in out.splitlines() if "benchmarks.cpu" in line)
    assert " ".join(line.split()).endswith(f"python -m benchmarks.cpu {want}")


# ---- the peers' environments


@pytest.fixture
def pip(monkeypatch):
    """In place of venv and pip: packages named "bad" fail; the commands that were run."""
    commands = []

    def run(words, limit, variables=None):
        commands.append(words)
        if words[1:3] == ["-m", "venv"]:
            python = Path(words[3]) / "bin/python"
            python.parent.mkdir(parents=True)
            python.touch()
        bad = "bad" in words
        error = "WARNING: slow\nERROR: No matching distribution for bad\nnotice" if bad else ""
        return subprocess.CompletedProcess(words, int(bad), "", error)

    monkeypatch.setattr(children, "run", run)
    return commands


def test_an_environment_is_made_with_the_first_packages_that_install(tmp_path, pip):
    assert peers.make(tmp_path, "torch", [["bad"], ["good", "numpy"]]) == ""
    assert peers.present(tmp_path, "torch") and len(pip) == 4
    assert pip[-1][0] == str(tmp_path / "torch/bin/python") and pip[-1][-2:] == ["good", "numpy"]


def test_an_environment_that_cannot_be_made_leaves_nothing_but_the_reason(tmp_path, pip):
    reason = peers.make(tmp_path, "torch", [["bad"]])
    assert reason == "ERROR: No matching distribution for bad"
    assert not peers.present(tmp_path, "torch") and not list(tmp_path.iterdir())


def test_a_script_is_put_beside_the_python(tmp_path, pip):
    assert peers.make(tmp_path, "tinygrad", [["good"]]) == ""
    clang = tmp_path / "tinygrad/bin/clang"
    assert os.access(clang, os.X_OK)
    assert peers.variables("tinygrad", clang.parent / "python")["CC"] == str(clang)


def test_which_peers_are_compared_with(tmp_path, pip, monkeypatch):
    assert peers.make(tmp_path, "jax", [["good"]]) == ""
    found, left_out = peers.gather(tmp_path, None)
    assert list(found) == ["torch", "jax"]  # PyTorch's small wheel is tried without being asked
    assert "torch==2.13.0+cpu" in pip[-1]
    assert left_out[0] == "tinygrad: not asked for; `make bench PEERS=...` makes its environment"
    assert peers.gather(tmp_path, []) == ({}, [])
    monkeypatch.setitem(peers.PEERS, "dezero", peers.Peer((("bad",),)))
    found, left_out = peers.gather(tmp_path, ["jax", "dezero"])
    assert list(found) == ["jax"] and found["jax"] == tmp_path / "jax/bin/python"
    assert left_out == [
        "dezero: its environment cannot be made: ERROR: No matching distribution for bad"
    ]


# ---- shared by the pages


MODULES = (
    "host",
    "networks",
    "report",
    "timing",
    "workloads",
    "gpu.page",
    "cpu.aims",
    "cpu.measure",
    "cpu.page",
    "cpu.sides",
    "cpu.training",
    "cpu.workloads",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    outcome = doctest.testmod(importlib.import_module(f"benchmarks.{name}"))
    assert not outcome.failed and (outcome.attempted or name == "gpu.page")


def test_the_machine_is_named():
    assert host.processor() and host.cores() >= 1 and re.fullmatch(r"[\d.]+", host.load())
