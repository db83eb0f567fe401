"""glu against loops over the two halves."""

import math

import numpy as np
from hypothesis import strategies as st

import tinygraph as tg
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.reference import elementwise
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ShapeError


def glu(x, axis=-1):
    rows = np.moveaxis(x, axis, 0)
    half = len(rows) // 2
    y = elementwise(lambda a, b: a / (1 + math.exp(-b)), rows[:half], rows[half:])
    return np.moveaxis(y, 0, axis)


@st.composite
def even(draw):
    shape = list(draw(shapes(min_dims=1, max_dims=3)))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    shape[axis] *= 2
    carries = (True,) if axis % len(shape) else None
    return Problem((numbers(draw(seeds), shape),), {"axis": axis}, carries)


class TestGlu(OpContract):
    function = staticmethod(tg.glu)
    reference = staticmethod(glu)
    problems = even()
    conventions = [
        Convention("open and closed", ([3, 4, 1e3, -1e3],), [3, 0], ([1, 0, 0, 0],)),
        Convention("nothing", (np.ones((2, 0)),), np.ones((2, 0)), (np.ones((2, 0)),)),
    ]
    bad_input = [
        Bad("odd", ([1.0, 2.0, 3.0],), {}, ShapeError, "glu: x: expected an even length"),
        Bad("axis", ([1.0, 2.0], 1), {}, ShapeError, "glu"),
    ]
