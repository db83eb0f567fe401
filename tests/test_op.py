"""What the engine holds an op to, ours or a user's own."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import DeviceError, GraphError
from tinygraph.engine.op import registry


def make(forward=None, backward=None, infer=None):
    """A throw-away op from plain functions."""
    body = {"name": "broken"}
    if forward:
        body["forward"] = lambda self, mem, *a: forward(*a)
    if backward:
        body["backward"] = lambda self, mem, grad, saved, needs: backward(grad)
    if infer:
        body["infer"] = lambda self, *s: infer(*s)
    return type("Broken", (tg.Op,), body)()


X = tg.Tensor([1.0, 2.0], requires_grad=True)


def test_the_name_of_an_op():
    assert tg.relu([1.0]).op.name == "relu"
    assert tg.softmax_cross_entropy([[1.0]], [0]).op.name == "softmax_cross_entropy"
    assert tg.conv2d(tg.ones(1, 1, 1, 1), tg.ones(1, 1, 1, 1)).op.name == "conv2d"


def test_users_ops_are_registered():
    class MyOwnOp(tg.Op):
        pass

    assert MyOwnOp.name == "my_own_op" and MyOwnOp in registry.values()


def test_forward_must_keep_what_infer_promised():
    with pytest.raises(GraphError, match=r"broken: forward: .*float32\[2\], got float32\[1\]"):
        make(lambda x: (x[:1], None))(X)
    with pytest.raises(GraphError, match=r"got float64\[2\]"):
        make(lambda x: (x.astype(np.float64), None))(X)


@pytest.mark.parametrize(
    ("gradient", "words"),
    [
        (lambda g: (), "0 gradients for 1 inputs"),
        (lambda g: (g[:1],), r"has the shape \(1,\), the input has \(2,\)"),
        (lambda g: (g.astype(np.float64),), "is float64, the input is float32"),
    ],
)
def test_backward_must_keep_shape_dtype_and_count(gradient, words):
    y = make(lambda x: (x + 1, None), gradient)(X)
    with pytest.raises(GraphError, match=words):
        y.backward(np.ones(2))


def test_what_is_not_defined_says_so():
    with pytest.raises(GraphError, match="no forward in numpy"):
        make()(X)
    with pytest.raises(GraphError, match="not differentiable"):
        make(lambda x: (x + 1, None))(X).backward(np.ones(2))
    with pytest.raises(GraphError, match="at least one, got none"):
        make()()
    with pytest.raises(DeviceError, match="no kernel yet"):
        make().forward_kernel(None)


def test_a_gradient_of_none_stops_there():
    x = tg.Tensor([1.0], requires_grad=True)
    make(lambda x: (x + 1, None), lambda g: (None,))(x).backward()
    assert x.grad is None
