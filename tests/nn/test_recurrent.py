"""Recurrent layers and cells against loops; names, layouts, states, devices, refusals."""

import itertools

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, ShapeError

REFERENCE = {"RNN": reference.rnn_layer, "GRU": reference.gru_layer, "LSTM": reference.lstm_layer}
STATES = {"RNN": 1, "GRU": 1, "LSTM": 2}
KINDS = ("RNN", "GRU", "LSTM")
X = np.ones((4, 5, 3), "f4")
CHOICES = [*itertools.product(KINDS, (1, 2), (False, True), (False, True))]


def expected(layer, kind, x, states):
    """Outputs and last states of layers, from x (T, N, I) and states (S, L * D, N, H)."""
    own = layer.state_dict()
    lasts = []
    for level in range(layer.num_layers):
        sides = []
        for way, suffix in enumerate(("", "_reverse")[: 1 + layer.bidirectional]):
            w = [own.get(f"{name}_l{level}{suffix}") for name in (
                "weight_ih", "bias_ih", "weight_hh", "bias_hh")]  # fmt: skip
            steps = x[::-1] if way else x
            gi = steps @ w[0].T + (0 if w[1] is None else w[1])
            y = REFERENCE[kind](gi, states[:, len(lasts)], w[2], w[3])
            lasts.append(y[:, -1])
            sides.append(y[0][::-1] if way else y[0])
        x = np.concatenate(sides, axis=-1)
    return x, np.stack(lasts, axis=1)


def as_given(kind, states):
    return tuple(states) if kind == "LSTM" else states[0]


def rows(kind, last):
    return np.stack([s.numpy() for s in (last if kind == "LSTM" else [last])])


@pytest.mark.parametrize(("kind", "layers", "both", "bias"), CHOICES)
def test_layers_equal_loops(kind, layers, both, bias):
    layer = getattr(nn, kind)(3, 2, layers, bias=bias, bidirectional=both, dtype="float64")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 5, 3))
    states = rng.standard_normal((STATES[kind], layers * (1 + both), 5, 2))
    y, last = layer(x, as_given(kind, states))
    outputs, lasts = expected(layer, kind, x, states)
    np.testing.assert_allclose(y.numpy(), outputs, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(rows(kind, last), lasts, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_state_it_begins_with_zeros(kind):
    layer = getattr(nn, kind)(3, 2)
    x, zeros = tg.randn(4, 5, 3), np.zeros((STATES[kind], 1, 5, 2), "f4")
    np.testing.assert_array_equal(layer(x)[0].value, layer(x, as_given(kind, zeros))[0].value)


@pytest.mark.parametrize("kind", KINDS)
def test_samples_first_and_a_single_sample(kind):
    layer, other = getattr(nn, kind)(3, 2, 2), getattr(nn, kind)(3, 2, 2, batch_first=True)
    other.load_state_dict(layer.state_dict())
    x = np.random.default_rng(0).standard_normal((4, 5, 3)).astype("f4")
    y, last = layer(x)
    y_first, last_first = other(x.swapaxes(0, 1))
    np.testing.assert_array_equal(y_first.value, y.value.swapaxes(0, 1))
    np.testing.assert_array_equal(rows(kind, last_first), rows(kind, last))  # states are not turned
    for each in (layer, other):
        y_one, last_one = each(x[:, 2])
        np.testing.assert_allclose(y_one.value, y.value[:, 2], rtol=1e-6)
        np.testing.assert_allclose(rows(kind, last_one), rows(kind, last)[:, :, 2], rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_cells_step_by_step_are_the_layer(kind):
    layer, cell = getattr(nn, kind)(3, 2), getattr(nn, f"{kind}Cell")(3, 2)
    cell.load_state_dict({name[:-3]: a for name, a in layer.state_dict().items()})
    x, state = tg.randn(4, 5, 3), None
    for t in range(4):
        state = cell(x[t], state)
    np.testing.assert_allclose(rows(kind, state), rows(kind, layer(x)[1])[:, 0], rtol=1e-5)
    one = cell(x[0, 0])
    assert (one[0] if kind == "LSTM" else one).shape == (2,)


def test_relu_cells():
    layer = nn.RNN(1, 1, nonlinearity="relu")
    for name, value in {"weight_ih_l0": 2.0, "weight_hh_l0": 1.0}.items():
        getattr(layer, name).value[...] = value
    layer.bias_ih_l0.value[...] = layer.bias_hh_l0.value[...] = 0.0
    assert layer(np.float32([[[1]], [[-3]], [[2]]]))[0].value.ravel().tolist() == [2, 0, 4]
    assert nn.RNNCell(2, 3, nonlinearity="relu")(tg.ones(4, 2)).value.min() >= 0


def test_dropout_stands_between_layers_in_training():
    layer, x = nn.GRU(3, 64, 2, dropout=0.5), tg.randn(2, 3, 3)
    assert (layer(x)[0].value != layer(x)[0].value).any()
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0].value, layer(x)[0].value)


@pytest.mark.parametrize("kind", KINDS)
def test_devices_and_plans_agree(kind):
    layer, x = getattr(nn, kind)(3, 4, 2, bidirectional=True), np.ones((3, 2, 3), "f4")

    def step(x):
        y, _ = layer(x)
        loss = (y * y).sum()
        loss.backward()
        return loss

    found = []
    for run in (step, tg.compile(step)):
        layer.zero_grad()
        found.append([run(x).item(), *[p.grad.copy() for p in layer.parameters()]])
    layer.to("emulator").zero_grad()
    with tg.cuda.checking():
        loss = step(tg.Tensor(x, device="emulator"))
    found.append([loss.item(), *[p.grad for p in layer.parameters()]])
    for others in found[1:]:
        for a, b in zip(found[0], others, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-6)


def test_names_and_repr():
    layer = nn.LSTM(3, 2, num_layers=2, bidirectional=True)
    assert list(layer.state_dict())[4:9] == [
        "weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse", "bias_hh_l0_reverse",
        "weight_ih_l1",
    ]  # fmt: skip
    assert layer.weight_ih_l1.shape == (8, 4) and layer.weight_hh_l1.shape == (8, 2)
    assert repr(layer) == "LSTM(input_size=3, hidden_size=2, num_layers=2, bidirectional=True)"
    bound = 1 / np.sqrt(2)
    layer.reset_parameters()
    assert all(np.abs(p.value).max() <= bound for p in layer.parameters())


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: nn.LSTM(3, 2)(np.zeros((4, 5, 2), "f4")), ShapeError, r"\(T, N, I\).* I = 3"),
        (lambda: nn.GRU(3, 2, batch_first=True)(np.zeros(3, "f4")), ShapeError, r"\(N, T, I\)"),
        (
            lambda: nn.GRU(3, 2)(X, tg.ones(1, 4, 2)),
            ShapeError,
            r"hx: .*\(1, 5, 2\)",
        ),
        (lambda: nn.LSTM(3, 2)(X, tg.ones(1, 5, 2)), ShapeError, r"a pair \(h, c\)"),
        (lambda: nn.LSTMCell(3, 2)(tg.ones(4, 2)), ShapeError, r"\(N, I\)"),
        (lambda: nn.RNN(3, 2, nonlinearity="elu"), ArgumentError, "nonlinearity"),
        (lambda: nn.RNN(0, 2), ArgumentError, "input_size"),
        (lambda: nn.GRU(3, 2, dropout=2.0), ArgumentError, "dropout"),
        (
            lambda: nn.LSTM(3, 2, proj_size=1),
            ArgumentError,
            r"LSTM: proj_size: expected 0, got 1. Way out: nn.Linear\(hidden_size, proj_size\)",
        ),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()
