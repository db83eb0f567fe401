"""What compile cannot repeat, what it refuses, errors on the way, and the memory that it takes."""

import gc
import multiprocessing
import tracemalloc
import warnings
import weakref

import numpy as np
import pytest

import tinygraph as tg
from tests.plan.networks import F, images, small_network, step_of
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, PlanWarning, ShapeError
from tinygraph.engine.op import Op


def reads(x, w):
    y = tg.sum(w * x)
    return y if y.item() > 0 else -y


def returns_a_number(x, w):
    return 3.0


def assigns_a_gradient(x, w):
    y = tg.sum(w * x)
    y.backward()
    w.grad = np.ones(2)
    return y


def two_backwards(x, w):
    a = tg.sum(w * x)
    a.backward()
    b = tg.sum(w * w)
    b.backward()
    return b


def uses_a_gradient(x, w):
    y = tg.sum(w * x)
    y.backward()
    w.value = w.value - 0.0 * w.grad
    return y


def computes_after_the_step(x, w):
    rule = tg.optim.SGD([w], lr=0.0)
    y = tg.sum(w * x)
    y.backward()
    rule.step()
    return tg.sum(w)


def elsewhere(x, w):
    return tg.sum(tg.Tensor(x.numpy(), device="emulator") if isinstance(x, tg.Tensor) else x)


@pytest.mark.parametrize(
    "fn, words",
    [
        (reads, "reads a value"),
        (returns_a_number, "returns a float"),
        (two_backwards, "backward more than once"),
        (uses_a_gradient, "uses a gradient"),
        (assigns_a_gradient, "assigns a gradient"),
        (computes_after_the_step, "computes after"),
        (elsewhere, "reads a value"),
    ],
)
def test_what_no_plan_can_repeat_runs_as_it_stands_and_says_so_once(fn, words):
    x = np.array([1.0, -3.0])
    w, v = (tg.Parameter([1.0, 2.0], dtype=np.float64) for _ in range(2))
    want = [fn(x, w) for _ in range(3)]
    run = tg.compile(lambda x: fn(x, v))
    with pytest.warns(PlanWarning, match=words) as caught:
        got = [run(x) for _ in range(3)]
    assert len(caught) == 1
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    np.testing.assert_array_equal(v.value, w.value)
    assert (v.grad is None) == (w.grad is None)
    if v.grad is not None:
        np.testing.assert_array_equal(v.grad, w.grad)
    assert words in run.explain()


def test_errors_are_those_of_the_function():
    w = tg.Parameter(np.ones((3, 2), F))

    @tg.compile
    def step(x, y):
        loss = tg.softmax_cross_entropy(tg.linear(x, w), y)
        loss.backward()
        return loss

    with pytest.raises(ShapeError, match="linear: x"):  # and no warning beside it
        step(np.ones((4, 5), F), np.zeros(4, np.int64))
    x = np.ones((4, 2), F)
    step(x, np.zeros(4, np.int64))
    before = w.grad.copy()
    with pytest.raises(ArgumentError, match="label"):
        step(x, np.full(4, 9))
    np.testing.assert_array_equal(w.grad, before)
    step(x, np.zeros(4, np.int64))  # and it still works
    np.testing.assert_allclose(w.grad, 2 * before, rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"tile": 3}], ids=str)
def test_a_first_run_that_fails_leaves_nothing_behind(options):
    def trained_from(first_labels, compiled):
        tg.manual_seed(0)
        model = small_network().eval()

        def step(x, y):
            loss = tg.softmax_cross_entropy(model(x), y)
            loss.backward()
            return loss

        run = tg.compile(step, **options) if compiled else step
        x, y = images(0, 8)
        if first_labels is not None:
            with pytest.raises(ArgumentError, match="label"):
                run(x, first_labels)
        for _ in range(3):
            run(x, y)
        return [p.grad for p in model.parameters()]

    for bad in (np.full(8, 7), np.array([0, 1, 2, 0, 1, 2, 0, 7])):  # at once, and in a later tile
        for a, b in zip(trained_from(bad, True), trained_from(None, False), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("options", [{"tile": 0}, {"threads": 1.5}])
def test_bad_arguments(options):
    with pytest.raises(ArgumentError, match="compile"):
        tg.compile(lambda x: x, **options)
    with pytest.raises(ArgumentError, match="a function"):
        tg.compile(3)


def test_a_compiled_function_in_another_one():
    w = tg.Parameter([2.0])
    inner = tg.compile(lambda x: w * x)
    outer = tg.compile(lambda x: tg.sum(inner(x) * inner(x)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = outer(np.array([3.0], F))
    y.backward()
    np.testing.assert_allclose([y.item(), w.grad[0]], [36.0, 36.0])


# ---- memory --------------------------------------------------------------------------------------


@pytest.mark.second
@pytest.mark.parametrize("options", [{}, {"tile": 8, "threads": 2}], ids=str)
def test_no_arrays_are_made_in_the_steady_state(options):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((32, 1, 16, 16)).astype(F), rng.integers(0, 3, 32)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(392, 3)
    )
    rule = tg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    step = step_of(model, rule)

    def peak(run):
        for _ in range(4):  # at the fourth the function is looked at again
            run(x, y)
        gc.collect()
        tracemalloc.start()
        run(x, y)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(step) > 800_000
    assert peak(tg.compile(step, **options)) < 60_000  # index arrays and the like


class Noting(Op):
    """y = x; it notes the arrays that it is given to write."""

    def __init__(self):
        self.made = []

    def infer(self, x):
        return x

    def forward(self, mem, x):
        y = mem.empty(x.shape, x.dtype)
        self.made.append(weakref.ref(y))
        np.copyto(y, x)
        return y, y

    def backward(self, mem, grad, saved, needs):
        return (grad * (saved > 0),)

    def batch(self, specs, carries):
        return "map"


@pytest.mark.second
@pytest.mark.parametrize("options", [{}, {"tile": 8, "threads": 2}], ids=str)
def test_the_arrays_of_the_first_run_are_freed_before_the_second(options):
    """Else they would lie in memory beside the buffers."""
    op, w = Noting(), tg.Parameter(np.ones((300, 3), F))

    def step(x):
        loss = tg.sum(op(tg.linear(x, w)))
        loss.backward()
        return loss

    planned = tg.compile(step, **options)
    planned(np.ones((16, 3), F))
    gc.collect()
    assert op.made and all(array() is None for array in op.made)
    planned(np.ones((16, 3), F))


def in_tiles(x):
    return tg.compile(lambda x: tg.tanh(x), tile=2, threads=2)(x).value


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="the system cannot fork"
)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_that_was_forked_off_has_threads_of_its_own():
    x = np.ones((8, 3), F)
    with tg.no_grad():
        want = in_tiles(x)
        with multiprocessing.get_context("fork").Pool(1) as processes:
            np.testing.assert_array_equal(processes.apply_async(in_tiles, (x,)).get(60), want)
