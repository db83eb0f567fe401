"""mse_loss against a loop over elements."""

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import NOTHING, same_shape_problems
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError


def two_arrays(n, reduction):
    x, y = np.random.default_rng(n).standard_normal((2, n))
    return Problem((x, y), {"reduction": reduction})


class TestMseLoss(OpContract):
    function = staticmethod(tg.mse_loss)
    reference = staticmethod(reference.mse_loss)
    problems = same_shape_problems()
    large_problems = (
        two_arrays(256, "mean"),
        two_arrays(257, "mean"),
        two_arrays(2**18 + 1, "mean"),
        two_arrays(70_000, "sum"),
        two_arrays(1000, "none"),
    )
    conventions = NOTHING
    bad_input = [
        Bad("column and row", (np.ones((3, 1)), np.ones(3)), {}, ShapeError, "would give (N, N)"),
        Bad("integers", ([1], [2]), {}, DtypeError, "float32 or float64"),
        Bad("reduction", ([1.0], [2.0], "avg"), {}, ArgumentError, "'mean', 'sum' or 'none'"),
    ]
