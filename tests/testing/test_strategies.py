"""The strategies: what they draw, what they shrink to, and the engine against random graphs."""

import collections
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

import tinygraph as tg
from tests.reference.dags import Dag
from tinygraph.base.errors import ArgumentError
from tinygraph.testing import strategies as ts
from tinygraph.testing.problem import laid_out

FAMILIES = {
    "elementwise": [tg.leaky_relu, tg.softplus, tg.gelu],
    "broadcast": [tg.add, tg.mul, tg.maximum],
    "axis": [tg.sum, tg.amax, tg.logsumexp],
    "linear": [tg.linear],
    "conv": [tg.conv2d],
    "pool": [tg.max_pool2d, tg.avg_pool2d],
    "regression": [tg.mse_loss, tg.huber_loss],
    "classes": [tg.softmax_cross_entropy],
}

# ---- tensors --------------------------------------------------------------------------------


def strides_of(x):
    """The strides that matter: those of axes with more than one element, in elements."""
    return [s // x.value.itemsize for s, n in zip(x.value.strides, x.shape, strict=True) if n > 1]


LAYOUTS = {  # layout -> what must be so of a tensor with two or more elements on both axes
    "contiguous": lambda x: x.value.flags.c_contiguous,
    "sliced": lambda x: strides_of(x)[-1] == 2,
    "transposed": lambda x: strides_of(x) == [1, x.shape[0]],
    "negative stride": lambda x: max(strides_of(x)) < 0,
    "broadcast": lambda x: 0 in strides_of(x),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@given(data=st.data())
def test_layouts(layout, data):
    shape = st.tuples(st.integers(2, 4), st.integers(2, 4))
    assert LAYOUTS[layout](data.draw(ts.tensors(shape=shape, layout=layout)))


@given(ts.tensors(layout="0-d"), ts.tensors(layout="empty"))
def test_layouts_without_axes_and_without_elements(scalar, empty):
    assert scalar.shape == () and empty.size == 0 and empty.ndim > 0


def subnormal(x):
    return np.any((np.abs(x.value) < np.finfo(x.dtype).tiny) & (x.value != 0))


FOUND = {  # family of values -> what it has to come upon
    "smooth": lambda x: x.size > 3 and len(np.unique(x.value)) == x.size,
    "ties": lambda x: x.size > 1 and len(np.unique(x.value)) == 1,
    "kinks": lambda x: np.any(np.signbit(x.value) & (x.value == 0)),
    "extreme": subnormal,
    "nan_inf": lambda x: x.size > 1 and np.isnan(x.value).any(),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("values", FOUND)
def test_families_of_values(values, dtype):
    x = find(ts.tensors(dtype, values=values), FOUND[values])
    assert x.dtype == dtype and x.size <= 4


@given(ts.tensors(values="extreme"), ts.tensors(values="nan_inf", shape=(2,)))
def test_extreme_is_finite_and_nan_inf_is_not(extreme, special):
    assert np.isfinite(extreme.value).all() and not np.isfinite(special.value).all()


def test_what_is_asked_for_is_fixed():
    x = find(ts.tensors("float32", (3, 1), "sliced", "ties", requires_grad=False), lambda _: True)
    assert (x.dtype, x.shape, x.requires_grad) == ("float32", (3, 1), False)


@given(ts.broadcastable(3))
def test_broadcastable_shapes_broadcast(shapes):
    assert len(shapes) == 3
    np.broadcast_shapes(*shapes)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: ts.tensors(layout="reversed"),
        lambda: ts.tensors(values="large"),
        lambda: ts.broadcastable(0),
        lambda: ts.loss_problems("hinge"),
        lambda: ts.error_problems("softmax"),
        lambda: laid_out(np.ones(2), "0-d"),
    ],
)
def test_bad_arguments(ask):
    with pytest.raises(ArgumentError, match="expected"):
        ask()


# ---- problems -------------------------------------------------------------------------------


def stride_and_padding_differ(problem):
    stride, padding = problem.kwargs["stride"], problem.kwargs["padding"]
    return len({*ts.as_pair(stride)}) == len({*ts.as_pair(padding)}) == 2


HARD_CASES = {  # what a wrong op is most often right for, and therefore has to be drawn
    "not square": lambda p: len({*p.args[0].shape[2:]}) == 2,
    "odd": lambda p: p.args[0].shape[2] % 2 and p.args[0].shape[2] > 1,
    "one image": lambda p: len(p.args[0]) == 1,
    "several images": lambda p: len(p.args[0]) > 1,
    "one channel": lambda p: p.args[0].shape[1] == 1,
    "several channels": lambda p: p.args[0].shape[1] > 1,
    "stride and padding differ by axis": stride_and_padding_differ,
    "groups": lambda p: p.kwargs["groups"] > 1,
    "no bias": lambda p: p.args[2] is None,
    "same": lambda p: p.kwargs["padding"] == "same",
}


@pytest.mark.second
@pytest.mark.parametrize("case", HARD_CASES)
def test_convolutions_come_upon_hard_cases_and_shrink_to_small_ones(case):
    problem = find(ts.conv_problems(), HARD_CASES[case])
    assert sum(a.size for a in problem.arrays) <= 16
    tg.conv2d(*problem.args, **problem.kwargs)


@pytest.mark.second
def test_a_failing_convolution_shrinks_to_what_matters():
    """An op that is wrong for dilation: one channel, no bias, no padding, nothing else is left."""
    p = find(ts.conv_problems(), lambda p: ts.as_pair(p.kwargs["dilation"])[1] == 2)
    assert p.args[0].shape == p.args[1].shape == (1, 1, 1, 1) and p.args[2] is None
    assert p.kwargs == {"stride": 1, "dilation": 2, "padding": 0, "groups": 1}


def test_sizes_shrink_before_data():
    """The numbers of the smallest example are those of seed 0."""
    problem = find(ts.elementwise_problems(), lambda p: p.args[0].ndim == 2)
    np.testing.assert_array_equal(problem.args[0], ts.numbers(0, (1, 1)))


@pytest.mark.parametrize("kind", ["regression", "probabilities", "classes"])
@given(data=st.data())
def test_losses(kind, data):
    problem = data.draw(ts.loss_problems(kind))
    function = {
        "regression": tg.mse_loss,
        "probabilities": tg.binary_cross_entropy,
        "classes": tg.softmax_cross_entropy,
    }[kind]
    y = function(*problem.args, **problem.kwargs)
    assert (y.ndim == 0) or problem.kwargs["reduction"] == "none"


@pytest.mark.parametrize(("family", "function"), [(k, f) for k, fs in FAMILIES.items() for f in fs])
@given(data=st.data())
def test_wrong_calls_are_refused_in_the_words_expected(family, function, data):
    bad = data.draw(ts.error_problems(family))
    with pytest.raises(bad.error, match=re.escape(bad.words)) as caught:
        function(*bad.args, **bad.kwargs)
    assert isinstance(caught.value, tg.errors.TinygraphError)


# ---- graphs ---------------------------------------------------------------------------------


def uses(graph):
    return collections.Counter(i for step in graph.steps for i in step.inputs)


SHAPES_OF_GRAPHS = {  # name -> predicate, and the number of steps that its smallest graph has
    "fan-out": (lambda g: max(uses(g).values()) > 2, 2),
    "a node with itself": (lambda g: any(len({*s.inputs}) < len(s.inputs) for s in g.steps), 1),
    "several outputs": (lambda g: len(g.outputs) > 1, 2),
    "a constant leaf": (lambda g: not all(g.trainable), 1),
    "an unused leaf": (lambda g: not {*range(len(g.leaves))} <= {*uses(g), *g.outputs}, 1),
    "deep": (lambda g: len(g.steps) == 8, 8),
    "a product": (lambda g: any(s.op == "matmul" for s in g.steps), 1),
}


@pytest.mark.parametrize("name", SHAPES_OF_GRAPHS)
def test_graphs_come_upon_every_shape_and_shrink(name):
    predicate, steps = SHAPES_OF_GRAPHS[name]
    graph = find(ts.graphs(), predicate, settings=settings(max_examples=2000, database=None))
    assert len(graph.steps) <= steps
    assert sum(a.size for a in graph.leaves) <= 3


def agree_with_naive_evaluation(problem, own=None):
    """Values and gradients, for the leaves as drawn and for others that are fed."""
    leaves = problem.nodes()
    outputs = problem.build(leaves)
    graph = tg.Graph(*outputs)
    rng = np.random.default_rng(0)
    upstream = [rng.standard_normal(y.shape) for y in outputs]
    wanted = [y for y in outputs if y.requires_grad]
    for values in (problem.leaves, [0.5 - a for a in problem.leaves]):
        reached = {x: v for x, v in zip(leaves, values, strict=True) if x in set(graph.nodes)}
        graph.forward(reached)
        dag = Dag(problem.steps, problem.outputs, own)
        for y, expected in zip(outputs, dag.values(values), strict=True):
            assert y.shape == expected.shape
            np.testing.assert_allclose(y.value, expected, rtol=1e-9, atol=1e-9)
        for x in leaves:
            x.grad = None
        tg.Graph(*wanted).backward(
            [g for y, g in zip(outputs, upstream, strict=True) if y.requires_grad]
        )
        if dag.nearest_kink < 1e-9:
            continue  # which piece an element is on may be a matter of rounding
        for i, x in enumerate(leaves):
            if not problem.trainable[i]:
                assert x.grad is None
                continue
            expected = dag.gradient(values, i, upstream)
            got = np.zeros(x.shape) if x.grad is None else x.grad
            scale = max(1.0, np.max(np.abs(expected), initial=0))
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9 * scale)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(ts.graphs())
def test_a_graph_gives_what_its_steps_give_one_by_one(problem):
    agree_with_naive_evaluation(problem)


class Cubed(tg.Op):
    """An op that tinygraph has never seen."""

    def forward(self, mem, x):
        return x**3, x

    def backward(self, mem, gy, x, needs):
        return (3 * gy * x**2,)


def test_graphs_of_ops_that_tinygraph_has_never_seen():
    own = {"cubed": (Cubed(), 1), "blend": (lambda x, y: 0.25 * x + 0.75 * y, 2)}
    naive = {"cubed": lambda x: x**3, "blend": lambda x, y: 0.25 * x + 0.75 * y}
    seen = collections.Counter()

    @settings(max_examples=100, deadline=None)
    @given(ts.graphs(max_steps=4, functions=own))
    def test(problem):
        seen.update(step.op for step in problem.steps)
        agree_with_naive_evaluation(problem, naive)

    test()
    assert seen["cubed"] and seen["blend"]


@pytest.mark.second
@pytest.mark.parametrize("lost", ["fan-out", "sign"])
def test_the_comparison_finds_an_engine_that_is_wrong(lost, monkeypatch):
    """Without the sum over uses, or with one wrong sign, the same comparison fails."""
    if lost == "fan-out":
        monkeypatch.setattr(tg.graph, "_added", lambda total, term, device, into: device.copy(term))
    else:
        monkeypatch.setattr(
            type((tg.Tensor(1.0) - tg.Tensor(1.0)).op),
            "backward",
            lambda self, mem, g, saved, needs: (g, g),
        )
    with pytest.raises(Exception):  # noqa: B017  # an assertion, or a shape that does not fit

        @settings(max_examples=500, database=None, report_multiple_bugs=False)
        @given(ts.graphs())
        def test(problem):
            agree_with_naive_evaluation(problem)

        test()


# ---- without the library --------------------------------------------------------------------

WITHOUT_HYPOTHESIS = """
import sys
sys.modules["hypothesis"] = None
import tinygraph as tg
assert tg.testing.gradcheck(tg.tanh, [[0.5]]).ok
assert tg.testing.check_op(tg.tanh, problems=[[0.5, 1.0]]).ok
try:
    tg.testing.strategies
except ImportError as error:
    print(error)
"""


@pytest.mark.second
def test_without_hypothesis():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_HYPOTHESIS], capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "tg.testing.strategies: hypothesis: expected the library, got no such library. "
        "Way out: pip install -e '.[test]'\n"
    )


@pytest.mark.second
def test_the_checks_are_loaded_without_hypothesis():
    code = "import sys, tinygraph as tg; tg.testing; print('hypothesis' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
