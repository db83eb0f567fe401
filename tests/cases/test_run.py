"""What compares a case with tinygraph: it fails at wrong zeros, wrong errors, missing errors."""

import functools
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


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"class": "DtypeError"}, "ShapeError"),
        ({"words": ["an axis from -7"]}, "not in"),
        ({}, None),
    ],
)
def test_an_error_case_looks_at_the_class_and_the_words(changes, complaint):
    error = {"class": "ShapeError", "words": ["an axis from -1 to 0"], **changes}
    raw = {
        "op": "cumsum",
        "cases": [
            {
                "name": "far",
                "kind": "error",
                "source": "-",
                "args": {"x": Y},
                "kwargs": {"axis": 1},
                "error": error,
            }
        ],
    }
    run = functools.partial(check, read_cases(json.dumps(raw), "cumsum.json")[0], "cpu", "float64")
    if complaint is None:
        run()
    else:
        with pytest.raises(AssertionError, match=complaint):
            run()


def test_an_error_that_does_not_come_is_missed():
    raw = small_file(args={"x": Y}, kind="error", error={"class": "DtypeError", "words": ["x"]})
    (case,) = read_cases(json.dumps(raw), "tanh.json")
    with pytest.raises(AssertionError, match="no error was raised"):
        check(case, "cpu", "float64")
