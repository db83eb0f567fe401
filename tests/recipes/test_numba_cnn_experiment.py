"""The experiments of numba_cnn: interleaved, scaled, in processes of their own; the figures."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tinygraph.cli import main
from tinygraph.errors import ArgumentError, DatasetError, DeviceError
from tinygraph.recipes import numba_cnn_experiment, numba_cnn_timing
from tinygraph.recipes.numba_cnn_timing import REPORT, Size, Sizes, Variant, Worker, epoch_times
from tinygraph.training import Progress, RunFolder

SMALL = Sizes((2, 4), 3, (1, 3), 4)
ONE, MANY = Variant("one", "cpu", 1), Variant("many", "cpu", 7)


class Scripted:
    """A worker that answers with numbers set beforehand, and writes down what it was asked."""

    asked: list[tuple] = []
    answers: dict = {}

    def __init__(self, way):
        self.way = way

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.asked.append((self.way.name, "end"))

    def measure(self, size, images):
        self.asked.append((self.way.name, size, images))
        answer = self.answers[self.way.name, size].pop(0)
        return answer if isinstance(answer, dict) else {"seconds": answer}


@pytest.fixture
def scripted(monkeypatch):
    monkeypatch.setattr(numba_cnn_timing, "Worker", Scripted)
    monkeypatch.setattr(Scripted, "asked", [])
    a, b, c = SMALL.all()
    answers = {
        ("one", a): [5.0, 1.0, 3.0],
        ("one", b): [1.0, 1.0, 1.0],
        ("one", c): [2.0] * 3,
        ("many", a): [4.0, 4.0, 1.0],
        ("many", b): [{"error": "no memory"}],
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
    whole = [(name, size, 6) for size in (a, b, c) for name in ("one", "many")]
    left = [entry for entry in whole if entry[:2] != ("many", b)]  # not asked again
    ends = [("many", "end"), ("one", "end")]
    assert scripted.asked == whole + left[::-1] + left + ends
    assert said == ["round 1 of 3", "round 2 of 3", "round 3 of 3"]
    first, lacking = rows[0], rows[3]
    assert (first["variant"], first["filters"], first["batch_size"]) == ("one", 3, 2)
    assert first["measured"] == [50_000, 10_000, 30_000]  # 60,000 / 6 images
    assert (first["median"], first["low"], first["high"]) == (30_000, 10_000, 50_000)
    assert lacking["error"] == "no memory" and "median" not in lacking
    lines = numba_cnn_experiment.table(rows)
    assert len(lines) == 7 and lines[4].endswith("no memory") and "30000.00" in lines[1]


def test_processes_end_when_a_measurement_fails(scripted, monkeypatch):
    def fail(self, size, images):
        raise DeviceError("gone")

    monkeypatch.setattr(Scripted, "measure", fail)
    with pytest.raises(DeviceError, match="gone"):
        epoch_times(SMALL, [ONE, MANY], 1)
    assert scripted.asked == [("many", "end"), ("one", "end")]


@pytest.mark.parametrize("rounds, images", [(0, 4), (1, 3)])
def test_measurements_that_cannot_be(rounds, images):
    with pytest.raises(ArgumentError, match=f"1 and 4 at least, got {rounds} and {images}"):
        epoch_times(SMALL, [ONE], rounds, images)


def test_a_process_has_the_threads_of_its_variant(monkeypatch):
    found = {}
    monkeypatch.setattr(
        numba_cnn_timing.subprocess,
        "Popen",
        lambda args, env, **_: found.update(env=env, args=args),
    )
    for way in (ONE, MANY):
        Worker(way)
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            assert found["env"][name] == str(way.threads)
    assert found["args"] == [sys.executable, "-m", "tinygraph.recipes.numba_cnn_timing"]


def test_a_process_that_ends_early(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with Worker(ONE) as worker, pytest.raises(DeviceError, match="one: expected an answer"):
        worker.measure(Size(1, 1), 1)


def test_what_a_process_answers(monkeypatch):
    """The first step of a size is not measured, and made once; errors are answers."""
    batches, clock = [], iter(range(100))
    make = numba_cnn_timing.step_of

    def spy(device, size, compiled):
        step = make(device, size, compiled)

        def counted(images, labels):
            batches.append((size.filters, len(images)))
            return step(images, labels)

        return counted

    monkeypatch.setattr(numba_cnn_timing, "step_of", spy)
    monkeypatch.setattr(numba_cnn_timing.time, "perf_counter", lambda: next(clock))
    request = {"device": "cpu", "compiled": False, "filters": 2, "batch_size": 2, "images": 5}
    answers = []
    lines = [request, request, request | {"device": "cuda"}]
    if not any(way.device == "cuda" for way in numba_cnn_timing.variants()[0]):
        numba_cnn_timing.serve(iter(map(json.dumps, lines[2:])), answers.append)
        assert "cuda" in answers.pop()["error"]
    numba_cnn_timing.serve(iter(map(json.dumps, lines[:2])), answers.append)
    assert answers == [{"seconds": 1}, {"seconds": 1}]  # the clock was read twice for each
    assert batches == [(2, 2), *[(2, 2), (2, 2), (2, 1)] * 2]


def test_a_compiled_step_learns_the_same():
    """Three steps on one batch: the losses of the plan are those of the Trainer."""
    images, labels = numba_cnn_timing.random_images(8)[:]
    eager = numba_cnn_timing.step_of("cpu", Size(3, 8))
    compiled = numba_cnn_timing.step_of("cpu", Size(3, 8), compiled=True)
    losses = [eager(images, labels)[0] for _ in range(3)]
    assert losses[2] < losses[0]
    for loss in losses:
        assert compiled(images, labels).item() == pytest.approx(loss, rel=1e-5)
    assert "nothing is compiled" not in compiled.explain()


class Axes:
    """Writes down the bars that are drawn."""

    def __init__(self):
        self.bars = {}

    def bar(self, across, heights, width, yerr, label, **_):
        self.bars[label] = list(zip(across, heights, *yerr, strict=True))


def test_bars_are_medians_with_their_spread(scripted):
    rows = epoch_times(SMALL, [ONE, MANY], 3, 60_000)
    axes = Axes()
    numba_cnn_experiment._grouped_bars(
        axes, [r for r in rows if r["filters"] == 3], "batch_size", SMALL.batches
    )
    np.testing.assert_allclose(axes.bars["one"], [(-0.2, 3, 2, 2), (0.8, 1, 0, 0)])
    np.testing.assert_allclose(axes.bars["many"], [(0.2, 4, 3, 0)])  # the other has no time


def test_the_whole_in_small(capsys, tmp_path, monkeypatch):
    """Real processes, a real training, both figures."""
    pytest.importorskip("sklearn", reason="needs scikit-learn")
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
    assert numba_cnn_experiment._data(None, None, False, said.append) == "digits"
    assert "--download" in said[0] and "scikit-learn's digits" in said[0]
    with pytest.raises(DatasetError, match="mnist"):  # a folder was named
        numba_cnn_experiment._data(None, tmp_path, False, said.append)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["numba_cn"], "did you mean 'numba_cnn'"),
        (["vgg_cifar"], "one that has experiments (numba_cnn)"),
        (["numba_cnn", "--rounds", "0"], "whole number from 1"),
        (["numba_cnn", "--quick", "--images", "10", "--data", "digits"], "1 and 50 at least"),
    ],
)
def test_what_is_refused(capsys, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert main(["experiment", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.glob("runs/*"))


def test_progress_is_passed_on(scripted, tmp_path, capsys):
    """The training of the experiment writes its log into the experiment's folder."""
    pytest.importorskip("sklearn", reason="needs scikit-learn")
    scripted.answers.clear()
    for size in numba_cnn_timing.QUICK.all():
        for way in numba_cnn_timing.variants()[0]:
            scripted.answers[way.name, size] = [1.0]
    found = numba_cnn_experiment.experiment(
        RunFolder(tmp_path / "run"),
        "digits",
        quick=True,
        rounds=1,
        said=lambda line: None,
        progress=Progress(lines=False, bar=False),
    )
    assert found["epochs"] == RunFolder.open(tmp_path / "run" / "training").rows()
    assert capsys.readouterr().out == ""
