"""autograd.grad, hooks of tensors and modules: eager, and what plans and captures make of them."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, GraphError, PlanWarning, ShapeError

X = np.float32([1.0, -2.0, 3.0])


def leaf():
    return tg.Tensor(X, requires_grad=True)


# ---- autograd.grad --------------------------------------------------------------------------


def test_gradients_by_leaves_and_nodes_touch_no_grad():
    """z = sum((x w)^2): dz/dw = 2 x^2 w, dz/dh = 2 x w for h = x w."""
    w, x = tg.Parameter(2 * X), leaf()
    h = x * w
    by_w, by_h = tg.autograd.grad((h * h).sum(), [w, h])
    np.testing.assert_allclose(by_w.value, 2 * X**2 * 2 * X)
    np.testing.assert_allclose(by_h.value, 2 * X * 2 * X)
    assert w.grad is None and x.grad is None and by_w.op is None and not by_w.requires_grad


def test_several_outputs_with_upstream_gradients():
    x = leaf()
    outputs = [x * 2, (x * x).sum()]
    (found,) = tg.autograd.grad(outputs, x, [tg.Tensor(X), None])
    np.testing.assert_allclose(found.value, 2 * X + 2 * X)
    with pytest.raises(ArgumentError, match="gradients: expected 2 of them, got 1"):
        tg.autograd.grad(outputs, x, [X])


def test_twice_with_retain_graph():
    x = leaf()
    y = (x * x).sum()
    first = tg.autograd.grad(y, x, retain_graph=True)[0].value
    np.testing.assert_array_equal(first, tg.autograd.grad(y, x)[0].value)
    with pytest.raises(GraphError, match="freed by an earlier backward"):
        tg.autograd.grad(y, x)


def test_what_was_found_is_nobody_elses_array():
    x = leaf()
    y = x + 0.0
    upstream = np.ones(3, np.float32)
    (found,) = tg.autograd.grad(y, x, upstream)
    found.value[...] = 7
    assert upstream.tolist() == [1, 1, 1]


def test_an_input_that_is_not_below():
    x, other = leaf(), leaf()
    with pytest.raises(GraphError, match="number 1. Way out: allow_unused=True"):
        tg.autograd.grad(x.sum(), [x, other])
    assert tg.autograd.grad(x.sum(), [other], allow_unused=True) == (None,)
    with pytest.raises(GraphError, match=r"expected tensors that require a gradient"):
        tg.autograd.grad(x.sum(), tg.Tensor(X))
    with pytest.raises(ArgumentError, match="inputs: expected a Tensor, or several, got \\[\\]"):
        tg.autograd.grad(x.sum(), [])


@pytest.mark.parametrize(
    "ask",
    [
        lambda y, x: tg.autograd.grad(y, x, create_graph=True),
        lambda y, x: tg.autograd.backward(y, create_graph=True),
        lambda y, x: y.backward(create_graph=True),
    ],
)
def test_second_derivatives_are_refused(ask):
    x = leaf()
    with pytest.raises(GraphError, match="there are no second derivatives .create_graph=True."):
        ask((x * x).sum(), x)
    assert x.grad is None


def test_backward_of_several():
    x = leaf()
    tg.autograd.backward([x.sum(), x * x], [None, X])
    np.testing.assert_allclose(x.grad, 1 + 2 * X * X)


# ---- hooks of tensors -----------------------------------------------------------------------


def test_a_hook_sees_the_whole_gradient_of_a_node_once():
    x, seen = leaf(), []
    h = x * 3
    h.register_hook(lambda g: seen.append(g.copy()))
    (h * h + h).sum().backward()
    assert len(seen) == 1
    np.testing.assert_allclose(seen[0], 2 * 3 * X + 1)
    np.testing.assert_allclose(x.grad, 3 * (6 * X + 1))


def test_what_a_hook_returns_goes_on_in_the_order_of_registration():
    x = leaf()
    h = x * 3
    h.register_hook(lambda g: g + 1)
    second = h.register_hook(lambda g: tg.Tensor(10 * g))
    x.register_hook(lambda g: -g)
    h.sum().backward()
    np.testing.assert_allclose(x.grad, [-60, -60, -60])
    second.remove()
    x.grad = None
    (x * 1).sum().backward()
    np.testing.assert_allclose(x.grad, [-1, -1, -1])


def test_a_leafs_hook_comes_before_gradients_are_added_up():
    x = leaf()
    with x.register_hook(lambda g: 2 * g):
        (x * 1).sum().backward()
    (x * 1).sum().backward()
    assert x.grad.tolist() == [3, 3, 3] and not x.hooks


def test_autograd_grad_goes_through_hooks():
    x = leaf()
    x.register_hook(lambda g: 2 * g)
    assert tg.autograd.grad(x.sum(), x)[0].tolist() == [2, 2, 2]


def test_one_function_registered_twice_is_removed_once():
    x = leaf()

    def double(g):
        return 2 * g

    first, second = x.register_hook(double), x.register_hook(double)
    second.remove()
    second.remove()
    x.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    first.remove()
    assert x.hooks == ()


def test_hooks_that_cannot_be():
    with pytest.raises(GraphError, match="register_hook: self: expected a tensor that requires"):
        tg.Tensor(X).register_hook(print)
    x = leaf()
    x.register_hook(lambda g: g[:1])
    with pytest.raises(ShapeError, match=r"hook: what it returns: expected shape \(3,\)"):
        x.sum().backward()


# ---- hooks of modules -----------------------------------------------------------------------


def test_hooks_of_a_module_see_and_replace():
    layer, seen = nn.Linear(3, 2), []
    layer.register_forward_pre_hook(lambda module, inputs: inputs[0] * 2)
    layer.register_forward_hook(lambda module, inputs, y: seen.append((module, inputs, y)))
    last = layer.register_forward_hook(lambda module, inputs, y: y + 1)
    y = layer(X)
    ((module, inputs, before),) = seen
    assert module is layer and inputs[0].tolist() == (2 * X).tolist()
    np.testing.assert_allclose(before.value, layer.weight.value @ (2 * X) + layer.bias.value)
    np.testing.assert_array_equal(y.value, before.value + 1)
    last.remove()
    np.testing.assert_array_equal(layer(X).value, before.value)
    assert list(layer.state_dict()) == ["weight", "bias"]


def seen_by(module):
    seen = []
    module.register_full_backward_hook(lambda *given: seen.append(given))
    return seen


def test_a_full_backward_hook_sees_the_gradients_of_one_call():
    """y = W x: gx = gy W; that x is used elsewhere too is nothing to the module."""
    layer, x = nn.Linear(3, 2), leaf()
    seen, gy = seen_by(layer), np.float32([0.5, -2.0])
    y = layer(x)
    tg.autograd.backward([y, (x * x).sum()], [gy, None])
    ((module, (gx,), (got,)),) = seen
    assert module is layer
    np.testing.assert_array_equal(got, gy)
    np.testing.assert_allclose(gx, gy @ layer.weight.value, rtol=1e-6)
    np.testing.assert_allclose(x.grad, gx + 2 * X, rtol=1e-6)
    np.testing.assert_allclose(layer.weight.grad, np.outer(gy, X), rtol=1e-6)


def test_a_full_backward_hook_replaces_what_goes_on():
    layer, x = nn.Tanh(), leaf()
    layer.register_full_backward_hook(lambda module, gx, gy: (3 * gy[0],))
    layer.register_full_backward_hook(lambda module, gx, gy: gx[0] + 1)
    with layer.register_full_backward_hook(lambda module, gx, gy: (gx[0] * 0,)):
        layer(x)
    y = layer(x)
    y.backward(X, retain_graph=True)
    np.testing.assert_allclose(x.grad, 3 * X + 1)
    y.backward(X)  # once more
    np.testing.assert_allclose(x.grad, 2 * (3 * X + 1))


def test_a_full_backward_hook_where_the_input_is_data():
    layer = nn.Linear(3, 2)
    seen = seen_by(layer)
    layer(X).sum().backward()
    ((_, inputs, (gy,)),) = seen
    assert inputs == (None,) and gy.tolist() == [1, 1]
    with tg.no_grad():
        layer(leaf())
    assert len(seen) == 1


class Product(nn.Module):
    def forward(self, a, b, scale=1.0):
        return a * b * scale, a + b


def test_a_full_backward_hook_of_several_inputs_and_outputs():
    module, a, b = Product(), leaf(), tg.Tensor(X + 1, requires_grad=True)
    seen = seen_by(module)
    product, total = module(a, b, scale=2.0)
    (product.sum() + 5 * total.sum()).backward()
    ((_, (ga, gb), (gp, gt)),) = seen
    np.testing.assert_allclose(ga, 2 * (X + 1) + 5)
    np.testing.assert_allclose(gb, 2 * X + 5)
    assert gp.tolist() == [1, 1, 1] and gt.tolist() == [5, 5, 5]
    module.register_full_backward_hook(lambda module, gx, gy: gx)
    with pytest.raises(GraphError, match=r"Product has several inputs.*x.register_hook"):
        module(a, b)[0].sum().backward()


def test_a_full_backward_hook_that_gives_too_many():
    layer = nn.ReLU()
    layer.register_full_backward_hook(lambda module, gx, gy: (gx[0], gx[0]))
    with pytest.raises(GraphError, match="expected 1 gradients, one for each input, got 2"):
        layer(leaf()).sum().backward()


# ---- plans and captured steps ---------------------------------------------------------------


def step_of(layer):
    def step(x):
        loss = (layer(x) ** 2).sum()
        loss.backward()
        return loss

    return step


def gradient(layer, step):
    layer.zero_grad()
    step(X[None])
    return layer.weight.grad.copy()


@pytest.mark.parametrize("late", [False, True])
def test_a_plan_gives_way_to_a_hook_of_a_parameter(late):
    layer = nn.Linear(3, 2)
    expected = gradient(layer, step_of(layer))
    step = tg.compile(step_of(layer))
    if late:
        np.testing.assert_allclose(gradient(layer, step), expected, rtol=1e-6)
    layer.weight.register_hook(lambda g: 10 * g)
    with pytest.warns(PlanWarning, match="hook"):
        found = gradient(layer, step)
    np.testing.assert_allclose(found, 10 * expected, rtol=1e-6)


@pytest.mark.parametrize("late", [False, True])
def test_a_plan_gives_way_to_a_hook_of_a_module(late):
    layer, seen = nn.Linear(3, 2), []
    expected = gradient(layer, step_of(layer))
    step = tg.compile(step_of(layer))
    if late:
        gradient(layer, step)
    layer.register_forward_hook(lambda module, inputs, y: seen.append(y.shape))
    with pytest.warns(PlanWarning, match="calls a hook of a module"):
        found = gradient(layer, step)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    gradient(layer, step)
    assert seen[-2:] == [(1, 2), (1, 2)]


def test_a_plan_gives_way_to_autograd_grad():
    w = tg.Parameter(X)

    @tg.compile
    def slope(x):
        return tg.autograd.grad((w * w * x).sum(), w)[0]

    with pytest.warns(PlanWarning, match=r"it calls autograd.grad"):
        found = slope(X)
    np.testing.assert_allclose(found.value, 2 * X * X)


def test_the_hook_of_an_argument_of_a_plan():
    w, x = tg.Parameter(X), leaf()
    x.register_hook(lambda g: 10 * g)

    @tg.compile
    def learn(x):
        loss = (w * x).sum()
        loss.backward()
        return loss

    learn(x)
    np.testing.assert_allclose(x.grad, 10 * X)
    np.testing.assert_allclose(w.grad, X)


@pytest.mark.second
def test_a_captured_step_refuses_a_hook(rehearsed_cuda):
    w = tg.Parameter(X, device="cuda")
    w.register_hook(lambda g: None)

    def learn(x):
        loss = (w * x).sum()
        loss.backward()
        return loss

    step, x = tg.cuda.capture(learn), tg.ones(3, device="cuda")
    with pytest.raises(GraphError, match="calls a hook of a tensor"):
        for _ in range(4):
            step(x)
