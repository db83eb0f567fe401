"""The recipe srcnn: its settings, its rules, its run, and what it refuses."""

import math
import shutil

import numpy as np
import pytest

import tinygraph as tg
from tests.data.real_files import set5_folder
from tests.test_cli import fails
from tinygraph.base.errors import ArgumentError, DatasetError, DeviceError
from tinygraph.cli import main
from tinygraph.recipes import srcnn, srcnn_samples
from tinygraph.recipes.srcnn_config import DISTRIBUTIONS
from tinygraph.recipes.srcnn_network import layers, margin, model, optimizer, read_network
from tinygraph.recipes.srcnn_pictures import draw_quality
from tinygraph.recipes.srcnn_samples import Collections
from tinygraph.training import Progress, RunFolder

pytest.importorskip("PIL", reason="needs Pillow")
QUIET = Progress(lines=False, bar=False)
SMALL = {
    "n1": 4,
    "n2": 3,
    "f1": 5,
    "f2": 1,
    "f3": 3,
    "crop": 17,
    "crops": 64,
    "epochs": 2,
    "pictures": "at hand",
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(srcnn, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("TINYGRAPH_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


def made_pictures():
    """Circles, as pictures that have edges in all directions."""
    y, x = np.mgrid[:96, :120].astype(np.float32)

    def rings(period):
        waves = np.sin(np.hypot(x - 50, y - 40) / period)
        return np.repeat((0.5 + 0.4 * np.sign(waves))[None], 3, axis=0).astype(np.float32)

    return Collections(
        [("a", rings(3)), ("b", rings(4))],
        [("c", rings(3.5)[:, :48, :60])],
        [("d", rings(5)[:, :48, :60])],
        "made",
        "made",
    )


@pytest.fixture
def made_data(monkeypatch):
    monkeypatch.setattr(srcnn, "at_hand", made_pictures)


def run_of(path, **settings):
    recipe, run = srcnn.recipe, RunFolder(path)
    return run, recipe.train(recipe.settings({**SMALL, **settings}), run, None, False, QUIET)


# ---- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, message",
    [
        ({"f1": 4}, "srcnn: f1: expected an odd number from 1 to 99"),
        ({"crop": 12}, "crop: expected more than the 12 pixels that the filters take away"),
        ({"crops": 100}, "crops: expected a multiple of the batch size 16"),
        ({"rule": "adamm"}, "rule: expected one of adam, sgd, srcnn"),
        ({"places": "anywhere"}, "places: expected one of grid, random"),
        ({"scale": 1}, "scale: expected a whole number from 2"),
        ({"n3": 1}, "no such setting"),
    ],
)
def test_bad_settings(given, message):
    with pytest.raises(ArgumentError, match=message):
        srcnn.recipe.settings(given)


# ---- the network and its rules ------------------------------------------------------------------


def test_the_network_of_the_paper():
    network = model()
    assert [p.size for p in network.parameters()] == [5184, 64, 2048, 32, 800, 1]  # 8,129
    assert margin(network) == 6
    assert network(tg.zeros((1, 1, 33, 33))).shape == (1, 1, 21, 21)


def test_each_layer_begins_with_its_own_normal_distribution():
    means, stds = (0.5, -0.25, 0.1), (0.1, 0.02, 0.3)
    normals = {
        name: {"mean_w": m, "mean_b": -m, "std_deviation_w": s, "std_deviation_b": s / 2}
        for name, m, s in zip(DISTRIBUTIONS, means, stds, strict=True)
    }
    network = srcnn.recipe.settings({"n2": 200, **normals}).network()
    for layer, m, s in zip(layers(network), means, stds, strict=True):
        w = layer.weight.value
        assert w.mean() == pytest.approx(m, abs=5 * s / math.sqrt(w.size))
        assert w.std() == pytest.approx(s, rel=0.06)
    bias = layers(network)[1].bias.value
    assert bias.mean() == pytest.approx(0.25, abs=0.004) and bias.std() == pytest.approx(0.01, 0.2)


def test_usual_distribution_is_that_of_he():
    config = srcnn.recipe.settings({})
    stds = [getattr(config, name)["std_deviation_w"] for name in DISTRIBUTIONS]
    np.testing.assert_allclose(stds, np.sqrt([2 / 81, 2 / 64, 2 / 800]))


def gradients_of_the_sum(network, x, y):
    """Of half the squared error, summed over pixels and over the batch."""
    for parameter in network.parameters():
        parameter.grad = None
    (0.5 * ((network(x) - y) ** 2).sum()).backward()
    return [p.grad.astype(np.float64) for p in network.parameters()]


@pytest.mark.parametrize("rule", ["srcnn", "sgd"])
def test_three_steps_of_the_rules_by_hand(rule):
    """srcnn: d = m d + lr g + decay w, w -= d / N of summed gradients; decay for weights alone."""
    rates, momentum, decay, n = (1e-3, 2e-3, 5e-4), 0.8, 0.01, 4
    tg.manual_seed(3)
    network = model(3, 2, 3, 1, 3)
    step = optimizer(network, rule, rates, momentum, decay, n)
    rng = np.random.default_rng(4)
    values = [p.value.astype(np.float64) for p in network.parameters()]
    d = [0.0] * 6
    for _ in range(3):
        x, y = (rng.random((n, 1, side, side)).astype(np.float32) for side in (9, 5))
        gradients = gradients_of_the_sum(network, x, y)
        for k, gradient in enumerate(gradients):
            lr, penalty = rates[k // 2], decay * values[k] if k % 2 == 0 else 0.0
            if rule == "srcnn":
                d[k] = momentum * d[k] + lr * gradient + penalty
                values[k] = values[k] - d[k] / n
            else:
                d[k] = momentum * d[k] + gradient / n + penalty
                values[k] = values[k] - lr * d[k]
        step.zero_grad()
        srcnn.crop_loss(network(x), tg.Tensor(y)).backward()
        step.step()
        for parameter, value in zip(network.parameters(), values, strict=True):
            np.testing.assert_allclose(parameter.value, value, rtol=1e-4, atol=1e-6)


def test_adam_has_a_rate_for_each_layer_and_no_decay_of_biases():
    step = optimizer(model(2, 2), "adam", (0.1, 0.2, 0.3), 0.7, 0.5, 16)
    assert [group["lr"] for group in step.groups] == [0.1, 0.1, 0.2, 0.2, 0.3, 0.3]
    assert [group["weight_decay"] for group in step.groups] == [0.5, 0, 0.5, 0, 0.5, 0]
    assert {group["betas"] for group in step.groups} == {(0.7, 0.999)}
    with pytest.raises(ArgumentError, match="rule: expected 'adam', 'sgd' or 'srcnn'"):
        optimizer(model(2, 2), "rprop", (1, 1, 1), 0, 0, 1)


# ---- a run --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setattr(srcnn, "at_hand", made_pictures)
    patch.setattr(srcnn, "cache_folder", lambda: tmp_path_factory.getbasetemp() / "cache")
    yield run_of(tmp_path_factory.mktemp("run") / "run", epochs=12, learning_rates=(3e-3,) * 3)
    patch.undo()


def test_the_log_has_quality_beside_bicubic(trained):
    run, result = trained
    rows = run.rows()
    assert [row["epoch"] for row in rows] == list(range(1, 13))
    assert len({row["bicubic_psnr"] for row in rows}) == 1
    assert rows[-1]["loss"] < rows[0]["loss"] / 5  # it learns
    assert rows[-1]["psnr"] > rows[0]["psnr"] + 5
    assert set(result) == {"psnr", "ssim", "bicubic_psnr", "bicubic_ssim"}
    saved = run.result()
    assert saved["test"] == result
    assert saved["validation"]["psnr"] == pytest.approx(rows[-1]["psnr"], abs=1e-9)
    assert [row["name"] for row in saved["pictures"]["test"]] == ["d"]


def test_best_is_the_epoch_of_the_highest_psnr(trained, made_data):
    run, result = trained
    assert srcnn.recipe.evaluate(run, None, False, "cpu") == result
    best = max(run.rows(), key=lambda row: row["psnr"])
    network = srcnn.recipe.trained(run, best=True)
    held_out = srcnn.pairs(made_pictures().validation, 3)
    assert srcnn.means(srcnn.measure(network, held_out, 3))["psnr"] == pytest.approx(best["psnr"])


def test_json_parameters_of_a_run_are_those_of_safetensors(trained):
    run, _ = trained
    state = run.load_parameters()
    for name, array in read_network(run.path / "parameters.json").state_dict().items():
        np.testing.assert_array_equal(array, state[name])


@pytest.mark.second
def test_the_pictures_of_a_run(trained, made_data, tmp_path):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    shutil.copytree(trained[0].path, tmp_path / "copy")
    files = [path.name for path in srcnn.recipe.draw(RunFolder.open(tmp_path / "copy"))]
    assert files == [
        "graph.svg",
        "report.html",
        "steps.html",
        "quality.svg",
        "filters_1.png",
        "filters_3.png",
        "feature_maps_1.png",
        "feature_maps_2.png",
        "comparison.png",
    ]
    assert all((tmp_path / "copy" / name).stat().st_size > 1000 for name in files)
    text = (tmp_path / "copy" / "quality.svg").read_text()
    assert "</svg>" in text


def test_the_curve_passes_over_rows_without_psnr(tmp_path):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    quality = {"psnr": 31.234, "ssim": 0.88, "bicubic_psnr": 30.39, "bicubic_ssim": 0.87}
    path = draw_quality([{"epoch": 1}, {"epoch": 2, **quality}], tmp_path / "quality.svg")
    assert path.stat().st_size > 1000


@pytest.mark.parametrize("edit", [{"psnr": "x"}, {"ssim": None}, {"epoch": "x"}, {"psnr": 1.7e308}])
def test_the_curve_of_an_edited_log(edit, tmp_path):
    """It was a KeyError or a ValueError of matplotlib's."""
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    quality = {"psnr": 31.234, "ssim": 0.88, "bicubic_psnr": 30.39, "bicubic_ssim": 0.87}
    rows = [{"epoch": 1, **quality}, {"epoch": 2, **quality, **edit}, {"epoch": 3, "psnr": 31.0}]
    assert draw_quality(rows, tmp_path / "quality.svg").stat().st_size > 1000


class StopsAfterOne(Progress):
    """As if the process was killed while the first epoch's line was printed."""

    def epoch(self, row, epochs):
        raise KeyboardInterrupt


def test_a_stopped_run_ends_with_the_same_bits(made_data, tmp_path):
    whole, result = run_of(tmp_path / "whole", rule="srcnn", places="random")
    recipe, run = srcnn.recipe, RunFolder(tmp_path / "stopped")
    config = recipe.settings({**SMALL, "rule": "srcnn", "places": "random"})
    with pytest.raises(KeyboardInterrupt):
        recipe.train(config, run, None, False, StopsAfterOne(lines=False, bar=False))
    again = RunFolder.open(run.path)
    assert len(again.rows()) == 1
    same = recipe.train(recipe.settings_of(again), again, None, False, QUIET)
    assert same == result
    for name in ("parameters.safetensors", "best/parameters.safetensors"):
        assert (run.path / name).read_bytes() == (whole.path / name).read_bytes()
    for left, right in zip(whole.rows(), again.rows(), strict=True):
        assert {**left, "seconds": 0} == {**right, "seconds": 0}


def test_a_run_killed_while_measuring_goes_on(made_data, monkeypatch, tmp_path):
    """That epoch is learnt again, and then measured."""
    whole, result = run_of(tmp_path / "whole")
    measure = srcnn.measure

    def killed(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(srcnn, "measure", killed)
    with pytest.raises(KeyboardInterrupt):
        run_of(tmp_path / "killed")
    monkeypatch.setattr(srcnn, "measure", measure)
    run = RunFolder.open(tmp_path / "killed")
    assert srcnn.recipe.train(srcnn.recipe.settings_of(run), run, None, False, QUIET) == result
    assert [row["psnr"] for row in run.rows()] == [row["psnr"] for row in whole.rows()]


def test_a_run_begins_with_parameters_from_a_file(trained, made_data, tmp_path):
    path = str(trained[0].path / "parameters.json")
    config = srcnn.recipe.settings({**SMALL, "parameters_file": path})
    begins = config.network().state_dict()
    for name, array in trained[0].load_parameters().items():
        np.testing.assert_array_equal(begins[name], array)
    with pytest.raises(ArgumentError, match="set n1, n2, f1, f2, f3 as the file has them"):
        srcnn.recipe.settings({**SMALL, "n1": 5, "parameters_file": path}).network()
    with pytest.raises(ArgumentError, match="No such file"):
        srcnn.recipe.settings({**SMALL, "parameters_file": "absent.json"}).network()


def test_training_through_the_kernels_ends_where_numpy_does(made_data, tmp_path):
    through, same = run_of(tmp_path / "emulator", epochs=1, crops=16, device="emulator")
    run, result = run_of(tmp_path / "cpu", epochs=1, crops=16)
    assert same["psnr"] == pytest.approx(result["psnr"], abs=1e-3)
    for name, array in run.load_parameters().items():
        np.testing.assert_allclose(through.load_parameters()[name], array, rtol=1e-3, atol=1e-5)


def test_compiled_it_ends_with_the_same_numbers(made_data, tmp_path):
    planned, same = run_of(tmp_path / "plan", epochs=1, crops=16, compile=True)
    run, result = run_of(tmp_path / "graph", epochs=1, crops=16)
    assert same["psnr"] == pytest.approx(result["psnr"], abs=1e-4)
    for name, array in run.load_parameters().items():
        np.testing.assert_allclose(planned.load_parameters()[name], array, rtol=1e-3, atol=1e-5)


def test_an_absent_device_shows_before_anything_is_loaded(monkeypatch, tmp_path):
    monkeypatch.setattr(srcnn, "at_hand", lambda: pytest.fail("loaded"))
    with pytest.raises(DeviceError):
        run_of(tmp_path / "run", device="cuda")


# ---- which pictures -----------------------------------------------------------------------------


def test_without_t91_the_pictures_at_hand_are_taken_and_it_is_said(made_data):
    config = srcnn.recipe.settings({**SMALL, "pictures": None})
    with pytest.warns(UserWarning, match=r"T91: expected a folder .* Until then: made"):
        srcnn.recipe.data(config)
    assert config.pictures == "at hand"  # so that the run goes on with them


def test_a_named_folder_without_t91_is_an_error(made_data, tmp_path):
    for settings, folder in (({"pictures": None}, tmp_path), ({"pictures": "t91"}, None)):
        with pytest.raises(DatasetError, match=r"T91: .*github.com/tegg89/SRCNN-Tensorflow"):
            srcnn.recipe.data(srcnn.recipe.settings({**SMALL, **settings}), folder)


@pytest.mark.second
def test_scikit_learns_photographs(monkeypatch):
    pytest.importorskip("sklearn", reason="needs scikit-learn")
    monkeypatch.setattr(srcnn_samples, "import_module", _no_such_library)
    found = srcnn_samples.at_hand()
    assert [len(part) for part in found[:3]] == [1, 1, 1] and "scikit-learn" in found.notes
    assert found.training[0][1].shape == (3, 427, 640)
    assert found.validation[0][1].shape == found.test[0][1].shape == (3, 427, 320)


def _no_such_library(name):
    raise ImportError(name)


def test_scikit_images_photographs():
    pytest.importorskip("skimage", reason="needs scikit-image")
    found = srcnn_samples.at_hand()
    assert [len(part) for part in found[:3]] == [3, 1, 1] and "scikit-image" in found.notes
    for _, rgb in [*found.training, *found.validation, *found.test]:
        assert rgb.shape[0] == 3 and rgb.dtype == np.float32 and 0 <= rgb.min() < rgb.max() <= 1


@pytest.mark.second
def test_t91_set5_and_set14():
    folder = set5_folder().parents[1]
    found = srcnn_samples.t91(folder)
    assert [len(part) for part in found[:3]] == [91, 5, 14]
    data = srcnn_samples.Crops().cut(srcnn_samples.pairs(found.training, 3))
    assert len(data) == 21884


# ---- the command --------------------------------------------------------------------------------


@pytest.mark.second
def test_the_command_trains_and_super_resolves(made_data, capsys, tmp_path):
    """From train to a larger picture, as a user would do it."""
    image = pytest.importorskip("PIL.Image")
    arguments = [f"--set={name}={value}" for name, value in SMALL.items() if name != "epochs"]
    assert main(["train", "srcnn", "--epochs", "1", *arguments, "--run", "run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("epoch 1/1  loss") and "bicubic psnr" in line for line in lines)
    assert lines[-1].startswith("test psnr ")
    assert main(["evaluate", "run"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == lines[-1]
    image.new("RGB", (9, 7), "teal").save("in.png")
    for extra in ([], ["--best"]):
        assert main(["super-resolve", "in.png", "out.png", "--parameters", "run", *extra]) == 0
        with image.open("out.png") as large:
            assert large.size == (27, 21)
    assert "for which run was trained, got 2" in fails(
        capsys, ["super-resolve", "in.png", "out.png", "--parameters", "run", "--scale", "2"]
    )
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"recipe": "xor_mlp"}')
    assert "expected a run of srcnn, got one of xor_mlp" in fails(
        capsys, ["super-resolve", "in.png", "out.png", "--parameters", "other"]
    )


def test_dry_run_and_download(made_data, capsys):
    settings = [f"--set={name}={value}" for name, value in SMALL.items()]
    assert main(["train", "srcnn", "--dry-run", *settings]) == 0
    assert "an epoch of 4 batches" in capsys.readouterr().out
    assert "--download: expected no such option" in fails(
        capsys, ["train", "srcnn", "--download", *settings]
    )


@pytest.mark.parametrize(("gain", "words"), [(0.5, "better than"), (-0.25, "no better than")])
def test_the_report_says_whether_it_beats_bicubic(gain, words):
    verdict = srcnn.recipe.verdict({"test": {"psnr": 30 + gain, "bicubic_psnr": 30.0}})
    assert f"is {words} bicubic" in verdict
    assert f"({gain:+.2f} dB)" in verdict
