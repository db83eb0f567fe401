"""Rewrites: what is fused, what is left alone, and that results stay."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.engine.graph import topological_order
from tinygraph.plan.code import code_of
from tinygraph.plan.rewrites import rewrite

RNG = np.random.default_rng(0)


def names(*outputs):
    code = rewrite(code_of(topological_order(outputs), outputs, None))
    return [made.op.name for made in code.instructions if made.op is not None]


def convolved(channels=2, groups=1, **options):
    x = tg.Tensor(RNG.standard_normal((3, channels, 9, 9)))
    w = tg.Parameter(RNG.standard_normal((4, channels // groups, 3, 3)), dtype=np.float64)
    b = tg.Parameter(RNG.standard_normal(4), dtype=np.float64)
    return tg.conv2d(x, w, b, groups=groups, **options)


@pytest.mark.parametrize("options", [{}, {"padding": 1}, {"stride": 2, "padding": "same"}], ids=str)
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("relu_first", [True, False])
def test_a_convolutional_stage_becomes_one_op(options, size, relu_first):
    y = convolved(**options)
    if relu_first:
        y = tg.max_pool2d(tg.relu(y), size)
    else:
        y = tg.relu(tg.max_pool2d(y, size))
    assert names(y) == ["conv2d_relu_max_pool2d"]
    upstream = RNG.standard_normal(y.shape)

    def run(function):
        for leaf in topological_order([y]):
            leaf.grad = None
        function()
        return [x.grad for x in topological_order([y]) if x.op is None and x.requires_grad]

    want = run(lambda: y.backward(upstream, retain_graph=True))
    compiled = tg.compile(lambda: _again(y))
    result = compiled()
    np.testing.assert_allclose(result.value, y.value, rtol=1e-12)
    got = run(lambda: result.backward(upstream))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert "conv2d_relu_max_pool2d" in compiled.explain()


def _again(node):
    """The same ops on the same leaves."""
    return node if node.op is None else node.op(*[_again(x) for x in node.inputs])


@pytest.mark.parametrize(
    "make",
    [
        lambda: tg.max_pool2d(tg.relu(convolved()), 3, stride=2),  # windows overlap
        lambda: tg.max_pool2d(tg.relu(convolved()), 2, dilation=2),
        lambda: tg.max_pool2d(tg.relu(convolved()), 4),  # a size without a kernel
        lambda: tg.max_pool2d(tg.relu(convolved()), 2, padding=1),
        lambda: tg.max_pool2d(tg.relu(convolved()), 2, ceil_mode=True),
        lambda: tg.max_pool2d(tg.relu(convolved(groups=2)), 2),
        lambda: tg.max_pool2d(tg.tanh(convolved()), 2),
        lambda: tg.avg_pool2d(tg.relu(convolved()), 2),
    ],
)
def test_other_stages_are_left_alone(make):
    assert "conv2d_relu_max_pool2d" not in names(make())


def test_a_value_that_is_used_elsewhere_stays():
    c = convolved()
    r = tg.relu(c)
    y = tg.max_pool2d(r, 2)
    assert names(y, c) == ["conv2d", "max_pool2d_relu"]
    assert names(y, r) == ["conv2d_relu", "max_pool2d"]
    assert names(tg.sum(y) + tg.sum(r))[:2] == ["conv2d_relu", "max_pool2d"]


@pytest.mark.parametrize(
    "pool",
    [{"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1}, {"kernel_size": (1, 4)}],
    ids=str,
)
def test_relu_goes_behind_the_maximum(pool):
    """Ties at 0, zeros of both signs, infinities and NaN come out as they do in the graph."""
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1.0, -1.0]
    x = tg.Parameter(RNG.choice(special, (4, 3, 8, 8), p=[0.02, 0.04, 0.04, *[0.18] * 5]))
    want = tg.max_pool2d(tg.relu(x), **pool)
    assert names(want) == ["max_pool2d_relu"]
    upstream = RNG.standard_normal(want.shape).astype(want.dtype)
    want.backward(upstream, retain_graph=True)
    gradient, x.grad = x.grad, None
    got = tg.compile(lambda: tg.max_pool2d(tg.relu(x), **pool))()
    got.backward(upstream)
    np.testing.assert_array_equal(got.value, want.value)
    np.testing.assert_allclose(x.grad, gradient, rtol=1e-6)


def test_relu_stays_before_the_maximum_where_that_has_as_many_numbers():
    y = tg.max_pool2d(tg.relu(convolved(channels=5)), 3, stride=1, padding=1)
    assert names(y) == ["conv2d_relu", "max_pool2d"]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape, labels", [((4, 3), [0, 2, 1, 1]), ((2, 3, 2), [[0, 1], [2, 2]])])
def test_log_softmax_and_nll_become_cross_entropy(reduction, shape, labels):
    x = tg.Parameter(RNG.standard_normal(shape), dtype=np.float64)

    def loss():
        return tg.nll_loss(tg.log_softmax(x, 1), np.array(labels), None, 2, reduction)

    want = loss()
    assert names(want) == ["softmax_cross_entropy"]
    upstream = RNG.standard_normal(want.shape)
    want.backward(upstream)
    gradient, x.grad = x.grad, None
    got = tg.compile(loss)()
    np.testing.assert_allclose(got.value, want.value, rtol=1e-12)
    got.backward(upstream)
    np.testing.assert_allclose(x.grad, gradient, rtol=1e-10, atol=1e-14)


def test_log_softmax_over_another_axis_or_with_another_user_stays():
    x, labels = tg.Parameter(RNG.standard_normal((3, 3)), dtype=np.float64), np.array([0, 1, 2])
    over_samples = tg.nll_loss(tg.log_softmax(x, 0), labels)
    assert names(over_samples) == ["log_softmax", "nll_loss"]
    logs = tg.log_softmax(x, 1)
    assert names(tg.nll_loss(logs, labels) + tg.sum(logs))[:2] == ["log_softmax", "nll_loss"]
    assert names(tg.nll_loss(logs, labels), logs) == ["log_softmax", "nll_loss"]
