"""The table of layers, and that taking it leaves no trace."""

from __future__ import annotations

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3, stride=2, bias=False)
    )


def test_text():
    """Sizes by hand: 28 - 2 = 26, 26 / 2 = 13, (13 - 3) / 2 + 1 = 6; 8 * 9 + 8 and 4 * 8 * 9."""
    assert cnn().summary((1, 28, 28)).splitlines() == [
        "Sequential: (N, 1, 28, 28) float32 -> (N, 4, 6, 6) float32",
        "name  layer      output shape    parameters",
        "----  ---------  --------------  ----------",
        "0     Conv2d     (N, 8, 26, 26)          80",
        "1     ReLU       (N, 8, 26, 26)           0",
        "2     MaxPool2d  (N, 8, 13, 13)           0",
        "3     Conv2d     (N, 4, 6, 6)           288",
        "parameters: 368 (1.4 KiB), 368 of them trainable",
        "buffers: 0 (0 B)",
        # 2 * 8 * 26**2 + 8 * 13**2 + 4 * 6**2 = 12312 float32 numbers
        "layer outputs: 48.1 KiB for each sample",
    ]


def test_numbers_agree_with_the_arrays():
    net = nn.Sequential(nn.Linear(784, 1000), nn.Linear(1000, 10, dtype="float32"))
    net[0].bias.requires_grad = False
    text = net.summary((784,))
    assert "       785,000\n" in text
    assert "parameters: 795,010 (3.0 MiB), 794,010 of them trainable" in text


class Residual(nn.Module):
    def __init__(self):
        self.inner = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.scale = nn.Parameter([1.0, 1.0])
        self.mean = nn.Buffer([0.0])
        self.spare = nn.Linear(5, 5)
        self.modes = []

    def forward(self, x):
        self.modes.append((self.training, self.inner[0].training))
        return self.inner(self.inner(x))


def test_nested_shared_and_unused_layers():
    lines = Residual().summary((2,)).splitlines()
    assert lines[3:9] == [
        "-        Residual  (N, 2)                 2",
        "inner.0  Linear    (N, 2)                 6",
        "inner.1  ReLU      (N, 2)                 0",
        "inner.0  Linear    (N, 2)        0 (shared)",
        "inner.1  ReLU      (N, 2)                 0",
        "spare    Linear    not called            30",
    ]
    assert lines[9:11] == ["parameters: 38 (152 B), 38 of them trainable", "buffers: 1 (4 B)"]


def test_nothing_is_left_behind():
    net = Residual()
    net.inner[1].eval()
    before = {name: dict(vars(m)) for name, m in net.named_modules()}
    values = net.state_dict()
    stream = tg.random.default_generator.stream
    net.summary((2,))
    after = {name: dict(vars(m)) for name, m in net.named_modules()}
    assert before == after
    assert net.modes == [(False, False)], "evaluated in evaluation mode"
    assert [m.training for m in (net, net.inner, net.inner[0], net.inner[1])] == [
        True,
        True,
        True,
        False,
    ]
    assert all(p.grad is None for p in net.parameters())
    assert tg.random.default_generator.stream == stream
    for name, array in net.state_dict().items():
        np.testing.assert_array_equal(array, values[name])


def test_a_failure_names_the_layer_and_leaves_nothing_behind():
    net = nn.Sequential({"body": cnn(), "head": nn.Linear(7, 2)})
    before = {name: dict(vars(m)) for name, m in net.named_modules()}
    with pytest.raises(ShapeError) as caught:
        net.summary((1, 28, 28))
    message = str(caught.value)
    assert message.startswith(
        "summary: layer 'head', Linear(in_features=7, out_features=2, bias=True), given "
        "(N, 4, 6, 6): linear: x: expected 7 features"
    )
    assert message.count("summary:") == 1
    assert before == {name: dict(vars(m)) for name, m in net.named_modules()}

    with pytest.raises(ShapeError, match=r"layer 'body\.0', Conv2d\(1, .*given \(N, 3, 28, 28\)"):
        net.summary((3, 28, 28))
    with pytest.raises(DtypeError, match=r"layer 'body\.0'"):
        net.summary((1, 28, 28), dtype="float64")
    with pytest.raises(ShapeError, match=r"layer 'body\.2', MaxPool2d"):
        net.summary((1, 3, 3))


def test_an_error_of_ones_own_is_named_too():
    class Broken(nn.Module):
        def forward(self, x):
            raise KeyError("here")

    with pytest.raises(ArgumentError, match=r"layer '1', Broken\(\), given \(N, 2\): KeyError"):
        nn.Sequential(nn.ReLU(), Broken()).summary((2,))


@pytest.mark.parametrize("shape", [5, "ab", (1.5, 2), (-1, 3), None])
def test_bad_input_shapes(shape):
    with pytest.raises(ArgumentError, match="input_shape"):
        cnn().summary(shape)


def test_other_dtypes_and_several_outputs():
    class Both(nn.Module):
        def forward(self, x):
            return x, {"y": tg.ones((3, 4))}

    assert Both().summary((2,), dtype="int64").splitlines()[0] == (
        "Both: (N, 2) int64 -> (N, 2), (3, 4) int64, float32"
    )
