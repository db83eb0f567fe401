"""Gradients of leaves are written where they stay, not copied there, wherever that is safe."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.plan.leaf_gradients import Totals

RNG = np.random.default_rng(0)


def parameters():
    return [tg.Parameter(RNG.standard_normal((4, 4)), dtype=np.float64) for _ in range(2)]


class Twins(tg.Op):
    """x + y, whose two gradients are one buffer, and a view of it."""

    def forward(self, mem, x, y):
        return np.add(x, y, out=mem.empty(x.shape, x.dtype)), None

    def backward(self, mem, grad, saved, needs):
        g = mem.empty(grad.shape, grad.dtype)
        np.copyto(g, grad)
        return g, g[:]


FORMULAS = {
    "one use": lambda x, v, w: tg.linear(tg.tanh(tg.linear(x, v)), w),
    "shared": lambda x, v, w: tg.linear(tg.linear(tg.linear(x, v), w), v),
    "twice in one op": lambda x, v, w: tg.linear(x, v * v) + tg.linear(x, w),
    "one buffer for both": lambda x, v, w: tg.linear(x, Twins()(v, w)),
    "passed through": lambda x, v, w: tg.linear(x, (v + w) * 2.0) + tg.linear(x, w),
}


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)
@pytest.mark.parametrize("options", [{}, {"tile": 3}, {"tile": 2, "threads": 2}], ids=str)
def test_gradients_are_those_of_the_graph(formula, options):
    v, w = parameters()

    def step(x):
        loss = tg.sum(tg.tanh(formula(x, v, w)))
        v.grad = w.grad = None
        loss.backward()
        return loss

    planned = tg.compile(step, **options)
    before = []
    for _ in range(4):  # what an earlier run has handed out stays as it is
        x = RNG.standard_normal((7, 4))
        step(x)
        want = v.grad, w.grad
        planned(x)
        for got, expected in zip((v.grad, w.grad), want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-13)
        assert not np.shares_memory(v.grad, w.grad)
        before.append((v.grad, w.grad, v.grad.copy(), w.grad.copy()))
        for a, b, a_then, b_then in before:
            np.testing.assert_array_equal(a, a_then)
            np.testing.assert_array_equal(b, b_then)


def test_nothing_is_copied_where_a_product_makes_the_gradient(monkeypatch):
    v, w = parameters()
    copied = []

    def add(self, leaf, gradient, plain=Totals.add):
        if leaf not in self.reached and gradient is not self.arrays[leaf]:
            copied.append(leaf)
        plain(self, leaf, gradient)

    monkeypatch.setattr(Totals, "add", add)

    @tg.compile
    def step(x):
        loss = tg.sum(FORMULAS["one use"](x, v, w))
        v.grad = w.grad = None
        loss.backward()
        return loss

    for _ in range(2):  # twice, for the first call cannot tell who removes the gradients
        step(np.ones((7, 4)))
    assert set(copied) == {1, 3}  # a plan's first run only finds out
    copied.clear()
    step(np.ones((7, 4)))
    assert not copied


class Holder:
    pass


def in_an_object(g):
    holder = Holder()
    holder.held = holder.itself = g
    return holder, lambda: holder.held


KEPT = {
    "the array": lambda g: (g, lambda: g),
    "a list": lambda g: ([[g]], lambda: g),
    "an attribute": in_an_object,
    "a view": lambda g: (v := g[1:, ::2], lambda: v),
    "a view of a view of other numbers": lambda g: (v := g.T[2:].view(np.int32), lambda: v),
    "a memoryview": lambda g: (m := memoryview(g), lambda: np.asarray(m)),
    "bytes of a buffer": lambda g: (b := np.frombuffer(g, np.uint8), lambda: b),
    "an iterator": lambda g: (i := g.flat, lambda: i.base),
    "another library": lambda g: (d := np.from_dlpack(g), lambda: d),
    "a leaf": lambda g: (t := tg.Tensor(np.zeros(1)), lambda: t.value, setattr(t, "value", g)),
}


@pytest.mark.parametrize("keep", KEPT.values(), ids=KEPT)
@pytest.mark.parametrize("columns", [4, 40_000], ids=["small", "large"])
@pytest.mark.parametrize("inside", [True, False], ids=["backward inside", "backward later"])
def test_a_gradient_that_is_kept_is_never_written_again(keep, columns, inside):
    w = tg.Parameter(np.ones((4, columns), np.float32))

    @tg.compile
    def step(x):
        loss = tg.sum(w * x)
        w.grad = None
        if inside:
            loss.backward()
        return loss

    kept = []
    for run in range(6):
        loss = step(np.full((4, 1), run, np.float32))
        if not inside:
            loss.backward()
        assert (w.grad == run).all()
        _, now, *_ = keep(w.grad)
        kept.append((now, now().copy()))
        for later, then in kept:
            np.testing.assert_array_equal(later(), then)


def test_the_memory_of_a_gradient_that_nobody_keeps_is_taken_again():
    w = tg.Parameter(np.ones((4, 40_000), np.float32))

    @tg.compile
    def step(x):
        loss = tg.sum(w * x)
        w.grad = None
        loss.backward()
        return loss

    def place():
        step(np.ones((4, 1), np.float32))
        return w.grad.ctypes.data

    first = {place() for _ in range(4)}
    kept = w.grad
    others = {place() for _ in range(4)}
    assert len(first) <= 2 and kept.ctypes.data not in others and len(others) <= 2
    del kept
    assert place() in first | others
