"""Batch norm in training with a compiled body, with a sum and a ReLU after it or not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests.plan.test_fast_bodies import dtype as dtype  # a fixture: in Python and compiled
from tests.plan.test_fast_bodies import python_bodies
from tests.strategies import numbers, seeds
from tests.test_threads import OnThreads
from tinygraph.engine.spec import Spec
from tinygraph.ops.common import blocks
from tinygraph.ops.elementwise.relu import Relu
from tinygraph.ops.elementwise.tanh import Tanh
from tinygraph.ops.normalization.batch_norm import BatchNorm
from tinygraph.plan.fast.batch_norm import CompiledNorm, compiled_norm
from tinygraph.plan.rewrites.activation import Activated
from tinygraph.plan.rewrites.residual import Residual


def stage(adds, clips, norm):
    op = Residual(norm) if adds else norm
    return Activated(op, Relu()) if clips else op


def norm_of(weight=True, bias=True, running=False, eps=1e-5):
    return BatchNorm(True, 0.1, eps, weight, bias, running)


STAGES = [(adds, clips) for adds in (False, True) for clips in (False, True)]
KINDS = pytest.mark.parametrize("adds, clips", STAGES, ids=["", "relu", "add", "add, relu"])


def by_sums(x, weight, bias, z, eps):
    """The formula, with numpy's mean and variance in float64; before the ReLU."""
    axes = (0, *range(2, x.ndim))
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    along = (1, -1, *(1,) * (x.ndim - 2))
    return (x - mean) / np.sqrt(variance + eps) * weight.reshape(along) + bias.reshape(along) + z


@KINDS
@given(
    seed=seeds,
    shape=st.sampled_from([(2, 3, 4, 5), (3, 1, 17), (1, 2, 4, 4)]),
    offset=st.sampled_from([0, 100]),
)
def test_forward_and_backward(dtype, adds, clips, seed, shape, offset):
    norm = norm_of()
    numpys = stage(adds, clips, norm)
    op = CompiledNorm(numpys, norm, adds, clips)
    x = (numbers(seed, shape) + offset).astype(dtype)
    weight, bias = (numbers(seed + i, shape[1:2]).astype(dtype) for i in (1, 2))
    z = numbers(seed + 3, shape).astype(dtype) if adds else np.zeros(shape)
    arrays = [x, weight, bias, *([z] if adds else [])]
    wanted = by_sums(*[np.asarray(a, float) for a in (x, weight, bias, z)], norm.eps)
    tolerance = (
        {"rtol": 1e-9, "atol": 1e-9} if dtype is np.float64 else {"rtol": 1e-3, "atol": 1e-3}
    )
    y = op(*arrays).numpy()
    np.testing.assert_allclose(y, np.maximum(wanted, 0) if clips else wanted, **tolerance)
    g = numbers(seed + 4, shape).astype(dtype) * (np.abs(wanted) > 0.01)  # not beside the corner
    found = []
    for each in (op, numpys):
        nodes = [tg.Tensor(a, requires_grad=True) for a in arrays]
        each(*nodes).backward(g.astype(dtype))
        found.append([node.grad for node in nodes])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, **tolerance)


@KINDS
def test_gradients_are_those_of_differences(adds, clips):
    norm = norm_of()
    op = CompiledNorm(stage(adds, clips, norm), norm, adds, clips)
    shapes = [(2, 2, 4, 4), (2,), (2,), *([(2, 2, 4, 4)] if adds else [])]
    with python_bodies():
        tg.testing.gradcheck(op, [numbers(i, shape) for i, shape in enumerate(shapes)])


def test_weights_that_are_absent_and_running_statistics(dtype):
    x = numbers(1, (3, 2, 5, 4)).astype(dtype)
    for weight, bias in [(False, False), (True, False), (False, True)]:
        norm, found = norm_of(weight, bias, running=True), []
        for op in (norm, CompiledNorm(norm, norm, False, False)):
            affine = [tg.Tensor(np.full(2, 3, dtype), requires_grad=True)] * (weight + bias)
            running = np.zeros(2, dtype), np.ones(2, dtype)
            node = tg.Tensor(x, requires_grad=True)
            y = op(node, *affine, *[tg.Tensor(r) for r in running])
            y.backward(np.cos(np.arange(x.size)).reshape(x.shape).astype(dtype))
            moved = [input.value for input in y.inputs[-2:]]
            found.append([y.numpy(), node.grad, *[a.grad for a in affine], *moved])
        for ours, theirs in zip(found[1], found[0], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_nan_stays_and_no_zero_is_negative(dtype):
    x = numbers(1, (2, 3, 4, 4)).astype(dtype)
    x[0, 1, 2, 2] = np.nan
    norm = norm_of(False, False)
    op = CompiledNorm(stage(False, True, norm), norm, False, True)
    y = op(x).numpy()
    assert np.isnan(y[:, 1]).all() and np.isfinite(y[:, [0, 2]]).all()
    assert not np.signbit(y[y == 0]).any()


def test_the_same_bits_on_any_threads(dtype, monkeypatch):
    monkeypatch.setattr(blocks, "WORTH_BLOCKS", 0)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 300)
    norm = norm_of()
    op = CompiledNorm(stage(True, True, norm), norm, True, True)
    shape, needs = (3, 5, 4, 4), (True,) * 4
    arrays = [numbers(i, s).astype(dtype) for i, s in enumerate([shape, (5,), (5,), shape])]
    g, found = numbers(9, shape).astype(dtype), []
    assert blocks.Blocks(OnThreads(3, needs), 5, g.nbytes // 5).threads == 3
    for workers in (1, 2, 3):
        mem = OnThreads(workers, needs)
        y, saved = op.forward(mem, *arrays)
        found.append([y, *op.backward(mem, g, saved, needs)])
    for other in found[1:]:
        for got, first in zip(other, found[0], strict=True):
            np.testing.assert_array_equal(got, first)


@KINDS
def test_arrays_in_other_layouts(dtype, adds, clips):
    """Fortran's order, and read-only."""
    norm = norm_of()
    op = CompiledNorm(stage(adds, clips, norm), norm, adds, clips)
    shape, needs = (2, 3, 4, 4), (True,) * (3 + adds)
    arrays = [numbers(i, s).astype(dtype) for i, s in enumerate([shape, (3,), (3,), shape])]
    g = numbers(9, shape).astype(dtype)
    frozen = [a.copy() for a in (*arrays, g)]
    for each in frozen:
        each.flags.writeable = False
    found = []
    for *inputs, upstream in [(*arrays, g), frozen, [np.asfortranarray(a) for a in (*arrays, g)]]:
        mem = OnThreads(1, needs)
        y, saved = op.forward(mem, *inputs[: 3 + adds])
        found.append([y, *op.backward(mem, upstream, saved, needs)])
    for other in found[1:]:
        for got, first in zip(other, found[0], strict=True):
            np.testing.assert_array_equal(got, first)


def test_where_there_is_no_body():
    """In eval mode, for short rows, for no images, another activation, another op."""
    image, channels = Spec((4, 3, 8, 8), np.dtype("f4")), Spec((3,), np.dtype("f4"))
    norm = norm_of()
    found = compiled_norm(stage(True, True, norm), (image, channels, channels, image))
    assert found == CompiledNorm(stage(True, True, norm), norm, True, True)
    assert compiled_norm(norm, (Spec((4, 3), image.dtype), channels, channels)) is None
    assert compiled_norm(norm, (Spec((0, 3, 8, 8), image.dtype), channels, channels)) is None
    assert compiled_norm(Activated(norm, Tanh()), (image, channels, channels)) is None
    in_eval = BatchNorm(False, 0.1, 1e-5, False, False, True)
    assert compiled_norm(in_eval, (image, channels, channels)) is None
    assert compiled_norm(Relu(), (image,)) is None
