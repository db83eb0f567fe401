"""check_op: right ops pass; each planted mistake is found in its stage, with a small example."""

import doctest
import json
import pathlib

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tinygraph.base.errors import ArgumentError, ShapeError
from tinygraph.testing import Bad, CheckOpError, Convention, Problem, check_op
from tinygraph.testing import strategies as ts
from tinygraph.testing.check_op import STAGES as NAMES

PROBLEMS = [Problem((np.array([[1.0, -3.0], [0.5, 2.0]]),), {}, (True,)), 0.25]


def softsign(x):
    return reference.elementwise(lambda v: v / (1 + abs(v)), x)


class Softsign(tg.Op):
    """x / (1 + abs(x)).

    >>> Softsign()([1.0, -3.0]).value
    array([ 0.5 , -0.75], dtype=float32)
    """

    def forward(self, mem, x):
        return x / (1 + np.abs(x)), x

    def backward(self, mem, gy, x, needs):
        return (gy / (1 + np.abs(x)) ** 2,)

    def batch(self, specs, carries):
        return "map"


def verdict_of(op, **kwargs):
    """The report of an op that is meant to be Softsign."""
    settings = {"reference": softsign, "problems": PROBLEMS, "raise_on_failure": False, **kwargs}
    return check_op(op, **settings)


def test_a_right_op_passes_in_all_stages():
    report = verdict_of(
        Softsign(),
        conventions=[Convention("at 0", ([-0.0, np.inf],), [-0.0, np.nan], ([1.0, 0.0],))],
        bad_input=[Bad("no number", (["a"],), {}, tg.errors.DtypeError, "got <U1")],
    )
    assert report.ok, report.text()
    assert {s.name for s in report.stages if s.verdict == "skipped"} == {
        "kernel equals the reference, the same bits twice"
    }
    assert all(s.examples for s in report.stages if s.verdict == "pass")


EMPTY = np.zeros((0, 3))


@pytest.mark.parametrize(
    ("op", "problem"),
    [
        (Softsign(), Problem((EMPTY,), carries=(True,))),
        (tg.mse_loss, Problem((EMPTY, EMPTY), {"reduction": "sum"}, (True, True))),
        (tg.linear, Problem((EMPTY, np.ones((2, 3))), carries=(True, False))),
    ],
)
def test_a_problem_without_a_sample_passes(op, problem):
    """There is nothing to cut, which is no reason to fail."""
    assert check_op(op, problems=[problem]).ok


@pytest.mark.second
@pytest.mark.parametrize(
    ("function", "naive", "problems"),
    [
        (tg.relu, reference.relu, ts.elementwise_problems()),
        (tg.max_pool2d, reference.max_pool2d, ts.pool_problems()),
    ],
)
def test_ops_of_the_framework_pass_with_their_kernels(function, naive, problems):
    report = check_op(function, naive, problems, examples=10)
    passed = [s.name for s in report.stages if s.verdict == "pass"]
    assert "kernel under the checker" in passed and "examples in the docstring" in passed
    assert "what batch claims" in passed


# ---- planted mistakes -----------------------------------------------------------------------


class WrongValue(Softsign):
    def forward(self, mem, x):
        return np.asarray(x / (1 + np.abs(x) * 1.001)), x


class OnlySquare(Softsign):
    """Right where no axis is longer than the first."""

    def forward(self, mem, x):
        y = x / (1 + np.abs(x))
        if x.ndim == 2 and x.shape[1] > x.shape[0]:
            y = -y
        return y, x


class ReadsMemory(Softsign):
    """Right for arrays in row-major order."""

    def forward(self, mem, x):
        flat = np.lib.stride_tricks.as_strided(x, (x.size,), (x.itemsize,))
        y = flat / (1 + np.abs(flat))
        return y.reshape(x.shape), x


class Double(Softsign):
    """The dtype is lost."""

    def infer(self, x):
        return tg.Spec(x.shape, np.dtype(np.float64))

    def forward(self, mem, x):
        return np.asarray(x / (1 + np.abs(x)), np.float64), x


class WrongGradient(Softsign):
    def backward(self, mem, gy, x, needs):
        return (gy / (1 + np.abs(x)),)


class WritesInput(Softsign):
    def backward(self, mem, gy, x, needs):
        gx = gy / (1 + np.abs(x)) ** 2
        x += 0.5
        return (gx,)


class WritesUpstream(Softsign):
    def backward(self, mem, gy, x, needs):
        gx = gy / (1 + np.abs(x)) ** 2
        gy[...] = 0
        return (gx,)


class KeepsState(Softsign):
    """Right as long as the last forward is that of the backward."""

    def forward(self, mem, x):
        self.x = x
        return x / (1 + np.abs(x)), None

    def backward(self, mem, gy, saved, needs):
        return (gy / (1 + np.abs(self.x)) ** 2,)


class Counts(Softsign):
    """Another value each time."""

    calls = 0

    def forward(self, mem, x):
        Counts.calls += 1
        return x / (1 + np.abs(x)) + 1e-3 * (Counts.calls % 7), x


class WrongClaim(Softsign):
    """It says that samples do not meet, and they do."""

    def forward(self, mem, x):
        y = x / (1 + np.abs(x))
        return (y + y.mean(0) if x.ndim else y), x

    def backward(self, mem, gy, x, needs):
        gy = gy + gy.mean(0) if x.ndim else gy
        return (gy / (1 + np.abs(x)) ** 2,)


VALUE = "value equals the reference, in any dtype and layout"
GRADIENT = "gradient equals finite differences"
STAGES = {
    WrongValue: {VALUE},
    OnlySquare: {VALUE},
    ReadsMemory: {VALUE},
    Double: {VALUE},
    Counts: {VALUE},
    WrongGradient: {GRADIENT},
    WritesInput: {GRADIENT},
    WritesUpstream: {GRADIENT},
    KeepsState: {GRADIENT},
}


@pytest.mark.parametrize("mistake", STAGES, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("problems", [PROBLEMS, ts.elementwise_problems()], ids=["list", "drawn"])
def test_a_mistake_is_found_in_its_stage(mistake, problems):
    if problems is PROBLEMS and mistake is OnlySquare:
        problems = [np.ones((1, 3))]
    report = verdict_of(mistake(), problems=problems, examples=100)
    assert report.failure is not None, report.text()
    assert report.failure.name in STAGES[mistake], report.text()
    assert report.stages[-1] is report.failure and not report.ok
    assert report.failure.message and report.op == mistake.__name__


def test_a_wrong_example_is_found():
    class WrongExample(Softsign):
        """
        >>> WrongExample()([1.0]).value
        array([0.6], dtype=float32)
        """

    report = verdict_of(WrongExample())
    assert report.failure.name == "examples in the docstring"
    assert "array([0.5], dtype=float32)" in report.failure.message


@pytest.mark.second
def test_a_wrong_claim_is_found():
    def naive(x):
        return softsign(x) + softsign(x).mean(0) if x.ndim else softsign(x)

    report = verdict_of(WrongClaim(), reference=naive, problems=ts.elementwise_problems())
    assert report.failure.name == "what batch claims"
    assert "'map', but 2 samples cut after 1" in report.failure.message


def test_the_example_is_the_smallest():
    report = verdict_of(OnlySquare(), problems=ts.elementwise_problems(), examples=200)
    assert "float64[1, 2]" in report.failure.example
    assert "layout" not in report.failure.example and "transposed" not in report.failure.example


def test_conventions_are_compared_exactly():
    for value, gradient, words in (
        ([0.0], [1.0], "the sign of a zero"),
        ([-0.0], [0.5], "gradient of input 0 differs"),
        ([0.1], [1.0], "value differs"),
    ):
        given = [Convention("at minus zero", ([-0.0],), value, (gradient,))]
        report = verdict_of(Softsign(), conventions=given)
        assert report.failure.name == "conventions" and words in report.failure.message


def test_bad_input_that_is_accepted_or_refused_in_other_words():
    for bad, words in (
        (Bad("fine", ([1.0],), {}, ShapeError, "x"), "fine: accepted; expected ShapeError"),
        (Bad("text", (["a"],), {}, ShapeError, "x"), "text: raised DtypeError"),
        (Bad("text", (["a"],), {}, TypeError, "stride"), "'stride' is not in: Tensor: data"),
    ):
        report = verdict_of(Softsign(), bad_input=[bad])
        assert report.failure.name == "bad input is refused" and words in report.failure.message


def test_kinks_alone_are_inconclusive():
    report = check_op(tg.relu, reference.relu, [np.zeros(3)], raise_on_failure=False)
    stage = next(s for s in report.stages if s.name == GRADIENT)
    assert stage.verdict == "inconclusive" and not report.ok and report.failure is None
    with pytest.raises(CheckOpError, match="kink"):
        check_op(tg.relu, reference.relu, [np.zeros(3)])


def test_a_class_takes_the_keywords_as_hyper_parameters():
    class Scaled(tg.Op):
        def __init__(self, factor=1.0):
            self.factor = factor

        def forward(self, mem, x):
            return np.asarray(x * x.dtype.type(self.factor)), None

        def backward(self, mem, gy, saved, needs):
            return (gy * gy.dtype.type(self.factor),)

    problems = [Problem((np.ones(3),), {"factor": factor}) for factor in (2.0, -0.5)]
    assert check_op(Scaled, lambda x, factor: factor * x, problems).ok
    report = verdict_of(Scaled, reference=lambda x, factor: x, problems=problems)
    assert "factor=2.0" in report.failure.example


def test_without_a_reference_layouts_are_compared_all_the_same():
    report = verdict_of(Softsign(), reference=None)
    assert report.ok and ("value equals a reference", "skipped") in {
        (s.name, s.verdict) for s in report.stages
    }
    assert verdict_of(ReadsMemory(), reference=None).failure.name.startswith("value equals itself")


def test_an_op_without_a_derivative():
    class Sign(tg.Op):
        def forward(self, mem, x):
            return np.sign(x), None

    assert check_op(Sign(), np.sign, PROBLEMS, differentiable=False).ok
    assert check_op(Sign(), np.sign, PROBLEMS, raise_on_failure=False).failure.name == GRADIENT


def test_the_error_holds_the_report_and_its_text():
    with pytest.raises(CheckOpError) as caught:
        check_op(WrongGradient(), softsign, PROBLEMS)
    report = caught.value.report
    assert str(caught.value) == report.text()
    assert "the smallest example:\n  input 0: float64[] array(0.25)" in report.text()
    loaded = json.loads(json.dumps(report.to_dict()))
    assert not loaded["ok"] and loaded["stages"][-1]["verdict"] == "fail"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"op": 3}, "op: expected an Op"),
        ({"problems": 3}, "problems: expected a list"),
        ({"problems": "abc"}, "problems: expected a list"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        verdict_of(**{"op": Softsign(), **arguments})


@pytest.mark.second
def test_the_page_about_it_runs_as_printed():
    page = pathlib.Path(__file__).parents[2] / "docs" / "check_op.md"
    results = doctest.testfile(str(page), module_relative=False, report=True)
    assert results.attempted > 10 and not results.failed


@pytest.mark.parametrize(
    ("stages", "names"),
    [
        (["value"], {"value equals the reference, in any dtype and layout"}),
        ("batch", {"what batch claims", "an empty batch"}),
        (["docstring", "bad input"], {"bad input is refused", "examples in the docstring"}),
    ],
)
def test_stages_that_are_asked_for_and_no_others(stages, names):
    report = verdict_of(Softsign(), stages=stages)
    assert {stage.name for stage in report.stages} == names


def test_all_stages_together_are_the_whole_check():
    whole = [stage.name for stage in verdict_of(Softsign()).stages]
    parts = [verdict_of(Softsign(), stages=[name]).stages for name in NAMES]
    assert [stage.name for stages in parts for stage in stages] == whole


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        (["gradeint"], "did you mean 'gradient'"),
        ([], "expected some of"),
        (["gradient"], "expected one that there is for this op, got gradient"),
    ],
)
def test_stages_that_there_are_none_of_are_refused(stages, words):
    """A check that tries nothing would pass."""
    with pytest.raises(tg.errors.ArgumentError, match=words):
        verdict_of(Softsign(), differentiable=False, stages=stages)
