"""`dtype=` of sums, products and softmax: what is given is cast first, and the result has it."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import DtypeError

X = [[1.75, 100.0], [-2.5, 100.0]]


@pytest.mark.parametrize(
    ("function", "dtype", "expected"),
    [
        (tg.sum, "float64", [-0.75, 200]),
        (tg.sum, "int64", [-1, 200]),  # fractions are cut off before
        (tg.sum, "int8", [-1, -56]),
        (tg.sum, "bool", [True, True]),
        (tg.prod, "float64", [-4.375, 10000]),
        (tg.prod, "int8", [-2, 16]),
        (tg.mean, "float64", [-0.375, 100]),
    ],
)
def test_reductions(function, dtype, expected, device):
    x = tg.Tensor(X, dtype="float32", device=device)
    y = function(x, 0, dtype=dtype)
    assert y.dtype == dtype and y.numpy().tolist() == expected
    assert function(x, 0, dtype=None).dtype == "float32"


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float64", [1.75, -0.75]), ("int32", [1, -1]), ("bool", [True, True])],
)
def test_cumsum(dtype, expected, device):
    y = tg.cumsum(tg.Tensor(X, dtype="float32", device=device)[:, 0], 0, dtype=dtype)
    assert y.dtype == dtype and y.numpy().tolist() == expected


@pytest.mark.parametrize("function", [tg.softmax, tg.log_softmax])
def test_softmax_of_integers(function, device):
    y = function(tg.tensor([0, 2], device=device), 0, "float64")
    expected = np.array([1, np.exp(2)]) / (1 + np.exp(2))
    expected = expected if function is tg.softmax else np.log(expected)
    assert y.dtype == "float64"
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-14)


def test_the_gradient_is_cast_back():
    x = tg.Tensor([1.0, 2.0], requires_grad=True)
    tg.sum(x, dtype="float64").backward()
    assert x.grad.dtype == "float32" and x.grad.tolist() == [1, 1]


@pytest.mark.parametrize("function", [tg.mean, tg.softmax, tg.log_softmax])
def test_no_float(function):
    words = f"{function.__name__}: dtype: expected float32 or float64, got int64"
    with pytest.raises(DtypeError, match=words):
        function([1.0], 0, dtype="int64")


@pytest.mark.parametrize("function", [tg.sum, tg.prod, tg.mean, tg.cumsum, tg.softmax])
def test_no_dtype(function):
    with pytest.raises(DtypeError, match=f"{function.__name__}: dtype: expected a float"):
        function([1.0], 0, dtype="complex64")
