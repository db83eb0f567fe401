"""Elementwise chains that numba compiles: against numpy, a naive oracle, and differences.

As in test_fast_bodies.py the loops run as Python in float64, and compiled in float32.
"""

import math
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests.plan.test_elementwise_chains import EXTREMES, FORMULAS, chain_of, draw
from tests.plan.test_fast import needs_numba
from tests.plan.test_fast_bodies import as_written
from tinygraph.base.errors import PlanWarning
from tinygraph.engine.graph import topological_order
from tinygraph.engine.memory import eager_memory
from tinygraph.engine.spec import Spec
from tinygraph.plan.block_program import Writer
from tinygraph.plan.code import Code, Instruction, code_of
from tinygraph.plan.elementwise_chain import ElementwiseChain
from tinygraph.plan.fast import choice, elementwise_chain, with_compiled_bodies
from tinygraph.plan.fast.elementary import elementary
from tinygraph.plan.rewrites import elementwise_chains, rewrite
from tinygraph.testing import gradcheck

NUMBA = pytest.param("numba", marks=needs_numba)
NOT_EXACT = {np.exp, np.expm1, np.log, np.log1p, np.tanh}
FULL = [*EXTREMES, 1.0, -1.0, 2.0, 0.3, -0.3, 20.0, -110.0, 110.0, 1e-42, -1e-42, 3e38]


@pytest.fixture(autouse=True)
def any_size(monkeypatch):
    monkeypatch.setattr(elementwise_chains, "FEWEST_BYTES", 0)


@contextmanager
def python_loops():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elementwise_chain, "compiled", as_written)
        patch.setattr(elementwise_chain, "inlined", lambda function: function)
        elementwise_chain.kernel.cache_clear()
        yield
    elementwise_chain.kernel.cache_clear()


@pytest.fixture(scope="module", params=["python", NUMBA])
def dtype(request):
    if request.param == "numba":
        yield np.float32
    else:
        with python_loops():
            yield np.float64


def both(y):
    """The chain that a graph becomes, in numpy and compiled, and the values of its operands."""
    op, operands = chain_of(y)
    specs = tuple([Spec(t.shape, t.dtype) for t in operands])
    fast = elementwise_chain.elementwise_chain(op, specs)
    assert isinstance(fast, elementwise_chain.CompiledElementwiseChain)
    return op, fast, operands


def results(op, operands, g):
    nodes = [tg.Tensor(t.value, requires_grad=t.requires_grad) for t in operands]
    y = op(*nodes)
    if y.requires_grad:
        y.backward(g)
    return [y.numpy(), *[node.grad for node in nodes if node.grad is not None]]


# ---- one function at a time ----------------------------------------------------------------------


def units(found, wanted, dtype):
    """The distance in units of the last place; 0 for two NaN, and for infinities of one sign."""
    rounded = wanted.astype(dtype)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    with np.errstate(invalid="ignore"):
        distance = np.abs(found - wanted) / np.spacing(np.abs(rounded)).astype(wanted.dtype)
    return np.where(same, 0, distance)


@pytest.mark.parametrize("of", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["exp", "log", "tanh"])
@given(data=st.data())
def test_exp_log_and_tanh_are_within_three_units(of, name, data):
    """All floating-point numbers: subnormal ones, NaN and infinities too."""
    function = elementary(np.dtype(of), lambda f: f)[name]
    width = st.floats(width=np.dtype(of).itemsize * 8) | st.floats(-20, 20, width=32)
    x = np.array(data.draw(st.lists(width, min_size=1, max_size=20)) + FULL).astype(of)
    with np.errstate(all="ignore"):
        found = np.array([function(number) for number in x], of)
        wanted = getattr(np, name)(x.astype(np.longdouble))
        assert units(found, wanted, of).max() <= 3
    decided = ~np.isnan(found)
    np.testing.assert_array_equal(np.signbit(found)[decided], np.signbit(wanted)[decided])


@pytest.mark.second
def test_a_loop_has_the_bits_of_numpy_but_for_exp_log_and_tanh(dtype):
    """All ufuncs in one loop, at NaN, infinities, zeros of both signs and subnormal numbers."""
    writer = Writer(2)
    ufuncs = list(elementwise_chain.EXPRESSIONS)
    made = [writer.emit(ufunc, *writer.inputs[: ufunc.nin]) for ufunc in ufuncs]
    program = writer.compiled(made)
    x, y = (np.ravel(grid).astype(dtype) for grid in np.meshgrid(FULL, FULL))
    outputs = [np.empty_like(x) for _ in ufuncs]
    elementwise_chain.kernel(program, (False, False), x.dtype)(x, y, *outputs)
    for ufunc, found in zip(ufuncs, outputs, strict=True):
        with np.errstate(all="ignore"):
            wanted = ufunc(*(x, y)[: ufunc.nin]).astype(dtype)
        if ufunc in NOT_EXACT:
            assert units(found, wanted, dtype).max() <= 4, ufunc  # numpy is not exact either
            continue
        np.testing.assert_array_equal(found, wanted, err_msg=ufunc.__name__)
        if ufunc not in (np.maximum, np.minimum):  # of zeros of both signs, numpy takes either
            decided = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(found)[decided], np.signbit(wanted)[decided])


# ---- chains --------------------------------------------------------------------------------------


@pytest.mark.second
def test_values_and_gradients_are_those_in_numpy(dtype):
    """Compiled: single numbers and a kept value; an upstream gradient that is one number, too."""
    names = FORMULAS if dtype is np.float64 else ["gelu"]
    x, y = draw(5, 13, dtype=dtype), draw(5, 13, dtype=dtype)
    y = tg.Tensor(np.abs(y.value) + dtype(0.25), requires_grad=True)
    tolerance = 40 * np.finfo(dtype).eps
    for name in names:
        plain, fast, operands = both(FORMULAS[name](x, y))
        for g in (
            np.cos(np.arange(65.0)).reshape(5, 13).astype(dtype),
            np.broadcast_to(dtype(2), (5, 13)),
        ):
            for ours, theirs in zip(
                results(fast, operands, g), results(plain, operands, g), strict=True
            ):
                np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@given(x=st.lists(st.floats(width=32), min_size=3, max_size=40))
def test_without_exp_log_and_tanh_the_bits_are_those_of_numpy(dtype, x):
    """Sums of products, where one rounding in the place of two would show."""
    x = tg.Tensor(np.array(x, dtype), requires_grad=True)
    y = tg.Tensor(x.value[::-1].copy(), requires_grad=True)
    plain, fast, operands = both(tg.relu(x * y - y * y) * 0.3 + (x * x - y * x))
    g = np.cos(np.arange(x.size)).astype(dtype)
    for ours, theirs in zip(results(fast, operands, g), results(plain, operands, g), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["gelu", "division", "residual"])
def test_gradients_are_those_of_differences(name):
    x, y = draw(3, 4), tg.Tensor(draw(3, 4).value * 0.5 + 0.25, requires_grad=True)
    with python_loops():
        _, fast, operands = both(FORMULAS[name](x, y))
        wrt = [i for i, t in enumerate(operands) if t.requires_grad]
        assert gradcheck(fast, [t.value for t in operands], wrt=wrt).verdict == "pass"


# A naive oracle: one element at a time, a value with its derivatives by x and by y.
STEPS = {
    "add": (lambda a, b: a + b, lambda a, b: (1, 1)),
    "sub": (lambda a, b: a - b, lambda a, b: (1, -1)),
    "mul": (lambda a, b: a * b, lambda a, b: (b, a)),
    "neg": (lambda a: -a, lambda a: (-1,)),
    "abs": (abs, lambda a: ((a > 0) - (a < 0),)),
    "exp": (math.exp, lambda a: (math.exp(a),)),
    "relu": (lambda a: max(a, 0.0), lambda a: (float(a > 0),)),
    "sigmoid": (
        lambda a: 1 / (1 + math.exp(-a)),
        lambda a: (math.exp(-a) / (1 + math.exp(-a)) ** 2,),
    ),
    "tanh": (math.tanh, lambda a: (1 / math.cosh(a) ** 2,)),
}


@st.composite
def formulas(draw):
    """Steps (name, operands): 0 and 1 are x and y, 2 is a number; each takes the step before it."""
    steps = []
    for at in range(3, 3 + draw(st.integers(2, 6))):
        name = draw(st.sampled_from(sorted(STEPS)))
        other = draw(st.integers(0, at - 1))
        one_operand = name not in ("add", "sub", "mul")
        before = at - 1 if steps else draw(st.integers(0, 1))
        steps.append((name, (before,) if one_operand else (before, other)))
    return steps


def total(slopes, derivatives):
    return sum(a * b for a, b in zip(slopes, derivatives, strict=True))


def slowly(steps, x, y, number):
    """The value, and its derivatives by x and by y."""
    values = [(x, 1.0, 0.0), (y, 0.0, 1.0), (number, 0.0, 0.0)]
    for name, operands in steps:
        function, slopes = STEPS[name]
        inputs, by_x, by_y = zip(*[values[i] for i in operands], strict=True)
        of = slopes(*inputs)
        values.append((function(*inputs), total(of, by_x), total(of, by_y)))
    return values[-1]


def as_chain(steps, shape):
    """The same steps as a code of a chain; operands that no step takes are left out."""
    used = sorted({i for _, operands in steps for i in operands if i < 3})
    place = {old: new for new, old in enumerate([*used, *range(3, 3 + len(steps))])}
    spec, single = Spec(shape, np.dtype(float)), Spec((), np.dtype(float))
    made = [Instruction(single if i == 2 else spec, argument=i) for i in used]
    tracked = {0, 1}
    for at, (name, operands) in enumerate(steps, 3):
        needs = tuple([i in tracked for i in operands])
        tracked |= {at} if any(needs) else set()
        op = getattr(tg, name)(*[tg.Tensor(np.ones(1)) for _ in operands]).op
        made.append(Instruction(spec, op, tuple([place[i] for i in operands]), needs))
    return ElementwiseChain(Code(made, (len(made) - 1,), len(made) - 1)), used


@given(steps=formulas(), seed=st.integers(0, 1000))
def test_random_chains_against_a_naive_oracle(steps, seed):
    x, y = np.random.default_rng(seed).uniform(-0.9, 0.9, (2, 4))
    arrays = x, y, np.array(0.7)
    op, used = as_chain(steps, (4,))
    g, needs = np.cos(np.arange(4.0)), tuple([i < 2 for i in used])
    with python_loops(), np.errstate(all="ignore"):
        fast = elementwise_chain.elementwise_chain(
            op, tuple([Spec(arrays[i].shape, arrays[i].dtype) for i in used])
        )
        memory = eager_memory(needs)
        found, saved = fast.forward(memory, *[arrays[i] for i in used])
        gradients = fast.backward(memory, g, saved, needs)
    try:
        wanted = np.array([slowly(steps, *pair, 0.7) for pair in np.stack([x, y], 1).tolist()])
    except OverflowError:  # an exp of an exp
        return
    tolerances = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(found, wanted[:, 0], **tolerances)
    for i, gradient in zip(used, gradients, strict=True):
        if i < 2:
            np.testing.assert_allclose(gradient, g * wanted[:, 1 + i], **tolerances)


# ---- as a part of a plan -------------------------------------------------------------------------


def test_operands_of_any_layout():
    """Transposed, read-only, not aligned, one number for all elements."""
    base = np.random.default_rng(0).standard_normal((7, 12))
    raw = np.empty(base.nbytes + 1, np.uint8)
    shifted = raw[1:].view(float).reshape(base.shape)
    shifted[...] = base
    shifted.flags.writeable = False
    with python_loops():
        for view in (shifted, base.T, base[::2, ::-1], np.broadcast_to(base[0, 0], (5, 12))):
            formula = tg.Tensor(view) * 3.0 - tg.exp(tg.Tensor(view))
            _, fast, operands = both(formula)
            found = fast(*[t.value for t in operands]).value
            np.testing.assert_allclose(found, view * 3 - np.exp(view), rtol=1e-14)


@pytest.mark.parametrize("body", ["numpy", NUMBA])
def test_in_tiles_on_two_threads(body):
    """The upstream gradient is one number; the table says which ops numba has compiled."""
    w = tg.Parameter(np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32))
    x = np.random.default_rng(2).standard_normal((11, 5)).astype(np.float32)

    def step(x):
        h = tg.linear(x, w)
        loss = tg.sum(tg.sigmoid(h) * h * 2.0)
        loss.backward()
        return loss

    want = step(x).item()
    gradient, bits = w.grad, []
    run = tg.compile(step, tile=3, threads=2, fast=body == "numba")
    for _ in range(2):
        w.grad = None
        assert run(x).item() == pytest.approx(want, rel=1e-5)
        np.testing.assert_allclose(w.grad, gradient, rtol=1e-5)
        bits.append(w.grad)
    np.testing.assert_array_equal(*bits)
    assert ("compiled by numba: %" in run.explain()) is (body == "numba")


def names(code):
    return [made.op.name for made in code.instructions if made.op is not None]


def test_which_chains_are_fused_where_they_are_compiled(monkeypatch):
    """Smaller ones than in numpy; where numba then cannot compile, the ops stay one by one."""
    monkeypatch.setattr(elementwise_chains, "FEWEST_BYTES", 8 << 20)
    monkeypatch.setattr(choice.jit, "why_not", lambda: "")
    monkeypatch.setattr(choice.jit, "installed", lambda: True)
    fewest = elementwise_chain.FEWEST_BYTES // 8
    codes = []
    for size in (fewest - 1, fewest, 1 << 19):
        y = tg.relu(tg.Tensor(np.zeros(size)) * 2.0)
        codes.append(rewrite(code_of(topological_order([y]), [y], None)))
    with python_loops():
        found = [names(with_compiled_bodies(code, True)) for code in codes]
    assert found == [["mul", "relu"], ["mul_relu"], ["mul_relu"]]
    compiled = elementwise_chain.CompiledElementwiseChain
    monkeypatch.setattr(compiled, "prepare", lambda self, dtype: 1 / 0)
    with pytest.warns(PlanWarning, match="ZeroDivisionError"):
        assert names(with_compiled_bodies(codes[2], None)) == ["mul", "relu"]


def test_a_text_is_a_function_of_its_own():
    writer = Writer(1)
    one = writer.compiled([writer.emit(np.add, writer.inputs[0], 1)])
    writer = Writer(1)
    two = writer.compiled([writer.emit(np.add, writer.inputs[0], 2)])
    with python_loops():
        names = set()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                elementwise_chain,
                "compiled",
                lambda function, *_, **__: names.add(function.__name__),
            )
            for program, number in ((one, False), (two, False), (one, True)):
                elementwise_chain.kernel(program, (number,), np.dtype(float))
    assert len(names) == 3
