"""rms_norm against loops."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.arange(12.0).reshape(2, 2, 3)


def rms_norm(x, normalized_shape, weight=None, eps=1e-5):
    features = math.prod(np.atleast_1d(normalized_shape).tolist())
    scale = [1.0] * features if weight is None else weight.ravel().tolist()
    y = []
    for row in x.reshape(-1, features).tolist():
        r = math.sqrt(math.fsum(v * v for v in row) / features + eps)
        y.append([v / r * a for v, a in zip(row, scale, strict=True)])
    return np.array(y).reshape(x.shape)


@st.composite
def problems(draw):
    features = (*draw(shapes(0, 1, max_side=3)), draw(st.integers(1, 5)))
    x = numbers(draw(seeds), draw(shapes(0, 2, max_side=3)) + features)
    arrays = (x, numbers(draw(seeds), features)) if draw(st.booleans()) else (x,)
    shape = features[0] if len(features) == 1 else features
    kwargs = {"normalized_shape": shape, "eps": draw(st.sampled_from([0.01, 0.1]))}
    return Problem(arrays, kwargs, None, ("x", "weight")[: len(arrays)])


class TestRmsNorm(OpContract):
    function = staticmethod(tg.rms_norm)
    reference = staticmethod(rms_norm)
    problems = problems()
    conventions = [
        Convention("zeros", ([[0.0]],), [[0]], ([[2]],), {"normalized_shape": 1, "eps": 0.25})
    ]
    bad_input = [
        Bad("features", (X, 2), {}, ShapeError, "x: expected the last axes (2,)"),
        Bad("empty", (X, ()), {}, ShapeError, "at least one"),
        Bad("size", (X, 0), {}, ArgumentError, "normalized_shape: expected an int of at least 1"),
        Bad("weight", (X, 3, np.ones(2)), {}, ShapeError, "weight: expected shape (3,)"),
        Bad("eps", (X, 3), {"eps": -1}, ArgumentError, "eps: expected a number of at least 0"),
        Bad("integers", (X.astype(int), 3), {}, DtypeError, "x: expected float32 or float64"),
    ]

    @pytest.mark.parametrize("dtype", ["f4", "f8"])
    def test_eps_is_that_of_the_dtype(self, dtype):
        eps = np.finfo(dtype).eps
        y = tg.rms_norm(np.full((1, 2), np.sqrt(eps), dtype), 2).value
        np.testing.assert_allclose(y, np.sqrt(0.5), rtol=1e-6)
