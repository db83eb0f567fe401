"""The recipes vgg_cifar and vgg224: their network against naive loops, modes, shapes, trainings."""

import json
import re
import shutil
import zipfile

import numpy as np
import pytest

import tinygraph as tg
from tests.data.real_files import cifar10_folder
from tinygraph import nn, recipes
from tinygraph.base.errors import ArgumentError, DatasetError, ShapeError
from tinygraph.cli import main
from tinygraph.recipes import vgg224, vgg_cifar
from tinygraph.recipes.images import first_weights, shape_chain
from tinygraph.recipes.vgg import residual_block, vgg
from tinygraph.training import Progress, RunFolder

QUIET = Progress(lines=False, bar=False)
SMALL = {"data": "digits", "widths": (8, 16), "batch_size": 25, "epochs": 4, "dropout": 0.1}


def run_of(path, data_dir=None, **settings):
    recipe, run = recipes.get("vgg_cifar"), RunFolder(path)
    return run, recipe.train(recipe.settings(settings), run, data_dir, False, QUIET)


def drawn(network, seed=0):
    """The network with random numbers in all its parameters and running statistics."""
    rng = np.random.default_rng(seed)
    state = {
        name: rng.uniform(0.5, 1.5, np.shape(value)).astype(np.asarray(value).dtype)
        for name, value in network.state_dict().items()
    }
    network.load_state_dict(state)
    return network, {name: value.astype(np.float64) for name, value in state.items()}


# ---- the network -----------------------------------------------------------------------------


def test_shapes_of_the_listing():
    assert shape_chain(vgg224.recipe.model(vgg224.Config(), {}), (3, 224, 224)) == (
        "3x224x224 -> 32x112x112 -> 64x56x56 -> 128x28x28 -> 256x14x14 -> 512x7x7 -> 10"
    )
    network = vgg_cifar.recipe.model(vgg_cifar.Config(), {"image_shape": (3, 32, 32)})
    assert shape_chain(network, (3, 32, 32)) == "3x32x32 -> 32x16x16 -> 64x8x8 -> 128x4x4 -> 10"
    assert network.training  # as it was


def test_the_summary_has_the_shape_on_each_line():
    shapes = [32] * 3 + [16] + [16] * 3 + [8] + [8] * 3 + [4] + [4] * 2 + [1]
    lines = (
        vgg_cifar.recipe.model(vgg_cifar.Config(), {"image_shape": (3, 32, 32)})
        .summary((3, 32, 32))
        .splitlines()[3:]
    )
    for line, size in zip(lines, shapes, strict=False):
        assert re.search(rf"\(N, \d+, {size}, {size}\)", line), line
    assert "(N, 10)" in lines[len(shapes)]


def test_order_of_the_layers():
    network = vgg((3, 16, 16), [4, 6], convolutions=2, dropout=0.5)
    kinds = [nn.Conv2d, nn.BatchNorm2d, nn.ReLU] * 2 + [nn.MaxPool2d]
    for stage in (network["stage1"], network["stage2"]):
        assert [type(layer) for layer in stage] == kinds
        for convolution in (stage[0], stage[3]):
            assert convolution.kernel_size == (3, 3) and convolution.padding == (1, 1)
            assert convolution.bias is None  # the norm would subtract it again
    assert [type(layer) for layer in network["head"]] == [
        nn.Dropout,
        nn.Conv2d,
        nn.GlobalAvgPool2d,
        nn.Flatten,
    ]
    assert network["head"][1].kernel_size == (1, 1)


def test_logits_by_naive_loops():
    """Evaluation mode, two channels, one stage: every number written out."""
    network, p = drawn(vgg((2, 4, 4), [3], classes=2, dropout=0.5).eval())
    x = np.random.default_rng(1).standard_normal((2, 2, 4, 4))
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    h = np.zeros((2, 3, 4, 4))
    for n, o, i, j in np.ndindex(h.shape):
        y = (padded[n, :, i : i + 3, j : j + 3] * p["stage1.0.weight"][o]).sum()
        y = (y - p["stage1.1.running_mean"][o]) / np.sqrt(p["stage1.1.running_var"][o] + 1e-5)
        h[n, o, i, j] = max(0, y * p["stage1.1.weight"][o] + p["stage1.1.bias"][o])
    logits = np.zeros((2, 2))
    for n, k, i, j in np.ndindex(2, 2, 2, 2):
        window = h[n, :, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max(axis=(1, 2))
        scores = window @ p["head.1.weight"][k, :, 0, 0] + p["head.1.bias"][k]
        logits[n, k] += scores / 4  # the mean over 2 by 2 places
    np.testing.assert_allclose(network(x.astype(np.float32)).value, logits, rtol=1e-4)


def test_a_residual_block_by_its_parts():
    block, p = drawn(residual_block(2, 3).eval())
    x = np.random.default_rng(1).standard_normal((2, 2, 4, 4)).astype(np.float32)

    def norm_relu(y, name):
        y = tg.batch_norm(
            y,
            *(
                p[f"body.{name}.{part}"].astype(np.float32)
                for part in ("weight", "bias", "running_mean", "running_var")
            ),
        )
        return tg.relu(y)

    def convolved(y, name):
        w = p[name].astype(np.float32)
        return tg.conv2d(y, w, padding=w.shape[-1] // 2)

    f = convolved(norm_relu(x, 0), "body.2.weight")
    f = convolved(norm_relu(f, 3), "body.5.weight")
    expected = f.value + convolved(x, "shortcut.weight").value
    np.testing.assert_allclose(block(x).value, expected, rtol=1e-5)


def test_a_residual_block_that_adds_nothing():
    """With zeros in its last convolution, x passes unchanged: nothing stands on its way."""
    block = residual_block(3, 3)
    block.body[5].weight.value[...] = 0
    x = np.random.default_rng(1).standard_normal((16, 3, 4, 4)).astype(np.float32)
    np.testing.assert_array_equal(block(x).value, x)


@pytest.mark.parametrize("residual", [False, True])
def test_modes_differ(residual):
    """Training: the batch's statistics, and dropout.  Evaluation: neither."""
    x = np.random.default_rng(0).standard_normal((16, 3, 8, 8)).astype(np.float32)
    network = vgg((3, 8, 8), [4, 4], residual=residual, dropout=0.5)
    tg.manual_seed(0)
    first, second = network(x).value, network(x).value
    assert np.abs(first - second).max() > 0.01  # other elements dropped
    network.eval()
    evaluated = network(x).value
    np.testing.assert_array_equal(evaluated, network(x).value)
    assert np.abs(evaluated - first).max() > 0.01
    np.testing.assert_array_equal(evaluated[:1], network(x[:1]).value.reshape(1, -1))

    without = vgg((3, 8, 8), [4, 4], residual=residual)
    if not residual:  # a shortcut lets the size of x through
        np.testing.assert_allclose(without(3 * x).value, without(x).value, atol=1e-3)
    before = without.state_dict()
    without.eval()(x)
    for name, value in without.state_dict().items():
        np.testing.assert_array_equal(value, before[name])  # evaluation leaves no trace
    assert np.abs(without(3 * x).value - without(x).value).max() > 0.01


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        (((3, 32, 32), []), ArgumentError, "at least one width"),
        (((3, 32, 32), [4], 10, 0), ArgumentError, "1 convolution, got"),
        (((3, 32, 15), [4] * 4), ShapeError, "at least 16 by 16 pixels, which are halved 4 times"),
    ],
)
def test_networks_that_cannot_be(arguments, error, words):
    with pytest.raises(error, match=words):
        vgg(*arguments)


# ---- vgg_cifar -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return run_of(tmp_path_factory.mktemp("run") / "r", **SMALL)


@pytest.mark.second
def test_it_learns_the_digits(trained):
    """Four epochs with few filters; seeds 0 to 4 reached 0.89 to 0.97, seed 0 0.944."""
    run, result = trained
    losses = [row["loss"] for row in run.rows()]
    assert losses == sorted(losses, reverse=True)
    assert result["accuracy"] > 0.85


def test_evaluating_a_run_gives_its_result(trained):
    run, result = trained
    recipe = recipes.get("vgg_cifar")
    assert recipe.evaluate(RunFolder.open(run.path), None) == result
    assert recipe.evaluate(RunFolder.open(run.path), None, best=True)["accuracy"] > 0.85


@pytest.mark.second
def test_resumed_it_ends_with_the_same_bits(trained, tmp_path):
    """Stopped after two epochs; running statistics, ADADELTA's means and dropout all go on."""
    whole, result = trained
    recipe = recipes.get("vgg_cifar")
    part, _ = run_of(tmp_path / "run", **SMALL | {"epochs": 2})
    config = json.loads((part.path / "config.json").read_text())
    config["settings"]["epochs"] = 4
    (part.path / "config.json").write_text(json.dumps(config))
    again = RunFolder.open(part.path)
    assert recipe.train(recipe.settings_of(again), again, None, False, QUIET) == result
    name = "parameters.safetensors"
    assert (part.path / name).read_bytes() == (whole.path / name).read_bytes()


@pytest.mark.parametrize("network, parameters", [("linear", 64 * 10 + 10), ("residual", None)])
def test_other_networks_of_the_recipe(tmp_path, network, parameters):
    run, result = run_of(tmp_path / "run", **SMALL | {"network": network, "epochs": 1})
    assert recipes.get("vgg_cifar").evaluate(RunFolder.open(run.path), None) == result
    if parameters:
        assert sum(p.size for p in run.load_parameters().values()) == parameters


@pytest.mark.parametrize("network", ["vgg", "residual", "linear"])
def test_through_the_kernels_the_loss_is_the_same(network):
    """A batch in training mode, dropout included: it draws the same numbers on every device."""
    settings = {"data": "digits", "network": network, "widths": (2, 3), "batch_size": 16}
    found = [
        vgg_cifar.recipe.rehearse(vgg_cifar.Config(**settings, dropout=0.5, device=device))
        for device in ("cpu", "emulator")
    ]
    assert found[1]["loss"] == pytest.approx(found[0]["loss"], rel=1e-5)
    assert found[1]["summary"] == found[0]["summary"]


@pytest.mark.parametrize("network", ["vgg", "residual", "linear"])
def test_compiled_it_ends_with_the_same_numbers(tmp_path, network):
    """Dropout and batch norm included: a plan draws the same numbers."""
    settings = {"data": "digits", "network": network, "widths": (2, 3), "epochs": 1}
    run, result = run_of(tmp_path / "graph", **settings)
    planned, same = run_of(tmp_path / "plan", compile=True, **settings)
    assert same["loss"] == pytest.approx(result["loss"], rel=1e-3)
    assert same["accuracy"] == pytest.approx(result["accuracy"], abs=0.006)
    for name, array in run.load_parameters().items():
        np.testing.assert_allclose(planned.load_parameters()[name], array, rtol=0.02, atol=2e-3)


@pytest.mark.parametrize("network, shape", [("vgg", (8, 1, 3, 3)), ("linear", (10, 1, 8, 8))])
def test_weights_that_look_at_the_pixels(network, shape):
    config = vgg_cifar.Config(network=network, widths=(8,))
    weights = first_weights(vgg_cifar.recipe.model(config, {"image_shape": (1, 8, 8)}), (1, 8, 8))
    assert weights.shape == shape


@pytest.mark.second
def test_pictures(trained, tmp_path):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    shutil.copytree(trained[0].path, tmp_path, dirs_exist_ok=True)
    drawn = list(recipes.get("vgg_cifar").draw(RunFolder.open(tmp_path)))
    assert [path.name for path in drawn] == [
        "graph.svg",
        "report.html",
        "steps.html",
        "curves.svg",
        "filters.png",
    ]


def test_only_pictures_are_mirrored():
    """A mirrored 2 is no 2; a mirrored horse is a horse.  On 8 pixels a sixteenth is nothing."""
    mnist = vgg_cifar.recipe.augmentation(vgg_cifar.Config(data="mnist"), (1, 28, 28))
    pictures = vgg_cifar.recipe.augmentation(vgg_cifar.Config(data="cifar10"), (3, 32, 32))
    assert repr(mnist) == "compose(random_crop((28, 28), padding=1))"
    assert repr(pictures) == "compose(random_crop((32, 32), padding=2), horizontal_flip(0.5))"
    assert vgg_cifar.recipe.augmentation(vgg_cifar.Config(data="digits"), (1, 8, 8)) is None
    assert (
        vgg_cifar.recipe.augmentation(vgg_cifar.Config("cifar10", augment=False), (3, 32, 32))
        is None
    )


def test_without_cifar10_it_takes_what_is_at_hand(monkeypatch, tmp_path):
    monkeypatch.delenv("TINYGRAPH_DATA", raising=False)
    config = vgg_cifar.Config(widths=(2,))
    with pytest.warns(UserWarning, match="(?s)cifar10.*--download.*the digits that"):
        found = vgg_cifar.recipe.data(config)
    assert config.data == "digits" and found.facts["image_shape"] == [1, 8, 8]
    with pytest.raises(DatasetError, match="cifar10"):  # a folder was named: no other data
        vgg_cifar.recipe.data(vgg_cifar.Config(), tmp_path)
    with pytest.raises(DatasetError, match="cifar10"):
        vgg_cifar.recipe.data(vgg_cifar.Config(data="cifar10"))


@pytest.mark.second
def test_real_pictures(tmp_path):
    """400 pictures of CIFAR-10, three epochs: the loss falls below that of chance."""
    pytest.importorskip("PIL", reason="needs Pillow")
    name = "cifar10_jpeg_subset.zip"
    folder = cifar10_folder()
    source = next(path for path in (folder / "cifar10" / name, folder / name) if path.is_file())
    with zipfile.ZipFile(source) as whole, zipfile.ZipFile(tmp_path / name, "w") as few:
        for member in whole.namelist():
            match = re.fullmatch(r"(train|test)/\w+/(\d+)\.jpg", member)
            if match and int(match[2]) < (40 if match[1] == "train" else 4):
                few.writestr(member, whole.read(member))
    run, result = run_of(tmp_path / "run", tmp_path, widths=(8, 16, 16), batch_size=20, epochs=3)
    first, *_, last = (row["loss"] for row in run.rows())
    assert last < min(first, np.log(10))
    assert run.config["settings"]["data"] == "cifar10"
    assert tuple(run.config["image_shape"]) == (3, 32, 32)
    assert 0 <= result["accuracy"] <= 1


# ---- vgg224 ----------------------------------------------------------------------------------

NARROW = ["--set", "widths=2,2,2,2,2", "--set", "dropout=0", "--batch-size", "16"]


@pytest.mark.second
def test_one_step_on_random_pictures(capsys, tmp_path):
    folder = tmp_path / "run"
    assert main(["train", "vgg224", *NARROW, "--run", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "3x224x224 -> 2x112x112 -> 2x56x56 -> 2x28x28 -> 2x14x14 -> 2x7x7 -> 10" in out
    assert "(N, 2, 112, 112)" in out
    result = RunFolder.open(folder).result()["test"]
    assert result["loss"] < result["loss_before"]  # on the batch that it learnt from
    assert out.splitlines()[-1] == f"test loss {result['loss']:.4f}"
    assert main(["evaluate", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"test loss {result['loss']:.4f}"
    planned = str(tmp_path / "planned")
    assert main(["train", "vgg224", *NARROW, "--set", "compile=true", "--run", planned]) == 0
    same = RunFolder.open(planned).result()["test"]
    assert same["loss"] == pytest.approx(result["loss"], rel=1e-4)


@pytest.mark.parametrize(
    "options, words",
    [
        (["--data-dir", "."], "this recipe makes its own data"),
        (["--epochs", "2"], "epochs: expected one of its settings"),
    ],
)
def test_what_vgg224_refuses(capsys, options, words):
    assert main(["train", "vgg224", *options]) == 2
    assert words in capsys.readouterr().err
