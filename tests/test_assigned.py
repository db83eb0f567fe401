"""What may be assigned to a node, and what is refused where it is assigned."""

import copy
import pickle

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import DeviceError, DtypeError, GraphError, ShapeError


def test_what_an_op_made_cannot_be_told_to_require_no_gradient():
    """PyTorch: "you can only change requires_grad flags of leaf variables"."""
    w = tg.Parameter([1.0, 2.0])
    y = w * 2

    def by_attribute():
        y.requires_grad = False

    for change in (by_attribute, lambda: y.requires_grad_(False)):
        with pytest.raises(GraphError, match=r"a leaf, got what mul made.*Way out: x\.detach\(\)"):
            change()
    assert y.requires_grad and isinstance(GraphError(""), RuntimeError)
    y.sum().backward()
    assert w.grad.tolist() == [2, 2]
    assert not y.detach().requires_grad
    assert y.requires_grad_() is y  # it does already: no change, as in PyTorch


def test_what_an_op_made_of_data_cannot_be_told_to_require_a_gradient():
    """Its gradient would arrive nowhere in silence: `.grad` is that of leaves."""
    y = tg.Tensor([1.0, 2.0]) * 2
    with pytest.raises(GraphError, match=r"Way out: x\.detach\(\)\.requires_grad_\(\)"):
        y.requires_grad = True
    leaf = y.detach().requires_grad_()
    (leaf * 3).sum().backward()
    assert leaf.grad.tolist() == [3, 3] and y.requires_grad_(False) is y
    with tg.no_grad():
        made = tg.Parameter([1.0]) * 2  # a leaf: nothing is remembered
    made.requires_grad = True
    assert made.requires_grad


@pytest.mark.parametrize("flag", [1, 0, "False", None, np.ones(1)])
def test_a_flag_is_a_bool(flag):
    layer, x = nn.Linear(2, 1), tg.Tensor([1.0])

    def assign():
        x.requires_grad = flag

    for change in (assign, lambda: x.requires_grad_(flag), lambda: layer.requires_grad_(flag)):
        with pytest.raises(DtypeError, match="requires_grad: expected True or False"):
            change()
    assert not x.requires_grad and all(p.requires_grad for p in layer.parameters())


def test_freezing_leaves():
    layer = nn.Linear(2, 1)
    layer.weight.requires_grad = False
    layer(tg.ones(1, 2)).sum().backward()
    assert layer.weight.grad is None and layer.bias.grad.tolist() == [1]
    assert not any(p.requires_grad for p in layer.requires_grad_(np.False_).parameters())
    whole = tg.tensor([1, 2])
    with pytest.raises(DtypeError, match=r"got True with int64\. Way out: .*x\.float\(\)"):
        whole.requires_grad = True
    whole.requires_grad = False


def test_the_value_of_a_node_is_what_its_op_computed():
    y = tg.Parameter([1.0, 2.0]) * 2
    for name in ("value", "data"):
        with pytest.raises(GraphError, match=rf"{name}: self: expected a leaf, got what mul made"):
            setattr(y, name, np.zeros(2, np.float32))
    assert y.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("given", "expected"),
    [([3, 4], [3.0, 4.0]), ((1.5, 2.5, 3.5), [1.5, 2.5, 3.5]), (tg.Tensor([5.0]), [5.0])],
)
def test_a_leaf_takes_numbers_of_any_kind(given, expected):
    x = tg.Tensor([1.0, 2.0])
    x.value = given
    assert type(x.value) is np.ndarray and x.dtype == np.float32 and x.tolist() == expected
    assert (x * 2).sum().item() == 2 * sum(expected)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        *(("text", DtypeError), (None, DtypeError), ([[1], [1, 2]], DtypeError), (1j, DtypeError)),
        *((np.array(["a"]), DtypeError), (tg.ones(1, device="emulator"), DeviceError)),
    ],
)
@pytest.mark.parametrize("name", ["value", "data"])
def test_a_leaf_refuses_what_is_no_array_of_numbers(name, given, error):
    x = tg.Tensor([1.0])
    with pytest.raises(error, match="expected"):
        setattr(x, name, given)
    assert x.tolist() == [1.0]


def test_a_leaf_that_requires_a_gradient_takes_floats():
    x = tg.Tensor([1.0], requires_grad=True)
    with pytest.raises(DtypeError, match="value: requires_grad: .*int64"):
        x.value = np.array([1])


def test_gradients_that_are_assigned_are_arrays_of_the_leaf(kernel_device):
    w = tg.Parameter([1.0, 2.0], device=kernel_device)
    for given in ([1, 2], np.float32([1, 2]), tg.Tensor([1.0, 2.0], device=kernel_device)):
        w.grad = given
        assert w.device.owns(w.grad) and w.device.to_numpy(w.grad).tolist() == [1, 2]
    with pytest.raises(ShapeError, match=r"grad: self: expected an array of shape \(2,\)"):
        w.grad = [[1.0, 2.0]]
    tg.optim.SGD([w], lr=1.0).step()
    assert w.tolist() == [0, 0]


def test_a_gradient_that_is_given_and_one_that_backward_adds():
    w = tg.Parameter([1.0, 2.0])
    w.grad = [10.0, 20.0]
    (w * 2).sum().backward()
    assert w.grad.tolist() == [12, 22]


def test_copies_keep_what_was_assigned():
    w = tg.Parameter([1.0, 2.0], name="w")
    w.grad, w.requires_grad = [3.0, 4.0], False
    for twin in (copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        assert twin.tolist() == [1, 2] and twin.grad.tolist() == [3, 4]
        assert (twin.requires_grad, twin.name) == (False, "w") and twin.grad is not w.grad
