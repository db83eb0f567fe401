"""The experiments of numba_cnn: interleaved, scaled, in processes of their own; the figures."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import numba_cnn, numba_cnn_figures
from benchmarks.cpu.client import SideFailed
from benchmarks.cpu.sides import Side
from benchmarks.numba_cnn import OURS, REPORT, Size, Sizes, epoch_times
from tinygraph.base.errors import ArgumentError, DatasetError
from tinygraph.cli import main
from tinygraph.training import Progress, RunFolder

SMALL = Sizes((2, 4), 3, (1, 3), 4)
ONE, MANY = Side("one", "", OURS, "eager", threads=1), Side("many", "", OURS, "eager", threads=7)


class Scripted:
    """A process that answers with seconds set beforehand, and writes down what it was asked."""

    asked: list[tuple] = []
    answers: dict = {}

    def __init__(self, command, variables):
        _, _, _, module, variant, point, threads = command
        _, batch_size, filters = point.split(":")
        self.key = "one" if threads == "1" else "many", Size(int(filters), int(batch_size))
        assert variables["OMP_NUM_THREADS"] == variables["OPENBLAS_NUM_THREADS"] == threads
        assert (module, variant) == (OURS, "eager") or variant == "compiled"

    def ask(self, request):
        self.asked.append((*self.key, request))
        answer = self.answers[self.key].pop(0)
        if isinstance(answer, str):
            raise SideFailed(answer)
        return {"seconds": answer, "loss": 2.3}

    def close(self):
        self.asked.append((*self.key, "end"))


@pytest.fixture
def scripted(monkeypatch):
    monkeypatch.setattr(numba_cnn, "Client", Scripted)
    monkeypatch.setattr(Scripted, "asked", [])
    a, b, c = SMALL.all()
    answers = {
        ("one", a): [5.0, 1.0, 3.0],
        ("one", b): [1.0, 1.0, 1.0],
        ("one", c): [2.0] * 3,
        ("many", a): [4.0, 4.0, 1.0],
        ("many", b): ["no memory"],
        ("many", c): [1.0, 2.0, 3.0],
    }
    monkeypatch.setattr(Scripted, "answers", answers)
    return Scripted


def test_sizes_of_the_report():
    assert REPORT.all() == [
        (256, 100),
        (256, 250),
        (256, 500),
        (256, 1000),
        (32, 1000),
        (64, 1000),
        (128, 1000),
    ]


def test_times_are_interleaved_and_scaled(scripted):
    said = []
    rows = epoch_times(SMALL, [ONE, MANY], 3, 6, said.append)
    a, b, c = SMALL.all()
    runs = {a: "run 3", b: "run 1", c: "run 1"}  # whole batches of 6 images
    whole = [(name, size, runs[size]) for size in (a, b, c) for name in ("one", "many")]
    left = [entry for entry in whole if entry[:2] != ("many", b)]  # not asked again
    expected = [*whole, *left[::-1], *left]
    assert [entry for entry in scripted.asked if entry[2] != "end"] == expected
    assert scripted.asked[1::2] == [(*entry[:2], "end") for entry in expected]  # one at a time
    assert said == ["round 1 of 3", "round 2 of 3", "round 3 of 3"]
    first, other, lacking = rows[0], rows[2], rows[3]
    assert (first["variant"], first["filters"], first["batch_size"]) == ("one", 3, 2)
    assert first["measured"] == [50_000, 10_000, 30_000]  # 60,000 / 6 images
    assert (first["median"], first["low"], first["high"]) == (30_000, 10_000, 50_000)
    assert other["measured"] == [15_000] * 3  # one batch of 4
    assert lacking["error"] == "no memory" and "median" not in lacking
    lines = numba_cnn_figures.table(rows)
    assert len(lines) == 7 and lines[4].endswith("no memory") and "30000.00" in lines[1]


def test_a_process_ends_when_its_measurement_is_interrupted(scripted, monkeypatch):
    def interrupt(self, request):
        raise KeyboardInterrupt

    monkeypatch.setattr(Scripted, "ask", interrupt)
    with pytest.raises(KeyboardInterrupt):
        epoch_times(SMALL, [ONE, MANY], 1)
    assert scripted.asked == [("one", SMALL.all()[0], "end")]


@pytest.mark.parametrize("rounds, images", [(0, 4), (1, 3)])
def test_measurements_that_cannot_be(rounds, images):
    with pytest.raises(ArgumentError, match=f"1 and 4 at least, got {rounds} and {images}"):
        epoch_times(SMALL, [ONE], rounds, images)


def test_a_process_that_ends_early_is_an_error_of_its_size(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    (row,) = epoch_times(Sizes((1,), 1, (), 1), [ONE], 2)
    assert "ended with code 1" in row["error"] and row["measured"] == []


def test_steps_through_kernels():
    """A variant of the GPU's kind, on the emulator: the same losses as node by node in numpy."""
    from benchmarks.cpu.libraries.tinygraph_steps import make
    from benchmarks.cpu.workloads import build

    eager, kernels = (make(build("w1:4:2"), variant, 1) for variant in ("eager", "emulator"))
    for _ in range(3):
        expected = eager.value(eager.step())
        assert kernels.value(kernels.step()) == pytest.approx(expected, rel=1e-4)


class Axes:
    """Writes down the bars that are drawn."""

    def __init__(self):
        self.bars = {}

    def bar(self, across, heights, width, yerr, label, **_):
        self.bars[label] = list(zip(across, heights, *yerr, strict=True))


def test_bars_are_medians_with_their_spread(scripted):
    rows = epoch_times(SMALL, [ONE, MANY], 3, 60_000)
    axes = Axes()
    numba_cnn_figures._grouped_bars(
        axes, [r for r in rows if r["filters"] == 3], "batch_size", SMALL.batches
    )
    np.testing.assert_allclose(axes.bars["one"], [(-0.2, 3, 2, 2), (0.8, 1, 0, 0)])
    np.testing.assert_allclose(axes.bars["many"], [(0.2, 4, 3, 0)])  # the other has no time


@pytest.mark.second
def test_the_whole_in_small(capsys, tmp_path, monkeypatch):
    """Real processes, a real training, both figures."""
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    folder = tmp_path / "run"
    assert (
        main(
            [
                "experiment",
                "numba_cnn",
                "--quick",
                "--rounds",
                "1",
                "--data",
                "digits",
                "--run",
                str(folder),
                "--json",
            ]
        )
        == 0
    )
    answer = json.loads(capsys.readouterr().out)
    assert {Path(file).name for file in answer["files"]} >= {
        "result.json",
        "times.svg",
        "accuracy.svg",
        "log.jsonl",
    }
    assert all(Path(file).is_file() for file in answer["files"])
    assert {row["variant"] for row in answer["times"]} >= {"CPU sequential"}
    assert all(row["low"] == row["median"] == row["high"] > 0 for row in answer["times"])
    assert [row["epoch"] for row in answer["epochs"]] == [1]
    assert RunFolder.open(folder).result()["test"] == answer["test"]
    text = (folder / "times.svg").read_text()
    assert "<svg" in text and (folder / "accuracy.svg").stat().st_size > 1000


def test_without_mnist_it_takes_digits(monkeypatch, tmp_path):
    monkeypatch.delenv("TINYGRAPH_DATA", raising=False)
    said = []
    assert numba_cnn._data(None, None, False, said.append) == "digits"
    assert "--download" in said[0] and "the digits that tinygraph brings along" in said[0]
    with pytest.raises(DatasetError, match="mnist"):  # a folder was named
        numba_cnn._data(None, tmp_path, False, said.append)
    with pytest.raises(DatasetError, match="mnist"):  # before minutes of measuring
        numba_cnn._data("mnist", tmp_path, False, said.append)
    assert numba_cnn._data("digits", None, False, said.append) == "digits"


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["numba_cn"], "did you mean 'numba_cnn'"),
        (["vgg_cifar"], "recipe: expected 'numba_cnn', got 'vgg_cifar'"),
        (["numba_cnn", "--rounds", "0"], "whole number from 1"),
        (["numba_cnn", "--quick", "--images", "10", "--data", "digits"], "1 and 50 at least"),
    ],
)
def test_what_is_refused(capsys, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert main(["experiment", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.glob("runs/*"))


def test_progress_is_passed_on(monkeypatch, tmp_path, capsys):
    """The training of the experiment writes its log into the experiment's folder."""
    monkeypatch.setattr(numba_cnn, "epoch_times", lambda *_: [])
    found = numba_cnn.experiment(
        RunFolder(tmp_path / "run"),
        "digits",
        quick=True,
        rounds=1,
        said=lambda line: None,
        progress=Progress(lines=False, bar=False),
    )
    assert found["epochs"] == RunFolder.open(tmp_path / "run" / "training").rows()
    assert capsys.readouterr().out == ""


def test_without_a_checkout_the_command_says_where_it_is(capsys, monkeypatch, tmp_path):
    """An installed package has no folder benchmarks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "benchmarks.numba_cnn")
    monkeypatch.setitem(sys.modules, "benchmarks", None)
    assert main(["experiment", "numba_cnn", "--quick"]) == 2
    error = capsys.readouterr().err
    assert "expected a checkout of tinygraph" in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())
