"""pad against loops over elements, and the forms of numpy's pad_width."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem, claims_of
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.ones((2, 3))


@st.composite
def pad_problems(draw):
    """One array and a pad_width in one of its three forms."""
    shape = draw(shapes(max_dims=3))
    width = st.integers(0, 2)
    both = st.tuples(width, width)
    each = st.tuples(*[both] * len(shape)) if shape else both
    kwargs = {"pad_width": draw(st.one_of(width, both, each))}
    if draw(st.booleans()):
        kwargs["value"] = draw(st.floats(-2, 2, width=32))
    return Problem((numbers(draw(seeds), shape),), kwargs, (True,) if shape else None)


class TestPad(OpContract):
    function = staticmethod(tg.pad)
    reference = staticmethod(reference.pad)
    problems = pad_problems()
    claims = claims_of(
        X, "pad_width", (((0, 0), (1, 1)), "map"), (0, "map"), (1, None), (((0, 1), (0, 0)), None)
    )
    bad_input = [
        Bad("pairs", (X, ((1, 1),) * 3), {}, ShapeError, "2 pairs, one for each axis of x (2, 3)"),
        Bad("negative", (X, ((0, 0), (1, -1))), {}, ArgumentError, "0 or more"),
        Bad("negative int", (X, -1), {}, ArgumentError, "cut with x[2:-2] instead"),
        Bad("three", (X, (1, 2, 3)), {}, ArgumentError, "one such pair for each axis"),
        Bad("mixed", (X, (1, (2, 3))), {}, ArgumentError, "one such pair for each axis"),
        Bad("float", (X, 1.0), {}, ArgumentError, "one such pair for each axis"),
        Bad("value", (X, 1, "edge"), {}, ArgumentError, "value: expected a number, got 'edge'"),
        Bad("half", (X.astype(int), 1, 0.5), {}, DtypeError, "a number that int64 can hold"),
        Bad("NaN", (X.astype(int), 1, np.nan), {}, DtypeError, "a number that int64 can hold"),
        Bad("-1", (X.astype("u1"), 1, -1), {}, DtypeError, "a number that uint8 can hold"),
        Bad(
            "mode", (X, 1), {"mode": "edge"}, ArgumentError, "mode: expected 'constant', 'reflect'"
        ),
        Bad("2", (X.astype(bool), 1, 2), {}, DtypeError, "a number that bool can hold"),
    ]

    @given(problem=pad_problems(), value=st.integers(0, 200))
    def test_integers_as_in_numpy(self, problem, value):
        x = problem.args[0].astype("u1")
        width = problem.kwargs["pad_width"]
        y = tg.pad(x, width, value)
        expected = np.pad(x, width, constant_values=value) if x.ndim else x
        np.testing.assert_array_equal(y.value, expected)
        assert y.dtype == np.uint8

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_any_float_as_value(self, value):
        y = tg.pad([1.0], 1, value)
        np.testing.assert_array_equal(y.value, [value, 1, value])


@st.composite
def border_problems(draw):
    """One array, and widths that each mode can fill."""
    mode = draw(st.sampled_from(("reflect", "replicate", "circular")))
    shape = draw(shapes(min_dims=1, max_dims=3))
    most = [{"reflect": n - 1, "circular": n}.get(mode, 3) for n in shape]
    width = [draw(st.tuples(st.integers(0, m), st.integers(0, m))) for m in most]
    carries = (True,) if width[0] == (0, 0) and len(shape) > 1 else None
    kwargs = {"pad_width": tuple(width), "mode": mode}
    return Problem((numbers(draw(seeds), shape),), kwargs, carries)


class TestBorders(OpContract):
    """pad with a border of the array's own elements."""

    function = staticmethod(tg.pad)
    reference = staticmethod(reference.bordered)
    problems = border_problems()
    large_problems = (
        Problem(
            (numbers(0, (4, 9, 11)),), {"pad_width": ((0, 0), (3, 2), (1, 4)), "mode": "reflect"}
        ),
    )
    conventions = [
        Convention(
            mode,
            ([1.0, 2.0, 3.0],),
            value,
            (gradient,),
            {"pad_width": (2, 1), "mode": mode},
        )
        for mode, value, gradient in (
            ("reflect", [3.0, 2.0, 1.0, 2.0, 3.0, 2.0], [1.0, 3.0, 2.0]),
            ("replicate", [1.0, 1.0, 1.0, 2.0, 3.0, 3.0], [3.0, 1.0, 2.0]),
            ("circular", [2.0, 3.0, 1.0, 2.0, 3.0, 1.0], [2.0, 2.0, 2.0]),
        )
    ]
    bad_input = [
        Bad("wide", (X, (0, 3)), {"mode": "circular"}, ShapeError, "at most 2 on axis 0 of 2"),
        Bad("mirror", (X, (0, 2)), {"mode": "reflect"}, ShapeError, "at most 1 on axis 0 of 2"),
        Bad("nothing", (X[:0], 1), {"mode": "replicate"}, ShapeError, "at most 0 on axis 0 of 0"),
        Bad("pairs", (X, ((1, 1),) * 3), {"mode": "reflect"}, ShapeError, "2 pairs, one for each"),
    ]
