"""numba_cnn through the CUDA kernels on the CPU: an epoch beside numpy's, bits, checker."""

from dataclasses import replace

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import recipes
from tinygraph.cuda import Kernel
from tinygraph.data import ArrayDataset, DataLoader
from tinygraph.recipes import numba_cnn
from tinygraph.training import Progress, RunFolder

SETTINGS = {"filters": 8, "epochs": 1}


def run_on(device, path, **settings):
    """The folder of a run and its metrics on the test data."""
    recipe, run = recipes.get("numba_cnn"), RunFolder(path)
    config = recipe.settings({**SETTINGS, **settings, "device": device})
    return run, recipe.train(config, run, None, False, Progress(lines=False, bar=False))


@pytest.fixture(scope="module")
def on_emulator(tmp_path_factory):
    return run_on("emulator", tmp_path_factory.mktemp("emulator") / "run")


@pytest.mark.second
def test_an_epoch_ends_within_rounding_of_numpy(on_emulator, tmp_path):
    """81 steps with 8 filters on all digits; the largest difference measured was 2.4e-7."""
    run, result = on_emulator
    numpy_run, numpy_result = run_on("cpu", tmp_path / "run")
    parameters = run.load_parameters()
    for name, array in numpy_run.load_parameters().items():
        assert np.abs(array).max() > 0.05  # differences below are small beside this
        np.testing.assert_allclose(parameters[name], array, rtol=0, atol=1e-5, err_msg=name)
    (row,), (numpy_row,) = run.rows(), numpy_run.rows()
    assert row["loss"] == pytest.approx(numpy_row["loss"], abs=1e-5)
    assert row["validation_loss"] == pytest.approx(numpy_row["validation_loss"], abs=1e-5)
    assert result["loss"] == pytest.approx(numpy_result["loss"], abs=1e-5)
    assert result["accuracy"] == pytest.approx(numpy_result["accuracy"], abs=1.01 / 359)
    assert result["accuracy"] > 0.85  # it learnt


@pytest.mark.second
@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads_of_the_system_change_no_bit(on_emulator, tmp_path, monkeypatch, threads):
    monkeypatch.setenv("TINYGRAPH_EMULATOR_THREADS", threads)
    run, result = run_on("emulator", tmp_path / "run")
    assert result == on_emulator[1]
    name = "parameters.safetensors"
    assert (run.path / name).read_bytes() == (on_emulator[0].path / name).read_bytes()


def first(data, count):
    return ArrayDataset(data.inputs[:count], data.labels[:count])


@pytest.mark.parametrize("filters", [3, 8])
@pytest.mark.second
def test_the_checker_finds_nothing_in_an_epoch(monkeypatch, filters):
    """Three batches, the last a small one, and the validation; every launch is checked."""
    reports = []
    check = Kernel._report

    def spy(*args, **options):
        reports.append(check(*args, **options))
        return reports[-1]

    monkeypatch.setattr(Kernel, "_report", spy)
    config = numba_cnn.Config(filters=filters, batch_size=8, epochs=1, device="emulator")
    recipe = numba_cnn.recipe
    task = recipe.prepare(config)
    held_out = DataLoader(first(task.data.held_out, 5), 5)
    loader = recipe.loader(config, first(task.data.training, 19))
    with tg.cuda.checking():
        recipe.trainer(task, progress=False).fit(loader, held_out, 1)
    assert all(report.ok for report in reports)
    launched = {report.kernel.split("<")[0] for report in reports}
    assert launched >= {
        "conv2d_implicit_forward",
        "unary_forward",
        "unary_backward",
        "max_pool2d_forward",
        "max_pool2d_backward",
        "linear_forward",
        "matmul",
        "sgd_update",
    }
    assert len(reports) > 3 * 15


def test_the_device_decides_whether_kernels_run():
    """No kernel runs on the cpu."""
    config = numba_cnn.Config(filters=2, device="cpu")
    with tg.cuda.recording() as launches:
        assert numba_cnn.recipe.rehearse(config)["loss"] > 0 and not launches
        assert numba_cnn.recipe.rehearse(replace(config, device="emulator"))["loss"] > 0
    launched = {launch.kernel.name for launch in launches}
    assert {"conv2d_implicit_forward<float>", "linear_forward<float>"} <= launched
