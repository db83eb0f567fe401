"""Layers: that each calls its op with its settings."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, ShapeError


def numbers(*shape, dtype="float64"):
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


# ---- each layer is its op with its settings; what an op gives is proved in tests/ops -----------

IMAGES = np.random.default_rng(7).standard_normal((2, 4, 7, 9))
ROWS, TABLE = IMAGES[0, 0], IMAGES[:, :, 0, :3]  # (7, 9), (2, 4, 3)
LABELS = np.array([0, 3, 1, 5, 8, 2, 3])
SHARES = 1 / (1 + np.exp(-ROWS))  # from 0 to 1
RECTANGLE = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2}
BORDERS, EVEN = ((0, 0), (0, 0), (1, 1), (2, 2)), ((0, 0), (0, 0), (0, 1), (3, 3))

LAYERS = [  # a layer, its input, and the op of the input and the layer's parameters
    (nn.Linear(9, 2), ROWS, tg.linear),
    (nn.Linear(9, 2, bias=False), ROWS, tg.linear),
    (nn.Conv2d(4, 6, 3), IMAGES, tg.conv2d),
    (nn.Conv2d(4, 6, (2, 3), **RECTANGLE), IMAGES, lambda *a: tg.conv2d(*a, **RECTANGLE)),
    (nn.Conv2d(4, 6, 3, padding="same"), IMAGES, lambda *a: tg.conv2d(*a, padding="same")),
    (nn.Conv1d(4, 6, 2, padding="same"), TABLE, lambda *a: tg.conv1d(*a, padding="same")),
    (
        nn.Conv2d(4, 6, 3, 1, (1, 2), 1, 2, False, "reflect"),
        IMAGES,
        lambda x, w: tg.conv2d(np.pad(x, BORDERS, "reflect"), w, groups=2),
    ),
    (
        nn.Conv2d(4, 6, 3, 1, (1, 2), padding_mode="replicate"),
        IMAGES,
        lambda x, *a: tg.conv2d(np.pad(x, BORDERS, "edge"), *a),
    ),
    (
        nn.Conv2d(4, 6, (2, 4), padding="same", dilation=(1, 2), padding_mode="circular"),
        IMAGES,
        lambda x, *a: tg.conv2d(np.pad(x, EVEN, "wrap"), *a, dilation=(1, 2)),
    ),
    (
        nn.Conv1d(4, 6, 3, 2, 1, padding_mode="circular"),
        TABLE,
        lambda x, *a: tg.conv1d(np.pad(x, BORDERS[:2] + BORDERS[2:3], "wrap"), *a, 2),
    ),
    (
        nn.Conv1d(4, 6, (3,), stride=2, padding=1, groups=2),
        TABLE,
        lambda *a: tg.conv1d(*a, stride=2, padding=1, groups=2),
    ),
    (nn.ConvTranspose2d(4, 2, 2, stride=2), IMAGES, lambda *a: tg.conv_transpose2d(*a, stride=2)),
    (
        nn.ConvTranspose2d(4, 6, 3, 2, (0, 1), 1, 2, False, (2, 1)),
        IMAGES,
        lambda x, w: tg.conv_transpose2d(x, w, None, 2, (0, 1), 1, 2, (2, 1)),
    ),
    (nn.ConvTranspose1d(4, 2, 3, 3, 1, 2), TABLE, lambda *a: tg.conv_transpose1d(*a, 3, 1, 2)),
    (nn.Upsample(scale_factor=2), TABLE, lambda x: tg.interpolate(x, scale_factor=2)),
    (
        nn.Upsample((9, 4), None, "bilinear", True),
        IMAGES,
        lambda x: tg.interpolate(x, (9, 4), mode="bilinear", align_corners=True),
    ),
    (
        nn.Upsample(None, 1.5, "bilinear", False, True),
        IMAGES,
        lambda x: tg.interpolate(x, None, 1.5, "bilinear", False, True),
    ),
    (nn.UpsamplingNearest2d(8), IMAGES, lambda x: tg.interpolate(x, 8)),
    (
        nn.UpsamplingBilinear2d(None, 1.5),
        IMAGES,
        lambda x: tg.interpolate(x, None, 1.5, "bilinear", True),
    ),
    (nn.MaxPool2d(2, 1, 1, (2, 3)), IMAGES, lambda x: tg.max_pool2d(x, 2, 1, 1, (2, 3))),
    (
        nn.MaxPool1d(2, 1, 0, 2, False, True),
        IMAGES[0],
        lambda x: tg.max_pool1d(x, 2, 1, 0, 2, True),
    ),
    (nn.AvgPool1d(3), IMAGES[0], lambda x: tg.avg_pool1d(x, 3)),
    (
        nn.AvgPool1d(2, 4, 1, True, False),
        IMAGES[0],
        lambda x: tg.avg_pool1d(x, 2, 4, 1, True, False),
    ),
    (nn.ZeroPad2d(1), IMAGES, lambda x: tg.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))),
    (nn.ConstantPad2d((1, 2, 3, 4), 5.0), ROWS, lambda x: tg.pad(x, ((3, 4), (1, 2)), 5.0)),
    (nn.ReflectionPad2d((1, 2, 3, 4)), ROWS, lambda x: tg.pad(x, ((3, 4), (1, 2)), mode="reflect")),
    (nn.ReplicationPad2d(2), ROWS, lambda x: tg.pad(x, 2, mode="replicate")),
    (nn.CircularPad2d(2), ROWS, lambda x: tg.pad(x, 2, mode="circular")),
    (nn.MaxPool2d(2), IMAGES, lambda x: tg.max_pool2d(x, 2)),
    (nn.MaxPool2d(3, 2, 1), IMAGES, lambda x: tg.max_pool2d(x, 3, 2, 1)),
    (nn.MaxPool2d(2, ceil_mode=True), IMAGES, lambda x: tg.max_pool2d(x, 2, ceil_mode=True)),
    (nn.AvgPool2d(3), IMAGES, lambda x: tg.avg_pool2d(x, 3)),
    (nn.AvgPool2d(2, 4, 1), IMAGES, lambda x: tg.avg_pool2d(x, 2, 4, 1)),
    (nn.AvgPool2d(2, divisor_override=3), IMAGES, lambda x: tg.avg_pool2d(x, 2) * (4 / 3)),
    (nn.AvgPool2d(4, ceil_mode=True), IMAGES, lambda x: tg.avg_pool2d(x, 4, ceil_mode=True)),
    (
        nn.AvgPool2d(2, padding=1, count_include_pad=False),
        IMAGES,
        lambda x: tg.avg_pool2d(x, 2, padding=1, count_include_pad=False),
    ),
    (nn.GlobalAvgPool2d(), IMAGES, tg.global_avg_pool2d),
    (nn.AdaptiveAvgPool2d((2, None)), IMAGES, lambda x: tg.adaptive_avg_pool2d(x, (2, None))),
    (nn.AdaptiveAvgPool1d(3), TABLE, lambda x: tg.adaptive_avg_pool1d(x, 3)),
    (nn.LayerNorm(9), ROWS, lambda x, *a: tg.layer_norm(x, 9, *a)),
    (nn.LayerNorm((4, 3), eps=0.1), TABLE, lambda x, *a: tg.layer_norm(x, (4, 3), *a, eps=0.1)),
    (nn.LayerNorm(3, elementwise_affine=False), TABLE, lambda x: tg.layer_norm(x, 3)),
    (nn.LayerNorm(3, bias=False), TABLE, lambda x, weight: tg.layer_norm(x, 3, weight)),
    (nn.RMSNorm((4, 3)), TABLE, lambda x, *a: tg.rms_norm(x, (4, 3), *a)),
    (nn.RMSNorm(3, 0.1, False), TABLE, lambda x: tg.rms_norm(x, 3, eps=0.1)),
    (nn.GroupNorm(3, 9), ROWS, lambda x, *a: tg.group_norm(x, 3, *a)),
    (nn.GroupNorm(2, 4, 0.1, False), TABLE, lambda x: tg.group_norm(x, 2, eps=0.1)),
    (nn.GroupNorm(2, 4, bias=False), IMAGES, lambda x, w: tg.group_norm(x, 2, w)),
    (nn.InstanceNorm1d(4, affine=True, bias=False), TABLE, lambda x, w: tg.instance_norm(x, w)),
    (nn.InstanceNorm1d(4, affine=True), TABLE, lambda x, *a: tg.instance_norm(x, *a)),
    (
        nn.InstanceNorm1d(4, 0.1, 0.3, True, False),
        TABLE,
        lambda x, *a: tg.instance_norm(x, *a, 0.1),
    ),
    (nn.ReLU(), ROWS, tg.relu),
    (nn.Sigmoid(), ROWS, tg.sigmoid),
    (nn.Tanh(), ROWS, tg.tanh),
    (nn.LeakyReLU(), ROWS, tg.leaky_relu),
    (nn.LeakyReLU(0.5), ROWS, lambda x: tg.leaky_relu(x, 0.5)),
    (nn.ELU(), ROWS, tg.elu),
    (nn.ELU(3.0), ROWS, lambda x: tg.elu(x, 3.0)),
    (nn.GELU(), ROWS, tg.gelu),
    (nn.GELU("tanh"), ROWS, lambda x: tg.gelu(x, "tanh")),
    (nn.Softplus(), ROWS, tg.softplus),
    (nn.Softplus(2.0, threshold=0.5), ROWS, lambda x: tg.softplus(x, 2.0, 0.5)),
    (nn.PReLU(), IMAGES, tg.prelu),
    (nn.PReLU(4), IMAGES, tg.prelu),
    (nn.SELU(), ROWS, tg.selu),
    (nn.CELU(), ROWS, tg.celu),
    (nn.CELU(0.5), ROWS, lambda x: tg.celu(x, 0.5)),
    (nn.SiLU(), ROWS, tg.silu),
    (nn.Mish(), ROWS, tg.mish),
    (nn.Softsign(), ROWS, tg.softsign),
    (nn.LogSigmoid(), ROWS, tg.logsigmoid),
    (nn.ReLU6(), ROWS, tg.relu6),
    (nn.Hardtanh(), ROWS, tg.hardtanh),
    (nn.Hardtanh(-0.5, 2.0), ROWS, lambda x: tg.hardtanh(x, -0.5, 2.0)),
    (nn.Hardsigmoid(), ROWS, tg.hardsigmoid),
    (nn.Hardswish(), ROWS, tg.hardswish),
    (nn.Softmax(0), ROWS, lambda x: tg.softmax(x, 0)),
    (nn.Softmax(), ROWS, lambda x: tg.softmax(x, -1)),
    (nn.GLU(1), IMAGES, lambda x: tg.glu(x, 1)),
    (nn.LogSoftmax(0), ROWS, lambda x: tg.log_softmax(x, 0)),
    (nn.Flatten(), IMAGES, lambda x: tg.flatten(x, 1)),
    (nn.Flatten(0, 1), IMAGES, lambda x: tg.flatten(x, 0, 1)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("layer", "array", "op"), LAYERS, ids=[repr(row[0]) for row in LAYERS])
def test_a_layer_is_its_op(layer, array, op, dtype):
    parameters = {name: numbers(*p.shape) for name, p in layer.named_parameters()}
    layer.to(dtype=dtype)
    for name, p in layer.named_parameters():
        p.value = parameters[name].astype(dtype)
    x = array.astype(dtype)
    y = layer(tg.Tensor(x))
    assert y.dtype == dtype and list(parameters) == ["weight", "bias"][: len(parameters)]
    expected = op(x, *[p.astype(dtype) for p in parameters.values()])
    assert y.value.tobytes() == expected.value.tobytes()


def test_cosine_similarity():
    for layer, settings in (
        (nn.CosineSimilarity(), {}),
        (nn.CosineSimilarity(dim=0, eps=3.0), {"axis": 0, "eps": 3.0}),
    ):
        expected = tg.cosine_similarity(ROWS, ROWS[::-1], **settings)
        assert layer(tg.Tensor(ROWS), ROWS[::-1]).value.tobytes() == expected.value.tobytes()


LOSSES = [  # a layer, the input, the target, the op
    (nn.L1Loss, ROWS, ROWS[::-1], tg.l1_loss, "mean"),
    (nn.MSELoss, ROWS, ROWS[::-1], tg.mse_loss, "mean"),
    (nn.HuberLoss, ROWS, ROWS[::-1], tg.huber_loss, "mean"),
    (nn.HalfSquaredError, ROWS, ROWS[::-1], tg.half_squared_error, "sum"),
    (nn.BCEWithLogitsLoss, ROWS, SHARES, tg.binary_cross_entropy_with_logits, "mean"),
    (nn.BCELoss, SHARES, SHARES[::-1], tg.binary_cross_entropy, "mean"),
    (nn.NLLLoss, ROWS, LABELS, tg.nll_loss, "mean"),
    (nn.CrossEntropyLoss, ROWS, LABELS, tg.cross_entropy, "mean"),
    (nn.SmoothL1Loss, ROWS, ROWS[::-1], tg.smooth_l1_loss, "mean"),
    (nn.KLDivLoss, ROWS, SHARES, tg.kl_div, "mean"),
]


@pytest.mark.parametrize(("loss", "x", "y", "op", "usual"), LOSSES)
def test_a_loss_is_its_op(loss, x, y, op, usual):
    choices = [(loss(reduction=r), r) for r in ("mean", "sum", "none")]
    for layer, reduction in ((loss(), usual), *choices):
        expected = op(x, y, reduction=reduction).value
        assert layer(tg.Tensor(x), y).value.tobytes() == expected.tobytes()
    with pytest.raises(ArgumentError, match=f"{loss.__name__}: reduction"):
        loss(reduction="avg")


def test_settings_of_losses():
    assert nn.HuberLoss(delta=2.0)([3.0], [0.0]).item() == 2 * (3 - 1)
    for loss, op in ((nn.NLLLoss, tg.nll_loss), (nn.CrossEntropyLoss, tg.cross_entropy)):
        expected = op(ROWS, LABELS, reduction="sum", ignore_index=3).item()
        assert loss(reduction="sum", ignore_index=3)(tg.Tensor(ROWS), LABELS).item() == expected
        assert expected != op(ROWS, LABELS, reduction="sum").item()


def test_weights_of_losses_are_buffers():
    weights, yes = np.linspace(0.5, 2.0, 9), np.linspace(3.0, 1.0, 9)
    layer = nn.CrossEntropyLoss(weights, label_smoothing=0.1).double()
    assert list(layer.state_dict()) == ["weight"] and layer.weight.dtype == np.float64
    expected = tg.cross_entropy(ROWS, LABELS, weights, label_smoothing=0.1).item()
    assert layer(tg.Tensor(ROWS), LABELS).item() == expected
    layer = nn.BCEWithLogitsLoss(weights, "sum", yes)
    expected = tg.binary_cross_entropy_with_logits(ROWS, SHARES, weights, "sum", yes)
    assert layer(tg.Tensor(ROWS), SHARES).item() == expected.item()
    assert list(layer.state_dict()) == ["weight", "pos_weight"]


def test_layers_without_an_op_and_what_they_leave_out():
    x = tg.ones((2, 3))
    assert nn.Identity()(x) is x
    assert nn.Linear(3, 2, bias=False).bias is nn.Conv2d(1, 1, 3, bias=False).bias is None
    with pytest.raises(ShapeError, match="AvgPool2d: x: .* leaves out 2 rows and 2 columns"):
        nn.AvgPool2d(4, strict=True)(tg.ones((1, 1, 6, 6)))
    with pytest.raises(ShapeError):
        nn.LayerNorm((2, 3))(tg.ones((4, 3, 2)))


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


def test_gradients_reach_the_parameters():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2))
    loss = nn.MSELoss()(net(tg.ones((2, 1, 6, 6))), np.ones((2, 2, 2, 2), np.float32) * 9)
    loss.backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in net.parameters())


@pytest.mark.parametrize(
    ("layer", "target"),
    [
        (nn.CrossEntropyLoss(), np.array([0, 2])),
        (nn.NLLLoss(), np.array([0, 2])),
        *[(kind(), np.full((2, 3), 0.25)) for kind in (nn.BCELoss, nn.BCEWithLogitsLoss)],
        *[(kind(), np.full((2, 3), 0.25)) for kind in (nn.MSELoss, nn.L1Loss, nn.KLDivLoss)],
        *[(kind(), np.full((2, 3), 0.25)) for kind in (nn.HuberLoss, nn.SmoothL1Loss)],
    ],
    ids=repr,
)
def test_losses_take_pytorchs_names(layer, target):
    x = np.full((2, 3), 0.5)
    assert layer(input=x, target=target).item() == layer(x, target).item()


def test_cosine_similarity_takes_pytorchs_names():
    assert nn.CosineSimilarity(0)(x1=[1.0, 0.0], x2=[2.0, 0.0]).item() == 1


@pytest.mark.parametrize("size", [(9, 12), [10, 12], (2, 4, 10, 13)])
def test_a_transposed_convolution_of_a_size(size):
    layer, x = nn.ConvTranspose2d(3, 4, 3, (2, 3), (1, 0), dilation=(1, 2)), tg.ones((2, 3, 5, 3))
    same = nn.ConvTranspose2d(
        3, 4, 3, (2, 3), (1, 0), (size[-2] - 9, size[-1] - 11), dilation=(1, 2)
    )
    same.load_state_dict(layer.state_dict())
    y = layer(x, output_size=size)
    assert y.shape == (2, 4, *size[-2:])
    np.testing.assert_array_equal(y.value, same(x).value)


@pytest.mark.parametrize("size", [(8, 12), (9, 14), (9,), 9])
def test_a_size_that_is_out_of_reach(size):
    layer = nn.ConvTranspose2d(3, 4, 3, (2, 3), (1, 0), dilation=(1, 2))
    expected = r"ConvTranspose2d: output_size: expected from \(9, 11\) to \(10, 13\), got"
    with pytest.raises(ShapeError, match=expected):
        layer(tg.ones((2, 3, 5, 3)), size)
