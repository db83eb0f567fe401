"""l1_loss against a loop over elements, and its derivative where the arrays agree."""

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.strategies import LARGE_PAIRS, NOTHING, same_shape_problems
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError


class TestL1Loss(OpContract):
    function = staticmethod(tg.l1_loss)
    reference = staticmethod(reference.l1_loss)
    problems = same_shape_problems()
    large_problems = LARGE_PAIRS
    conventions = NOTHING
    bad_input = [
        Bad("column and row", (np.ones((3, 1)), np.ones(3)), {}, ShapeError, "would give (N, N)"),
        Bad("integers", ([1], [2]), {}, DtypeError, "l1_loss: x: expected float32 or float64"),
        Bad("reduction", ([1.0], [2.0], "avg"), {}, ArgumentError, "'mean', 'sum' or 'none'"),
    ]
