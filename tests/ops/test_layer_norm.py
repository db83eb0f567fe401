"""layer_norm against loops."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.arange(12.0).reshape(2, 2, 3)
F = np.ones(3)
ARRAYS = ("x", "weight", "bias")


@st.composite
def layer_problems(draw):
    """Leading axes and features, of which there are at least two, so that there is a variance."""
    features = (*draw(shapes(0, 1, max_side=3)), draw(st.integers(2, 5)))
    leading = draw(shapes(0, 2, max_side=3))
    x = 2 * numbers(draw(seeds), leading + features) + 3
    weight = numbers(draw(seeds), features) if draw(st.booleans()) else None
    bias = numbers(draw(seeds), features) if draw(st.booleans()) else None
    normalized_shape = features[0] if len(features) == 1 else features
    kwargs = {"normalized_shape": normalized_shape, "eps": draw(st.sampled_from([1e-2, 0.1]))}
    carries = tuple(i == 0 for i, a in enumerate((x, weight, bias)) if a is not None)
    return Problem((x, weight, bias), kwargs, carries if leading else None, ARRAYS)


def large_problem(rows, features):
    """A mean that differs from row to row, weight and bias."""
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, features)) + rng.uniform(-20, 20, (rows, 1))
    weight, bias = rng.standard_normal((2, features))
    return Problem((x, weight, bias), {"normalized_shape": features}, names=ARRAYS)


class TestLayerNorm(OpContract):
    function = staticmethod(tg.layer_norm)
    reference = staticmethod(reference.layer_norm)
    problems = layer_problems()
    large_problems = (
        large_problem(200, 77),  # a warp for a row, several slices of rows, the last in part
        large_problem(3, 1500),  # a block for a row
    )
    tolerance = 20.0  # a small variance makes large quotients
    claims = [
        (Problem((F,), {"normalized_shape": 3}, (True,)), None),
        (Problem((X,), {"normalized_shape": 3}, (True,)), "map"),
    ]
    bad_input = [
        Bad("features", (X, 2), {}, ShapeError, "x: expected the last axes (2,)"),
        Bad("too many", (X[0, 0], (2, 3)), {}, ShapeError, "x: expected the last axes (2, 3)"),
        Bad("scalar", (np.array(1.0), 1), {}, ShapeError, "the last axes (1,)"),
        Bad("weight", (X, 3, F[:2]), {}, ShapeError, "weight: expected shape (3,)"),
        Bad("bias", (X, (2, 3), None, F), {}, ShapeError, "bias: expected shape (2, 3)"),
        Bad("empty", (X, ()), {}, ArgumentError, "normalized_shape: expected an int, or several"),
        Bad("size 0", (X, 0), {}, ArgumentError, "of at least 1, got 0"),
        Bad("a word", (X, "last"), {}, ArgumentError, "normalized_shape: expected an int"),
        Bad("eps", (X, 3), {"eps": -1.0}, ArgumentError, "eps: expected a number of at least 0"),
        Bad("integers", (X.astype(int), 3), {}, DtypeError, "float32 or float64"),
        Bad(
            "dtype",
            (X, 3, F.astype("f4")),
            {},
            DtypeError,
            "x: expected float32, the dtype of weight",
        ),
    ]

    @pytest.mark.parametrize("offset", [1e4, -3e5])
    def test_a_mean_far_from_zero_in_float32(self, offset, device):
        rng = np.random.default_rng(0)
        x = (offset + rng.standard_normal((4, 512))).astype(np.float32)
        expected = reference.layer_norm(x.astype(np.float64), normalized_shape=512)
        y = tg.layer_norm(tg.Tensor(x, device=device), 512)
        np.testing.assert_allclose(y.value, expected, atol=2e-5)

    def test_what_is_no_number_stays_in_its_sample(self, device):
        x = tg.Tensor(X, requires_grad=True, device=device)
        x.value[0, 1, 2] = np.inf
        y = tg.layer_norm(x, 3)
        y.backward(X)
        for a in (y.value, x.grad):
            assert np.isnan(a[0, 1]).all() and np.isfinite(a[0, 0]).all()
            assert np.isfinite(a[1]).all()
