"""Bodies that numba compiles, against the ops in numpy, the naive references and differences.

The kernels are plain Python.  What they compute is tested on small arrays without numba, and again
compiled where numba is installed.
"""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.ops.fused_convolutions import extreme_images, fused_problems
from tests.strategies import conv_problems, numbers, seeds
from tinygraph.engine.spec import Spec
from tinygraph.ops.windows import convolution_rows
from tinygraph.ops.windows.conv2d import Conv2d
from tinygraph.ops.windows.conv2d_relu_max_pool2d import Conv2dReluMaxPool2d
from tinygraph.plan.fast import (
    choice,
    convolution,
    jit,
    moved_rows,
    pooled_convolution,
    single_channel_stage,
)
from tinygraph.plan.fast.convolution import CompiledConv2d
from tinygraph.plan.fast.pooled_convolution import PooledConvolution
from tinygraph.plan.fast.single_channel_stage import SingleChannelStage

STAGE = (1, 1), (0, 0), (1, 1), 1, 2
STAGES = [SingleChannelStage(*STAGE), PooledConvolution(*STAGE)]
BLOCKS = st.sampled_from([64, 4000, 1 << 20])  # bytes: one image, a few, all


def as_written(function, takes, dtype, reorder=False, contract=True):
    """In the place of `jit.compiled`: the kernel itself, in Python."""

    def run(*args):
        for array, word in zip(args, takes.split(), strict=True):
            kind, axes = word.lstrip("=")[0], word.lstrip("=")[1:]
            if axes:
                of_kind = {"x": dtype, "d": np.float64, "u": np.uint8, "i": np.int64}[kind]
                assert (array.ndim, array.dtype) == (int(axes), np.dtype(of_kind))
                assert array.flags.c_contiguous
        with np.errstate(all="ignore"):
            function(*args)

    return run


@contextmanager
def python_bodies():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit, "compiled", as_written)
        yield


@contextmanager
def blocks_of(size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution_rows, "BLOCK_BYTES", size)
        patch.setattr(moved_rows, "MOST_ZEROS", np.inf)  # none is left to numpy
        moved_rows.moved_layout_of.cache_clear()
        yield
    moved_rows.moved_layout_of.cache_clear()


@pytest.fixture(
    scope="module",
    params=[
        "python",
        pytest.param(
            "numba",
            marks=pytest.mark.skipif(
                not jit.installed(), reason="numba is missing: pip install -e '.[fast]'"
            ),
        ),
    ],
)
def dtype(request):
    """float64 in Python, float32 compiled: kernels are compiled for one dtype only."""
    if request.param == "numba":
        yield np.float32
    else:
        with python_bodies():
            yield np.float64


def results(op, arrays, g):
    """The output and all gradients."""
    nodes = [tg.Tensor(a, requires_grad=True) for a in arrays]
    y = op(*nodes)
    y.backward(g)
    return [y.numpy(), *[node.grad for node in nodes]]


def assert_as_numpy(op, plain_op, arrays, g, **tolerances):
    for ours, theirs in zip(results(op, arrays, g), results(plain_op, arrays, g), strict=True):
        np.testing.assert_allclose(ours, theirs, **tolerances)


def assert_right(problem, function, oracle, body, dtype, block):
    """Against the reference forward, and against numpy's body backward."""
    arrays = [a.astype(dtype) for a in problem.args if a is not None]
    plain_op = function(*map(tg.Tensor, arrays), **problem.kwargs).op
    wanted = oracle(*[a.astype(float) for a in arrays], **problem.kwargs)
    with blocks_of(block):
        op = body(plain_op, tuple([Spec(a.shape, a.dtype) for a in arrays]))
        if op is None:
            assert getattr(plain_op, "groups", 1) > 1
            return
        np.testing.assert_allclose(op(*arrays).numpy(), wanted, rtol=1e-4, atol=1e-4)
        g = np.random.default_rng(len(arrays)).standard_normal(wanted.shape).astype(dtype)
        assert_as_numpy(op, plain_op, arrays, g, rtol=1e-4, atol=1e-4)


@given(problem=conv_problems(), block=BLOCKS)
def test_conv2d(dtype, problem, block):
    body = convolution.compiled_convolution
    assert_right(problem, tg.conv2d, reference.conv2d, body, dtype, block)


@given(problem=fused_problems(), block=BLOCKS)
def test_conv2d_relu_max_pool2d(dtype, problem, block):
    assume(dtype is np.float64 or problem.kwargs["pool"] == 2)  # two kernels fewer to compile
    function, oracle = tg.conv2d_relu_max_pool2d, reference.conv2d_relu_max_pool2d
    body = pooled_convolution.pooled_convolution
    assert_right(problem, function, oracle, body, dtype, block)


@given(
    seed=seeds,
    padding=st.sampled_from([(0, 0), (1, 1), (0, 2), "same"]),
    bias=st.booleans(),
    n=st.integers(1, 2),
    d=st.integers(1, 3),
)
def test_single_channel_stage(dtype, seed, padding, bias, n, d):
    image = np.random.default_rng(seed).integers(4, 8, 2)
    b = numbers(seed, (d,)) if bias else None
    arrays = numbers(seed, (n, 1, *image)), numbers(seed + 1, (d, 1, 3, 3)), b
    problem = tg.testing.problem.Problem(arrays, {"padding": padding})
    function, oracle = tg.conv2d_relu_max_pool2d, reference.conv2d_relu_max_pool2d
    body = single_channel_stage.single_channel_stage
    assert_right(problem, function, oracle, body, dtype, 1 << 20)


@pytest.mark.parametrize("op", STAGES, ids=lambda op: type(op).__name__)
@given(seed=seeds, scale=st.sampled_from([1.0, -1.0]))
def test_ties_nan_and_zeros_as_numpy(dtype, op, seed, scale):
    """One weight of a filter is 1 or -1 and the others 0: its outputs are pixels, so exact."""
    rng = np.random.default_rng(seed)
    x = rng.choice([0.0, -0.0, 1.0, -1.0, 2.0], (2, 1, 6, 7)).astype(dtype)
    x[0] = np.where(rng.random(x[0].shape) < 0.05, np.nan, x[0])
    w = np.zeros((2, 1, 3, 3), dtype)
    w[:, 0, *rng.integers(0, 3, 2)] = scale, -scale
    g = rng.integers(-4, 5, (2, 2, 2, 2)).astype(dtype)
    plain_op = Conv2dReluMaxPool2d(*STAGE)
    y, wanted = op(x, w).numpy(), plain_op(x, w).numpy()
    np.testing.assert_allclose(y, wanted, atol=1e-12)
    if isinstance(op, PooledConvolution):  # zeros between lines spread a NaN to all taps
        x = np.nan_to_num(x)
    assert_as_numpy(op, plain_op, (x, w, np.zeros(2, dtype)), g, atol=1e-12)
    assert not np.signbit(y[y == 0]).any()


@pytest.mark.second
@pytest.mark.parametrize("op", STAGES, ids=lambda op: type(op).__name__)
def test_infinite_pixels_as_numpy(dtype, op):
    x = extreme_images(5, (1, 1, 8, 8)).astype(dtype)
    w = numbers(3, (2, 1, 3, 3)).astype(dtype)
    g = np.ones((1, 2, 3, 3), dtype)
    assert_as_numpy(op, Conv2dReluMaxPool2d(*STAGE), (x, w), g, rtol=1e-5)


@pytest.mark.parametrize(
    "op", [*STAGES, CompiledConv2d(*STAGE[:4])], ids=lambda op: type(op).__name__
)
def test_arrays_in_other_layouts(dtype, op):
    """In Fortran's order, read-only, not aligned."""
    x, w = numbers(1, (2, 1, 7, 6)).astype(dtype), numbers(2, (2, 1, 3, 3)).astype(dtype)
    g = numbers(3, op(x, w).shape).astype(dtype)
    raw = np.empty(x.nbytes + 1, np.uint8)
    shifted = raw[1:].view(dtype).reshape(x.shape)
    shifted[...] = x
    frozen = w.copy()
    frozen.flags.writeable = False
    wanted = results(op, (x, w), g)
    for arrays in [(shifted, frozen, g), tuple([np.asfortranarray(a) for a in (x, w, g)])]:
        mem = tg.memory.eager_memory((True, True), tg.device("cpu"))
        y, saved = op.forward(mem, *arrays[:2])
        found = [y, *op.backward(mem, arrays[2], saved, (True, True))]
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "op", [*STAGES, CompiledConv2d((1, 2), (1, 0), (2, 1), 1)], ids=lambda op: type(op).__name__
)
def test_gradients_are_those_of_differences(op):
    channels = 1 if isinstance(op, SingleChannelStage) else 2
    inputs = numbers(1, (2, channels, 6, 6)), numbers(2, (2, channels, 3, 3)), numbers(3, (2,))
    with python_bodies(), blocks_of(700):
        tg.testing.gradcheck(lambda *tensors: op(*tensors), inputs)


@pytest.mark.parametrize(
    "body", [single_channel_stage.single_channel_stage, pooled_convolution.pooled_convolution]
)
def test_no_images_are_left_to_numpy(body):
    specs = [Spec(shape, np.dtype("f4")) for shape in [(0, 1, 8, 8), (4, 1, 3, 3)]]
    assert body(Conv2dReluMaxPool2d(*STAGE), tuple(specs)) is None


def test_a_compiled_body_within_another_op_takes_arrays_alone(monkeypatch):
    """Plans look at numpy's bodies through arrays that note what is done with them."""
    given, forward = [], CompiledConv2d.forward
    monkeypatch.setattr(
        CompiledConv2d,
        "forward",
        lambda self, mem, x, w: (given.append(type(x)), forward(self, mem, x, w))[1],
    )
    monkeypatch.setattr(choice.jit, "why_not", lambda: "")
    w = tg.Parameter(numbers(1, (2, 2, 3, 3)))
    with python_bodies():
        run = tg.compile(lambda x: tg.tanh(tg.conv2d(x, w)), fast=True)
        for _ in range(3):
            run(numbers(2, (1, 2, 6, 6))).backward(np.ones((1, 2, 4, 4)))
    assert given == [np.ndarray] * 3 and "compiled by numba" in run.explain()


def test_where_there_is_no_body():
    """Several groups, other windows and kernels than those of one channel, other ops."""
    x, w = Spec((2, 4, 8, 8), np.dtype("f4")), Spec((4, 2, 3, 3), np.dtype("f4"))
    grouped = Conv2d((1, 1), (0, 0), (1, 1), 2)
    assert convolution.compiled_convolution(grouped, (x, w)) is None
    grey, small = Spec((2, 1, 8, 8), x.dtype), Spec((4, 1, 2, 2), x.dtype)
    stage = single_channel_stage.single_channel_stage
    assert stage(Conv2dReluMaxPool2d(*STAGE), (x, w)) is None
    assert stage(Conv2dReluMaxPool2d(*STAGE), (grey, small)) is None
    for op in (tg.relu(np.ones(1, np.float32)).op, grouped):
        assert stage(op, (grey,)) is None


@pytest.mark.parametrize("relu_first", [True, False])
@pytest.mark.parametrize("kernel, fused", [(3, True), (7, False)])
def test_stages_of_many_channels_are_one_op_where_they_are_compiled(
    monkeypatch, relu_first, kernel, fused
):
    """In numpy pooling stays apart; so it does where rows would be mostly zeros (7x7 on 10x10)."""
    monkeypatch.setattr(choice.jit, "why_not", lambda: "")
    w = tg.Parameter(numbers(1, (4, 5, kernel, kernel)), dtype=np.float64)
    x = numbers(2, (2, 5, 10, 10))

    def stage(x):
        y = tg.conv2d(x, w)
        return tg.max_pool2d(tg.relu(y), 2) if relu_first else tg.relu(tg.max_pool2d(y, 2))

    wanted, found = stage(x), []
    wanted.backward(np.ones(wanted.shape))
    gradient, w.grad = w.grad, None
    with python_bodies():
        for fast in (True, False):
            run = tg.compile(stage, fast=fast)
            y = run(x)
            y.backward(np.ones(y.shape))
            np.testing.assert_allclose(y.numpy(), wanted.numpy(), rtol=1e-12)
            np.testing.assert_allclose(w.grad, gradient, rtol=1e-10)
            found.append(run.explain())
            w.grad = None
    assert ("conv2d_relu_max_pool2d" in found[0]) == fused
    assert "max_pool2d_relu" in found[1] and "conv2d_relu" not in found[1]
