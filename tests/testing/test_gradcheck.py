"""gradcheck: verdicts, kinks, dtypes, devices, properties, reports; and no false alarms."""

import json

import numpy as np
import pytest

import tinygraph as tg
from tests.testing import false_alarms
from tinygraph.base.errors import ArgumentError, GradcheckError


def gradcheck(fn, *inputs, **options):
    return tg.testing.gradcheck(fn, inputs, raise_on_failure=False, **options)


def op_of(forward, backward, name="MyOp", infer=None):
    """An op from two functions; `saved` is what forward got."""
    body = {
        "forward": lambda self, mem, *arrays: (forward(*arrays), arrays),
        "backward": lambda self, mem, gy, saved, needs: backward(gy, *saved),
    }
    return type(name, (tg.Op,), body | ({"infer": infer} if infer else {}))()


X = np.random.default_rng(0).standard_normal((4, 3))
square = op_of(lambda x: x * x, lambda gy, x: (2 * gy * x,))


def test_a_right_op_passes_with_all_elements_compared():
    report = gradcheck(square, X)
    assert report.ok and (report.checked, report.kinks) == (12, 0)


@pytest.mark.parametrize(
    ("fn", "name"),
    [(square, "my_op"), (tg.tanh, "tanh"), (lambda x: tg.tanh(square(x)), "my_op, tanh")],
)
def test_the_report_names_what_was_checked(fn, name):
    assert gradcheck(fn, X).function == name


def test_a_failure_raises_with_its_report():
    wrong = op_of(lambda x: x * x, lambda gy, x: (2.002 * gy * x,))
    with pytest.raises(GradcheckError, match="0.1 % off") as caught:
        tg.testing.gradcheck(wrong, [X])
    report = caught.value.report
    assert report.verdict == "fail" and report.worst.input == 0 and report.worst.error > 100
    analytic, numeric = report.worst.analytic, report.worst.numeric
    assert analytic / numeric == pytest.approx(1.001, rel=1e-8)
    assert json.loads(json.dumps(report.to_dict()))["stage"] == "gradient"
    text = str(report)
    assert str(report.worst.element) in text and f"{analytic: .10g}" in text
    assert len(text.splitlines()) < 20


@pytest.mark.parametrize("fn", [tg.relu, tg.abs, lambda x: tg.max_pool2d(x, 2), tg.max])
def test_kinks_and_ties_are_never_a_failure_nor_a_pass(fn):
    """All elements on a kink: what is compared by chance says nothing."""
    report = gradcheck(fn, np.zeros((1, 1, 6, 6)))
    assert report.verdict in ("pass", "inconclusive")
    if fn is not tg.abs:  # abs has slope 0 at 0 by every convention
        assert report.verdict == "inconclusive" and report.kinks > report.checked


@pytest.mark.parametrize("distance", [0, 1e-7, 3e-7, 1e-5, 3.3e-4, 5e-4, 9.9e-4])
def test_a_kink_nearby_does_not_hide_the_rest(distance):
    x = np.linspace(-2, 2, 11) + 0.05
    x[3] = distance
    report = gradcheck(tg.relu, x)
    assert report.ok and report.checked >= 10


@pytest.mark.parametrize("fn", [np.exp, np.sin, np.tanh, lambda x: 1 / (1 + x * x)])
def test_no_smooth_element_is_masked(fn):
    slopes = {np.exp: np.exp, np.sin: np.cos, np.tanh: lambda x: 1 - np.tanh(x) ** 2}
    slope = slopes.get(fn, lambda x: -2 * x / (1 + x * x) ** 2)
    report = gradcheck(op_of(fn, lambda gy, x: (gy * slope(x),)), np.linspace(-3, 3, 200))
    assert report.ok and report.kinks == 0


def test_no_slope_where_the_value_is_not_finite():
    with np.errstate(all="ignore"):
        assert gradcheck(lambda a, b: a / b, np.ones(3), np.zeros(3)).verdict == "inconclusive"
        assert gradcheck(tg.log, [1.0, 0.0, 2.0]).ok


def test_one_wrong_element_of_many_is_found():
    def backward(gy, x):
        gx = 2 * gy * x
        gx[57, 31] += 1
        return (gx,)

    report = gradcheck(op_of(lambda x: x * x, backward), np.ones((100, 100)))
    assert report.worst.element == (57, 31) and report.checked < 200


def test_float32_is_compared_with_float64():
    x = tg.Tensor(X.astype(np.float32))
    assert gradcheck(tg.softmax, x).ok

    def coarse(gy, x):  # right, but rounded to three digits in float32
        gx = 2 * gy * x
        return (gx if x.dtype == np.float64 else np.round(gx, 3),)

    report = gradcheck(op_of(lambda x: x * x, coarse), x)
    assert not report.ok and "in float32" in report.diagnosis and "rounding" in report.diagnosis


def test_long_sums_in_float32_are_right():
    x = np.random.default_rng(1).standard_normal((3, 4000)).astype(np.float32)
    w = np.random.default_rng(2).standard_normal((2, 4000)).astype(np.float32)
    assert gradcheck(tg.linear, tg.Tensor(x), tg.Tensor(w)).ok


def test_kernels_are_compared_with_numpy(kernel_device):
    x = tg.Tensor(X.astype(np.float32), device=kernel_device)
    assert gradcheck(tg.softmax, x).ok

    class WrongKernel(type(tg.cumsum(x, 0).op)):
        def backward_kernel(self, mem, gy, saved, needs):
            return (mem.device.copy(gy),)

    report = gradcheck(WrongKernel(0), x)
    assert not report.ok and str(kernel_device) in report.diagnosis


def test_running_statistics_are_an_update_and_not_a_fault():
    mean, var = np.zeros(3), np.ones(3)
    report = gradcheck(
        lambda x: tg.batch_norm(x, None, None, tg.Tensor(mean), tg.Tensor(var), training=True), X
    )
    assert report.ok


def test_dropout_draws_the_same_mask_and_the_generator_is_left_alone():
    tg.manual_seed(5)
    before = tg.random.default_generator.state_dict()
    assert gradcheck(lambda x: tg.dropout(x, 0.5), X).ok
    assert tg.random.default_generator.state_dict() == before


def test_the_guilty_node_of_several_is_named():
    wrong = op_of(lambda x: x * x, lambda gy, x: (-2 * gy * x,), "Guilty")
    report = gradcheck(lambda x: tg.tanh(wrong(tg.exp(x))), X)
    assert report.diagnosis.startswith("in guilty: the gradient of input 0 has the wrong sign")


def test_several_outputs():
    assert gradcheck(lambda x: tg.split(x, 1, axis=0), X).ok


def test_an_input_that_is_not_used():
    assert gradcheck(lambda x, y: x * 2, X, X).ok


def test_wrt_and_bad_arguments():
    wrong_second = op_of(lambda x, y: x * y, lambda gy, x, y: (gy * y, gy * y))
    assert gradcheck(wrong_second, X, X + 2, wrt=[0]).ok
    assert not gradcheck(wrong_second, X, X + 2).ok
    with pytest.raises(ArgumentError, match="wrt: expected one of"):
        gradcheck(tg.relu, X, wrt=[1])
    with pytest.raises(ArgumentError, match="a Tensor of floats"):
        gradcheck(lambda x: x > 0, X)


def kept(box, gx):
    box.append(gx)
    return sum(box)


def in_place(gy, x):
    gy *= 2 * x
    return (gy,)


def into_input(gy, x):
    x *= 2 * gy
    return (x.copy(),)


@pytest.mark.parametrize(
    "forward, backward, words",
    [
        (lambda x: x * x, in_place, "changes the upstream gradient"),
        (lambda x: x * x, into_input, "backward changes input 0"),
        (lambda x: np.abs(x, out=x), lambda gy, x: (gy * np.sign(x),), "forward changes input 0"),
        (lambda x: x * x, lambda gy, x, box=[]: (kept(box, 2 * gy * x),), "keeps state"),
        (lambda x: x + np.random.random(), lambda gy, x: (gy,), "different outputs"),
        (lambda x: x * x, lambda gy, x: (2 * gy * x + 1e-4 * np.sign(gy),), ""),
        (lambda x: x * x, lambda gy, x: 2 * gy * x, "a bare ndarray"),
        (lambda x: x * x, lambda gy, x: (gy, gy), "2 gradients for 1 inputs"),
        (lambda x: x * x, lambda gy, x: (x.T,), "transposed"),
        (lambda x: x * x, lambda gy, x: ((2 * gy * x).astype("f4"),), "wrong dtype"),
        (lambda x: x * x, lambda gy, x: (1.0,), "returned a float"),
    ],
)
def test_properties_and_contract(forward, backward, words):
    report = gradcheck(op_of(forward, backward), X)
    assert report.verdict == "fail" and words in report.diagnosis


class Products(tg.Op):
    """x * y; each subclass is right but for one thing that it does."""

    def forward(self, mem, x, y):
        return x * y, (x, y)

    def backward(self, mem, gy, saved, needs):
        x, y = saved
        return gy * y, gy * x


class KeepsItsInput(Products):
    def forward(self, mem, x, y):
        self.x = x
        return x * y, (x, y)

    def backward(self, mem, gy, saved, needs):
        return gy * saved[1], gy * self.x


class Counts(Products):
    calls = 0

    def backward(self, mem, gy, saved, needs):
        self.calls += 1
        return super().backward(mem, gy, saved, needs)


class WritesWhatItSaved(Products):
    def forward(self, mem, x, y):
        return x * y, (x.copy(), y)

    def backward(self, mem, gy, saved, needs):
        x, y = saved
        gradients = gy * y, gy * x
        x += 1
        return gradients


@pytest.mark.parametrize(
    ("op", "words"),
    [
        (Products(), ""),
        (KeepsItsInput(), "run on other arrays in between"),
        (Counts(), "changes attributes of the op"),
        (WritesWhatItSaved(), "a second backward over the same graph"),
    ],
)
def test_what_an_op_may_not_keep(op, words):
    report = gradcheck(op, X, X + 2)
    assert report.ok == (not words) and words in report.diagnosis
    assert report.ok or report.stage == "properties"


@pytest.mark.second
def test_no_false_alarms():
    """Some examples of every op; `python -m tests.testing.false_alarms` runs as many as wanted."""
    counts, alarms = false_alarms.run(200)
    assert not alarms, [(name, str(report)) for name, *_, report in alarms[:3]]
    assert counts["pass"] > 180


def test_terms_of_a_normaliser_that_cancel_in_float32():
    """Two features: the gradient is what is left of terms that are a thousand times larger."""
    x = tg.Tensor(np.array([7.5932718, 1.68990461], np.float32))
    assert gradcheck(lambda x: tg.layer_norm(x, 2, eps=0.01), x).ok


def test_the_tail_of_a_step_in_float32():
    """1 + tanh(x) keeps the rounding of 1, and the gradient is as small as that."""
    x = tg.Tensor(np.array(-4.8100857891476245, np.float32))
    assert gradcheck(lambda x: tg.gelu(x, approximate="tanh"), x).ok


def test_two_kinks_that_cancel_are_no_mistake():
    """max(x, c) - max(c, x) is 0 everywhere; at a tie each backward takes the first operand."""

    def cancelling(x, c):
        return tg.sum(tg.maximum(x, c) - tg.maximum(c, x)) + tg.sum(tg.relu(x))

    x, c = np.array([1.0, 0.0, 3.0, 2.0]), np.array([1.0, 5.0, 0.5, -1.0])
    report = tg.testing.gradcheck(cancelling, [x, c], wrt=[0])
    assert report.ok and report.kinks == 2  # the tie, and ReLU at 0

    def wrong_too(x, c):
        return cancelling(x, c) + tg.sum(WrongSquare()(x))

    report = tg.testing.gradcheck(wrong_too, [x, c], wrt=[0], raise_on_failure=False)
    assert report.verdict == "fail"


class WrongSquare(tg.Op):
    def forward(self, mem, x):
        return x * x, x

    def backward(self, mem, grad, saved, needs):
        return (grad * saved,)
