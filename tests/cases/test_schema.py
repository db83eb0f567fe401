"""A file that breaks the schema is refused by file, case and field, with a way out."""

import json
import re

import pytest

from tests.cases.authoring import small_file
from tests.cases.make import made_text
from tests.cases.schema import CaseError, read_cases

Y = {"dtype": "float", "shape": [2], "data": [0, "nan"]}


def x_with(**changes):
    return {"args": {"x": {**Y, **changes}}}


BROKEN = {
    "an unknown field": ({"exected": Y}, "exected: expected one of name,", "'expected'?"),
    "no name": ({"name": None}, "cases[0].name: expected this field"),
    "an empty source": ({"source": ""}, "source: expected words"),
    "a kind": ({"kind": "tie"}, "kind: expected ordinary,", "did you mean 'ties'?"),
    "no outcome": ({"expected": None}, "got nothing. Way out: let the reference fill it in"),
    "an argument": ({"args": {"y": Y}}, "args.y: expected one of x, got y"),
    "a hyper-parameter": ({"kwargs": {"axis": 1}}, "kwargs.axis: expected one of x, got axis"),
    "both": ({"kwargs": {"x": 1}}, "kwargs: expected names that args has not, got x"),
    "a dtype": (x_with(dtype="flaot32"), "args.x.dtype: expected float,", "mean 'float32'?"),
    "a shape": (x_with(shape=[2, -1]), "args.x.shape: expected a list of sizes"),
    "a count": (x_with(shape=[3]), "args.x.data: expected 3 entries, as shape says, got 2"),
    "nesting": (x_with(shape=[2, 1]), "args.x.data[0]: expected a list of 1", "got 0"),
    "a word": (x_with(data=[0, "none"]), 'args.x.data[1]: expected a number, "nan", "inf"'),
    "null": (x_with(data=[None, 1]), "args.x.data[0]: expected a number", "got null"),
    "a huge number": (x_with(data=[0, 10**400]), "args.x.data[1]: expected a number"),
    "a fraction": (x_with(dtype="int32", data=[1, 0.5]), "data[1]: expected an integer", "0.5"),
    "a range": (x_with(dtype="uint8", data=[1, 256]), "data[1]: expected a number that uint8 hol"),
    "a number as bool": (x_with(dtype="bool", data=[True, 1]), "data[1]: expected true or f"),
    "no data": ({"expected": {"dtype": "float", "shape": [2]}}, "expected.data: expected this fi"),
    "a spelling": ({"args": {"x": {"floot": 1}}}, 'args.x: expected an array, {"float"'),
    "a slice": ({"kwargs": {"x": {"slice": [1]}}}, "kwargs.x.slice: expected [start, stop, step]"),
    "a gradient": ({"gradients": {"w": Y}, "upstream": Y}, "gradients.w: expected one of x, got"),
    "a gradient's shape": (
        {"gradients": {"x": {**Y, "shape": [1, 2], "data": [[1, 2]]}}, "upstream": Y},
        "gradients.x.shape: expected [2], that of args.x",
    ),
    "no upstream": ({"gradients": {"x": Y}}, "upstream: expected an array, for there are gradien"),
    "upstream's shape": ({"upstream": {**Y, "shape": [0], "data": []}}, "that of expected, got [0"),
    "several outputs": ({"upstream": [Y, Y]}, "upstream: expected as many arrays as expected"),
    "made": ({"made": ["gradient"]}, "made: expected a list of some of expected, gradients"),
    "a seed": ({"seed": "7"}, 'seed: expected an integer, got "7"'),
    "a tolerance": ({"tolerance": {"float64": 2}}, "tolerance.float64: expected a number from 0"),
    "its dtype": ({"tolerance": {"float46": 0}}, "tolerance.float46: expected one of float64,"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_case_is_refused_by_file_case_and_field(name):
    changes, *words = BROKEN[name]
    raw = small_file(**{"args": {"x": Y}, "expected": Y, **changes})
    with pytest.raises(CaseError) as caught:
        read_cases(json.dumps(raw), "tanh.json")
    message = str(caught.value)
    assert message.startswith("tanh.json: " + ("cases[0]" if name == "no name" else "case 'mine'"))
    for part in words:
        assert part in message


BROKEN_FILES = {
    "not JSON": ("{", "the file: expected JSON, got"),
    "no object": ("[]", "the file: expected an object"),
    "bare NaN": ('{"op": NaN, "cases": []}', 'expected "nan", "inf" or "-inf" in quotes, got NaN'),
    "a key twice": ('{"op": "tanh", "op": "tanh"}', "each key once in an object, got 'op' twice"),
    "no cases": ('{"op": "tanh"}', "cases: expected this field"),
    "cases": ('{"op": "tanh", "cases": {}}', "cases: expected a list, got {}"),
    "a case": ('{"op": "tanh", "cases": [1]}', "cases[0]: expected an object, got 1"),
    "an op": ('{"op": "tahn", "cases": []}', "op: expected a public function of tg.ops", "'tanh'?"),
    "another op": ('{"op": "exp", "cases": []}', "op: expected tanh, the name of the file"),
}


@pytest.mark.parametrize("name", BROKEN_FILES)
def test_a_broken_file_is_refused(name):
    text, *words = BROKEN_FILES[name]
    for read in (read_cases, made_text):
        with pytest.raises(CaseError, match="^" + re.escape("tanh.json: ")) as caught:
            read(text, "tanh.json")
        assert all(part in str(caught.value) for part in words)


def test_a_name_stands_once_in_a_file():
    raw = small_file(args={"x": Y}, expected=Y)
    raw["cases"] *= 2
    with pytest.raises(CaseError, match="case 'mine': name: expected a name of its own"):
        read_cases(json.dumps(raw), "tanh.json")
