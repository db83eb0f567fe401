"""prelu against loops: one slope, and one for each channel."""

import numpy as np
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import DtypeError, ShapeError

X = np.ones((2, 3))


@st.composite
def problems(draw):
    shape = draw(shapes())
    each = len(shape) > 1 and draw(st.booleans())
    slopes = (shape[1],) if each else draw(st.sampled_from([(), (1,)]))
    carries = (True, False) if shape else None
    return Problem((numbers(draw(seeds), shape), numbers(draw(seeds), slopes)), {}, carries)


class TestPrelu(OpContract):
    function = staticmethod(tg.prelu)
    reference = staticmethod(reference.prelu)
    problems = problems()
    large_problems = (
        Problem((np.linspace(-3, 3, 720).reshape(6, 4, 30), np.arange(4.0))),  # a warp for each
        Problem((np.linspace(-3, 3, 900).reshape(90, 10), np.linspace(-1, 1, 10))),  # slices
        Problem((np.linspace(-3, 3, 9000).reshape(9, 1000), np.array([0.5]))),  # blocks, slices
    )
    claims = [
        (Problem((X, np.ones(3)), {}, (True, False)), "map"),
        (Problem((np.ones((3, 3)), np.ones(3)), {}, (True, True)), None),
    ]
    conventions = [
        Convention("at 0", ([0.0, -0.0], 0.25), [0, -0.0], ([0.25, 0.25], 0)),
        Convention("infinite", ([-np.inf, np.inf], 0.5), [-np.inf, np.inf], ([0.5, 1], None)),
        Convention("NaN", ([np.nan], 0.5), [np.nan]),
    ]
    bad_input = [
        Bad("slopes", (X, np.ones(2)), {}, ShapeError, "weight: expected one number, or 3"),
        Bad("channels", (X[0], np.ones(3)), {}, ShapeError, "weight: expected one number, or 1"),
        Bad("axes", (X, X[:1]), {}, ShapeError, "prelu: weight"),
        Bad("integers", ([1, 2], np.array(1)), {}, DtypeError, "prelu: x: expected float32"),
    ]
