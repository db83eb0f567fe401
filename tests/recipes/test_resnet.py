"""The recipe resnet_cifar: its network against naive loops, sizes of the papers, trainings."""

import json
import os
import re
import signal

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.recipes.test_vgg import drawn
from tinygraph import recipes
from tinygraph.base.errors import ArgumentError, ShapeError
from tinygraph.recipes import resnet_cifar
from tinygraph.recipes.resnet import BasicBlock, resnet
from tinygraph.training import Progress, RunFolder, Stopped

QUIET = Progress(lines=False, bar=False)
SMALL = {"data": "digits", "widths": (8, 16), "blocks": 1, "batch_size": 50, "epochs": 4}
TINY = {"data": "digits", "widths": (2, 3), "blocks": 1, "batch_size": 8}
SHORTCUTS = ["pad", "project"]


def run_of(path, **settings):
    recipe, run = recipes.get("resnet_cifar"), RunFolder(path)
    return run, recipe.train(recipe.settings(settings), run, None, False, QUIET)


# ---- the network -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "widths, blocks, shortcut, layers, parameters",
    [
        ((16, 32, 64), 3, "pad", 20, 269_722),  # 0.27 million: table 6 of the paper
        ((16, 32, 64), 9, "pad", 56, 853_018),  # 0.85 million
        ((64, 128, 256, 512), 2, "project", 18, 11_173_962),  # ResNet-18 as is usual on CIFAR-10
    ],
)
def test_layers_and_parameters_are_those_of_the_paper(widths, blocks, shortcut, layers, parameters):
    network = resnet((3, 32, 32), widths, blocks, shortcut)
    weights = [n for n, p in network.named_parameters() if p.ndim > 1 and "shortcut" not in n]
    assert len(weights) == layers
    assert sum(p.size for p in network.parameters()) == parameters


def test_the_first_numbers_of_the_filters_are_those_of_he():
    """Normal, of variance 2 / (9 * filters): what a filter's gradient is a sum of."""
    tg.manual_seed(0)
    network = resnet((3, 32, 32))
    weight = network["stage3"][1].conv1.weight.value
    assert weight.std() == pytest.approx(np.sqrt(2 / (9 * 64)), rel=0.02)
    assert abs(weight.mean()) < 0.001


@pytest.mark.parametrize("shortcut", SHORTCUTS)
def test_a_block_by_naive_loops(shortcut):
    """Evaluation mode; every second pixel, and channels that the input has not."""
    block, p = drawn(BasicBlock(2, 3, 2, shortcut).eval())
    x = np.random.default_rng(1).standard_normal((2, 2, 5, 5))

    def norm(y, name):
        parts = ("weight", "bias", "running_mean", "running_var")
        return reference.batch_norm(y, *(p[f"{name}.{part}"] for part in parts))

    out = reference.relu(norm(reference.conv2d(x, p["conv1.weight"], None, 2, 1), "bn1"))
    out = norm(reference.conv2d(out, p["conv2.weight"], None, 1, 1), "bn2")
    if shortcut == "project":
        past = norm(reference.conv2d(x, p["shortcut.0.weight"], None, 2), "shortcut.1")
    else:
        past = np.zeros((2, 3, 3, 3))
        for n, c, i, j in np.ndindex(2, 2, 3, 3):
            past[n, c, i, j] = x[n, c, 2 * i, 2 * j]
    found = block(tg.Tensor(x.astype(np.float32))).value
    np.testing.assert_allclose(found, reference.relu(out + past), rtol=1e-4)


@pytest.mark.parametrize("shortcut", SHORTCUTS)
def test_a_block_that_adds_nothing(shortcut):
    """With zeros in its last norm a block passes on what is above 0, and the gradient with it."""
    block = BasicBlock(3, 3, 1, shortcut)
    block.bn2.weight.value = np.zeros(3, np.float32)
    rng = np.random.default_rng(1)
    x = tg.Tensor(rng.standard_normal((4, 3, 4, 4)).astype(np.float32), requires_grad=True)
    gy = rng.standard_normal(x.shape).astype(np.float32)
    y = block(x)
    y.backward(gy)
    np.testing.assert_array_equal(y.value, np.maximum(x.value, 0))
    np.testing.assert_allclose(x.grad, np.where(x.value > 0, gy, 0), atol=1e-6)


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        (((3, 32, 32), []), ArgumentError, "at least one width"),
        (((3, 32, 32), [4], 0), ArgumentError, "1 block, got"),
        (((3, 32, 32), [8, 4]), ArgumentError, "do not fall.*shortcut='project'"),
        (((3, 32, 3), [4] * 3), ShapeError, "at least 4 by 4 pixels, halved 2 times, got 32 by 3"),
    ],
)
def test_networks_that_cannot_be(arguments, error, words):
    with pytest.raises(error, match=words):
        resnet(*arguments)


# ---- the recipe ------------------------------------------------------------------------------


def test_the_learning_rate_falls_after_a_half_and_three_quarters_of_the_epochs():
    recipe, config = resnet_cifar.recipe, resnet_cifar.Config(epochs=8, lr=0.5)
    optimizer = recipe.optimizer(config, resnet((1, 8, 8), (2,), 1))
    schedule, rates = recipe.schedule(config, optimizer), []
    for _ in range(8):
        rates += schedule.get_last_lr()
        schedule.step()
    assert rates == pytest.approx([0.5] * 4 + [0.05] * 2 + [0.005] * 2)
    assert recipe.schedule(resnet_cifar.Config(duration=9.0), optimizer) is None


def test_pictures_are_moved_by_four_pixels_and_mirrored():
    config = resnet_cifar.Config(data="cifar10")
    augment = resnet_cifar.recipe.augmentation(config, (3, 32, 32))
    assert repr(augment) == "compose(random_crop((32, 32), padding=4), horizontal_flip(0.5))"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return run_of(tmp_path_factory.mktemp("run") / "r", **SMALL)


def test_it_learns_the_digits(trained):
    """Four epochs with few filters; seeds 0 to 4 reached 0.78 to 0.86."""
    run, result = trained
    assert result["accuracy"] > 0.7
    assert recipes.get("resnet_cifar").evaluate(RunFolder.open(run.path), None) == result


@pytest.mark.second
@pytest.mark.parametrize("batches", [3, 60])
def test_stopped_and_resumed_it_ends_with_the_same_bits(trained, tmp_path, monkeypatch, batches):
    """In the first epoch, and in the third, where the rate is another: momenta, running statistics
    and the schedule all go on."""
    whole, result = trained
    advance, done = Progress.advance, []

    def stop(self):
        advance(self)
        done.append(1)
        if len(done) == batches:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "advance", stop)
        with pytest.raises(Stopped):
            run_of(tmp_path / "run", **SMALL)
    recipe, again = recipes.get("resnet_cifar"), RunFolder.open(tmp_path / "run")
    assert recipe.train(recipe.settings_of(again), again, None, False, QUIET) == result
    for name in ("parameters.safetensors", "best/parameters.safetensors"):
        assert (again.path / name).read_bytes() == (whole.path / name).read_bytes()


@pytest.mark.second
@pytest.mark.parametrize("shortcut", SHORTCUTS)
def test_compiled_the_losses_are_the_same(tmp_path, shortcut):
    settings = {**TINY, "shortcut": shortcut, "batch_size": 64, "epochs": 2}
    run, result = run_of(tmp_path / "graph", **settings)
    planned, same = run_of(tmp_path / "plan", compile=True, **settings)
    assert same == pytest.approx(result, rel=1e-4)
    for one, other in zip(run.rows(), planned.rows(), strict=True):
        assert other["loss"] == pytest.approx(one["loss"], rel=1e-4)


@pytest.mark.second
@pytest.mark.parametrize("shortcut", SHORTCUTS)
def test_through_the_kernels_under_the_checker_the_loss_is_the_same(shortcut):
    recipe = recipes.get("resnet_cifar")
    here = recipe.rehearse(recipe.settings({**TINY, "shortcut": shortcut}))
    with tg.cuda.checking():
        there = recipe.rehearse(
            recipe.settings({**TINY, "shortcut": shortcut, "device": "emulator"})
        )
    assert there["loss"] == pytest.approx(here["loss"], rel=1e-5)
    assert there["summary"] == here["summary"]


@pytest.mark.second
def test_pictures(trained):
    """The graph is folded: a block is one box."""
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    run, _ = trained
    config = json.loads((run.path / "config.json").read_text())
    assert config["recipe"] == "resnet_cifar"
    deep = {"data": "digits", "epochs": 1, "widths": (2, 2, 2), "batch_size": 250}
    run, _ = run_of(run.path.parent / "deep", **deep)
    names = [path.name for path in recipes.get("resnet_cifar").draw(RunFolder.open(run.path))]
    assert names == ["graph.svg", "report.html", "steps.html", "curves.svg", "filters.png"]
    graph = (run.path / "graph.svg").read_text()
    for block in (f"stage{s}.{b}" for s in (1, 2, 3) for b in range(3)):
        assert re.search(rf"{block}\b", graph)
