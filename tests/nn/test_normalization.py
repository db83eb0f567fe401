"""Batch normalization as a layer: modes, running statistics, their buffers, the warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.errors import ShapeError


def batch(*shape):
    return np.random.default_rng(5).standard_normal(shape) * 3 + 2


def normal(x, mean, var, eps=1e-5):
    along = (1, -1, *(1,) * (x.ndim - 2))
    return (x - mean.reshape(along)) / np.sqrt(var.reshape(along) + eps)


LAYERS = [(nn.BatchNorm1d, (20, 3)), (nn.BatchNorm1d, (20, 3, 4)), (nn.BatchNorm2d, (20, 3, 4, 5))]


@pytest.mark.parametrize(("layer", "shape"), LAYERS)
def test_training_and_evaluation(layer, shape):
    layer, x = layer(3, momentum=0.25, dtype="float64"), batch(*shape)
    layer.weight.value[...] = [1, 2, 3]
    layer.bias.value[...] = [0, 10, 20]
    scale, shift = (
        a.reshape((1, 3, *(1,) * (len(shape) - 2)))
        for a in (np.array([1, 2, 3]), np.array([0, 10, 20]))
    )
    axes, count = (0, *range(2, len(shape))), x.size // 3
    mean, var = x.mean(axes), x.var(axes)
    y = layer(tg.Tensor(x))
    np.testing.assert_allclose(y.value, normal(x, mean, var) * scale + shift, rtol=1e-9, atol=1e-9)
    running_mean, running_var = 0.25 * mean, 0.75 + 0.25 * var * count / (count - 1)
    np.testing.assert_allclose(layer.running_mean.value, running_mean, rtol=1e-12)
    np.testing.assert_allclose(layer.running_var.value, running_var, rtol=1e-12)
    assert layer.num_batches_tracked.item() == 1
    layer.eval()
    expected = normal(x, running_mean, running_var) * scale + shift
    np.testing.assert_allclose(layer(tg.Tensor(x)).value, expected, rtol=1e-9, atol=1e-9)
    assert layer(tg.Tensor(x[:1])).shape == (1, *shape[1:]), "one sample is enough"
    np.testing.assert_allclose(layer.running_mean.value, running_mean, rtol=1e-12)
    assert layer.num_batches_tracked.item() == 1


def test_the_statistics_converge_to_those_of_the_data():
    layer, x = nn.BatchNorm1d(3, dtype="float64"), batch(50, 3)
    for _ in range(200):
        layer(tg.Tensor(x))
    np.testing.assert_allclose(layer.running_mean.value, x.mean(0), rtol=1e-6)
    np.testing.assert_allclose(layer.running_var.value, x.var(0, ddof=1), rtol=1e-6)
    assert layer.num_batches_tracked.item() == 200
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


def test_without_running_statistics_evaluation_uses_the_batch():
    layer, x = nn.BatchNorm1d(3, track_running_stats=False, dtype="float64"), batch(20, 3)
    trained = layer(tg.Tensor(x)).value
    np.testing.assert_allclose(trained, normal(x, x.mean(0), x.var(0)), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(layer.eval()(tg.Tensor(x)).value, trained)
    assert list(layer.state_dict()) == ["weight", "bias"]


def test_gradients_reach_scale_shift_and_input():
    layer, x = nn.BatchNorm1d(3, dtype="float64"), tg.Tensor(batch(20, 3), requires_grad=True)
    upstream = np.random.default_rng(1).standard_normal((20, 3))
    layer(x).backward(upstream)
    np.testing.assert_allclose(layer.bias.grad, upstream.sum(0), rtol=1e-10)
    hat = normal(x.value, x.value.mean(0), x.value.var(0))
    np.testing.assert_allclose(layer.weight.grad, (upstream * hat).sum(0), rtol=1e-8)
    np.testing.assert_allclose(x.grad.sum(0), 0, atol=1e-10)  # a shift of the batch changes nothing


def test_a_summary_moves_no_statistics():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout())
    text = net.summary((1, 8, 8))
    assert "buffers: 5 (24 B)" in text  # two float32 for each statistic, and one int64
    assert net[1].num_batches_tracked.item() == 0


def test_a_small_batch_in_training_warns_once_for_each_layer():
    net = nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm1d(2))
    words = r"BatchNorm1d \(0\.weight\) is training on a batch of 15: below 16"
    with pytest.warns(UserWarning) as caught:
        net(tg.randn(15, 2))
    assert len(caught) == 2, "one for each layer"
    with pytest.warns(UserWarning, match=words):
        nn.Sequential(nn.BatchNorm1d(2))(tg.randn(15, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net(tg.randn(15, 2))
        nn.BatchNorm1d(2)(tg.randn(16, 2))
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
