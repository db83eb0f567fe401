"""Arguments under PyTorch's and numpy's names, and functions under both."""

import inspect

import numpy as np
import pytest

import tinygraph as tg
from tests.ops.test_methods import called
from tinygraph.base.errors import ArgumentError
from tinygraph.ops.common.spelling import WORDS_OF, spelled, words_of

X = np.arange(6.0).reshape(2, 3)
INDEX = np.array([[0, 2], [1, 1]])
SPELLINGS = [  # a function, its arguments under other names, and without names
    ("sum", {"input": X, "dim": 1, "keepdim": True}, (X, 1, True)),
    ("softmax", {"input": X, "dim": 0}, (X, 0)),
    ("mul", {"input": X, "other": 2.0}, (X, 2.0)),
    ("pow", {"input": X, "exponent": 2}, (X, 2)),
    ("where", {"condition": X > 2, "input": X, "other": 0.0}, (X > 2, X, 0.0)),
    ("mm", {"input": X, "mat2": X.T}, (X, X.T)),
    ("cat", {"tensors": [X, X], "dim": 1}, ([X, X], 1)),
    ("cosine_similarity", {"x1": X, "x2": X + 1, "dim": 1}, (X, X + 1, 1)),
    ("embedding", {"input": [1], "weight": X}, ([1], X)),
    ("linear", {"input": X, "weight": X, "bias": X[0, :2]}, (X, X, X[0, :2])),
    ("mse_loss", {"input": X, "target": X + 1}, (X, X + 1)),
    ("softmax_cross_entropy", {"input": X, "target": [0, 1]}, (X, [0, 1])),
]


@pytest.mark.parametrize(("name", "by_name", "in_order"), SPELLINGS)
def test_other_words_for_arguments(name, by_name, in_order):
    function = getattr(tg, name)
    y, expected = function(**by_name), function(*in_order)
    assert y.op == expected.op
    np.testing.assert_array_equal(y.value, expected.value)


@pytest.mark.parametrize("given", [{"dim": 1}, {"axis": 1}, (1,)])
def test_methods_know_them_too(given):
    assert called(tg.Tensor(X).sum, given=given).value.tolist() == [3, 12]


@pytest.mark.parametrize(
    ("args", "options", "word", "other"),
    [
        ((X, 0), {"dim": 0}, "dim", "axis"),
        ((X,), {"dim": 0, "axis": 0}, "axis", "dim"),
        ((X,), {"axis": 0, "dim": 0}, "dim", "axis"),
        ((X,), {"input": X}, "input", "x"),
    ],
)
def test_one_argument_under_two_names(args, options, word, other):
    expected = f"sum: {word}: expected this or {other}, which is the same, got both"
    with pytest.raises(ArgumentError, match=expected):
        tg.sum(*args, **options)


def test_a_word_that_means_nothing():
    with pytest.raises(TypeError, match=r"sum\(\) got an unexpected keyword argument 'dims'"):
        tg.sum(X, dims=0)


def test_our_names_are_the_ones_that_are_shown():
    assert list(inspect.signature(tg.sum).parameters) == ["x", "axis", "keepdims", "dtype"]
    assert inspect.signature(tg.Tensor.sum) == inspect.signature(tg.sum)


def test_a_parameter_of_its_own_is_no_other_word():
    def rotate(x, dim, input):
        return x, dim, input

    assert words_of(rotate) == {"axis": "dim"}
    assert spelled(rotate)(1, axis=2, input=3) == (1, 2, 3)


@pytest.mark.parametrize("name", WORDS_OF)
def test_words_of_one_function_stand_for_its_parameters(name):
    assert set(WORDS_OF[name].values()) <= inspect.signature(getattr(tg, name)).parameters.keys()


@pytest.mark.parametrize(
    ("alias", "name"),
    [("cat", "concatenate"), ("clamp", "clip"), ("true_divide", "div"), ("gt", "greater")],
)
def test_an_alias_is_the_function_itself(alias, name):
    assert getattr(tg, alias) is getattr(tg, name) and alias in tg.__all__
