"""Exercise 12: its kernels are the framework's layers."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tinygraph.cuda import Kernel, Out
from tinygraph.ops.windows.im2col import col2im, im2col
from tinygraph_course.content.exercise import find
from tinygraph_course.exercises.conv_cuda import network

CONV = find("conv_cuda")


# ---- that they are the framework's layers --------------------------------------------------------
sizes = st.tuples(*[st.integers(1, 3)] * 2, *[st.integers(3, 8)] * 2)
small = st.integers(1, 3)


def launched(name, blocks, *arguments):
    Kernel(CONV.solution, name)(blocks, 32, *arguments)


def numbers(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.second
@given(sizes, small, small, small, small, st.integers(0, 1), st.integers(0, 99))
def test_the_convolution_is_the_framework_s(shape, D, KH, KW, S, P, seed):
    N, C, H, W = shape
    x, w, b = numbers(seed, *shape), numbers(seed + 1, D, C, KH, KW), numbers(seed + 2, D)
    right = im2col(x, (KH, KW), stride=S, padding=P).value
    OH, OW = (H + 2 * P - KH) // S + 1, (W + 2 * P - KW) // S + 1
    cols, again = np.full_like(right, np.nan), np.full_like(right, np.nan)
    at = KH, KW, S, P, OH, OW
    launched("im2col", -(-cols.size // 32), x, Out(cols), *shape, *at)
    np.testing.assert_array_equal(cols, right)
    image = np.full_like(x, np.nan)
    launched("col2im", -(-x.size // 32), cols, Out(image), *shape, *at)
    back = col2im(cols, (H, W), (KH, KW), stride=S, padding=P).value
    np.testing.assert_allclose(image, back, rtol=1e-5, atol=1e-5)
    y = np.full((N, D, OH, OW), np.nan, np.float32)
    launched("conv", N, x, w, b, Out(again), Out(y), C, H, W, D, *at)
    np.testing.assert_array_equal(again, right)
    layer = tg.conv2d(x, w, b, stride=S, padding=P).value
    np.testing.assert_allclose(y, layer, rtol=1e-4, atol=1e-4)


@pytest.mark.second
@given(sizes, small, small, st.integers(0, 99))
def test_the_pooling_is_the_framework_s(shape, K, S, seed):
    x = tg.Tensor(np.round(numbers(seed, *shape)), requires_grad=True)  # with ties
    y = tg.max_pool2d(x, K, stride=S)
    gy = numbers(seed + 1, *y.shape)
    y.backward(gy)
    at = shape[0] * shape[1], *shape[2:], K, S, *y.shape[2:]
    mine, argmax = np.full_like(y.value, np.nan), np.full(y.shape, -1, np.int32)
    launched("pool_forward", -(-mine.size // 32), x.value, Out(mine), Out(argmax), *at)
    np.testing.assert_array_equal(mine, y.value)
    gx = np.full_like(x.value, np.nan)
    launched("pool_backward", -(-gx.size // 32), gy, argmax, Out(gx), *at)
    np.testing.assert_allclose(gx, x.grad, rtol=1e-5, atol=1e-5)


class Solution:
    """What launches the solution's kernels in this process."""

    def launch(self, kernel, grid, block, *arguments):
        Kernel(CONV.solution, kernel)(grid, block, *arguments)


@pytest.mark.second
def test_the_op_that_is_given_and_its_kernels_are_one():
    x, w, b = numbers(1, 2, 3, 5, 4), numbers(2, 4, 3, 3, 2), numbers(3, 4)
    op = network.Conv(Solution(), 1)
    assert tg.testing.gradcheck(op, [a.astype(float) for a in (x, w, b)]).ok
    results = []
    for device in ("cpu", "emulator"):
        leaves = [tg.Tensor(a, requires_grad=True) for a in (x, w, b)]
        y = op(*(leaf.to(device) for leaf in leaves)).to("cpu")
        y.backward(np.cos(np.arange(y.size, dtype=np.float32)).reshape(y.shape))
        results.append([y.value, *(leaf.grad for leaf in leaves)])
    np.testing.assert_allclose(results[0][0], tg.conv2d(x, w, b, padding=1).value, 1e-4, 1e-4)
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_the_text_shows_the_op_as_it_is():
    lines = inspect.getsource(network.Conv.forward_kernel).splitlines()[1:]
    assert "\n".join(lines) in CONV.text
