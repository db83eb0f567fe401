"""nn.functional: the ops, and the functions whose arguments go otherwise there."""

import math

import numpy as np
import pytest

import tinygraph as tg
import tinygraph.nn.functional as F
from tinygraph import nn, ops
from tinygraph.base.errors import ArgumentError, ShapeError
from tinygraph.ops.common.spelling import INPLACE

RNG = np.random.default_rng(0)
LOGITS = RNG.standard_normal((4, 3))
LABELS = np.array([0, 2, -100, 1])


def test_every_op_is_here():
    own = {"batch_norm", "pad"}
    assert nn.functional is F
    assert {name for name in ops.EXPORTS if getattr(F, name) is not getattr(ops, name)} == own


def log_likelihoods():
    for row, label in zip(LOGITS, LABELS, strict=True):
        if label != -100:
            yield row[label] - math.log(sum(math.exp(v) for v in row))


@pytest.mark.parametrize(("reduction", "scale"), [("mean", 3), ("sum", 1)])
def test_cross_entropy_passes_over_minus_100(reduction, scale):
    expected = -sum(log_likelihoods()) / scale
    loss = F.cross_entropy(LOGITS, LABELS, reduction=reduction)
    assert loss.item() == pytest.approx(expected)
    log_probabilities = F.log_softmax(LOGITS, dim=1)
    assert F.nll_loss(log_probabilities, LABELS, reduction=reduction).item() == loss.item()
    with pytest.raises(ArgumentError, match="softmax_cross_entropy"):
        F.cross_entropy(LOGITS, LABELS, ignore_index=0)


def test_batch_norm_takes_statistics_first():
    mean, var, w, b = np.array([[1.0, 2, 3], [4.0, 1, 9], [2.0, 1, 1], [0.0, 0, 5]])
    y = F.batch_norm(LOGITS, mean, var, w, b, eps=0.25)
    expected = (LOGITS - mean) / np.sqrt(var + 0.25) * w + b
    np.testing.assert_allclose(y.value, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("widths", "pairs"),
    [
        ((1, 2), ((0, 0), (1, 2))),
        ((1, 2, 3, 0), ((3, 0), (1, 2))),
        ((), ((0, 0), (0, 0))),
    ],
)
def test_pad_counts_from_the_last_axis(widths, pairs):
    expected = np.pad(LOGITS, pairs, constant_values=7)
    np.testing.assert_array_equal(F.pad(LOGITS, widths, value=7).value, expected)


@pytest.mark.parametrize(
    ("widths", "expected"),
    [
        ((-1, 0), LOGITS[:, 1:]),
        ((1, -2), np.pad(LOGITS[:, :1], ((0, 0), (1, 0)))),
        ((0, 0, -3, -1), LOGITS[:0]),
    ],
)
def test_negative_widths_cut(widths, expected):
    x = tg.Tensor(LOGITS, requires_grad=True)
    y = F.pad(x, widths)
    np.testing.assert_array_equal(y.value, expected)
    y.sum().backward()
    assert x.grad.sum() == np.isin(LOGITS, expected).sum()


def test_more_is_not_cut_than_there_is():
    with pytest.raises(ShapeError, match="at most 3 elements cut off axis 1, got \\(-2, -2\\)"):
        F.pad(LOGITS, (-2, -2))
    with pytest.raises(ArgumentError, match="pad_width: expected 0 or more"):
        F.pad(LOGITS, (-1, 0), "reflect")


@pytest.mark.parametrize(
    ("widths", "mode", "words"),
    [
        ((1,), "constant", "2, 4, ... 4 ints"),
        ((1,) * 6, "constant", "got"),
        ((1, 1), "wrap", "mode"),
    ],
)
def test_pad_refuses(widths, mode, words):
    with pytest.raises(ArgumentError, match=words):
        F.pad(LOGITS, widths, mode)


@pytest.mark.parametrize("name", sorted(INPLACE & set(ops.EXPORTS)))
def test_inplace_changes_nothing(name):
    x = tg.Tensor(LOGITS)
    tg.manual_seed(0)
    expected = getattr(F, name)(x).value
    tg.manual_seed(0)
    np.testing.assert_array_equal(getattr(F, name)(x, inplace=True).value, expected)
    np.testing.assert_array_equal(x.value, LOGITS)


def test_inplace_is_no_argument_of_others():
    with pytest.raises(TypeError, match="unexpected keyword argument 'inplace'"):
        F.softmax(LOGITS, inplace=True)


@pytest.mark.parametrize(
    "layer",
    [
        nn.ReLU(inplace=True),
        nn.LeakyReLU(0.1, True),
        nn.ELU(1.0, True),
        nn.CELU(0.5, True),
        nn.Hardtanh(-0.5, 1.0, True),
        *[layer(True) for layer in (nn.ReLU6, nn.SELU, nn.SiLU, nn.Mish)],
        *[layer(True) for layer in (nn.Hardsigmoid, nn.Hardswish)],
        nn.Dropout(0.0, True),
    ],
    ids=repr,
)
def test_layers_take_inplace(layer):
    x = tg.Tensor(LOGITS)
    y = layer(x)
    np.testing.assert_array_equal(x.value, LOGITS)
    np.testing.assert_array_equal(y.value, type(layer)(*vars(layer).values())(x).value)


def test_softmax_takes_dim():
    assert nn.Softmax(dim=1).axis == nn.LogSoftmax(dim=1).axis == nn.Softmax(1).axis == 1


# ---- a row for nothing ----------------------------------------------------------------------

TABLE = np.arange(6.0).reshape(3, 2)
INDICES = np.array([[0, 2, 1], [2, 2, 0]])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("padding", [2, -1])
def test_a_row_for_padding_is_looked_up_and_gets_no_gradient(padding, compiled):
    weight = tg.Parameter(TABLE)

    def loss(indices):
        y = F.embedding(indices, weight, padding_idx=padding)
        result = (y * y).sum()
        result.backward()
        return result

    value = (tg.compile(loss) if compiled else loss)(INDICES).item()
    assert value == sum(float(v) ** 2 for i in INDICES.ravel() for v in TABLE[i])
    expected = 2 * TABLE * [[2], [1], [0]]  # how often each row stands among the indices, but 2
    np.testing.assert_allclose(weight.grad, expected)


def test_the_layer_begins_with_zeros_there():
    layer = nn.Embedding(4, 3, padding_idx=-1)
    assert layer.padding_idx == 3 and not layer.weight.value[3].any()
    assert layer.weight.value[:3].all() and repr(layer) == "Embedding(4, 3, padding_idx=3)"
    layer([3, 1]).sum().backward()
    assert layer.weight.grad.tolist() == [[0] * 3, [1] * 3, [0] * 3, [0] * 3]


@pytest.mark.parametrize("padding", [3, -4, 1.5])
def test_a_padding_index_that_is_not_there(padding):
    with pytest.raises(ArgumentError, match="padding_idx: expected an int from -3 to 2"):
        F.embedding(INDICES, TABLE, padding)
    with pytest.raises(ArgumentError, match="Embedding: padding_idx: expected an int from -3"):
        nn.Embedding(3, 2, padding)
