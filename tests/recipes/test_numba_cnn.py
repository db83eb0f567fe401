"""The recipe numba_cnn: its network against the report's, its run, and what it must reach."""

import json
import shutil

import numpy as np
import pytest

import tinygraph as tg
from tests.data.real_files import mnist_folder
from tinygraph import recipes
from tinygraph.base.errors import (
    ArgumentError,
    CheckpointError,
    DatasetError,
    DeviceError,
    ShapeError,
)
from tinygraph.cli import main
from tinygraph.recipes import numba_cnn
from tinygraph.recipes.images import standardise
from tinygraph.training import Progress, RunFolder

QUIET = Progress(lines=False, bar=False)


def run_of(path, **settings):
    recipe = recipes.get("numba_cnn")
    run = RunFolder(path)
    return run, recipe.train(recipe.settings(settings), run, None, False, QUIET)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return run_of(tmp_path_factory.mktemp("run") / "r", filters=3, epochs=2)


def test_sizes_of_the_report():
    """28 x 28 pixels: 9 D + D numbers in the convolution, 169 D * 10 + 10 in the linear layer."""
    for d in (1, 32, 256):
        network = numba_cnn.model(d, (1, 28, 28))
        assert [p.shape for p in network.parameters()] == [(d, 1, 3, 3), (d,), (10, 169 * d), (10,)]
        assert sum(p.size for p in network.parameters()) == 10 * d + 1690 * d + 10


def test_logits_by_naive_loops():
    network = numba_cnn.model(2, (1, 8, 8), classes=3)
    cw, cb, lw, lb = (p.value.astype(np.float64) for p in network.parameters())
    x = np.random.default_rng(0).standard_normal((4, 1, 8, 8))
    y = np.zeros((4, 2, 6, 6))
    for n, d, i, j in np.ndindex(y.shape):
        y[n, d, i, j] = max(0, (x[n, 0, i : i + 3, j : j + 3] * cw[d, 0]).sum() + cb[d])
    pooled = np.zeros((4, 2, 3, 3))
    for n, d, i, j in np.ndindex(pooled.shape):
        pooled[n, d, i, j] = y[n, d, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max()
    expected = pooled.reshape(4, -1) @ lw.T + lb
    np.testing.assert_allclose(network(x.astype(np.float32)).value, expected, atol=1e-5)


def test_images_that_are_too_small():
    with pytest.raises(ShapeError, match="at least 2 pixels on each axis .*, got 1 pixels"):
        numba_cnn.model(2, (1, 3, 28))


@pytest.mark.parametrize(
    "shape, fits",
    [
        ((1, 27, 28), "nearest height 24 or 26, got 25x26, which leaves out 1 row"),
        ((1, 28, 9), "nearest width 6 or 8, got 26x7"),
        ((3, 5, 7), "nearest height 2 or 4, width 4 or 6, got 3x5"),
    ],
)
def test_strict_refuses_what_leaves_pixels_out(shape, fits):
    with pytest.raises(ShapeError, match=fits):
        numba_cnn.model(2, shape, strict=True)
    x = np.zeros((1, *shape), np.float32)
    assert numba_cnn.model(2, shape)(x).shape == (1, 10)  # floor division, as ever
    assert numba_cnn.model(2, shape, padding="same", strict=True)(x).shape == (1, 10)


@pytest.mark.parametrize("size", [(4, 6), (26, 28), (10, 8)])
def test_strict_takes_what_fits(size):
    network = numba_cnn.model(2, (1, *size), strict=True)
    assert network(np.zeros((3, 1, *size), np.float32)).shape == (3, 10)
    assert network[0].strict and network[2].strict


@pytest.mark.parametrize("size, features", [((28, 28), 14 * 14), ((27, 4), 14 * 2)])
def test_same_keeps_the_size(size, features):
    network = numba_cnn.model(3, (1, *size), padding="same")
    assert network[0](np.zeros((1, 1, *size), np.float32)).shape == (1, 3, *size)
    assert network[-1].in_features == 3 * features


def test_settings_reach_the_network(tmp_path):
    run, result = run_of(tmp_path / "run", filters=2, epochs=1, padding="same", strict=True)
    assert run.load_parameters()["4.weight"].shape == (10, 2 * 4 * 4)
    assert recipes.get("numba_cnn").evaluate(RunFolder.open(run.path), None) == result


@pytest.mark.parametrize(
    "name, words",
    [
        ("splice", "known: digits, mnist, cifar10; other data have a recipe of their own"),
        ("mnits", "did you mean 'mnist'"),
    ],
)
def test_data_that_are_no_images(capsys, name, words):
    assert main(["train", "numba_cnn", "--data", name]) == 2
    error = capsys.readouterr().err
    assert f"numba_cnn: data: expected a dataset of images with labels, got '{name}'" in error
    assert words in error


def test_a_run_leaves_all_that_repeats_it(trained):
    run, result = trained
    assert {path.name for path in run.path.iterdir()} >= {
        "config.json",
        "environment.json",
        "log.jsonl",
        "parameters.safetensors",
        "result.json",
    }
    config = json.loads((run.path / "config.json").read_text())
    assert config["settings"] == {
        "shards": None,
        "data": "digits",
        "filters": 3,
        "padding": "valid",
        "strict": False,
        "batch_size": 16,
        "epochs": 2,
        "lr": 0.1,
        "seed": 0,
        "duration": None,
        "backup_every": None,
        "device": "cpu",
        "capture": True,
        "compile": None,
        "tune": False,
    }
    assert json.loads((run.path / "result.json").read_text()) == {"test": result}
    environment = json.loads((run.path / "environment.json").read_text())
    assert environment["tinygraph"] == tg.__version__


def test_evaluating_a_run_gives_its_result(trained):
    run, result = trained
    again = recipes.get("numba_cnn").evaluate(RunFolder.open(run.path), None)
    assert again == result


@pytest.mark.second
def test_the_same_seed_gives_the_same_parameters(trained, tmp_path):
    run, result = trained
    again, same = run_of(tmp_path / "again", filters=3, epochs=2)
    assert same == result
    name = "parameters.safetensors"
    assert (again.path / name).read_bytes() == (run.path / name).read_bytes()
    other, _ = run_of(tmp_path / "other", filters=3, epochs=2, seed=1)
    assert (other.path / name).read_bytes() != (run.path / name).read_bytes()


def test_the_test_data_are_looked_at_once(tmp_path, monkeypatch):
    """Three epochs look at 144 held-out samples each; the 359 of the test come once, at the end."""
    sizes = []
    evaluate = tg.training.step.evaluate

    def spy(model, loader, loss):
        sizes.append(len(loader.dataset))
        return evaluate(model, loader, loss)

    monkeypatch.setattr("tinygraph.training.step.evaluate", spy)
    monkeypatch.setattr("tinygraph.recipes.recipe.evaluate", spy)
    run_of(tmp_path / "run", filters=1, epochs=3)
    assert sizes == [144, 144, 144, 359]


@pytest.mark.second
def test_training_through_the_kernels_ends_where_numpy_does(trained, tmp_path):
    """Two epochs on the emulator: the same log and parameters, to rounding."""
    run, result = trained
    through, same = run_of(tmp_path / "run", filters=3, epochs=2, device="emulator")
    assert same["accuracy"] == pytest.approx(result["accuracy"], abs=0.003)  # one of 359 samples
    assert same["loss"] == pytest.approx(result["loss"], rel=1e-3)
    parameters = through.load_parameters(False)
    for name, array in run.load_parameters(False).items():
        np.testing.assert_allclose(parameters[name], array, rtol=1e-3, atol=1e-4)
    again = recipes.get("numba_cnn").evaluate(RunFolder.open(through.path), None)
    assert again["loss"] == pytest.approx(same["loss"], rel=1e-3)  # on the cpu


def test_an_absent_device_shows_before_anything_is_made(tmp_path):
    with pytest.raises(DeviceError, match="cuda: expected"):
        run_of(tmp_path / "run", device="cuda")
    with pytest.raises(ArgumentError, match="device: expected one of cpu, emulator, cuda"):
        run_of(tmp_path / "other", device="emulater")


def test_settings():
    recipe = recipes.get("numba_cnn")
    assert (recipe.config().batch_size, recipe.config().epochs) == (16, 30)
    mnist = recipe.settings({"data": "mnist", "epochs": 7})
    assert (mnist.batch_size, mnist.epochs) == (100, 7)
    with pytest.raises(ArgumentError, match="did you mean 'filters'"):
        recipe.settings({"filter": 3})


def test_registry_proposes_the_nearest_name():
    with pytest.raises(ArgumentError, match="did you mean 'numba_cnn'"):
        recipes.get("numba-cnn")
    for name, recipe in recipes.recipes.items():
        assert recipe.name == name and recipe.summary and "\n" not in recipe.summary


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {"nonsense": 1}},
        {"settings": [1]},
        {"image_shape": None},
        {"mean": "x"},
        {"std": None},
        {"settings": {"filters": 4}},
    ],
)
def test_a_config_that_was_changed(trained, tmp_path, change):
    run, _ = trained
    shutil.copytree(run.path, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(CheckpointError):
        recipes.get("numba_cnn").evaluate(RunFolder.open(tmp_path), None)


def test_resumed_with_other_data(trained, tmp_path):
    run, _ = trained
    shutil.copytree(run.path, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"mean": 0.25}))
    recipe, again = recipes.get("numba_cnn"), RunFolder.open(tmp_path)
    with pytest.raises(DatasetError, match="resume with the files that the run began with"):
        recipe.train(recipe.settings_of(again), again, None, False, QUIET)


@pytest.mark.second
def test_digits_reach_what_they_should(tmp_path):
    """Accuracy on the test data, median of five seeds: at least 0.975 with the defaults."""
    found = [run_of(tmp_path / str(seed), seed=seed)[1]["accuracy"] for seed in range(5)]
    assert np.median(found) >= 0.975, found


@pytest.mark.second
def test_mnist_learns(tmp_path):
    """One epoch on real MNIST with few filters; how far it comes was measured, 0.93 to 0.95."""
    folder = mnist_folder()
    recipe = recipes.get("numba_cnn")
    config = recipe.settings({"data": "mnist", "filters": 2, "epochs": 1})
    result = recipe.train(config, RunFolder(tmp_path / "run"), folder, False, QUIET)
    assert result["accuracy"] > 0.9


def test_a_compiled_training_ends_with_the_same_numbers(trained, tmp_path):
    """Forward and backward go through a plan: the same loss, to rounding."""
    planned = run_of(tmp_path / "run", filters=3, epochs=2, compile=True)[1]
    assert planned["loss"] == pytest.approx(trained[1]["loss"], rel=1e-3)
    assert planned["accuracy"] == pytest.approx(trained[1]["accuracy"], abs=0.003)


@pytest.mark.parametrize("std", [0, -1.0, float("nan"), float("inf")])
def test_a_std_that_was_edited(std):
    data = tg.data.ArrayDataset(np.ones((2, 3), np.float32), [0, 1])
    with pytest.raises(ValueError, match="std"):
        standardise(data, {"mean": 0.0, "std": std})
    assert (data.inputs == 1).all()
