"""A product, or a batch norm, with what is added to it: against the ops, with gradcheck."""

import numpy as np
import pytest

import tinygraph as tg
from tests.plan.networks import step_of
from tests.plan.test_activation import assert_as_apart
from tests.plan.test_rewrites import names
from tinygraph.engine.spec import Spec
from tinygraph.ops.elementwise.relu import Relu
from tinygraph.ops.normalization.batch_norm import BatchNorm
from tinygraph.ops.products.linear import Linear
from tinygraph.ops.windows.conv2d import Conv2d
from tinygraph.plan.rewrites.activation import Activated
from tinygraph.plan.rewrites.residual import Residual

RNG = np.random.default_rng(0)
NORM = BatchNorm(True, 0.1, 1e-5, has_weight=True, has_bias=True, has_running=False)
PRODUCTS = {
    "linear": (Linear(), [(4, 5), (3, 5), (3,), (4, 3)]),
    "conv2d": (Conv2d((1, 1), (1, 1), (1, 1), 1), [(2, 3, 4, 4), (2, 3, 3, 3), (2, 2, 4, 4)]),
    "linear of one sample": (Linear(), [(5,), (3, 5), (3,)]),
    "batch_norm": (NORM, [(4, 3, 2), (3,), (3,), (4, 3, 2)]),
}


@pytest.mark.parametrize("activation", [None, Relu()], ids=["sum", "relu"])
@pytest.mark.parametrize("product, shapes", PRODUCTS.values(), ids=PRODUCTS)
def test_values_and_gradients_are_those_of_the_ops(product, shapes, activation):
    op = Residual(product) if activation is None else Activated(Residual(product), activation)

    def apart(*nodes):
        y = product(*nodes[:-1]) + nodes[-1]
        return y if activation is None else activation(y)

    assert_as_apart(op, apart, [RNG.standard_normal(shape) for shape in shapes])


def test_gradients_that_nobody_wants_are_not_computed():
    x, w, z = [RNG.standard_normal(shape) for shape in [(4, 5), (3, 5), (4, 3)]]
    other = tg.Parameter(z, dtype=np.float64)
    y = Residual(Linear())(x, w, other)
    y.backward(np.ones(y.shape))
    np.testing.assert_array_equal(other.grad, np.ones(y.shape))
    assert [node.grad for node in y.inputs[:2]] == [None, None]


def test_the_batch_goes_through_where_both_sides_carry_it():
    specs = tuple([Spec(shape, np.dtype("f4")) for shape in [(8, 5), (3, 5), (8, 3)]])
    op = Residual(Linear())
    assert op.batch(specs, (True, False, True)) == "map"
    assert op.batch(specs, (True, False, False)) is None
    assert op.batch(specs, (False, False, True)) is None


def product(rows=4):
    x, w = RNG.standard_normal((rows, 5)), RNG.standard_normal((3, 5))
    return tg.linear(x, tg.Parameter(w, dtype=np.float64))


def other():
    return tg.exp(tg.Parameter(RNG.standard_normal((4, 3)), dtype=np.float64))


def test_the_rewrite_finds_sums_on_either_side():
    assert names(product() + other()) == ["exp", "linear_add"]
    assert names(other() + product()) == ["exp", "linear_add"]
    assert names(tg.relu(product() + other())) == ["exp", "linear_add_relu"]
    assert names(product() + product()) == ["linear", "linear_add"]


def test_what_is_left_alone():
    y = product()
    assert names(y + y) == ["linear", "add"]
    assert names(y + other(), y) == ["linear", "exp", "add"]  # the product itself is asked for
    assert names(product() + RNG.standard_normal(3)) == ["linear", "add"]  # a bias: broadcast
    assert names(product(1) + other()) == ["linear", "exp", "add"]
    assert names(tg.matmul(*RNG.standard_normal((2, 3, 3))) + other()[:3]) == [
        "matmul",
        "exp",
        "getitem",
        "add",
    ]
    assert names(tg.tanh(product()) + other()) == ["linear_tanh", "exp", "add"]


class Block(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = tg.nn.Conv2d(2, 4, 3, padding=1), tg.nn.BatchNorm2d(4)
        self.beside, self.norm_beside = tg.nn.Conv2d(2, 4, 1), tg.nn.BatchNorm2d(4)
        self.last = tg.nn.Linear(4 * 25, 3)

    def forward(self, x):
        y = self.norm(self.first(x)) + self.norm_beside(self.beside(x))
        return self.last(tg.flatten(tg.relu(y), 1))


@pytest.mark.parametrize("fast", [False, True], ids=["numpy", "compiled"])
def test_a_residual_block_trains_as_without_a_plan(fast):
    """Losses, parameters and running statistics."""
    if fast:
        pytest.importorskip("numba", reason="numba is missing: pip install -e '.[fast]'")

    def trained(compiled):
        tg.manual_seed(0)
        model = Block()
        rule = tg.optim.SGD(model.parameters(), lr=0.1)
        run = tg.compile(step_of(model, rule), fast=fast) if compiled else step_of(model, rule)
        rng = np.random.default_rng(1)
        x, y = rng.standard_normal((6, 2, 5, 5)).astype(np.float32), rng.integers(0, 3, 6)
        losses = [run(x, y).item() for _ in range(4)]
        return [losses, *[np.array(a) for a in model.state_dict().values()]], run

    (got, run), (want, _) = trained(True), trained(False)
    for ours, right in zip(got, want, strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-4, atol=1e-5)
    assert "batch_norm_add_relu" in run.explain()


def test_what_is_added_may_be_an_input_of_the_product_too():
    """x + linear(x): the gradient of x has both terms."""
    w = tg.Parameter(RNG.standard_normal((3, 3)), dtype=np.float64)
    u = tg.Parameter(RNG.standard_normal((2, 3)), dtype=np.float64)

    def run(function):
        w.grad = u.grad = None
        function().backward()
        return w.grad, u.grad

    def loss():
        x = tg.exp(u)
        return tg.sum(tg.tanh(x + tg.linear(x, w)))

    compiled = tg.compile(loss)
    for got, wanted in zip(run(compiled), run(loss), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    assert "linear_add_tanh" in compiled.explain()
