"""`autograd.local_gradients`, one step of the walk back, and the bodies of an op called by hand."""

import numpy as np
import pytest

import tinygraph as tg
from tests.conftest import DEVICES
from tinygraph.testing import memory


def walk(output):
    """The walk back, by hand: no `.grad`, and gradients are added up here."""
    nodes, found = tg.Graph(output).nodes, {}
    pending = {output: np.ones_like(output.value)}
    for node in reversed(nodes):
        if node not in pending or not node.requires_grad:
            continue
        if node.op is None:
            found[node] = pending[node]
            continue
        for x, gradient in tg.autograd.local_gradients(node, pending[node]):
            pending[x] = pending[x] + gradient if x in pending else gradient
    return found


def graph():
    x = tg.Tensor(np.array([1.0, -2.0, 3.0]), requires_grad=True)
    w = tg.Tensor(np.array([0.5, 0.5, -0.5]), requires_grad=True)
    c = tg.Tensor(np.array([2.0, 2.0, 2.0]))
    h = x * w
    return x, w, (h * tg.relu(h) * c + h).sum()


def test_a_walk_of_ones_own_gives_what_backward_gives():
    x, w, y = graph()
    found = walk(y)
    assert set(found) == {x, w}
    again_x, again_w, again = graph()
    again.backward()
    assert (found[x] == again_x.grad).all() and (found[w] == again_w.grad).all()
    # by hand: h = [0.5, -1, -1.5], dy/dh = 4 h where h > 0, plus 1
    assert (found[x] == [3 * 0.5, 0.5, -0.5]).all()
    assert x.grad is None


@pytest.mark.parametrize("device", DEVICES)
def test_each_use_of_an_input_has_its_own(device):
    x = tg.Tensor([3.0], requires_grad=True, device=device)
    y = tg.Tensor([5.0], device=device)
    (one, first), (other, second) = tg.autograd.local_gradients(x * x, tg.Tensor([10.0]))
    assert one is other is x
    assert float(first[0]) == float(second[0]) == 30
    ((only, gradient),) = tg.autograd.local_gradients(x * y, [1.0])
    assert only is x and float(gradient[0]) == 5  # y requires none


def test_what_was_saved_stays_until_backward_frees_it():
    x = tg.Tensor([3.0], requires_grad=True)
    y = x * x
    for _ in range(2):
        tg.autograd.local_gradients(y, [1.0])
    y.backward()
    with pytest.raises(tg.errors.GraphError, match="was freed by an earlier backward"):
        tg.autograd.local_gradients(y, [1.0])


@pytest.mark.parametrize(
    ("node", "upstream", "error", "words"),
    [
        (lambda x: x, [1.0], tg.errors.GraphError, "expected a node with an op, got a leaf"),
        (lambda x: x.detach() * 2, [1.0], tg.errors.GraphError, "nothing below this node"),
        (lambda x: x * x, [1.0, 2.0], tg.errors.ShapeError, r"expected shape \(1,\)"),
        (lambda x: 3.0, [1.0], tg.errors.ArgumentError, "expected a Tensor, got float"),
    ],
)
def test_bad_input(node, upstream, error, words):
    with pytest.raises(error, match=words):
        tg.autograd.local_gradients(node(tg.Tensor([3.0], requires_grad=True)), upstream)


@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_the_bodies_of_an_op_by_hand(device):
    """A product: its gradients are gy times the other factor; what is not wanted is None."""
    x = tg.Tensor(np.array([1.0, 4.0], np.float32), requires_grad=True)
    op, mem = (x * x).op, memory(True, False, device=device)
    a, b = np.array([1.0, 4.0], np.float32), np.array([3.0, 2.0], np.float32)
    names = ("forward", "backward") if device == "cpu" else ("forward_kernel", "backward_kernel")
    forward, backward = (getattr(op, name) for name in names)
    y, saved = forward(mem, a, b)
    assert y.tolist() == [3, 8]
    ga, gb = backward(mem, np.array([10.0, 1.0], np.float32), saved, mem.needs)
    assert ga.tolist() == [30, 2] and gb is None


def test_needs_are_true_or_false():
    assert memory().needs == () and memory(True, False).needs == (True, False)
    with pytest.raises(tg.errors.ArgumentError, match=r"memory\(True, False\)"):
        memory([True])
    with pytest.raises(tg.errors.ArgumentError, match="emulator"):
        memory(True, device="emulatr")
