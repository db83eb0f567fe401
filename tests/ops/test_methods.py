"""Tensor's operators: with tensors, arrays and numbers on both sides, against numpy's."""

import operator

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.engine.tensor import above

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


X = np.arange(12.0).reshape(1, 3, 4)
METHODS = [  # a name, arguments of the method, those of the function
    ("clip", {"max": 5}, {"max": 5}),
    ("cumsum", {"axis": 1}, {"axis": 1}),
    ("sum", (1, True), (1, True)),
    ("mean", (1,), (1,)),
    ("var", (0, False, True), {"axis": 0, "keepdims": True, "correction": 0}),
    ("std", {"dim": 1, "keepdim": True}, (1, None, True)),
    ("max", (), ()),
    ("min", (), ()),
    ("amax", ((0, 1), True), ((0, 1), True)),
    ("argmin", (1,), (1,)),
    ("expand", (2, 3, 4), ((2, 3, 4),)),
    ("expand", ([2, 3, 4],), ((2, 3, 4),)),
    ("reshape", (4, -1), ((4, -1),)),
    ("reshape", ([4, 3],), ((4, 3),)),
    ("reshape", (np.int64(12),), ((12,),)),
    ("transpose", (), ()),
    ("transpose", (1, 0, 2), ((1, 0, 2),)),
    ("transpose", ((1, 0, 2),), ((1, 0, 2),)),
    ("flatten", (1,), (1,)),
    ("squeeze", (), ()),
    ("squeeze", {"axis": 0}, {"axis": 0}),
    ("unsqueeze", ((0, -1),), ((0, -1),)),
    ("unflatten", (2, (2, 2)), (2, (2, 2))),
    ("tile", (2, 1, 3), ((2, 1, 3),)),
    ("flip", (1, 2), ((1, 2),)),
    ("roll", {"shifts": 1, "dims": 2}, (1, 2)),
]


def called(function, *first, given):
    return function(*first, **given) if isinstance(given, dict) else function(*first, *given)


@pytest.mark.parametrize(("name", "of_method", "of_function"), METHODS)
def test_methods_are_functions(name, of_method, of_function):
    y = called(getattr(tg.Tensor(X), name), given=of_method)
    expected = called(getattr(tg, name), X, given=of_function)
    assert y.op == expected.op and y.shape == expected.shape
    np.testing.assert_array_equal(y.value, expected.value)


def test_shorthands():
    assert tg.Tensor(X).T.shape == (4, 3, 1) and tg.Tensor([1.0]).reshape(()).shape == ()


def test_a_node_stays_a_key():
    a, b = tg.Tensor([1.0]), tg.Tensor([1.0])
    assert len({a, b}) == 2 and {a: 1}[a] == 1


def test_every_method_is_filled():
    names = {
        "abs",
        "add",
        "astype",
        "run_backward",
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
    assert all(callable(getattr(above, name)) for name in names)
