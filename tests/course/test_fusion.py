"""Exercise 13: the bits of its kernels, and the bytes they move."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tinygraph.cuda import InOut, Kernel, Out
from tinygraph_course.content.exercise import find
from tinygraph_course.exercises.fusion.network import Stage, TwoLayers
from tinygraph_course.exercises.fusion.steps import moved

FUSION = find("fusion")


# ---- bits and bytes ------------------------------------------------------------------------------


def kernel(name, **macros):
    return Kernel(FUSION.solution + FUSION.harness, name, macros)


def numbers(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.second
@given(st.tuples(*[st.integers(1, 3)] * 3, *[st.integers(4, 9)] * 2), st.integers(0, 99))
def test_a_fused_stage_has_the_bits_of_the_separate_ones(sizes, seed):
    """Element by element in float32, one operation after the other."""
    N, C, D, H, W = sizes
    x, w, b = numbers(seed, N, C, H, W), numbers(seed + 1, D, C, 3, 3), numbers(seed + 2, D)
    z = np.zeros((N, D, H - 2, W - 2), np.float32)
    for c, i, j in np.ndindex(C, 3, 3):
        pixels = x[:, None, c, i : i + H - 2, j : j + W - 2]
        z += w[:, c, i, j][:, None, None] * pixels
    a = np.maximum(z + b[:, None, None], 0)
    pooled = tg.max_pool2d(a, 2).value
    y, argmax = np.full_like(pooled, np.nan), np.full(pooled.shape, -1, np.int32)
    given_ = Out(y), Out(argmax), *x.shape, D, *y.shape[2:]
    kernel("conv_relu_pool")(-(-y.size // 32), 32, x, w, b, *given_)
    np.testing.assert_array_equal(y, pooled)
    fours = np.stack(
        [a[:, :, q // 2 :: 2, q % 2 :: 2][..., : y.shape[2], : y.shape[3]] for q in range(4)]
    )
    np.testing.assert_array_equal(argmax, fours.argmax(0))


@pytest.mark.second
@given(st.tuples(*[st.integers(1, 9)] * 3), st.integers(0, 99))
def test_fused_maps_have_the_bits_of_two_launches(sizes, seed):
    N, OUT, IN = sizes
    x, b = numbers(seed, N, OUT, IN), numbers(seed + 1, OUT)
    y = np.full_like(x, np.nan)
    kernel("bias_relu")(-(-y.size // 32), 32, x, b, Out(y), *sizes)
    np.testing.assert_array_equal(y, tg.relu(tg.Tensor(x) + b[:, None]).value)
    gy, w, h = numbers(seed, N, OUT), numbers(seed + 1, OUT, IN), np.maximum(y[:, 0], 0)
    fused, two = np.full_like(h, np.nan), np.full_like(h, np.nan)
    blocks = -(-h.size // 32)
    kernel("delta")(blocks, 32, gy, w, h, Out(fused), *sizes)
    kernel("tg_product")(blocks, 32, gy, w, Out(two), *sizes)
    kernel("tg_mask")(blocks, 32, h, InOut(two), h.size)
    np.testing.assert_array_equal(fused, two)
    np.testing.assert_allclose(fused, gy @ w * (h > 0), rtol=1e-4, atol=1e-5)


@pytest.mark.second
@pytest.mark.parametrize("sizes", [(1, 1, 32), (2, 10, 64), (3, 7, 96)])
def test_predictions_are_the_bytes_that_are_counted(sizes):
    N, OUT, IN = sizes
    gy, w, h = numbers(0, N, OUT), numbers(1, OUT, IN), np.maximum(numbers(2, N, IN), 0)
    gx, launch = np.empty_like(h), (N, IN)

    def counted(name, *arguments):
        report = kernel(name).check(*launch, *arguments, profile=True)
        assert report.ok
        return report.bytes

    assert counted("delta", gy, w, h, Out(gx), *sizes) == moved(True, *sizes)
    product = counted("tg_product", gy, w, Out(gx), *sizes)
    assert product + counted("tg_mask", h, InOut(gx), h.size) == moved(False, *sizes)
    predicted = np.empty(1)
    for fused in (True, False):
        kernel("tg_step_4")(1, 1, Out(predicted), int(fused), *sizes)
        assert predicted[0] == moved(fused, *sizes)


def test_the_worked_examples_of_the_text():
    assert f"{moved(True, 2, 10, 64):,}" in FUSION.text
    assert f"{moved(False, 2, 10, 64):,}" in FUSION.text
    assert f"{FUSION.steps[0].launches[-1].most['bytes']:,} bytes" in FUSION.text


class Solution:
    """What launches the solution's kernels in this process."""

    def launch(self, name, grid, block, *arguments):
        kernel(name)(grid, block, *arguments)


@pytest.mark.second
def test_the_ops_of_the_network_have_the_gradients_of_the_framework():
    x, w, b = numbers(1, 2, 1, 8, 8), numbers(2, 4, 1, 3, 3), numbers(3, 4)
    w1, b1, w2 = numbers(4, 5, 36), numbers(5, 5), numbers(6, 3, 5)
    results = []
    for own in (True, False):
        p = [tg.Tensor(a, requires_grad=True) for a in (w, b, w1, b1, w2)]
        if own:
            y = tg.flatten(Stage(Solution())(x, *p[:2]), 1)
            z = TwoLayers(Solution())(y, *p[2:])
        else:
            y = tg.flatten(tg.max_pool2d(tg.relu(tg.conv2d(x, *p[:2])), 2), 1)
            z = tg.relu(y @ p[2].T + p[3]) @ p[4].T
        z.backward(numbers(7, *z.shape))
        results.append([z.value, *(a.grad for a in p)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
