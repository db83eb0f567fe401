"""Graphs folded by module: what is one box, what stands alone, and that no cycle comes about."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import tinygraph as tg
from tests.show.graphs import random_graph
from tests.show.test_graph import SVG, draw, edges_of, nodes_of, texts
from tinygraph import nn


class Block(nn.Module):
    """The residual block of He et al., 2016."""

    def __init__(self, channels: int) -> None:
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        out = tg.relu(self.bn1(self.conv1(x)))
        return tg.relu(self.bn2(self.conv2(out)) + x)


class Residual(nn.Module):
    """Of the shape of a ResNet-18: four layers of two blocks."""

    def __init__(self) -> None:
        self.conv1 = nn.Conv2d(1, 2, 3)
        for k in range(1, 5):
            setattr(self, f"layer{k}", nn.Sequential(Block(2), Block(2)))
        self.fc = nn.Linear(2, 3)

    def forward(self, x):
        x = tg.relu(self.conv1(x))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(tg.flatten(tg.global_avg_pool2d(x), 1))


@pytest.fixture
def residual_loss():
    network = Residual().eval()
    output = network(tg.zeros((1, 1, 6, 6), name="x"))
    return tg.softmax_cross_entropy(output, tg.Tensor([0], dtype=np.int64, name="target"))


def titles(svg) -> list[str]:
    """What the boxes say, without their numbers, from the first to the last."""
    return [texts(g)[0].split("  ", 1)[1] for _, g in sorted(nodes_of(svg).items())]


def test_each_layer_of_a_residual_network_is_one_box(residual_loss, tmp_path):
    svg = draw(residual_loss, tmp_path, fold=1)
    layers = [f"layer{k}: 14 ops" for k in range(1, 5)]
    pooled = [texts(g)[0].split("  ")[1] for _, g in sorted(nodes_of(svg).items())][7:]
    assert titles(svg)[:7] == ["x", "conv1: conv2d", "relu", *layers]
    assert pooled[-3:] == ["fc: linear", "target", "softmax_cross_entropy"]
    numbers = sorted(nodes_of(svg))
    chain = [n for n in numbers if texts(nodes_of(svg)[n])[0] != f"{n}  target"]
    assert set(edges_of(svg)) >= set(pairwise(chain))


def test_what_follows_the_last_layer_with_another_shape_is_not_hidden_in_it(
    residual_loss, tmp_path
):
    shown = titles(draw(residual_loss, tmp_path, fold=1))
    after = shown[shown.index("layer4: 14 ops") + 1 : shown.index("fc: linear")]
    assert after and all(":" not in title for title in after)


def test_a_deeper_fold_shows_the_blocks_and_the_skip_ends_in_its_own(residual_loss, tmp_path):
    shown = titles(draw(residual_loss, tmp_path, fold=2))
    blocks = [f"layer{k}.{j}: 7 ops" for k in range(1, 5) for j in range(2)]
    assert [title for title in shown if title.startswith("layer")] == blocks


def test_a_large_graph_is_folded_by_itself_no_more_than_needed(residual_loss, tmp_path):
    whole = nodes_of(draw(residual_loss, tmp_path, fold=0))
    assert len(whole) == len(tg.Graph(residual_loss).nodes) > 40
    by_itself = titles(draw(residual_loss, tmp_path))
    assert by_itself == titles(draw(residual_loss, tmp_path, fold=2))
    assert len(by_itself) <= 40


def test_each_call_of_a_module_is_a_box(tmp_path):
    cell = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    network = nn.ModuleDict({"cell": cell})
    x, h = tg.zeros((1, 1), name="x"), tg.zeros((1, 2), name="h")
    for _ in range(3):
        h = network["cell"](tg.concatenate([x, h], 1))
    svg = draw(h, tmp_path, fold=1)
    assert titles(svg) == ["x", "h", *["concatenate", "cell: 3 ops"] * 3]
    assert sum(edges_of(svg).values()) == 2 + 1 + 2 * 3  # no edge for the weights that they share


def test_attention_with_its_constant_is_inside_of_its_module(tmp_path):
    class Attention(nn.Module):
        def __init__(self):
            self.qk, self.proj = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            q = self.qk(x)
            return self.proj(tg.softmax(q @ q.mT / 2.0, axis=-1) @ q)

    class Layer(nn.Module):
        def __init__(self):
            self.norm, self.attention = nn.LayerNorm(4), Attention()

        def forward(self, x):
            return x + self.attention(self.norm(x))

    y = nn.ModuleDict({"layer": Layer()})["layer"](tg.zeros((1, 3, 4), name="x"))
    assert titles(draw(y, tmp_path, fold=1)) == ["x", "layer: 9 ops"]
    inner = titles(draw(y, tmp_path, fold=2))
    assert inner == ["x", "layer.norm: layer_norm", "layer.attention: 7 ops", "add"]


def test_a_bias_that_gets_axes_belongs_to_its_layer(tmp_path):
    """A transposed convolution is composed: its bias is reshaped, then added."""
    net = nn.Sequential(nn.ConvTranspose2d(1, 2, 2, stride=2), nn.Conv2d(2, 1, 3))
    svg = draw(net(tg.zeros((1, 1, 4, 4), name="x")), tmp_path, fold=1)
    assert titles(svg) == ["x", "0: 3 ops", "1: conv2d"]
    assert "float32 (1, 2, 8, 8)" in texts(nodes_of(svg)[sorted(nodes_of(svg))[1]])


def test_two_modules_that_use_one_another_come_apart(tmp_path):
    """a uses b and b uses a: as one box each, they would be a cycle."""
    a1, b1, b2, a2 = (tg.Parameter([1.0], name=f"{name}.weight") for name in "abba")
    x = tg.Tensor([1.0], name="x")
    svg = draw((x * a1) * b1 + (x * b2) * a2, tmp_path, fold=1)
    assert len([title for title in titles(svg) if title[0] in "ab" and title[1] == ":"]) == 3


@pytest.mark.parametrize("seed", range(8))
def test_random_paths_fold_without_a_cycle(seed, tmp_path):
    """An edge ends at a box further down, whatever the names are."""
    output = random_graph(seed)
    generator = np.random.default_rng(seed)
    for node in tg.Graph(output).nodes:
        if isinstance(node, tg.Parameter):
            node.name = ".".join(generator.choice(list("ab"), 3))
    for depth in (1, 2):
        svg = draw(output, tmp_path, fold=depth)
        tops = {n: float(g.find(f"{SVG}rect").get("y")) for n, g in nodes_of(svg).items()}
        assert edges_of(svg)
        assert all(tops[source] < tops[target] for source, target in edges_of(svg))


def test_values_and_gradients_are_shown(tmp_path):
    w = tg.Parameter([0.5, -2.0], name="w")
    many = tg.Tensor(np.arange(10.0), name="many")
    loss = (w * 3.0).sum() + many.sum()
    loss.backward()
    shown = {
        texts(g)[0].split("  ")[1]: texts(g)[2:]
        for g in nodes_of(draw(loss, tmp_path, values=True)).values()
    }
    assert shown["w"] == ["value 0.5 -2", "grad 3 3"]
    assert shown["many"] == ["value min 0  mean 4.5  max 9"]
    assert shown["add"] == ["value 40.5"]
    svg = draw(loss, tmp_path, values=True)
    for g in nodes_of(svg).values():
        rect = g.find(f"{SVG}rect")
        lowest = max(float(t.get("y")) for t in g.iter(f"{SVG}text"))
        assert lowest < float(rect.get("y")) + float(rect.get("height"))


@pytest.mark.parametrize("fold", [-1, 1.5, True, "layer1"])
def test_a_bad_fold_is_refused(fold, tmp_path):
    with pytest.raises(tg.errors.ArgumentError, match="show.graph: fold: expected an int"):
        tg.show.graph(tg.relu(tg.ones(2)), tmp_path / "g.svg", fold=fold)
