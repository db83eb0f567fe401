"""Elementwise chains: against the ops one by one, with their gradcheck, in blocks of any size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests.plan.test_rewrites import names
from tinygraph.engine.graph import topological_order
from tinygraph.engine.op import registry
from tinygraph.ops.elementwise.arithmetic import Add, Div, Maximum, Mul, Pow, Sub
from tinygraph.ops.elementwise.clip import Clip
from tinygraph.ops.elementwise.elu import Elu
from tinygraph.ops.elementwise.gelu import Gelu
from tinygraph.ops.elementwise.heaviside import Heaviside
from tinygraph.ops.elementwise.relu import Relu
from tinygraph.ops.elementwise.softplus import Softplus
from tinygraph.ops.elementwise.unary import Unary
from tinygraph.ops.reductions.sum import Sum
from tinygraph.plan import block_program
from tinygraph.plan.block_program import Register, Writer
from tinygraph.plan.code import code_of
from tinygraph.plan.elementwise_chain import ElementwiseChain
from tinygraph.plan.elementwise_tape import tape_of
from tinygraph.plan.rewrites import elementwise_chains, rewrite
from tinygraph.testing import gradcheck
from tinygraph.testing import strategies as ts

EXTREMES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 90.0, -90.0, 1.5, -2.5]


@pytest.fixture(autouse=True)
def any_size(monkeypatch):
    """Chains of small arrays too, in several blocks."""
    monkeypatch.setattr(elementwise_chains, "FEWEST_BYTES", 0)
    monkeypatch.setattr(block_program, "CACHE_BYTES", 200)


def chain_of(y):
    """The op that a graph of one chain becomes, and the values of its operands."""
    code = rewrite(code_of(topological_order([y]), [y], y))
    made = code.instructions[-1]
    assert isinstance(made.op, ElementwiseChain), code
    return made.op, [code.instructions[i].tensor for i in made.inputs]


def draw(*shape, dtype=np.float64):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    return tg.Tensor(x, requires_grad=True)


FORMULAS = {
    "swish": lambda x, y: x * tg.sigmoid(x),
    "gelu": lambda x, y: 0.5 * x * (1.0 + tg.tanh(0.7978846 * (x + 0.044715 * x * x * x))),
    "polynomial": lambda x, y: (x - y) * 0.5 + x * y,
    "gaussian": lambda x, y: tg.exp(-((x - y) * (x - y))),
    "residual": lambda x, y: tg.relu(x + y),
    "division": lambda x, y: -(x / (1.5 + abs(y))),
    "logarithm": lambda x, y: tg.log(tg.sqrt(x * x + 0.5)) - y,
    "detached": lambda x, y: tg.tanh(x) * (x * y).detach(),
}


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)
@pytest.mark.parametrize("shape", [(5, 13), (1,), (2, 3, 4)], ids=str)
def test_a_chain_has_the_values_and_gradients_of_its_ops(formula, shape):
    x, y = draw(*shape), draw(*shape) * 0.5 + 0.25
    y = tg.Tensor(y.value, requires_grad=True)
    want = formula(x, y)
    upstream = np.cos(np.arange(want.size)).reshape(shape)
    want.backward(upstream)
    planned = tg.compile(formula)
    u, v = tg.Tensor(x.value, requires_grad=True), tg.Tensor(y.value, requires_grad=True)
    for _ in range(2):  # the second time in kept buffers
        u.grad = v.grad = None
        got = planned(u, v)
        got.backward(upstream)
        np.testing.assert_allclose(got.value, want.value, rtol=1e-12, atol=1e-15)
        for a, b in ((u, x), (v, y)):
            assert (a.grad is None) == (b.grad is None)
            if b.grad is not None:
                np.testing.assert_allclose(a.grad, b.grad, rtol=1e-10, atol=1e-13)
    assert len([line for line in planned.explain().splitlines() if line.startswith("%")]) == 1


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)
def test_a_chain_that_nobody_differentiates(formula):
    x, y = draw(4, 5).value, draw(4, 5).value * 0.5 + 0.25
    planned = tg.compile(formula)
    for _ in range(2):
        np.testing.assert_allclose(planned(x, y).value, formula(x, tg.Tensor(y)).value, rtol=1e-12)
    table = planned.explain().splitlines()
    assert not planned.reasons and len([line for line in table if line.startswith("%")]) == 1


@pytest.mark.parametrize("name", [name for name in FORMULAS if name != "detached"])
def test_gradcheck(name):
    x, y = draw(4, 5), tg.Tensor(draw(4, 5).value * 0.5 + 0.25, requires_grad=True)
    op, operands = chain_of(FORMULAS[name](x, y))
    wrt = [i for i, t in enumerate(operands) if t.requires_grad]
    assert gradcheck(op, [t.value for t in operands], wrt=wrt).verdict == "pass"


UNARY = [
    kind
    for name, kind in sorted(registry.items())
    if issubclass(kind, Unary) and name.startswith("tinygraph.ops.")
]
WITH_TAPE = [kind() for kind in (Add, Sub, Mul, Div, *UNARY) if kind is not Clip]
WITH_TAPE += [Elu(0.5), Gelu("tanh"), Heaviside(0.25), Softplus(2.0, 1.0)]


@pytest.mark.parametrize("op", WITH_TAPE, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_tape_of_an_op_says_what_the_op_says(op, dtype):
    """Value and gradients, at NaN, infinities and zeros of both signs too."""
    number = 1 if isinstance(op, Unary) else 2
    grids = np.meshgrid(*[np.array(EXTREMES, dtype)] * number)
    nodes = [tg.Tensor(grid.ravel(), requires_grad=True) for grid in grids]
    want = op(*nodes) * 1.0  # two ops make a chain
    chain, operands = chain_of(want)
    want.backward(np.ones(want.shape, dtype))
    again = [tg.Tensor(t.value, requires_grad=t.requires_grad) for t in operands]
    got = chain(*again)
    got.backward(np.ones(want.shape, dtype))
    np.testing.assert_array_equal(got.value, want.value)
    np.testing.assert_array_equal(np.signbit(got.value), np.signbit(want.value))
    for node, twin in zip(nodes, again, strict=False):
        np.testing.assert_allclose(twin.grad, node.grad, rtol=1e-6)


class Doubled(Unary, tg.Op):
    """A new op, as somebody adds it: mathematics alone."""

    def function(self, mem, x, y):
        np.multiply(x, 2, out=y)

    def gradient(self, mem, gy, x, gx):
        np.multiply(gy, 2, out=gx)


def test_a_new_op_joins_a_chain_by_itself():
    x = draw(4, 5)
    y = tg.relu(Doubled()(x + 1.0))
    assert names(y) == ["add_doubled_relu"]
    chain, operands = chain_of(y)
    assert gradcheck(chain, [t.value for t in operands], wrt=[0]).verdict == "pass"


def test_bodies_that_have_no_tape():
    f4 = np.dtype("f4")
    for op, inputs in ((Pow(), 2), (Maximum(), 2), (Clip(0.0, 1.0), 1), (Sum(), 1)):
        assert tape_of(op, (False,) * inputs, f4) is None, op
    assert [step.ufunc for step in tape_of(Relu(), (False,), f4).forward] == [np.maximum, np.add]


@given(ts.graphs(), st.booleans())
def test_random_graphs(graph, inside):
    eager, planned = graph.nodes(), graph.nodes()

    def total(leaves):
        loss = sum([tg.sum(y * y) for y in graph.build(leaves)], start=np.zeros(()))
        if inside:
            loss.backward()
        return loss

    run = tg.compile(lambda: total(planned))
    for _ in range(2):
        want, got = total(eager), run()
        np.testing.assert_allclose(got.value, want.value, rtol=1e-12)
        if not inside:
            want.backward()
            got.backward()
    for a, b in zip(eager, planned, strict=True):
        assert (a.grad is None) == (b.grad is None)
        if a.grad is not None:
            np.testing.assert_allclose(b.grad, a.grad, rtol=1e-10, atol=1e-12)


# ---- what becomes a chain, and what it keeps -----------------------------------------------------


def test_names():
    x, y = draw(4, 5), draw(4, 5)
    assert names(tg.relu(x + y)) == ["add_relu"]
    assert names(FORMULAS["gelu"](x, y)) == ["mul_mul_and_6_more_mul"]


def test_what_is_left_alone(monkeypatch):
    x, row, slope = draw(4, 5), draw(5), draw()
    assert names((x + row) * row) == ["add", "mul"]  # a row is broadcast
    assert names((x * slope) * slope) == ["mul", "mul"]  # the gradient of a number is a sum
    assert names((x * 2.0) * 3.0) == ["mul_mul"]
    z = x * 2.0
    assert names(tg.exp(z), z) == ["mul", "exp"]  # z is asked for
    assert names(tg.exp(z) + tg.sum(z)) == ["mul", "exp", "sum", "add"]  # z has another user
    assert names(tg.exp(x.astype("float32") * 2.0)) == ["cast", "mul_exp"]
    assert names(tg.clip(x, 0.0, 1.0) * 2.0) == ["clip", "mul"]  # clip selects bits
    monkeypatch.setattr(elementwise_chains, "FEWEST_BYTES", 161)
    assert names((x * 2.0) * 3.0) == ["mul", "mul"]  # 160 bytes are too few


def test_what_backward_needs_is_kept_or_computed_again():
    x = draw(4, 5)
    (tanh_mul, _), (square_sum, _) = chain_of(tg.tanh(x) * x), chain_of(x * x + x)
    assert tanh_mul._forward.outputs == 2 and tanh_mul._inference.outputs == 1
    assert square_sum._forward.outputs == 1
    op, operands = chain_of(tg.relu(x + draw(4, 5)))
    upstream = np.ones((4, 5))
    op(*operands).backward(upstream)
    assert op._backward.outputs == 1  # one array is the gradient of both operands
    assert operands[0].grad is not operands[1].grad


def test_the_upstream_gradient_may_be_one_number_or_any_view():
    x = draw(6, 7)
    op, operands = chain_of(x * x + x)
    (x,) = operands
    for upstream in (np.broadcast_to(np.float64(2.0), (6, 7)), np.ones((7, 6)).T * 3):
        x.grad = None
        op(x).backward(upstream)
        np.testing.assert_allclose(x.grad, upstream * (2 * x.value + 1))


def test_operands_of_any_layout():
    base = np.random.default_rng(0).standard_normal((7, 12))
    for view in (base.T, base[::2, ::-1], np.broadcast_to(base[0], (5, 12))):
        op, _ = chain_of(tg.Tensor(view) * tg.sigmoid(tg.Tensor(view)) + tg.Tensor(view))
        want = view / (1 + np.exp(-view)) + view
        np.testing.assert_allclose(op(view, view, view).value, want)


def test_in_tiles_of_a_batch():
    w = tg.Parameter(np.random.default_rng(1).standard_normal((3, 5)), dtype=np.float64)

    def step(x):
        h = tg.linear(x, w)
        loss = tg.sum(h * tg.sigmoid(h) * 2.0)
        loss.backward()
        return loss

    x = np.random.default_rng(2).standard_normal((11, 5))
    step(x)
    want, w.grad = w.grad, None
    run = tg.compile(step, tile=3, threads=2)
    run(x)
    assert "sigmoid_mul_mul" in run.explain() and "tiles of 3" in run.explain()
    np.testing.assert_allclose(w.grad, want, rtol=1e-12)


def test_a_program_writes_over_what_it_has_read():
    """x -> exp(-x) + 1: one scratch block is enough, and what leads nowhere is left out."""
    writer = Writer(1)
    (x,) = writer.inputs
    writer.emit(np.tanh, x)
    y = writer.emit(np.add, writer.emit(np.exp, writer.emit(np.negative, x)), 1)
    program = writer.compiled([y])
    assert len(program.calls) == 3 and program.scratch == (False,)
    assert program.calls[1].operands == (Register(2),) and program.calls[1].result == Register(2)
