"""A product with the activation written over it: against the two ops, with its gradcheck."""

import numpy as np
import pytest

import tinygraph as tg
from tests.plan.networks import step_of
from tests.plan.test_rewrites import names
from tinygraph.ops.elementwise.elementwise import Exp
from tinygraph.ops.elementwise.relu import Relu
from tinygraph.ops.elementwise.sigmoid import Sigmoid
from tinygraph.ops.elementwise.tanh import Tanh
from tinygraph.ops.products.linear import Linear
from tinygraph.ops.products.matmul import Matmul
from tinygraph.ops.windows.conv2d import Conv2d
from tinygraph.ops.windows.conv2d_relu_max_pool2d import Conv2dReluMaxPool2d
from tinygraph.ops.windows.max_pool2d import MaxPool2d
from tinygraph.plan import block_program
from tinygraph.plan.rewrites.activation import Activated
from tinygraph.testing import gradcheck

RNG = np.random.default_rng(0)
ACTIVATIONS = [Relu(), Tanh(), Sigmoid(), Exp()]
PRODUCTS = {
    "linear": (Linear(), [(4, 5), (3, 5), (3,)]),
    "linear of one sample": (Linear(), [(5,), (3, 5)]),
    "conv2d": (Conv2d((1, 1), (1, 1), (1, 1), 2), [(2, 4, 5, 4), (6, 2, 3, 3), (6,)]),
    "conv2d_relu_max_pool2d": (
        Conv2dReluMaxPool2d((1, 1), (0, 0), (1, 1), 1, 2),
        [(2, 1, 6, 6), (3, 1, 3, 3), (3,)],
    ),
    "max_pool2d": (MaxPool2d((3, 3), (2, 2), (1, 1), False), [(2, 3, 7, 6)]),
    "matmul": (Matmul(), [(2, 4, 5), (5, 3)]),
    "matmul of vectors": (Matmul(), [(5,), (5,)]),
}


def draw(shapes):
    return [RNG.standard_normal(shape) for shape in shapes]


def assert_as_apart(op, apart, arrays):
    """Values and gradients of a fused op are those of its ops one by one, and of differences."""
    assert gradcheck(op, arrays).verdict == "pass"
    found = []
    for function in (op, apart):
        nodes = [tg.Tensor(a, requires_grad=True) for a in arrays]
        y = function(*nodes)
        y.backward(np.cos(np.arange(y.size)).reshape(y.shape))
        found.append([y.value, *[x.grad for x in nodes]])
    for fused, unfused in zip(*found, strict=True):
        np.testing.assert_allclose(fused, unfused, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda op: op.name)
@pytest.mark.parametrize("product, shapes", PRODUCTS.values(), ids=PRODUCTS)
def test_values_and_gradients_are_those_of_the_two_ops(product, shapes, activation):
    op = Activated(product, activation)
    assert_as_apart(op, lambda *nodes: activation(product(*nodes)), draw(shapes))


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda op: op.name)
def test_extreme_values_and_several_blocks(activation, monkeypatch):
    """The product is the input itself: NaN, infinities, zeros of both signs, more than a block."""
    monkeypatch.setattr(block_program, "CACHE_BYTES", 200)
    extremes = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 700.0, -700.0])
    x = np.resize(extremes, (1, 1009)).astype(np.float32)
    conv = Conv2d((1, 1), (0, 0), (1, 1), 1)
    image, one = x.reshape(1, 1, 1, -1), np.ones((1, 1, 1, 1), np.float32)
    want = activation(conv(image, one)).value
    got = Activated(conv, activation)(image, one).value
    np.testing.assert_allclose(got, want, rtol=1e-6)
    if isinstance(activation, Relu):
        assert not np.signbit(got[got == 0]).any()


def test_needs_decide_what_is_computed():
    x, w, b = draw([(4, 5), (3, 5), (3,)])
    weight = tg.Parameter(w, dtype=np.float64)
    y = Activated(Linear(), Tanh())(x, weight, b)
    y.backward(np.ones(y.shape))
    assert y.inputs[0].grad is None
    np.testing.assert_allclose(weight.grad, (1 - y.value**2).T @ x)


def test_on_a_device_the_kernels_follow_each_other():
    arrays = [a.astype(np.float32) for a in draw([(4, 5), (3, 5), (3,)])]
    found = []
    for device in ("cpu", "emulator"):
        nodes = [tg.Tensor(a, requires_grad=True, device=device) for a in arrays]
        y = Activated(Linear(), Relu())(*nodes)
        y.backward(np.ones(y.shape, np.float32))
        found.append([y.numpy(), *[np.asarray(x.grad) for x in nodes]])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


def product():
    x, w, b = draw([(4, 5), (3, 5), (3,)])
    return tg.linear(x, tg.Parameter(w, dtype=np.float64), b)


@pytest.mark.parametrize("name", ["relu", "tanh", "sigmoid"])
def test_the_rewrite_finds_pairs(name):
    assert names(getattr(tg, name)(product())) == [f"linear_{name}"]


def test_what_is_left_alone():
    y = product()
    assert names(tg.relu(y), y) == ["linear", "relu"]  # the product itself is asked for
    assert names(tg.relu(y), tg.tanh(y)) == ["linear", "relu", "tanh"]
    assert names(tg.elu(product())) == ["linear", "elu"]  # its derivative is read off the input


def test_a_perceptron_needs_no_more_than_its_layers():
    """The table of a plan: one op for each layer; the same training as without a plan."""

    def trained(compiled):
        tg.manual_seed(0)
        model = tg.nn.Sequential(
            tg.nn.Linear(6, 8),
            tg.nn.ReLU(),
            tg.nn.Linear(8, 8),
            tg.nn.Sigmoid(),
            tg.nn.Linear(8, 3),
        )
        rule = tg.optim.SGD(model.parameters(), lr=0.5)

        step = step_of(model, rule)
        run = tg.compile(step) if compiled else step
        rng = np.random.default_rng(1)
        x, y = rng.standard_normal((20, 6)).astype(np.float32), rng.integers(0, 3, 20)
        return [run(x, y).item() for _ in range(5)], run

    (got, run), (want, _) = trained(True), trained(False)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    ops = [line.split()[1] for line in run.explain().splitlines() if line.startswith("%")]
    assert ops == ["linear_relu", "linear_sigmoid", "linear", "softmax_cross_entropy"]
