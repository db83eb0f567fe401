"""Layers: that each calls its op with its settings, how it shows itself, what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.errors import ArgumentError, DtypeError, ShapeError


def numbers(*shape, dtype="float64"):
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


# ---- forward, against numpy -----------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_linear(dtype):
    layer = nn.Linear(3, 2, dtype=dtype)
    x = numbers(5, 3, dtype=dtype)
    y = layer(tg.Tensor(x))
    assert y.dtype == dtype
    np.testing.assert_allclose(
        y.value, x @ layer.weight.value.T + layer.bias.value, rtol=1e-5, atol=1e-6
    )
    assert nn.Linear(3, 2, bias=False).bias is None


def test_conv2d():
    """One output pixel by hand, in the second group, with all settings."""
    layer = nn.Conv2d(4, 6, (2, 3), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2,
                      dtype="float64")  # fmt: skip
    x = numbers(2, 4, 7, 9)
    y = layer(tg.Tensor(x)).value
    assert y.shape == (2, 6, (7 + 2 - 2) // 2 + 1, 9 - 5 + 1)
    assert layer.weight.shape == (6, 2, 2, 3)
    n, o, u, v = 1, 4, 1, 3
    expected = layer.bias.value[o]
    for c in range(2):
        for i in range(2):
            for j in range(3):
                expected += layer.weight.value[o, c, i, j] * x[n, 2 + c, u * 2 + i - 1, v + j * 2]
    assert y[n, o, u, v] == pytest.approx(expected, rel=1e-12)
    assert nn.Conv2d(1, 1, 3, padding="same")(tg.ones((1, 1, 5, 5))).shape == (1, 1, 5, 5)
    assert nn.Conv2d(1, 1, 3, bias=False).bias is None


def test_max_pool2d():
    x = np.arange(49.0).reshape(1, 1, 7, 7)
    pooled = nn.MaxPool2d(2)(tg.Tensor(x)).value
    assert pooled.tolist() == [[[[8, 10, 12], [22, 24, 26], [36, 38, 40]]]]
    assert nn.MaxPool2d(2, ceil_mode=True)(tg.Tensor(x)).shape == (1, 1, 4, 4)
    assert nn.MaxPool2d(3, stride=2, padding=1)(tg.Tensor(x)).shape == (1, 1, 4, 4)


ELEMENTWISE = {
    "ReLU": lambda x: x if x > 0 else 0.0,
    "Sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "Tanh": math.tanh,
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_activations(name):
    x = numbers(2, 3)
    expected = [[ELEMENTWISE[name](v) for v in row] for row in x]
    np.testing.assert_allclose(getattr(nn, name)()(tg.Tensor(x)).value, expected, rtol=1e-12)


@pytest.mark.parametrize("axis", [-1, 0])
def test_softmax(axis):
    x = numbers(2, 3)
    p = np.exp(x) / np.exp(x).sum(axis, keepdims=True)
    np.testing.assert_allclose(nn.Softmax(axis)(tg.Tensor(x)).value, p, rtol=1e-12)
    np.testing.assert_allclose(nn.LogSoftmax(axis)(tg.Tensor(x)).value, np.log(p), rtol=1e-12)


def test_flatten():
    assert nn.Flatten()(tg.ones((5, 2, 3, 4))).shape == (5, 24)
    assert nn.Flatten(0, 1)(tg.ones((5, 2, 3))).shape == (10, 3)


def test_losses():
    x, t = numbers(3, 4), np.array([0, 3, 1])
    each = np.log(np.exp(x).sum(1)) - x[np.arange(3), t]
    assert nn.CrossEntropyLoss()(tg.Tensor(x), t).item() == pytest.approx(each.mean(), rel=1e-12)
    total = nn.CrossEntropyLoss("sum", ignore_index=3)(tg.Tensor(x), t).item()
    assert total == pytest.approx(each[0] + each[2], rel=1e-12)
    y = numbers(3, 4) + 0.5
    assert nn.MSELoss()(tg.Tensor(x), y).item() == pytest.approx(0.25, rel=1e-12)
    assert nn.MSELoss("sum")(tg.Tensor(x), y).item() == pytest.approx(3.0, rel=1e-12)


def test_gradients_reach_the_parameters():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2))
    loss = nn.MSELoss()(net(tg.ones((2, 1, 6, 6))), np.ones((2, 2, 2, 2), np.float32) * 9)
    loss.backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in net.parameters())


# ---- text -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.Linear(2, 3), "Linear(in_features=2, out_features=3, bias=True)"),
        (nn.Linear(2, 3, bias=False), "Linear(in_features=2, out_features=3, bias=False)"),
        (nn.Conv2d(1, 8, 3), "Conv2d(1, 8, kernel_size=(3, 3), stride=(1, 1))"),
        (nn.Conv2d(4, 8, (3, 5), 2, "same", 2, 4, False, strict=True),
         "Conv2d(4, 8, kernel_size=(3, 5), stride=(2, 2), padding='same', dilation=(2, 2), "
         "groups=4, strict=True, bias=False)"),
        (nn.MaxPool2d(2),
         "MaxPool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0), ceil_mode=False)"),
        (nn.ReLU(), "ReLU()"),
        (nn.Sigmoid(), "Sigmoid()"),
        (nn.Tanh(), "Tanh()"),
        (nn.Softmax(1), "Softmax(axis=1)"),
        (nn.LogSoftmax(), "LogSoftmax(axis=-1)"),
        (nn.Flatten(), "Flatten(start_dim=1, end_dim=-1)"),
        (nn.CrossEntropyLoss(), "CrossEntropyLoss(reduction='mean')"),
        (nn.CrossEntropyLoss("sum", -1), "CrossEntropyLoss(reduction='sum', ignore_index=-1)"),
        (nn.MSELoss("sum"), "MSELoss(reduction='sum')"),
    ],
)  # fmt: skip
def test_repr(layer, text):
    assert repr(layer) == text


def test_everything_is_exported():
    assert all(hasattr(nn, name) for name in nn.__all__)
    assert nn.Parameter is tg.Parameter


# ---- strict ---------------------------------------------------------------------------------


def reads_last_pixel(size, kernel, stride, padding, dilation=1):
    """Whether any window of a floor-division layout reads pixel size - 1, by trying them all."""
    span = dilation * (kernel - 1) + 1
    starts = range(-padding, size + padding - span + 1, stride)
    return any(s + span - 1 >= size - 1 for s in starts)


@pytest.mark.parametrize("kernel", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("dilation", [1, 2])
def test_strict_refuses_exactly_the_sizes_that_leave_pixels_out(kernel, stride, padding, dilation):
    layer = nn.Conv2d(1, 1, kernel, stride, padding, dilation, strict=True)
    span = dilation * (kernel - 1) + 1
    fits = {s for s in range(1, 20)
            if s + 2 * padding >= span and reads_last_pixel(s, kernel, stride, padding, dilation)}
    for size in range(max(1, span - 2 * padding), 15):
        x = tg.ones((1, 1, size, size))
        if size in fits:
            layer(x)
            continue
        near = [str(s) for s in (max((f for f in fits if f < size), default=None),
                                 min(f for f in fits if f > size)) if s is not None]  # fmt: skip
        with pytest.raises(ShapeError) as caught:
            layer(x)
        assert f"height {' or '.join(near)}, width {' or '.join(near)}" in str(caught.value)


def test_strict_messages():
    pool = nn.MaxPool2d(2, strict=True)
    words = r"MaxPool2d: x: .*height 26 or 28, got 27x28, which leaves out 1 row\. Way out: pad or"
    with pytest.raises(ShapeError, match=words):
        pool(tg.ones((1, 1, 27, 28)))
    with pytest.raises(ShapeError, match=r"width 9 or 14, got 9x12, which leaves out 3 columns"):
        nn.Conv2d(1, 1, 4, stride=5, strict=True)(tg.ones((1, 1, 9, 12)))
    assert pool(tg.ones((1, 1, 28, 28))).shape == (1, 1, 14, 14)
    assert nn.MaxPool2d(2, ceil_mode=True, strict=True)(tg.ones((1, 1, 27, 27))).shape[2] == 14
    assert nn.Conv2d(1, 1, 3, 2, "same", strict=True)(tg.ones((1, 1, 5, 5))).shape[2] == 3
    assert nn.MaxPool2d(2)(tg.ones((1, 1, 27, 27))).shape[2] == 13, "not strict by default"


def test_strict_leaves_other_faults_to_the_op():
    with pytest.raises(ShapeError, match="4 axes"):
        nn.MaxPool2d(2, strict=True)(tg.ones((3,)))
    with pytest.raises(ShapeError, match="at least 5 pixels"):
        nn.Conv2d(1, 1, 5, strict=True)(tg.ones((1, 1, 4, 4)))


# ---- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nn.Linear(0, 2), "in_features: expected at least 1, got 0"),
        (lambda: nn.Linear(2, 2.5), "out_features: expected an int"),
        (lambda: nn.Conv2d(1, -1, 3), "out_channels"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "groups: expected a divisor"),
        (lambda: nn.Conv2d(1, 1, 3, groups=0), "groups"),
        (lambda: nn.Conv2d(1, 1, (3, 3, 3)), "kernel_size"),
        (lambda: nn.Conv2d(1, 1, 3, stride=0), "stride"),
        (lambda: nn.Conv2d(1, 1, 3, padding="valid"), "padding"),
        (lambda: nn.MaxPool2d(0), "kernel_size"),
        (lambda: nn.MaxPool2d(2, stride=-1), "stride"),
        (lambda: nn.CrossEntropyLoss("average"), "CrossEntropyLoss: reduction"),
        (lambda: nn.MSELoss("meen"), "did you mean 'mean'"),
    ],
)
def test_bad_arguments(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


def test_bad_inputs():
    with pytest.raises(ShapeError, match="3 features"):
        nn.Linear(3, 2)(tg.ones((5, 4)))
    with pytest.raises(DtypeError):
        nn.Linear(3, 2)(tg.ones((5, 3), dtype="float64"))
    with pytest.raises(DtypeError):
        nn.Linear(3, 2, dtype="int64")
