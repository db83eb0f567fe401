"""detect_anomaly names the op, the place and the user's line, forward and backward."""

import inspect
import threading

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import GraphError


class Bad(tg.Op):
    """Puts a value at one place of its output, or of its gradient."""

    def __init__(self, value, index, backward=False):
        self.value, self.index, self.in_backward = value, index, backward

    def forward(self, mem, x):
        y = x.copy()
        if not self.in_backward:
            y[self.index] = self.value
        return y, None

    def backward(self, mem, grad, saved, needs):
        gx = grad.copy()
        if self.in_backward:
            gx[self.index] = self.value
        return (gx,)


def next_line():
    """This file and the line after the caller's."""
    frame = inspect.currentframe().f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno + 1}"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_forward(value):
    x = tg.zeros(2, 3)
    with tg.detect_anomaly(), pytest.raises(GraphError) as caught:
        line = next_line()
        tg.relu(Bad(value, (1, 2))(x))
    text = str(caught.value)
    assert f"bad made {np.float32(value)} at [1, 2] in its forward (1 of 6 elements)" in text
    assert f"{line}: tg.relu(Bad(" in text


def test_backward_names_the_line_that_made_the_node():
    x = tg.ones(3, requires_grad=True)
    with tg.detect_anomaly():
        line = next_line()
        y = Bad(np.nan, 1, backward=True)(x)
        with pytest.raises(GraphError, match=r"bad made nan at \[1\] in its backward") as caught:
            y.backward(np.ones(3))
    assert line in str(caught.value)
    assert x.grad is None


def test_a_graph_run_again():
    x = tg.Tensor([1.0], name="x")
    y = tg.relu(x)
    with tg.detect_anomaly(), pytest.raises(GraphError, match="relu was given nan.*made before"):
        tg.Graph(y).forward({"x": np.array([np.nan])})


def test_infinities_that_were_handed_in_may_pass():
    with tg.detect_anomaly():
        assert tg.relu([np.inf]).item() == np.inf


def write(array):
    array[0] = 7.0


@pytest.mark.parametrize("changed", ["w", "x"])
@pytest.mark.parametrize("op", [tg.mul, tg.sub, tg.maximum])
def test_a_leaf_that_was_written_to_between_forward_and_backward(op, changed):
    """What needs no old numbers goes on: the gradient of a difference."""
    leaves = {"w": tg.Parameter([1.0, 2.0], name="w"), "x": tg.Tensor([3.0, 4.0], name="x")}
    with tg.detect_anomaly():
        line = next_line()
        y = op(leaves["w"], leaves["x"])
        write(leaves[changed].value)
        if op is tg.sub:
            y.sum().backward()
            assert leaves["w"].grad.tolist() == [1.0, 1.0]
            return
        if op is tg.mul and changed == "w":  # the gradient of w needs x alone
            y.sum().backward()
            assert leaves["w"].grad.tolist() == [3.0, 4.0]
            return
        with pytest.raises(GraphError, match=rf"leaf {changed}\(2,\) was written to") as caught:
            y.sum().backward()
    assert line in str(caught.value) and "Way out: call backward before that" in str(caught.value)


def test_a_leaf_that_took_other_numbers_whole():
    w = tg.Parameter([1.0, 2.0])
    with tg.detect_anomaly():
        y = (w * w).sum()
        w.value = np.float32([6.0, 8.0])
        y.backward()
        tg.optim.SGD([w], lr=0.5).step()
    assert w.grad.tolist() == [2.0, 4.0] and w.value.tolist() == [5.0, 6.0]


def test_off_by_default_after_and_in_other_threads():
    Bad(np.nan, 0)(tg.zeros(1))
    with tg.detect_anomaly():
        thread = threading.Thread(target=lambda: Bad(np.nan, 0)(tg.zeros(1)))
        thread.start()
        thread.join()
    assert np.isnan(Bad(np.nan, 0)(tg.zeros(1)).item())
    assert tg.relu([1.0]).made_at is None
