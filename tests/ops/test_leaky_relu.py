"""leaky_relu against its reference, and its conventions at 0, NaN and the infinities."""

import numpy as np
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import elementwise_problems
from tinygraph.base.errors import ArgumentError, DtypeError

slopes = st.sampled_from(
    [
        {},
        {"negative_slope": 0.3},
        {"negative_slope": -0.5},
        {"negative_slope": 2},
        {"negative_slope": 0.0},
    ]
)


class TestLeakyRelu(OpContract):
    function = staticmethod(tg.leaky_relu)
    reference = staticmethod(reference.leaky_relu)
    problems = st.builds(lambda p, k: p._replace(kwargs=k), elementwise_problems(), slopes)
    large_problems = (Problem((np.linspace(-4, 4, 1000),)),)
    conventions = [
        Convention(
            "1 above 0, the slope elsewhere, exactly",
            ([-np.inf, -2.0, -0.0, 1e-30, np.inf, np.nan],),
            [np.inf, 6, 0, 1e-30, np.inf, np.nan],
            ([-3, -3, -3, 1, 1, -3],),
            {"negative_slope": -3.0},
        ),
        Convention("a slope of 0", ([np.inf],), [np.inf], ([1],), {"negative_slope": 0.0}),
    ]
    bad_input = [
        Bad("integers", ([1, 2],), {}, DtypeError, "leaky_relu: x: expected float32 or float64"),
        Bad("slope nan", ([1.0], np.nan), {}, ArgumentError, "negative_slope: expected a finite"),
        Bad("slope word", ([1.0], "small"), {}, ArgumentError, "got 'small'"),
        Bad("slope array", ([1.0], [0.1, 0.2]), {}, ArgumentError, "a finite number"),
    ]

    def test_a_numpy_slope_does_not_promote(self):
        assert tg.leaky_relu([1.0], np.float64(0.1)).dtype == np.float32
