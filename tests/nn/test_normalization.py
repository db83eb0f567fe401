"""Batch normalization as a layer: modes, running statistics, their buffers, the warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ShapeError


def batch(*shape):
    return np.random.default_rng(5).standard_normal(shape) * 3 + 2


LAYERS = [(nn.BatchNorm1d, (20, 3)), (nn.BatchNorm1d, (20, 3, 4)), (nn.BatchNorm2d, (20, 3, 4, 5))]


@pytest.mark.parametrize(("layer", "shape"), LAYERS)
def test_the_layer_is_its_op_in_training_and_in_evaluation(layer, shape):
    """tests/ops proves what the op gives, and how it moves the statistics."""
    layer, x = layer(3, momentum=0.25, eps=0.1, dtype="float64"), batch(*shape)
    affine, statistics = (
        np.array([[1.0, 2, 3], [0, 10, 20]]),
        [
            tg.zeros(3, dtype="float64"),
            tg.ones(3, dtype="float64"),
        ],
    )
    layer.weight.value[...], layer.bias.value[...] = affine
    for count in (1, 2):
        expected = tg.batch_norm(x, *affine, *statistics, training=True, momentum=0.25, eps=0.1)
        np.testing.assert_array_equal(layer(tg.Tensor(x)).value, expected.value)
        assert layer.num_batches_tracked.item() == count
    layer.eval()
    expected = tg.batch_norm(x, *affine, *statistics, eps=0.1)
    np.testing.assert_array_equal(layer(tg.Tensor(x)).value, expected.value)
    assert layer(tg.Tensor(x[:1])).shape == (1, *shape[1:]), "one sample is enough"
    np.testing.assert_array_equal(layer.running_mean.value, statistics[0].value)
    np.testing.assert_array_equal(layer.running_var.value, statistics[1].value)
    assert layer.num_batches_tracked.item() == 2
    layer.reset_parameters()
    state = layer.state_dict()
    assert [state[name].tolist() for name in state] == [[1] * 3, [0] * 3, [0] * 3, [1] * 3, 0]


def test_names_dtypes_and_what_trains():
    layer = nn.BatchNorm2d(4)
    specs = {name: (a.dtype.name, a.shape) for name, a in layer.state_dict().items()}
    assert specs == {
        "weight": ("float32", (4,)),
        "bias": ("float32", (4,)),
        "running_mean": ("float32", (4,)),
        "running_var": ("float32", (4,)),
        "num_batches_tracked": ("int64", ()),
    }
    assert [n for n, _ in layer.named_parameters()] == ["weight", "bias"]
    assert layer.weight.value.tolist() == [1] * 4 and layer.running_var.value.tolist() == [1] * 4
    assert list(nn.BatchNorm2d(4, affine=False).parameters()) == []
    without = nn.BatchNorm2d(4, bias=False)
    assert [n for n, _ in without.named_parameters()] == ["weight"] and without.bias is None
    x = batch(20, 4, 2, 2)
    expected = tg.batch_norm(x, 2 * np.ones(4), training=True)
    without.to(dtype="float64").weight.value[...] = 2
    np.testing.assert_array_equal(without(tg.Tensor(x)).value, expected.value)


def test_without_running_statistics_evaluation_uses_the_batch():
    layer, x = nn.BatchNorm1d(3, track_running_stats=False, dtype="float64"), batch(20, 3)
    trained = layer(tg.Tensor(x)).value
    np.testing.assert_array_equal(trained, tg.batch_norm(x, training=True).value)
    np.testing.assert_array_equal(layer.eval()(tg.Tensor(x)).value, trained)
    assert list(layer.state_dict()) == ["weight", "bias"]


def test_a_summary_moves_no_statistics():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout())
    text = net.summary((1, 8, 8))
    assert "buffers: 5 (24 B)" in text  # two float32 for each statistic, and one int64
    assert net[1].num_batches_tracked.item() == 0


def test_a_small_batch_in_training_warns_once():
    net = nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm1d(2))
    words = r"batch norm is training on fewer than 16 numbers \(N \* H \* W\) for each feature"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")  # once for a place in the program and a text
        for _ in range(2):
            net(tg.randn(15, 2))
    assert len(caught) == 1, "for all layers together"
    with pytest.warns(UserWarning, match=words):
        nn.BatchNorm2d(2)(tg.randn(1, 2, 3, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net(tg.randn(15, 2))
        nn.BatchNorm1d(2)(tg.randn(16, 2))
        nn.BatchNorm2d(2)(tg.randn(1, 2, 4, 4))
        nn.BatchNorm1d(2).eval()(tg.randn(1, 2))


@pytest.mark.parametrize(
    ("layer", "shape", "words"),
    [
        (nn.BatchNorm1d(3), (20, 3, 4, 4), r"BatchNorm1d: x: expected \(N, C\) or \(N, C, L\)"),
        (nn.BatchNorm2d(3), (20, 3), r"BatchNorm2d: x: expected \(N, C, H, W\), got shape"),
        (nn.BatchNorm2d(3), (20, 4, 2, 2), "channel"),
        (nn.BatchNorm1d(3), (1, 3), "at least 2 numbers"),
        (nn.BatchNorm1d(3), (3,), "BatchNorm1d: x"),
    ],
)
def test_bad_inputs_leave_the_layer_as_it_was(layer, shape, words):
    before = layer.state_dict()
    with pytest.raises(ShapeError, match=words):
        layer(tg.ones(shape))
    for name, array in layer.state_dict().items():
        np.testing.assert_array_equal(array, before[name])
