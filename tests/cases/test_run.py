"""What compares a case with tinygraph: it fails at wrong zeros."""

import json

import pytest

from tests.cases.authoring import small_file
from tests.cases.run import check
from tests.cases.schema import read_cases

Y = {"dtype": "float", "shape": [2], "data": [0, "nan"]}


def test_equal_bits_are_asked_for_with_tolerance_0():
    x = {"dtype": "float", "shape": [1], "data": [-0.0]}
    for zero, right in ((-0.0, True), (0, False)):
        case = small_file(args={"x": x}, expected={**x, "data": [zero]}, tolerance={"float64": 0})
        (case,) = read_cases(json.dumps(case), "tanh.json")
        if right:
            check(case, "cpu", "float64")
        else:
            with pytest.raises(AssertionError, match="a zero has the wrong sign"):
                check(case, "cpu", "float64")
