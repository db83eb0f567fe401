"""Products of float32 matrices rounded to tf32 or bf16, as tensor cores compute them."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import ArgumentError
from tinygraph.ops.products.gemm import Axis, gemm

F = np.float32


def to_tf32(x):
    """Round 13 bits away, halves away from zero."""
    bits = np.ascontiguousarray(x, F).view(np.int32).astype(np.int64)
    return (((bits + (1 << 12)) >> 13) << 13).astype(np.int32).view(F)


def to_bf16(x):
    """Round 16 bits away, halves to the even one."""
    bits = np.ascontiguousarray(x, F).view(np.int32).astype(np.int64)
    low, kept = bits & 0xFFFF, bits >> 16
    up = (low > 0x8000) | (low == 0x8000) & (kept % 2 == 1)
    return ((kept + up) << 16).astype(np.int32).view(F)


ROUNDED = {"highest": lambda x: x, "high": to_tf32, "medium": to_bf16}


@pytest.fixture
def precision(request):
    tg.set_float32_matmul_precision(request.param)
    yield request.param
    tg.set_float32_matmul_precision("highest")


def test_rounding_by_hand():
    assert to_tf32(1 + 2**-11) == F(1 + 2**-10) and to_tf32(-(1 + 2**-11)) == F(-(1 + 2**-10))
    assert to_bf16(1 + 2**-8) == 1 and to_bf16(1 + 3 * 2**-8) == F(1 + 2**-6)


@pytest.mark.second
@pytest.mark.parametrize("precision", ["high", "medium"], indirect=True)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
@pytest.mark.parametrize("m, n, k", [(17, 5, 1), (130, 132, 36)])
def test_products_of_rounded_numbers(precision, layout, m, n, k):
    rng = np.random.default_rng(k)
    a, b = rng.standard_normal((2, m, k)).astype(F), rng.standard_normal((2, k, n)).astype(F)
    stored_a = np.ascontiguousarray(a.swapaxes(1, 2) if layout == "tn" else a)
    stored_b = np.ascontiguousarray(b.swapaxes(1, 2) if layout == "nt" else b)
    c = np.empty((m, n), F)
    with tg.cuda.checking():
        gemm(layout, stored_a, stored_b, c, m, n, k, sums=[Axis(2, m * k, k * n)])
    a, b = ROUNDED[precision](a), ROUNDED[precision](b)
    exact = (a.astype(float) @ b.astype(float)).sum(axis=0)
    bound = (np.abs(a).astype(float) @ np.abs(b)).sum(axis=0) * 2 * k * 2.0**-24
    assert (np.abs(c - exact) <= bound).all()


@pytest.mark.parametrize("precision", ["highest", "high", "medium"], indirect=True)
def test_halves_are_rounded_as_the_hardware_does(precision):
    """One product each, so nothing is summed: bit for bit."""
    x = np.array([1 + 2**-11, 1 + 2**-8, 1 + 3 * 2**-8, -(1 + 2**-11), 3e38, 2**-126], F)
    one = np.ones((1, 17), F)
    y = tg.Tensor(x[:, None], device="emulator") @ tg.Tensor(one, device="emulator")
    np.testing.assert_array_equal(y.value, ROUNDED[precision](x)[:, None] * one)


@pytest.mark.parametrize("precision", ["high"], indirect=True)
def test_subnormal_numbers_are_cut(precision):
    """A unit of their tf32 is 2**-136."""
    x = np.array([3 * 2.0**-137, -5 * 2.0**-137, 2.0**-137], F)
    y = tg.Tensor(x[:, None], device="emulator") @ tg.Tensor(np.ones((1, 17), F), device="emulator")
    np.testing.assert_array_equal(y.value[:, 0], np.array([2.0**-136, -(2.0**-135), 0], F))


@pytest.mark.second
def test_infinite_numbers_and_nan_stay_what_they_are():
    """Also the NaN of a GPU, whose bits are all set: half a unit more would make it zero."""
    x = np.array([np.inf, -np.inf, np.nan, 0, 0], F)
    x.view(np.uint32)[3:] = 0x7FFFFFFF, 0x7F7FFFFF  # the greatest finite one rounds to infinity
    one = tg.Tensor(np.ones((1, 17), F), device="emulator")
    for precision in ("high", "medium"):
        tg.set_float32_matmul_precision(precision)
        y = (tg.Tensor(x[:, None], device="emulator") @ one).value[:, 0]
        tg.set_float32_matmul_precision("highest")
        np.testing.assert_array_equal(y, np.array([np.inf, -np.inf, np.nan, np.nan, np.inf], F))


@pytest.mark.second
def test_a_change_of_the_precision_holds_for_shapes_that_were_seen():
    """What is launched is remembered by shapes; the precision takes part."""
    x, one = np.full((20, 1), 1 + 2.0**-11, F), np.ones((1, 18), F)
    on = [tg.Tensor(t, device="emulator") for t in (x, one)]
    w, b = tg.Tensor(one.T, device="emulator"), tg.Tensor(np.zeros(18, F), device="emulator")
    for precision in ("highest", "high", "medium", "highest"):
        tg.set_float32_matmul_precision(precision)
        results = (on[0] @ on[1]).value, tg.linear(on[0], w, b).value
        tg.set_float32_matmul_precision("highest")
        for y in results:
            np.testing.assert_array_equal(y, ROUNDED[precision](x) * one)


@pytest.mark.second
@pytest.mark.parametrize("precision", ["high"], indirect=True)
def test_linear_rounds_and_numpy_does_not(precision):
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(shape).astype(F) for shape in ((20, 7), (18, 7), (18,)))
    emulated = tg.linear(*(tg.Tensor(t, device="emulator") for t in (x, w, b))).value
    np.testing.assert_allclose(emulated, to_tf32(x) @ to_tf32(w).T + b, rtol=0, atol=1e-5)
    np.testing.assert_allclose(tg.linear(x, w, b).value, x @ w.T + b, rtol=0, atol=1e-6)
    assert np.abs(emulated - (x @ w.T + b)).max() > 1e-5


@pytest.mark.parametrize("precision", ["medium"], indirect=True)
def test_doubles_are_not_rounded(precision):
    x = np.full((20, 3), 1 + 2.0**-30)
    y = tg.Tensor(x, device="emulator") @ tg.Tensor(x.T.copy(), device="emulator")
    np.testing.assert_allclose(y.value, x @ x.T, rtol=1e-15)


CONVOLUTIONS = [
    ((2, 3, 9, 10), (5, 3, 3, 3), {"padding": 1}),
    ((3, 4, 8, 7), (6, 2, 2, 3), {"groups": 2, "stride": (2, 1), "dilation": (1, 2)}),
    ((1, 2, 5, 6), (131, 2, 2, 2), {}),  # two tiles of filters
    ((9, 1, 13, 13), (2, 1, 2, 2), {}),  # gw: a sum that is cut into chunks
]


@pytest.mark.second
@pytest.mark.parametrize("precision", ["high", "medium"], indirect=True)
@pytest.mark.parametrize("x_shape, w_shape, keywords", CONVOLUTIONS)
def test_conv2d_and_its_gradients_of_rounded_numbers(precision, x_shape, w_shape, keywords):
    """Against numpy in float64, of rounded factors; the bias and its gradient are not rounded."""
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(shape).astype(F) for shape in (x_shape, w_shape, w_shape[:1]))
    nodes = [tg.Tensor(t, True, device="emulator") for t in (x, w, b)]
    with tg.cuda.checking():
        y = tg.conv2d(*nodes, **keywords)
        gy = rng.standard_normal(y.shape).astype(F)
        y.backward(gy)
    rounded = ROUNDED[precision]
    exact = [tg.Tensor(t.astype(float), True) for t in (rounded(x), rounded(w), b)]
    expected = tg.conv2d(*exact, **keywords)
    expected.backward(rounded(gy).astype(float))
    close = {"rtol": 1e-5, "atol": 1e-4}
    np.testing.assert_allclose(y.value, expected.value, **close)
    np.testing.assert_allclose(nodes[0].grad, exact[0].grad, **close)
    np.testing.assert_allclose(nodes[1].grad, exact[1].grad, **close)
    np.testing.assert_allclose(nodes[2].grad, gy.sum(axis=(0, 2, 3)), **close)
    unrounded = tg.conv2d(x, w, b, **keywords).value
    assert np.abs(y.value - unrounded).max() > 1e-4


@pytest.mark.parametrize("precision", ["medium"], indirect=True)
def test_conv2d_of_doubles_is_not_rounded(precision):
    x, w = np.full((1, 1, 2, 2), 1 + 2.0**-30), np.full((1, 1, 2, 2), 1 + 2.0**-30)
    y = tg.conv2d(*(tg.Tensor(t, device="emulator") for t in (x, w)))
    np.testing.assert_allclose(y.value.item(), 4 * (1 + 2.0**-30) ** 2, rtol=1e-15)


def test_names():
    assert tg.get_float32_matmul_precision() == "highest"
    with pytest.raises(ArgumentError, match="'highest', 'high', 'medium'"):
        tg.set_float32_matmul_precision("tf32")
    assert tg.get_float32_matmul_precision() == "highest"
