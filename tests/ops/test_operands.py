"""Promotion: the whole table against numpy, and where a Cast node stands."""

import itertools

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.errors import DtypeError

DTYPES = ["float32", "float64", "int64", "int32", "bool"]
NUMBERS = [2.5, 2, True]
FUNCTIONS = {
    tg.add: np.add,
    tg.sub: np.subtract,
    tg.mul: np.multiply,
    tg.div: np.divide,
    tg.pow: np.power,
    tg.maximum: np.maximum,
    tg.minimum: np.minimum,
    tg.less: np.less,
    tg.equal: np.equal,
    tg.matmul: np.matmul,
}
PAIRS = [
    *itertools.product(DTYPES, DTYPES),
    *itertools.product(DTYPES, NUMBERS),
    *itertools.product(NUMBERS, DTYPES),
]


def operand(kind, wrap):
    """An array of a dtype, as numpy's or as a Tensor; a number as it is."""
    return wrap(np.array([1, 1], kind)) if isinstance(kind, str) else kind


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_dtype_is_that_of_numpy(function, pair):
    of_numpy = FUNCTIONS[function]
    if function is tg.matmul and not all(isinstance(kind, str) for kind in pair):
        return  # a single number: refused by both
    arrays = [operand(kind, np.asarray) for kind in pair]
    tensors = [operand(kind, tg.Tensor) for kind in pair]
    if function in (tg.sub, tg.pow) and np.result_type(*arrays).kind == "b":
        with pytest.raises(DtypeError, match="got bool"):
            function(*tensors)
        return
    expected = of_numpy(*arrays)
    y = function(*tensors)
    assert y.dtype == expected.dtype
    np.testing.assert_allclose(y.value, expected, rtol=1e-6)


@pytest.mark.parametrize("number", [np.float64(2), np.float32(2), np.int64(2), np.array(2.0)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_scalars_promote_unlike_python_numbers(dtype, number):
    x = np.ones(2, dtype)
    for y, expected in ((tg.Tensor(x) * number, x * number), (number * tg.Tensor(x), number * x)):
        assert isinstance(y, tg.Tensor) and y.dtype == expected.dtype


def test_numbers_among_themselves():
    assert tg.add(1, 2).dtype == np.int64 and tg.add(1, 2.5).dtype == np.float32
    assert tg.div(1, 2).dtype == np.float64 and tg.add(True, True).dtype == bool


def test_a_cast_stands_only_where_a_tensor_has_to_change():
    x32 = tg.Tensor([1.0], requires_grad=True)
    x64 = tg.Tensor(np.ones(1), requires_grad=True)
    y = x32 * x64
    assert [x.op.name if x.op else "leaf" for x in y.inputs] == ["cast", "leaf"]
    assert y.inputs[1] is x64
    for other in (2, 2.5, True, np.ones(1, "f4"), np.ones(1, "i1"), [1.0], np.ones(1, bool)):
        assert all(x.op is None for x in (x32 * other).inputs)
    y.backward()
    assert x32.grad.dtype == np.float32 and x64.grad.dtype == np.float64


def test_ops_themselves_refuse_to_promote():
    with pytest.raises(DtypeError, match="mul: y: expected float32, the dtype of x, got float64"):
        (tg.Tensor([1.0]) * 2.0).op(np.ones(1, "f4"), np.ones(1))
