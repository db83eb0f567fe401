"""roll and flip against loops over elements."""

import numpy as np
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import axis_problems, numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.ones((2, 3))


@st.composite
def roll_problems(draw):
    """One array, shifts of any size and sign, along some axes, one, or all elements."""
    shape = draw(shapes(min_dims=1, max_dims=3, min_side=0))
    axes = draw(st.permutations(range(len(shape))))[: draw(st.integers(0, len(shape)))]
    shifts = st.integers(-7, 7)
    if not axes:
        kwargs = {"shifts": draw(shifts), "axis": None}
    elif len(axes) == 1:
        kwargs = {"shifts": draw(shifts), "axis": axes[0] - len(shape)}
    else:
        kwargs = {"shifts": tuple(draw(shifts) for _ in axes), "axis": tuple(axes)}
    carries = (True,) if axes and 0 not in axes and shape[0] else None
    return Problem((numbers(draw(seeds), shape),), kwargs, carries)


class TestRoll(OpContract):
    function = staticmethod(tg.roll)
    reference = staticmethod(reference.roll)
    problems = roll_problems()
    conventions = [
        Convention("a number", (3.0,), 3.0, (1.0,), {"shifts": 2}),
        Convention("a whole turn", ([3.0, 4.0],), [3.0, 4.0], ([1.0, 1.0],), {"shifts": -2}),
        Convention("nothing", ([],), [], ([],), {"shifts": 1, "axis": 0}),
    ]
    bad_input = [
        Bad("axis", (X, 1, 2), {}, ShapeError, "an axis from -2 to 1, got 2"),
        Bad("more shifts", (X, (1, 2), 0), {}, ShapeError, "one shift for each axis, 1, got 2"),
        Bad("more axes", (X, 1, (0, 1)), {}, ShapeError, "one shift for each axis, 2, got 1"),
        Bad("axis twice", (X, (1, 1), (0, -2)), {}, ShapeError, "each axis once"),
        Bad("a float", (X, 1.0), {}, ArgumentError, "an int or a tuple of ints, got 1.0"),
        Bad("a float axis", (X, 1, 1.0), {}, DtypeError, "axis: expected an int"),
    ]


class TestFlip(OpContract):
    function = staticmethod(tg.flip)
    reference = staticmethod(reference.flip)
    problems = axis_problems(keepdims=False)
    conventions = [Convention("a number", (3.0,), 3.0, (1.0,))]
    bad_input = [
        Bad("axis", (X, 2), {}, ShapeError, "an axis from -2 to 1, got 2"),
        Bad("axis twice", (X, (0, -2)), {}, ShapeError, "each axis once"),
        Bad("axes as ints", (X, 0, 0), {}, ShapeError, "each axis once"),
        Bad("a float", (X, 1.0), {}, DtypeError, "an int, a tuple of ints or None"),
    ]
