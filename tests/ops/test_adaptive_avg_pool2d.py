"""Adaptive average pooling against loops: windows share pixels, and may be more than pixels."""

import numpy as np
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.ones((2, 3, 5, 4))
IMAGES = numbers(0, (3, 5, 17, 22))
sizes = st.integers(1, 7)


@st.composite
def image_problems(draw):
    output_size = draw(st.one_of(sizes, st.tuples(*[st.one_of(st.none(), sizes)] * 2)))
    x = numbers(draw(seeds), draw(shapes(4, 4, max_side=6)))
    return Problem((x,), {"output_size": output_size}, (True,))


@st.composite
def sequence_problems(draw):
    x = numbers(draw(seeds), draw(shapes(3, 3, max_side=6)))
    return Problem((x,), {"output_size": draw(sizes)}, (True,))


class TestAdaptiveAvgPool2d(OpContract):
    function = staticmethod(tg.adaptive_avg_pool2d)
    reference = staticmethod(reference.adaptive_avg_pool2d)
    problems = image_problems()
    large_problems = (
        Problem((IMAGES,), {"output_size": (7, 5)}),
        Problem((IMAGES[:1, :2],), {"output_size": (1, 40)}),
        Problem((IMAGES,), {"output_size": 1}),
    )
    conventions = [
        Convention(
            "two windows share the middle one of three pixels",
            ([[[[1.0, 2.0, 6.0]]]],),
            [[[[1.5, 4.0]]]],
            ([[[[0.5, 1.0, 0.5]]]],),
            {"output_size": (1, 2)},
        ),
        Convention(
            "NaN and infinity stay in their windows",
            ([[[[np.nan, 1.0, np.inf]]]],),
            [[[[np.nan, 1.0, np.inf]]]],
            kwargs={"output_size": (None, 3)},
        ),
    ]
    bad_input = [
        Bad("three axes", (X[0], 1), {}, ShapeError, "adaptive_avg_pool2d: x: expected 4 axes"),
        Bad("no pixel", (X[..., :0], 2), {}, ShapeError, "images of at least one pixel"),
        Bad("size 0", (X, (0, 2)), {}, ArgumentError, "output_size: expected at least 1, got 0"),
        Bad("three sizes", (X, (1, 2, 3)), {}, ArgumentError, "a pair of ints or None"),
        Bad("a float", (X, 2.5), {}, ArgumentError, "output_size: expected an int, got 2.5"),
        Bad("integers", (X.astype(int), 2), {}, DtypeError, "float32 or float64"),
    ]

    def test_windows_that_divide_are_those_of_avg_pool2d(self):
        y = tg.adaptive_avg_pool2d(IMAGES[..., :16, :21], (8, 7))
        np.testing.assert_allclose(y.value, tg.avg_pool2d(IMAGES[..., :16, :21], (2, 3)).value)


class TestAdaptiveAvgPool1d(OpContract):
    function = staticmethod(tg.adaptive_avg_pool1d)
    reference = staticmethod(reference.adaptive_avg_pool1d)
    problems = sequence_problems()
    conventions = [
        Convention(
            "one window", ([[[1.0, 2.0]]],), [[[1.5]]], ([[[0.5, 0.5]]],), {"output_size": 1}
        )
    ]
    bad_input = [
        Bad("images", (X, 1), {}, ShapeError, "adaptive_avg_pool1d: x: expected 3 axes (N, C, L)"),
        Bad("size 0", (X[0], 0), {}, ArgumentError, "output_size: expected at least 1, got 0"),
        Bad("two sizes", (X[0], (1, 2)), {}, ArgumentError, "output_size: expected an int"),
        Bad("integers", (X[0].astype(int), 2), {}, DtypeError, "float32 or float64"),
    ]
