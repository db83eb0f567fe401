"""Batch norm in eval mode as part of the layer before it: values, tiles, and where it is not."""

import numpy as np
import pytest

import tinygraph as tg
from tests.plan.test_rewrites import names
from tinygraph import nn

RNG = np.random.default_rng(0)


def settled(*layers):
    """A model in eval mode whose statistics and scales are those of no fresh layer."""
    model = nn.Sequential(*layers)
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if tensor.dtype.kind == "f":
            value = RNG.standard_normal(tensor.shape)
            tensor.value[...] = np.abs(value) + 0.1 if name.endswith("running_var") else value
    return model.eval()


def images(n=6):
    return RNG.standard_normal((n, 4, 9, 9)).astype(np.float32)


CHAINS = {
    "conv2d_batch_norm": [nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6)],
    "conv2d_batch_norm_relu": [
        nn.Conv2d(4, 6, 3, padding=1, groups=2, bias=False),
        nn.BatchNorm2d(6),
        nn.ReLU(),
    ],
    "conv2d_relu_max_pool2d_batch_norm": [
        nn.Conv2d(4, 6, 3),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
    ],
    "linear_batch_norm_tanh": [
        nn.Flatten(),
        nn.Linear(324, 5),
        nn.BatchNorm1d(5, affine=False),
        nn.Tanh(),
    ],
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("tile", [None, 4])
def test_values_are_those_of_the_layers(name, tile):
    model, x = settled(*CHAINS[name]), images()
    with tg.no_grad():
        forward = tg.compile(model, tile=tile)
        for _ in range(3):
            np.testing.assert_allclose(forward(x).value, model(x).value, rtol=2e-5, atol=2e-5)
    ops = [line.split()[1] for line in forward.explain().splitlines() if line.startswith("%")]
    assert ops[-1] == name
    assert ("tiles of 4" in forward.explain()) == bool(tile)


def test_parameters_and_statistics_may_change_between_runs():
    model, x = settled(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6)), images()
    with tg.no_grad():
        forward = tg.compile(model)
        first = forward(x).value
        for tensor in model.parameters():
            tensor.value[...] *= 1.5
        model[1].running_mean.value[...] += 1
        model[1].running_var.value[...] *= 3
        assert not np.allclose(forward(x).value, first, atol=0.1)
        np.testing.assert_allclose(forward(x).value, model(x).value, rtol=2e-5, atol=2e-5)
        assert len(forward._found) == 1  # one plan all the while


def test_a_norm_that_is_trained_or_differentiated_is_not_folded():
    model, x = settled(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6)), images(16)
    y = tg.compile(model)(x)  # the caller may differentiate it
    tg.sum(y * y).backward()
    planned = [p.grad.copy() for p in model.parameters()]
    model.zero_grad()
    want = model(x)
    tg.sum(want * want).backward()
    for got, p in zip(planned, model.parameters(), strict=True):
        np.testing.assert_allclose(got, p.grad, rtol=1e-3, atol=1e-3)
    model.train()
    assert names(model(x)) == ["conv2d", "batch_norm"]


def test_what_is_left_alone():
    model, x = settled(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6)), images()
    c = model[0](x)
    assert names(model[1](c)) == ["conv2d_batch_norm"]
    assert names(model[1](c), c) == ["conv2d", "batch_norm"]  # the product is asked for
    assert names(model[1](tg.relu(c))) == ["conv2d_relu", "batch_norm"]
    sequences = tg.linear(RNG.standard_normal((2, 6, 3)), np.ones((4, 3)))
    ones = np.ones(6)  # channels are axis 1, not the last one
    y = tg.batch_norm(sequences, None, None, ones, ones)
    assert names(y) == ["linear", "batch_norm"]
