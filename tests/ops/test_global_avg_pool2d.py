"""global_avg_pool2d against loops."""

import numpy as np
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import DtypeError, ShapeError

X = np.ones((2, 3, 4, 4))


class TestGlobalAvgPool2d(OpContract):
    function = staticmethod(tg.global_avg_pool2d)
    reference = staticmethod(reference.global_avg_pool2d)
    problems = st.builds(
        lambda shape, seed: Problem((numbers(seed, shape),), {}, (True,)), shapes(4, 4), seeds
    )
    bad_input = [
        Bad("two axes", (X[0, 0],), {}, ShapeError, "4 axes (N, C, H, W)"),
        Bad("no pixel", (X[..., :0],), {}, ShapeError, "images of at least one pixel"),
        Bad("integers", (X.astype(int),), {}, DtypeError, "float32 or float64"),
    ]

    def test_many_pixels_in_float32(self):
        """A running sum of 2**20 float32 ones and a half would have lost digits."""
        x = np.full((1, 1, 1024, 1024), 0.1, np.float32)
        np.testing.assert_allclose(tg.global_avg_pool2d(x).item(), np.float32(0.1), rtol=1e-6)
