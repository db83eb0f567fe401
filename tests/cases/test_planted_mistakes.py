"""The cases find a mistake planted into any op: in its value, or in what its backward gives.

Each mistake is put into one op class; at least one case must then fail in float64 on the cpu.  What
the cases do not reach, they do not guard.  A new op has no cases: its contract guards it.
"""

import functools
from unittest import mock

import numpy as np
import pytest

import tinygraph as tg
from tests.cases.run import check
from tests.cases.schema import FOLDER, load
from tests.cuda.contract_work import contracts, problems
from tinygraph.engine import op as op_module
from tinygraph.engine.op import registry
from tinygraph.ops.elementwise.unary import Flat

pytestmark = pytest.mark.second

CASES = [case for path in sorted(FOLDER.glob("*.json")) for case in load(path)]

CLASSES = {
    name.split(".", 3)[3]: cls  # without its wing
    for name, cls in registry.items()
    if name.startswith("tinygraph.ops.") and name != "tinygraph.ops.common.to.To"
}

# The derivative of a step is 0 everywhere: each mistake below leaves it 0.
DIFFERENTIABLE = [
    name
    for name, cls in CLASSES.items()
    if cls.backward is not tg.Op.backward and not issubclass(cls, Flat)
]


def a_little_more(x):
    """Off by a thousandth; the next integer; the other truth value."""
    if x.dtype.kind == "b":
        return ~x
    return x * x.dtype.type(1.001) if x.dtype.kind == "f" else x + 1


def last_element(y):
    changed = y.copy()
    if y.size:
        step = a_little_more(y) if y.dtype.kind != "f" else y + y.dtype.type(1e-3)
        changed.flat[-1] = step.flat[-1]
    return changed


def first_element_lost(g):
    changed = g.copy()
    changed.flat[:1] = 0
    return changed


def only_sample_0(x):
    changed = x.copy()
    if x.ndim:
        changed[1:] = 0
    return changed


VALUES = {"off by a thousandth": a_little_more, "last element": last_element}
GRADIENTS = {
    "off by a thousandth": a_little_more,
    "other sign": np.negative,
    "twice": lambda g: g * 2,
    "nothing": np.zeros_like,
    "first element lost": first_element_lost,
    "only sample 0": only_sample_0,
    "reversed": lambda g: g[::-1].copy() if g.ndim else g,
}


def calls():
    """Every case; of a function without a case file, its contract on a few problems."""
    for case in CASES:
        yield functools.partial(check, case, "cpu", "float64")
    written = {case.op for case in CASES}
    for stem in sorted({cls.__module__.rpartition(".")[2] for cls in CLASSES.values()}):
        for contract in contracts(stem):
            if contract.function.__name__ in written:
                continue
            for problem in problems(contract):
                yield functools.partial(contract.try_value, problem, np.float64, "contiguous")
                if contract.differentiable:
                    yield functools.partial(contract.try_gradient, problem)


@functools.cache
def calls_of():
    """For each op class the calls that evaluate it."""
    found = {cls: [] for cls in CLASSES.values()}
    evaluate = op_module.evaluate
    for call in calls():

        def spied(node, call=call):
            evaluated = found.get(type(node.op), [call])
            if call not in evaluated:
                evaluated.append(call)
            return evaluate(node)

        with mock.patch.object(op_module, "evaluate", spied):
            call()
    return found


def is_found(cls, method, wrong):
    """Whether some call fails when the method is the wrong one."""
    before = calls_of()[cls]
    assert before, (
        f"{cls.__module__}: no contract applies {cls.__name__}, or none draws a problem. "
        "Way out: a subclass of OpContract in the op's test file, see docs/add_an_op.md"
    )
    with mock.patch.object(cls, method, wrong):
        for call in before:
            try:
                call()
            except (AssertionError, tg.errors.GraphError):
                return True
    return False


@pytest.mark.parametrize("name", CLASSES)
def test_a_wrong_value_is_found(name):
    cls = CLASSES[name]
    right = cls.forward
    for mistake, change in VALUES.items():

        def forward(self, mem, *arrays, change=change):
            y, saved = right(self, mem, *arrays)
            return change(np.asarray(y)), saved

        assert is_found(cls, "forward", forward), f"{name}: {mistake}"


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_a_wrong_gradient_is_found(name):
    cls = CLASSES[name]
    right = cls.backward
    for mistake, change in GRADIENTS.items():

        def backward(self, mem, gy, saved, needs, change=change):
            return tuple(g if g is None else change(g) for g in right(self, mem, gy, saved, needs))

        assert is_found(cls, "backward", backward), f"{name}: {mistake}"

    def ignores_upstream(self, mem, gy, saved, needs):
        return right(self, mem, np.ones_like(gy), saved, needs)

    assert is_found(cls, "backward", ignores_upstream), f"{name}: upstream ignored"
