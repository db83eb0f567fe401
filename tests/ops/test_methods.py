"""Tensor's operators: with tensors, arrays and numbers on both sides, against numpy's."""

import operator

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.errors import GraphError
from tinygraph.tensor import above

BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.pow,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
]
A = np.array([[1.0, 2.0, 0.5]])
B = np.array([[2.0], [1.0], [3.0]])


@pytest.mark.parametrize("sign", BINARY, ids=lambda f: f.__name__)
@pytest.mark.parametrize("left", [A, 2, 1.5, np.float64(2.5)], ids=str)
def test_operators_on_both_sides(sign, left):
    for y, expected in (
        (sign(left, tg.Tensor(B)), sign(left, B)),
        (sign(tg.Tensor(B), left), sign(B, left)),
        (sign(tg.Tensor(A), tg.Tensor(B)), sign(A, B)),
    ):
        assert type(y) is tg.Tensor and y.dtype == expected.dtype
        np.testing.assert_array_equal(y.value, expected)


def test_matrix_product_on_both_sides():
    t = tg.Tensor(np.arange(6.0).reshape(2, 3))
    for y, expected in ((t @ B, t.value @ B), (A @ t.T, A @ t.value.T)):
        assert type(y) is tg.Tensor
        np.testing.assert_array_equal(y.value, expected)


def test_unary():
    t = tg.Tensor([-1.0, 4.0])
    assert (-t).value.tolist() == [1, -4] and abs(t).value.tolist() == [1, 4]
    positive = tg.Tensor([1.0, 4.0])
    np.testing.assert_allclose(positive.exp().value, [np.e, np.e**4], rtol=1e-6)
    np.testing.assert_allclose(positive.log().value, [0, np.log(4)], rtol=1e-6)
    assert positive.sqrt().value.tolist() == [1, 2]
    assert positive.astype("int8").dtype == np.int8


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ipow", "imatmul"])
def test_in_place_is_refused(name):
    with pytest.raises(GraphError, match="write a = a \\+ b instead of a \\+= b"):
        getattr(operator, name)(tg.Tensor([1.0]), 2.0)


def test_a_node_stays_a_key():
    a, b = tg.Tensor([1.0]), tg.Tensor([1.0])
    assert len({a, b}) == 2 and {a: 1}[a] == 1


def test_every_method_is_filled():
    names = {
        "abs",
        "add",
        "astype",
        "backward",
        "clip",
        "cumsum",
        "div",
        "equal",
        "exp",
        "expand",
        "flatten",
        "getitem",
        "greater",
        "greater_equal",
        "less",
        "less_equal",
        "log",
        "matmul",
        "max",
        "mean",
        "min",
        "mul",
        "neg",
        "not_equal",
        "pow",
        "reshape",
        "split",
        "sqrt",
        "squeeze",
        "sub",
        "sum",
        "to",
        "transpose",
        "unsqueeze",
        "var",
    }
    assert names <= set(vars(above))
