"""`a += b`: a new node for a node, a write into memory for a parameter under no_grad."""

import operator

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import DtypeError, GraphError, PlanWarning, ShapeError

IN_PLACE = {
    "iadd": operator.add,
    "isub": operator.sub,
    "imul": operator.mul,
    "itruediv": operator.truediv,
    "ipow": operator.pow,
}
W = np.float32([1.0, 2.0])


@pytest.mark.parametrize("name", IN_PLACE)
def test_on_a_node_it_is_another_node(name):
    w = tg.Parameter(W)
    first = y = w * 1
    y = getattr(operator, name)(y, 3.0)
    assert y is not first and first.value.tolist() == W.tolist() and y.requires_grad
    np.testing.assert_array_equal(y.value, IN_PLACE[name](W, np.float32(3)))


def test_on_data_it_is_a_node_and_other_names_keep_what_they_had():
    a = b = tg.Tensor(W)
    a += 1
    assert b.value.tolist() == [1, 2] and a.value.tolist() == [2, 3] and a.op.name == "add"


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("kind", [tg.Parameter, nn.Buffer, lambda d: tg.Tensor(d, True)])
def test_a_parameter_is_written_under_no_grad(name, kind):
    w = kind(W)
    memory = w.value
    with tg.no_grad():
        same = getattr(operator, name)(w, 3.0)
    assert same is w and w.value is memory
    np.testing.assert_array_equal(memory, IN_PLACE[name](W, np.float32(3)))


@pytest.mark.parametrize("kind", [tg.Parameter, nn.Buffer, lambda d: tg.Tensor(d, True)])
def test_a_parameter_is_not_changed_elsewhere(kind):
    w = kind(W)
    with pytest.raises(GraphError, match=r"Way out: with tg.no_grad\(\): w -= lr \* w.grad"):
        w -= 1
    assert w.value.tolist() == W.tolist()


def test_the_step_of_the_tutorials():
    """Closed form: (w - 3)^2 has the gradient 2 (w - 3); each step leaves 0.8 of the distance."""
    w = tg.Tensor([0.0, 1.0], requires_grad=True)
    for _ in range(5):
        ((w - 3) ** 2).sum().backward()
        with tg.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
    np.testing.assert_allclose(w.value, 3 - np.array([3, 2]) * 0.8**5, rtol=1e-6)


def test_what_does_not_fit_is_refused():
    w, n = tg.Parameter(W), nn.Buffer([1, 2])
    with tg.no_grad():
        with pytest.raises(ShapeError, match=r"in place: self: expected an array of shape \(2,\)"):
            w += np.ones((3, 2), np.float32)
        with pytest.raises(DtypeError, match="in place: self: expected int64"):
            n /= 2
    assert w.value.tolist() == [1, 2] and n.value.tolist() == [1, 2]


def test_a_write_before_the_backward_that_needs_what_was_there():
    w = tg.Parameter(W)
    loss = (w * w).sum()
    with tg.no_grad():
        w -= 1
    with pytest.raises(GraphError, match="they were overwritten since"):
        loss.backward()


def test_elements_are_not_assigned():
    with pytest.raises(GraphError, match=r"Way out: tg.where\(...\)"):
        tg.Tensor(W)[0] = 1


class Block(nn.Module):
    """The residual block of ResNet, as it is written everywhere."""

    def __init__(self):
        self.conv = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x):
        identity = x
        out = self.conv(x)
        out += identity
        return tg.relu(out)


def gradients(run):
    tg.manual_seed(0)
    block = Block()
    x = tg.Tensor(np.random.default_rng(0).standard_normal((3, 2, 4, 4)).astype(np.float32))

    def loss(x):
        result = (block(x) ** 2).mean()
        result.backward()
        return result

    loss = run(loss)
    return [*[loss(x).item() for _ in range(2)], *[p.grad for p in block.parameters()]]


def test_a_residual_block_eager_and_compiled():
    eager, compiled = gradients(lambda f: f), gradients(tg.compile)
    for mine, theirs in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(theirs, mine, rtol=1e-5, atol=1e-6)
    block = Block()
    x = tg.randn(1, 2, 4, 4)
    expected = np.maximum(block.conv(x).value + x.value, 0)
    np.testing.assert_array_equal(block(x).value, expected)


def test_a_write_is_no_part_of_a_plan():
    w = tg.Parameter(W)

    @tg.compile
    def grow(x):
        global_w = w
        with tg.no_grad():
            global_w += x
        return w * 1

    with pytest.warns(PlanWarning, match="it changes self in place|changes a leaf in place"):
        y = grow(tg.Tensor([1.0, 1.0]))
    assert y.value.tolist() == [2, 3] and w.value.tolist() == [2, 3]


@pytest.mark.second
def test_a_write_is_no_part_of_a_captured_step(rehearsed_cuda):
    w = tg.Parameter(W, device="cuda")

    def step(x):
        global_w = w
        with tg.no_grad():
            global_w += x
        return x * 2

    captured = tg.cuda.capture(step)
    x = tg.ones(2, device="cuda")
    with pytest.raises(GraphError, match="changes a leaf in place"):
        for _ in range(4):
            captured(x)
