"""`.grad` of a leaf: the array that a backward made, if nobody else has it; never a shared one."""

from itertools import pairwise

import numpy as np
import pytest

import tinygraph as tg
from tests.conftest import DEVICES
from tinygraph.engine.device import get_device

F = np.float32


@pytest.fixture(params=[*DEVICES, *(["rehearsed"] if "cuda" not in DEVICES else [])])
def place(request):
    """Each device; cuda on the stand-in."""
    if request.param == "rehearsed":
        request.getfixturevalue("rehearsed_cuda")
        return get_device("cuda")
    return get_device(request.param)


@pytest.fixture
def copies(place, monkeypatch):
    """The shapes that the device was asked to copy."""
    made, copy = [], type(place).copy

    def spy(self, array):
        made.append(array.shape)
        return copy(self, array)

    monkeypatch.setattr(type(place), "copy", spy)
    return made


def parameter(place, *shape):
    rng = np.random.default_rng(len(shape))
    return tg.Parameter(rng.standard_normal(shape).astype(F), device=place)


def overlap(place, *arrays):
    """Whether two of these have memory in common."""
    spans = []
    for a in arrays:
        at = a.ctypes.data if place.on_host else a.data.ptr
        spans.append((at, at + a.nbytes))
    spans.sort()
    return any(end > start for (_, end), (start, _) in pairwise(spans))


def host(place, array):
    return np.array(place.to_numpy(array))


def test_gradients_of_layers_are_handed_over(place, copies):
    x, w, b = (parameter(place, *shape) for shape in [(5, 4), (3, 4), (3,)])
    loss = tg.relu(tg.linear(x, w, b)).sum()
    del copies[:]
    loss.backward()
    assert not copies
    assert not overlap(place, x.grad, w.grad, b.grad, x.value, w.value, b.value)


def test_one_array_for_two_inputs_is_copied_once(place, copies):
    """The gradients of a sum are the upstream one, for both."""
    a, b, c = (parameter(place, 3, 4) for _ in range(3))
    loss = tg.sum((a + b) * c)
    del copies[:]
    loss.backward()
    assert len(copies) <= 1 and not overlap(place, a.grad, b.grad, c.grad, c.value)
    expected = host(place, c.value)
    np.testing.assert_array_equal(host(place, a.grad), expected)
    np.testing.assert_array_equal(host(place, b.grad), expected)


def test_views_of_one_gradient_share_nothing(place):
    a, b = parameter(place, 2, 6), parameter(place, 3, 4)
    (tg.reshape(a, (3, 4)) + b).backward(np.arange(12, dtype=F).reshape(3, 4))
    assert not overlap(place, a.grad, b.grad)
    np.testing.assert_array_equal(host(place, a.grad), np.arange(12, dtype=F).reshape(2, 6))
    t = parameter(place, 2, 3)
    tg.transpose(t).backward(np.arange(6, dtype=F).reshape(3, 2))
    assert t.grad.flags.c_contiguous
    np.testing.assert_array_equal(host(place, t.grad), np.arange(6, dtype=F).reshape(3, 2).T)


def test_what_the_user_gave_stays_the_users(place):
    a, b = parameter(place, 3, 4), parameter(place, 3, 4)
    given = place.from_numpy(np.ones((3, 4), F))
    (a + b).backward(given)
    a.backward(given)
    assert not overlap(place, a.grad, b.grad, given)
    np.testing.assert_array_equal(host(place, a.grad), np.full((3, 4), 2, F))
    np.testing.assert_array_equal(host(place, given), np.ones((3, 4), F))


def test_a_graph_that_is_kept_gives_the_same_again(place):
    w, x = parameter(place, 3, 4), parameter(place, 5, 4)
    loss = (tg.exp(tg.linear(x, w)) * 2.0).sum()
    loss.backward(retain_graph=True)
    first = host(place, w.grad), host(place, x.grad)
    loss.backward(retain_graph=True)
    w.grad = x.grad = None
    loss.backward()
    np.testing.assert_array_equal(host(place, w.grad), first[0])
    np.testing.assert_array_equal(host(place, x.grad), first[1])


def test_accumulated_and_several_uses(place):
    w, x = parameter(place, 4), parameter(place, 4)
    for _ in range(2):
        (w * x + w * w + w).sum().backward()
    expected = 2 * (host(place, x.value) + 2 * host(place, w.value) + 1)
    np.testing.assert_allclose(host(place, w.grad), expected, rtol=1e-6)
    assert not overlap(place, w.grad, x.grad, w.value, x.value)


def test_a_node_that_keeps_its_gradient_shares_it_with_no_leaf(place):
    a, b = parameter(place, 3), parameter(place, 3)
    node = (a + b).retain_grad()
    (node * node).sum().backward()
    assert not overlap(place, node.grad, a.grad, b.grad, node.value)


class Keeps(tg.Op):
    """Returns arrays that somebody else has."""

    table = None

    def forward(self, mem, x, y):
        out = mem.empty(x.shape, x.dtype)
        out[...] = x
        type(self).table = mem.empty(x.shape, x.dtype)
        self.table[...] = y
        return out, self.table

    def backward(self, mem, grad, saved, needs):
        return self.table, saved

    forward_kernel, backward_kernel = forward, backward


@pytest.mark.parametrize("retain", [False, True])
def test_an_array_that_an_op_keeps_is_copied(place, retain):
    x, y = parameter(place, 3), parameter(place, 3)
    Keeps()(x, y).backward(np.ones(3, F), retain_graph=retain)
    assert not overlap(place, x.grad, y.grad, Keeps.table)
    Keeps.table = None


class Saved(Keeps):
    """The same array is the gradient, saved, and nobody's afterwards."""

    def forward(self, mem, x):
        out = mem.empty(x.shape, x.dtype)
        out[...] = x
        return out, out

    def backward(self, mem, grad, saved, needs):
        return (saved,)

    forward_kernel, backward_kernel = forward, backward


def test_a_saved_array_is_not_the_gradient(place):
    """It is the value of the node, too."""
    x = parameter(place, 3)
    y = Saved()(x)
    y.backward(np.ones(3, F))
    assert not overlap(place, x.grad, y.value)


@pytest.mark.second
def test_gradients_of_a_plan_are_written_where_they_leave(place, copies):
    """Only what it returns is copied; two uses are added up in arrays of their own."""
    w, b, v = (parameter(place, *shape) for shape in [(3, 4), (3,), (3, 3)])
    x = tg.Tensor(np.ones((5, 4), F), device=place)

    def step(x):
        h = tg.tanh(tg.linear(x, w, b))
        loss = tg.sum(tg.linear(tg.relu(tg.linear(h, v)), v))
        loss.backward()
        return loss

    leaves, wanted = (w, b, v), []
    step(x)
    for leaf in leaves:
        wanted.append(host(place, leaf.grad))
        leaf.grad = None
    run, held = tg.compile(step), []
    for number in range(4):
        del copies[:]
        run(x)
        if number > 1 and place.runs_kernels:
            assert copies == [()]  # the loss
        for leaf, want in zip(leaves, wanted, strict=True):
            np.testing.assert_allclose(host(place, leaf.grad), want, rtol=1e-5)
            held.append(leaf.grad)
            leaf.grad = None
    assert not run.reasons and not overlap(place, *held)


def test_a_gradient_that_is_held_is_not_written_by_the_next_step(place):
    w = parameter(place, 3, 4)
    sgd = tg.optim.SGD([w], lr=0.0)
    held = []
    for scale in range(1, 4):
        sgd.zero_grad()
        tg.sum(tg.linear(parameter(place, 5, 4), w) * float(scale)).backward()
        sgd.step()
        held.append(w.grad)
    first = host(place, held[0])
    for scale, gradient in enumerate(held, 1):
        np.testing.assert_allclose(host(place, gradient), first * scale, rtol=1e-6)
