"""What fills in the case files: numbers come from the reference, a person's numbers stay."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.cases import oracles
from tests.cases.authoring import small_file
from tests.cases.make import draw, made_text, main
from tests.cases.run import check
from tests.cases.schema import FOLDER, MADE, CaseError, arrays_in, load, read_cases
from tests.cases.writing import layout

PAGE = Path(__file__).parents[2] / "docs" / "cases.md"


def without_made_parts(path):
    raw = json.loads(path.read_text(encoding="utf-8"))
    for case in raw["cases"]:
        for part in case.get("made", ()):
            case.pop(part, None)
    return raw


@pytest.mark.parametrize("op", ["conv2d", "batch_norm", "split", "less", "concatenate"])
def test_what_is_made_comes_back_when_it_is_taken_out(op):
    """Values, gradients, later values; of one output and several; floats and bools."""
    path = FOLDER / f"{op}.json"
    again = read_cases(made_text(json.dumps(without_made_parts(path)), path.name), path.name)
    for old, new in zip(load(path), again, strict=True):
        for part in MADE:
            before, after = getattr(old, part), getattr(new, part)
            for a, b in zip(arrays_in([before]), arrays_in([after]), strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_allclose(a.values, b.values, rtol=1e-10, atol=1e-10)


def test_a_case_needs_a_name_and_an_input_the_rest_is_made():
    text = made_text(json.dumps(small_file()), "tanh.json")
    (case,) = read_cases(text, "tanh.json")
    x, y, g = case.args["x"].values, case.expected.values, case.upstream.values
    np.testing.assert_allclose(y, np.tanh(x), rtol=0, atol=1e-11)
    np.testing.assert_allclose(case.gradients["x"].values, g / np.cosh(x) ** 2, rtol=0, atol=1e-10)
    for dtype in ("float64", "float32"):
        check(case, "cpu", dtype)
    assert made_text(text, "tanh.json") == text


@pytest.mark.parametrize("part", ["expected", "gradients"])
def test_a_wrong_number_fails_and_is_made_right(part):
    right = made_text(json.dumps(small_file()), "tanh.json")
    raw = json.loads(right)
    array = raw["cases"][0][part]
    array = array["x"] if part == "gradients" else array
    array["data"][1] += 1e-4
    wrong = json.dumps(raw)
    (case,) = read_cases(wrong, "tanh.json")
    for dtype in ("float64", "float32"):
        with pytest.raises(AssertionError, match=f"tanh.json: case 'mine': {part}"):
            check(case, "cpu", dtype)
    assert made_text(wrong, "tanh.json") == right


def test_what_a_person_wrote_is_never_changed():
    x = {"dtype": "float", "shape": [1], "data": ["0x1.8p+0"]}
    by_hand = small_file(args={"x": x}, expected={**x, "data": [7]}, kind="odd sizes")
    text = made_text(json.dumps(by_hand), "tanh.json")
    assert json.loads(text)["cases"] == by_hand["cases"]
    (case,) = read_cases(text, "tanh.json")
    assert case.args["x"].values[0] == 1.5
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 1"):
        check(case, "cpu", "float64")


@pytest.mark.parametrize("at", [0, 1 / 512])
def test_the_script_refuses_the_gradient_at_a_kink(at):
    raw = small_file(args={"x": {"dtype": "float", "shape": [2], "data": [1, at]}})
    raw["op"] = "relu"
    with pytest.raises(CaseError, match=r"relu.json: case 'mine': gradients.x: expected .* that"):
        made_text(json.dumps(raw), "relu.json")


@pytest.mark.parametrize(
    ("f", "slope"),
    [(lambda d: (d + 2) ** 8, 1024), (lambda d: np.exp(d), 1), (lambda d: 1 / (d + 0.5), -4)],
)
def test_the_differences_of_eighth_order(f, slope):
    assert oracles.derivative(f) == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize(
    "f", [abs, lambda d: max(d, 0), lambda d: float(d > 0), lambda d: abs(d) ** 1.5]
)
def test_kinks_and_jumps_are_seen(f):
    with pytest.raises(oracles.NotDifferentiable):
        oracles.derivative(f)


def test_drawn_numbers_are_short_and_distinct_where_that_is_asked():
    values = draw((5, 8), {"seed": 3, "distinct": True})
    assert len(np.unique(values)) == 40 and np.all(values * 8 == np.round(values * 8))
    assert np.all(values >= -3) and np.all(values < 3)


def test_the_command_writes_and_checks(tmp_path, capsys):
    path = tmp_path / "tanh.json"
    path.write_text(json.dumps(small_file()))
    assert main([str(path), "--check"]) == 1 and "draw" in path.read_text()
    assert main([str(path)]) == 0 and "draw" not in path.read_text()
    assert main([str(path), "--check"]) == 0
    path.write_text(json.dumps(small_file(kind="odd")))
    capsys.readouterr()
    assert main([str(path)]) == 2
    assert "tanh.json: case 'mine': kind: expected ordinary, odd sizes" in capsys.readouterr().err


def test_the_example_in_the_documentation():
    """What an author writes there becomes what the page shows next, and holds."""
    page = PAGE.read_text(encoding="utf-8")
    written, made = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert made_text(written, "tanh.json") == made
    for case in read_cases(made, "tanh.json"):
        check(case, "cpu", "float64")


def test_a_last_bit_of_another_machine_makes_no_diff():
    raw = json.loads(made_text(json.dumps(small_file()), "tanh.json"))
    raw["cases"][0]["expected"]["data"][0] += 1e-13
    raw["cases"][0]["gradients"]["x"]["data"][1] -= 1e-13
    elsewhere = layout(raw) + "\n"
    assert made_text(elsewhere, "tanh.json") == elsewhere
