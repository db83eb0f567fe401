"""Layers: that each calls its op with its settings, how it shows itself, what it refuses."""

from __future__ import annotations

import importlib
import math
from pathlib import Path

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
    layer = nn.Conv2d(
        4, 6, (2, 3), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2, dtype="float64"
    )
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


SETTINGS = [  # layer, the function of one number
    (nn.LeakyReLU(), lambda x: x if x > 0 else 0.01 * x),
    (nn.LeakyReLU(0.5), lambda x: x if x > 0 else 0.5 * x),
    (nn.ELU(), lambda x: x if x > 0 else math.exp(x) - 1),
    (nn.ELU(3.0), lambda x: x if x > 0 else 3 * (math.exp(x) - 1)),
    (nn.GELU(), lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2),
    (
        nn.GELU("tanh"),
        lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    (nn.Softplus(), lambda x: math.log(1 + math.exp(x))),
    (nn.Softplus(2.0), lambda x: math.log(1 + math.exp(2 * x)) / 2),
    (nn.Softplus(1.0, threshold=0.0), lambda x: x if x > 0 else math.log(1 + math.exp(x))),
]


@pytest.mark.parametrize(("layer", "function"), SETTINGS, ids=[repr(s[0])[:40] for s in SETTINGS])
def test_activations_pass_their_settings_on(layer, function):
    x = numbers(3, 4)
    expected = [[function(v) for v in row] for row in x]
    np.testing.assert_allclose(layer(tg.Tensor(x)).value, expected, rtol=1e-6)


def test_identity():
    x = tg.ones((2, 3))
    assert nn.Identity()(x) is x


def test_avg_pool2d():
    x = tg.Tensor(np.arange(36.0).reshape(1, 1, 6, 6))
    assert nn.AvgPool2d(3)(x).value.tolist() == [[[[7, 10], [25, 28]]]]
    assert nn.AvgPool2d(2, stride=4)(x).value.tolist() == [[[[3.5, 7.5], [27.5, 31.5]]]]
    padded = nn.AvgPool2d(2, padding=1)(x)
    assert padded.shape == (1, 1, 4, 4)
    assert padded.value[0, 0, 3, 3] == 35 / 4
    alone = nn.AvgPool2d(2, padding=1, count_include_pad=False)(x)
    assert alone.value[0, 0, 3, 3] == 35
    assert nn.AvgPool2d(4, ceil_mode=True)(x).shape == (1, 1, 2, 2)
    with pytest.raises(ShapeError, match="AvgPool2d: x: .* leaves out 2 rows and 2 columns"):
        nn.AvgPool2d(4, strict=True)(x)


def test_global_avg_pool2d():
    x = numbers(2, 3, 4, 5)
    y = nn.GlobalAvgPool2d()(tg.Tensor(x)).value
    assert y.shape == (2, 3, 1, 1)
    assert y[1, 2, 0, 0] == pytest.approx(sum(x[1, 2].ravel()) / 20, rel=1e-12)


def test_dropout():
    tg.manual_seed(1)
    layer, x = nn.Dropout(0.25), tg.ones(10_000)
    y = layer(x).value
    kept = y != 0
    assert set(y[kept].tolist()) == {np.float32(1 / 0.75)}
    assert abs(kept.mean() - 0.75) < 4 * math.sqrt(0.25 * 0.75 / 10_000)
    assert (layer(x).value != y).any(), "each call chooses anew"
    assert layer.eval()(x) is x


def test_embedding():
    tg.manual_seed(2)
    layer = nn.Embedding(50, 200)
    table = layer.weight.value
    assert abs(table.mean()) < 4 / 100 and abs(table.std() - 1) < 4 / math.sqrt(20_000)
    y = layer(np.array([[3, 3], [49, 0]]))
    assert y.shape == (2, 2, 200)
    assert (y.value[0, 1] == table[3]).all() and (y.value[1, 0] == table[49]).all()
    y.sum().backward()
    assert layer.weight.grad[:, 0].tolist() == [1, 0, 0, 2, *[0] * 45, 1]
    assert nn.Embedding(2, 3, dtype="float64")([1]).dtype == np.float64
    with pytest.raises(ArgumentError, match="50"):
        layer([50])


def test_layer_norm():
    x = numbers(4, 2, 3)
    layer = nn.LayerNorm((2, 3), eps=0.1, dtype="float64")
    layer.weight.value[...] = numbers(2, 3) + 5
    layer.bias.value[...] = 0.5
    for sample, y in zip(x, layer(tg.Tensor(x)).value, strict=True):
        normal = (sample - sample.mean()) / np.sqrt(sample.var() + 0.1)
        np.testing.assert_allclose(y, normal * (numbers(2, 3) + 5) + 0.5, rtol=1e-10)
    plain = nn.LayerNorm(3, elementwise_affine=False)
    assert plain.state_dict() == {}
    assert list(nn.LayerNorm(3, bias=False).state_dict()) == ["weight"]
    with pytest.raises(ShapeError):
        layer(tg.ones((4, 3, 2), dtype="float64"))


@pytest.mark.parametrize("axis", [-1, 0])
def test_softmax(axis):
    x = numbers(2, 3)
    p = np.exp(x) / np.exp(x).sum(axis, keepdims=True)
    np.testing.assert_allclose(nn.Softmax(axis)(tg.Tensor(x)).value, p, rtol=1e-12)
    np.testing.assert_allclose(nn.LogSoftmax(axis)(tg.Tensor(x)).value, np.log(p), rtol=1e-12)


def test_flatten():
    assert nn.Flatten()(tg.ones((5, 2, 3, 4))).shape == (5, 24)
    assert nn.Flatten(0, 1)(tg.ones((5, 2, 3))).shape == (10, 3)


def test_unflatten():
    x = tg.Tensor(np.arange(48.0).reshape(4, 12))
    y = nn.Unflatten(1, (3, 2, 2))(x)
    assert y.shape == (4, 3, 2, 2) and y.value[1, 2, 0, 1] == 12 + 8 + 1
    assert nn.Unflatten(-1, (3, -1))(x).shape == (4, 3, 4)
    assert nn.Unflatten(0, (2, 2))(x).shape == (2, 2, 12)
    assert nn.Unflatten(1, (2, 1))(tg.ones((3, 2, 5))).shape == (3, 2, 1, 5)
    np.testing.assert_array_equal(nn.Flatten()(y).value, x.value)
    (again,) = tg.Graph(y).forward({x: np.ones((7, 12))})
    assert again.shape == (7, 3, 2, 2), "another batch size"
    for sizes in ((5, 2), (5, -1), (0, -1)):
        with pytest.raises(ShapeError, match="Unflatten: x: .* got 12"):
            nn.Unflatten(1, sizes)(x)
    with pytest.raises(ShapeError, match="an axis 2, got 2 axes"):
        nn.Unflatten(2, (1, 1))(x)


BINARY = np.array([[1.0, 0.0, 1.0]])
PAIRS = [  # loss, the loss of x and y
    (nn.L1Loss, "mean", lambda x, y: abs(x - y)),
    (nn.HuberLoss, "mean", lambda x, y: (x - y) ** 2 / 2 if abs(x - y) < 1 else abs(x - y) - 0.5),
    (nn.HalfSquaredError, "sum", lambda x, y: (x - y) ** 2 / 2),
    (
        nn.BCEWithLogitsLoss,
        "mean",
        lambda x, y: math.log(1 + math.exp(-x)) if y else math.log(1 + math.exp(x)),
    ),
    (nn.BCELoss, "mean", lambda x, y: -math.log(x if y else 1 - x)),
]


@pytest.mark.parametrize(("loss", "usual", "function"), PAIRS)
def test_losses_of_pairs(loss, usual, function):
    x = np.array([[0.25, 0.625, 0.875]]) * (1 if loss is nn.BCELoss else 4)
    each = [function(a, b) for a, b in zip(x[0], BINARY[0], strict=True)]
    expected = {"mean": sum(each) / 3, "sum": sum(each), "none": [each]}
    node = tg.Tensor(x)
    assert loss()(node, BINARY).item() == pytest.approx(expected[usual], rel=1e-12)
    for reduction, value in expected.items():
        np.testing.assert_allclose(loss(reduction)(node, BINARY).value, value, rtol=1e-12)
    with pytest.raises(ArgumentError, match=f"{loss.__name__}: reduction"):
        loss("avg")


def test_huber_delta():
    assert nn.HuberLoss(delta=2.0)([3.0], [0.0]).item() == 2 * (3 - 1)


def test_nll_loss():
    x, t = numbers(3, 4), np.array([0, 3, 1])
    each = -x[np.arange(3), t]
    assert nn.NLLLoss()(tg.Tensor(x), t).item() == pytest.approx(each.mean(), rel=1e-12)
    total = nn.NLLLoss("sum", ignore_index=3)(tg.Tensor(x), t).item()
    assert total == pytest.approx(each[0] + each[2], rel=1e-12)


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
        (
            nn.Conv2d(4, 8, (3, 5), 2, "same", 2, 4, False, strict=True),
            "Conv2d(4, 8, kernel_size=(3, 5), stride=(2, 2), padding='same', dilation=(2, 2), "
            "groups=4, strict=True, bias=False)",
        ),
        (
            nn.MaxPool2d(2),
            "MaxPool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0), ceil_mode=False)",
        ),
        (nn.ReLU(), "ReLU()"),
        (nn.Sigmoid(), "Sigmoid()"),
        (nn.Tanh(), "Tanh()"),
        (nn.Softmax(1), "Softmax(axis=1)"),
        (nn.LogSoftmax(), "LogSoftmax(axis=-1)"),
        (nn.Flatten(), "Flatten(start_dim=1, end_dim=-1)"),
        (nn.CrossEntropyLoss(), "CrossEntropyLoss(reduction='mean')"),
        (nn.CrossEntropyLoss("sum", -1), "CrossEntropyLoss(reduction='sum', ignore_index=-1)"),
        (nn.MSELoss("sum"), "MSELoss(reduction='sum')"),
        (nn.NLLLoss("sum", -1), "NLLLoss(reduction='sum', ignore_index=-1)"),
        (nn.BCELoss(), "BCELoss(reduction='mean')"),
        (nn.HalfSquaredError(), "HalfSquaredError(reduction='sum')"),
        (nn.HuberLoss(delta=0.5), "HuberLoss(reduction='mean', delta=0.5)"),
        (nn.Identity(), "Identity()"),
        (nn.LeakyReLU(), "LeakyReLU(negative_slope=0.01)"),
        (nn.ELU(2), "ELU(alpha=2.0)"),
        (nn.GELU(), "GELU(approximate='none')"),
        (nn.Softplus(), "Softplus(beta=1.0, threshold=20.0)"),
        (nn.Unflatten(1, (2, 3)), "Unflatten(dim=1, unflattened_size=(2, 3))"),
        (
            nn.AvgPool2d(3, 2, 1, count_include_pad=False, strict=True),
            "AvgPool2d(kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), ceil_mode=False, "
            "strict=True, count_include_pad=False)",
        ),
        (nn.GlobalAvgPool2d(), "GlobalAvgPool2d()"),
        (nn.Dropout(), "Dropout(p=0.5)"),
        (nn.Embedding(10, 3), "Embedding(10, 3)"),
        (
            nn.BatchNorm2d(8),
            "BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)",
        ),
        (
            nn.BatchNorm1d(8, 1e-3, 0.5, False, False),
            "BatchNorm1d(8, eps=0.001, momentum=0.5, affine=False, track_running_stats=False)",
        ),
        (nn.LayerNorm(8), "LayerNorm((8,), eps=1e-05, elementwise_affine=True)"),
        (
            nn.LayerNorm([2, 3], bias=False),
            "LayerNorm((2, 3), eps=1e-05, elementwise_affine=True, bias=False)",
        ),
    ],
)
def test_repr(layer, text):
    assert repr(layer) == text


def test_everything_is_exported():
    """Every layer that a file of the room defines."""
    bases = {"BatchNorm", "LabelLoss", "Loss", "Numbered", "Pool2d"}
    layers = {c for c in vars(nn).values() if isinstance(c, type) and issubclass(c, nn.Module)}
    for file in Path(nn.__file__).parent.glob("*.py"):
        module = importlib.import_module(f"tinygraph.nn.{file.stem}")
        for name, c in vars(module).items():
            if isinstance(c, type) and issubclass(c, nn.Module) and name not in bases:
                assert c in layers, name
    assert nn.Parameter is tg.Parameter


# ---- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nn.Linear(0, 2), "in_features: expected an int of at least 1, got 0"),
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
        (lambda: nn.HuberLoss(delta=0.0), "HuberLoss: delta"),
        (lambda: nn.LeakyReLU("steep"), "LeakyReLU: negative_slope"),
        (lambda: nn.ELU(float("nan")), "ELU: alpha"),
        (lambda: nn.GELU("tan"), "GELU: approximate: .* did you mean 'tanh'"),
        (lambda: nn.Softplus(0.0), "Softplus: beta"),
        (lambda: nn.Softplus(1.0, -1.0), "Softplus: threshold"),
        (lambda: nn.AvgPool2d(0), "AvgPool2d: kernel_size"),
        (lambda: nn.Dropout(1.5), "Dropout: p: expected a number from 0 to 1, got 1.5"),
        (lambda: nn.Dropout("half"), "Dropout: p"),
        (lambda: nn.Embedding(0, 3), "num_embeddings"),
        (lambda: nn.Embedding(3, 2.5), "embedding_dim"),
        (lambda: nn.LayerNorm(()), "normalized_shape"),
        (lambda: nn.LayerNorm((2, 0)), "normalized_shape: expected an int of at least 1, got 0"),
        (lambda: nn.LayerNorm(2, eps=-1), "LayerNorm: eps"),
        (lambda: nn.Unflatten(1, (2.5,)), "Unflatten: shape"),
        (lambda: nn.Unflatten("a", (2,)), "Unflatten: dim"),
        (lambda: nn.BatchNorm1d(0), "BatchNorm1d: num_features"),
        (lambda: nn.BatchNorm2d(2, eps=-1.0), "BatchNorm2d: eps"),
        (
            lambda: nn.BatchNorm2d(2, momentum=1.5),
            "BatchNorm2d: momentum: expected a number from 0 to 1",
        ),
        (lambda: nn.BatchNorm2d(2, momentum=None), "BatchNorm2d: momentum"),
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
