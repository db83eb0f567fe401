"""masked_fill, tril and triu against loops over the elements."""

import itertools

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.reference import elementwise
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.ones((2, 3))


@st.composite
def masks(draw):
    shape = draw(shapes())
    mask = tuple(1 if draw(st.booleans()) else n for n in shape)[draw(st.integers(0, len(shape))) :]
    holds = np.asarray(np.random.default_rng(draw(seeds)).random(mask) < 0.5)
    value = draw(st.sampled_from([0, -2.5]))
    return Problem((numbers(draw(seeds), shape), holds), {"value": value})


def masked_fill(x, mask, value):
    return elementwise(lambda v, m: value if m else v, x, mask)


class TestMaskedFill(OpContract):
    function = staticmethod(tg.masked_fill)
    reference = staticmethod(masked_fill)
    problems = masks()
    conventions = [
        Convention(
            "NaN is replaced", ([np.nan, 1.0], [True, False]), [-np.inf, 1], ([0, 1], None),
            {"value": -np.inf},
        )
    ]  # fmt: skip
    bad_input = [
        Bad("a mask of numbers", (X, X), {"value": 0}, DtypeError, "mask: expected bool"),
        Bad("a larger mask", (X, X[None] > 0), {"value": 0}, ShapeError, "broadcasts to (2, 3)"),
        Bad("another mask", (X, X[:, :2] > 0), {"value": 0}, ShapeError, "(2, 3) and (2, 2)"),
        Bad("values", (X, X > 0), {"value": X}, ShapeError, "value: expected one number"),
    ]

    def test_integers_stay_integers(self):
        y = tg.masked_fill(np.array([1, 2]), np.array([True, False]), 7)
        assert y.dtype == np.int64 and y.value.tolist() == [7, 2]

    @pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "float64"])
    @pytest.mark.parametrize(
        "value", [1, 3.0, True, np.float64(3), np.array([1.0]), tg.Tensor(3.0, dtype="float64")]
    )
    def test_the_dtype_is_that_of_x(self, dtype, value):
        y = tg.masked_fill(np.zeros(2, dtype), np.array([True, False]), value)
        expected = np.array([float(np.asarray(getattr(value, "value", value)).item()), 0])
        assert y.dtype == dtype
        np.testing.assert_array_equal(y.value, expected.astype(dtype))

    @pytest.mark.parametrize("value", [1.5, -1, 256, -np.inf, np.nan])
    def test_what_integers_cannot_hold(self, value):
        with pytest.raises(DtypeError, match="masked_fill: value: expected one that uint8 can"):
            tg.masked_fill(np.zeros(2, "uint8"), np.array([True, False]), value)


def triangle(x, keeps):
    y = np.zeros(x.shape)
    for place in itertools.product(*map(range, x.shape)):
        if keeps(*place[-2:]):
            y[place] = x[place]
    return y


matrices = st.builds(
    lambda shape, seed, diagonal: Problem(
        (numbers(seed, shape),), {"diagonal": diagonal}, (True,) if len(shape) > 2 else None
    ),
    shapes(min_dims=2),
    seeds,
    st.integers(-4, 4),
)
BAD = [
    Bad("a vector", ([1.0, 2.0],), {}, ShapeError, "x: expected at least two axes"),
    Bad("diagonal", (X, 0.5), {}, ArgumentError, "diagonal: expected an int"),
]
NANS = np.full((2, 2), np.nan)


class TestTril(OpContract):
    function = staticmethod(tg.tril)
    reference = staticmethod(lambda x, diagonal=0: triangle(x, lambda i, j: j <= i + diagonal))
    problems = matrices
    bad_input = BAD
    conventions = [
        Convention("NaN above", (NANS,), [[np.nan, 0], [np.nan] * 2], ([[1, 0], [1, 1]],))
    ]


class TestTriu(OpContract):
    function = staticmethod(tg.triu)
    reference = staticmethod(lambda x, diagonal=0: triangle(x, lambda i, j: j >= i + diagonal))
    problems = matrices
    bad_input = BAD
    conventions = [
        Convention("NaN below", (NANS,), [[np.nan] * 2, [0, np.nan]], ([[1, 1], [0, 1]],))
    ]


@pytest.mark.parametrize("dtype", ["int8", "int64", "bool", "float32"])
def test_triangles_keep_the_dtype(dtype, device):
    x = tg.Tensor(np.ones((2, 2), dtype), device=device)
    for y in (tg.tril(x), tg.triu(x)):
        assert y.dtype == dtype and y.numpy().sum() == 3
