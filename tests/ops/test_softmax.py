"""softmax and log_softmax against loops, and where exp would overflow."""

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.strategies import class_problems
from tinygraph.errors import DtypeError, ShapeError

BAD = [
    Bad("0-d", (1.0,), {}, ShapeError, "no axis: the input is 0-d"),
    Bad("axis", (np.ones((2, 2)), 2), {}, ShapeError, "an axis from -2 to 1"),
    Bad("no class", (np.ones((2, 0)),), {}, ShapeError, "at least one element along axis -1"),
    Bad("integers", ([1, 2],), {}, DtypeError, "float32 or float64"),
]


class TestSoftmax(OpContract):
    function = staticmethod(tg.softmax)
    reference = staticmethod(reference.softmax)
    problems = class_problems()
    bad_input = BAD

    def test_large_inputs(self):
        np.testing.assert_array_equal(tg.softmax([1e30, 0.0, -1e30]).value, [1, 0, 0])


class TestLogSoftmax(OpContract):
    function = staticmethod(tg.log_softmax)
    reference = staticmethod(reference.log_softmax)
    problems = class_problems()
    bad_input = BAD

    def test_large_inputs(self):
        np.testing.assert_array_equal(tg.log_softmax([1e30, 0.0]).value, np.float32([0, -1e30]))
