"""Recipes whose ranks share layers: what one process learns, and a run that moves between ranks."""

import json

import numpy as np
import pytest

import tinygraph as tg
from tests.distributed.launch import launch, needs_mpi
from tinygraph import recipes
from tinygraph.base.errors import ArgumentError
from tinygraph.recipes import splice_mlp
from tinygraph.recipes.splice_mlp_network import SigmoidMLP
from tinygraph.recipes.splice_mlp_text import read_network
from tinygraph.training import Progress, RunFolder

QUIET = Progress(lines=False, bar=False)
VGG = {"data": "digits", "widths": (4,), "hidden": (12, 10), "parallel": "switch", "scheme": "b"}
SPLICE = {"hidden": (5,), "momentum": 0.3, "parallel": "model"}

# Train in a folder, or go on with what is there; the data of splice are few, and made here.
PROGRAM = """
import json, sys
from pathlib import Path
from tests.distributed.test_split_recipes import QUIET, few_sequences
from tinygraph import recipes
from tinygraph.recipes import splice_mlp
from tinygraph.training import RunFolder
name, folder, settings, epochs = sys.argv[1:]
splice_mlp.splice = few_sequences
recipe, settings = recipes.get(name), json.loads(settings)
run = RunFolder.open(folder) if Path(folder).exists() else RunFolder(folder)
config = recipe.settings({**settings, "epochs": int(epochs)})
recipe.train(config, run, progress=QUIET)
"""


def few_sequences(part, *where):
    rng = np.random.default_rng(len(part))
    return tg.data.ArrayDataset(rng.random((40, 240)).astype(np.float32), rng.integers(0, 3, 40))


def rows(folder):
    lines = (folder / "log.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]


def alone(name, settings, folder, epochs=2):
    recipe = recipes.get(name)
    recipe.train(recipe.settings({**settings, "epochs": epochs}), RunFolder(folder), progress=QUIET)
    return rows(folder)


def on(ranks, name, settings, folder, epochs):
    ended = launch(PROGRAM, ranks, name, str(folder), json.dumps(settings), str(epochs))
    assert ended.code == 0, ended.err[-3000:]


def compare(got, expected):
    assert [row.keys() for row in got] == [row.keys() for row in expected]
    for own, wanted in zip(got, expected, strict=True):
        for key, value in wanted.items():
            assert own[key] == pytest.approx(value, rel=1e-4), key


@needs_mpi
@pytest.mark.second
def test_vgg_cifar_on_ranks_and_on_others(tmp_path):
    expected = alone("vgg_cifar", VGG, tmp_path / "alone")
    on(2, "vgg_cifar", VGG, tmp_path / "ranks", 1)
    on(3, "vgg_cifar", VGG, tmp_path / "ranks", 2)
    compare(rows(tmp_path / "ranks"), expected)
    result = json.loads((tmp_path / "ranks" / "result.json").read_text())
    known = json.loads((tmp_path / "alone" / "result.json").read_text())
    assert result["test"]["loss"] == pytest.approx(known["test"]["loss"], rel=1e-4)


@needs_mpi
@pytest.mark.second
def test_splice_mlp_on_ranks_and_alone_again(tmp_path, monkeypatch):
    monkeypatch.setattr(splice_mlp, "splice", few_sequences)
    expected = alone("splice_mlp", SPLICE, tmp_path / "alone")
    compare(alone("splice_mlp", {**SPLICE, "parallel": "data"}, tmp_path / "plain"), expected)
    folder = tmp_path / "ranks"
    on(4, "splice_mlp", SPLICE, folder, 1)
    text = (folder / "initial.nn").read_text()
    assert text == (tmp_path / "alone" / "initial.nn").read_text()
    on(1, "splice_mlp", SPLICE, folder, 2)
    compare(rows(folder), expected)
    last, known = (read_network(path / "network.nn") for path in (folder, tmp_path / "alone"))
    for got, wanted in zip(last.parameters(), known.parameters(), strict=True):
        np.testing.assert_allclose(got.value, wanted.value, rtol=1e-3, atol=1e-5)


NETWORK = """
import numpy as np, tinygraph as tg
from tinygraph.recipes.splice_mlp_network import SigmoidMLP
tg.manual_seed(0)
network = SigmoidMLP([4, 6, 3], split=True)
whole = network.again(split=False)
assert [p.shape for p in whole.parameters()] == [(6, 4), (6,), (3, 6), (3,)]
back = whole.again(split=True)
x = np.random.default_rng(0).random((5, 4)).astype(np.float32)
np.testing.assert_allclose(network(x).value, whole(x).value, rtol=1e-5)
np.testing.assert_array_equal(network(x).value, back(x).value)
wider = network.alter([4, 7, 3])
kept = wider.again(False).layers[0].weight.value[:6]
np.testing.assert_array_equal(kept, whole.layers[0].weight.value)
assert [network.owner_of(2, node) for node in range(3)] == [0, 1, 1]
assert "parameters: 51 " in network.summary((4,))
if tg.distributed.rank() == 0:
    print("fine")
"""


@needs_mpi
@pytest.mark.second
def test_a_split_network_is_whole_again():
    ended = launch(NETWORK, 2)
    assert ended.code == 0, ended.err[-3000:]
    assert ended.out.split() == ["fine"]


def test_wide_layers_are_there_where_they_are_shared():
    recipe = recipes.get("vgg_cifar")
    assert recipe.settings({}).hidden == () and not recipe.spans_ranks(recipe.settings({}))
    shared = recipe.settings({"parallel": "switch", "scheme": "c"})
    assert shared.hidden == (1024, 1024) and recipe.spans_ranks(shared)
    network = recipe.model(recipe.settings(VGG), {"image_shape": [1, 8, 8]})
    assert network(tg.zeros((2, 1, 8, 8))).shape == (2, 10)
    split = [m for m in network.modules() if isinstance(m, tg.distributed.Linear)]
    assert [(m.in_features, m.out_features, m.scheme) for m in split] == [
        (64, 12, "b"),
        (12, 10, "b"),
    ]
    assert any(isinstance(m, tg.nn.SyncBatchNorm) for m in network.modules())
    plain = recipe.model(recipe.settings({**VGG, "parallel": "data"}), {"image_shape": [1, 8, 8]})
    assert list(plain.state_dict()) == list(network.state_dict())


def test_settings_that_do_not_fit(tmp_path):
    recipe = recipes.get("vgg_cifar")
    with pytest.raises(ArgumentError, match="hidden: expected none for softmax"):
        recipe.model(recipe.settings({**VGG, "network": "linear"}), {"image_shape": [1, 8, 8]})
    with pytest.raises(ArgumentError, match="shards: expected none with parallel=switch"):
        recipe.deal(recipe.settings({**VGG, "shards": 2}), RunFolder(tmp_path / "run"))
    for bad in ({"parallel": "model"}, {"scheme": "same"}, {"hidden": (0,)}):
        with pytest.raises(ArgumentError):
            recipe.settings(bad)
    with pytest.raises(ArgumentError, match="layer: expected an int from 1 to 2"):
        SigmoidMLP([4, 6, 3]).owner_of(0, 1)
    with pytest.raises(ArgumentError, match="index"):
        SigmoidMLP([4, 6, 3], split=True).owner_of(2, 3)
