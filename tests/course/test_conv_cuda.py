"""Exercise 12: right and wrong kernels in other styles; they are the framework's layers."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests.course.bodies import changed, with_step
from tests.course.test_exercises import of
from tinygraph.cuda import Kernel, Out
from tinygraph.ops.windows.im2col import col2im, im2col
from tinygraph_course.content.exercise import find
from tinygraph_course.exercises.conv_cuda import network

CONV = find("conv_cuda")

# ---- bodies in the manner of learners: other names, loops and order ------------------------------
COLUMN = """
    int rest = i;
    int v = rest % OW; rest /= OW;
    int u = rest % OH; rest /= OH;
    int b = rest % KW; rest /= KW;
    int a = rest % KH; rest /= KH;
    int c = rest % C, n = rest / C;
    int r = a - P + S * u;
    int s = b - P + S * v;
    float value = 0;
    if (r >= 0 && r < H) {
        if (s >= 0 && s < W)
            value = x[n * C * H * W + c * H * W + r * W + s];
    }
    return value;
"""
COL2IM = """
    int t = threadIdx.x + blockDim.x * blockIdx.x;
    int pixels = H * W;
    int n = t / (C * pixels), c = t / pixels % C;
    int r = t % pixels / W + P, s = t % pixels % W + P;
    if (n < N) {
        const float* mine = cols + (n * C + c) * KH * KW * OH * OW;
        float total = 0;
        for (int u = 0; u < OH; u++) {
            for (int v = 0; v < OW; v++) {
                int a = r - u * S, b = s - v * S;
                if (a >= 0 && a < KH && b >= 0 && b < KW)
                    total += mine[(a * KW + b) * OH * OW + u * OW + v];
            }
        }
        image[t] = total;
    }
"""
POOL = """
    int t = threadIdx.x + blockDim.x * blockIdx.x;
    if (t < planes * OH * OW) {
        int p = t / (OH * OW), u = t % (OH * OW) / OW, v = t % OW;
        int first = p * H * W + u * S * W + v * S;
        int winner = 0;
        for (int k = 1; k < K * K; k++) {
            if (x[first + k / K * W + k % K] > x[first + winner / K * W + winner % K])
                winner = k;
        }
        int at = first + winner / K * W + winner % K;
        argmax[t] = at - p * H * W;
        y[t] = x[at];
    }
"""
UNPOOL = """
    int t = threadIdx.x + blockDim.x * blockIdx.x;
    if (t >= planes * H * W) return;
    int p = t / (H * W), place = t % (H * W), r = place / W, s = place % W;
    float total = 0;
    int top = r < K ? 0 : (r - K) / S + 1, left = s < K ? 0 : (s - K) / S + 1;
    for (int u = top; u <= r / S && u < OH; u++)
        for (int v = left; v <= s / S && v < OW; v++) {
            int k = p * OH * OW + u * OW + v;
            total += argmax[k] == place ? gy[k] : 0;
        }
    gx[t] = total;
"""
LAYER = """
    int t = threadIdx.x, step = blockDim.x, length = C * KH * KW, area = OH * OW;
    cols += blockIdx.x * length * area;
    y += blockIdx.x * D * area;
    x += blockIdx.x * C * H * W;
    int k = t;
    while (k < length * area) {
        cols[k] = column(x, k, C, H, W, KH, KW, S, P, OH, OW);
        k += step;
    }
    __syncthreads();
    for (int j = t; j < area * D; j += step) {
        const float *p = weight + j / area * length, *q = cols + j % area;
        float total = 0;
        for (int left = length; left > 0; --left, ++p, q += area)
            total += *p * *q;
        y[j] = total + b[j / area];
    }
"""
BODIES = {1: COLUMN, 2: COL2IM, 3: POOL, 4: UNPOOL, 5: LAYER}
SYNC = "    __syncthreads();\n"
WRONG = {  # the step, what is replaced in the body above by what, and the mistake that it is
    "rows above are read": (1, [("r >= 0 && ", "")], "above-and-left-untested"),
    "one row too many": (1, [("r < H", "r <= H")], "below-and-right-untested"),
    "u first": (
        1,
        [
            ("int v = rest % OW; rest /= OW;", "int u = rest % OH; rest /= OH;"),
            (
                "int u = rest % OH; rest /= OH;\n    int b",
                "int v = rest % OW; rest /= OW;\n    int b",
            ),
        ],
        "windows-down-first",
    ),
    "channel before the place": (
        1,
        [
            ("    int b = rest % KW", "    int c = rest % C; rest /= C;\n    int b = rest % KW"),
            ("int c = rest % C, n = rest / C;", "int n = rest;"),
        ],
        "channels-last",
    ),
    "image 0": (1, [("n * C * H * W + ", "")], "image-0-alone"),
    "stride on the place too": (
        1,
        [("a - P + S * u", "S * (a + u) - P"), ("b - P + S * v", "S * (b + v) - P")],
        "places-strided",
    ),
    "each window adds": (
        2,
        [
            (
                COL2IM.strip("\n"),
                """
    int t = threadIdx.x + blockDim.x * blockIdx.x;
    int v = t % OW, u = t / OW % OH, p = t / OW / OH;
    if (p >= N * C) return;
    for (int k = 0; k < KH * KW; k++) {
        int r = u * S + k / KW - P, s = v * S + k % KW - P;
        if (r < 0 || s < 0 || r >= H || s >= W) continue;
        image[p * H * W + r * W + s] += cols[p * KH * KW * OH * OW + k * OH * OW + u * OW + v];
    }""",
            )
        ],
        "scattered",
    ),
    "no padding": (
        2,
        [(" / W + P", " / W"), (" % W + P", " % W")],
        "padding-missing-on-the-way-back",
    ),
    "an image that is added to": (2, [("image[t] =", "image[t] +=")], "added-to-what-was-there"),
    "an image that is added to, window by window": (
        2,
        [
            ("        float total = 0;\n", ""),
            ("total += mine", "image[t] += mine"),
            ("        image[t] = total;\n", ""),
        ],
        "added-to-what-was-there",
    ),
    "everybody comes": (2, [("if (n < N) {", "{")], "no-guard"),
    "the last window counts": (2, [("total += mine", "total = mine")], "one-window-alone"),
    "equal is enough": (3, [("k % K] >", "k % K] >=")], "last-of-equals"),
    "the number of the winner": (3, [("at - p * H * W", "winner")], "number-in-the-window"),
    "a place in x": (3, [("at - p * H * W", "at")], "numbered-over-all-planes"),
    "K apart": (3, [("u * S * W + v * S", "u * K * W + v * K")], "windows-k-apart"),
    "gradients for all": (
        4,
        [("argmax[k] == place ? gy[k] : 0", "gy[k]")],
        "gradient-for-every-pixel",
    ),
    "compared with t": (4, [("argmax[k] == place", "argmax[k] == t")], "compared-over-all-planes"),
    "written where there is something": (
        4,
        [("    gx[t] = total", "    if (total) gx[t] = total")],
        "losers-not-written",
    ),
    "each winner adds": (
        4,
        [
            (
                UNPOOL.strip("\n"),
                """
    int t = threadIdx.x + blockDim.x * blockIdx.x;
    if (t < planes * OH * OW)
        atomicAdd(gx + t / (OH * OW) * H * W + argmax[t], gy[t]);""",
            )
        ],
        "atomic-gradients",
    ),
    "no waiting": (5, [(SYNC, "")], "no-barrier"),
    "waiting in the loop": (
        5,
        [(SYNC, ""), ("        k += step;\n", "        k += step;\n        __syncthreads();\n")],
        "barrier-inside-the-loop",
    ),
    "no bias": (5, [(" + b[j / area]", "")], "bias-left-out"),
    "one image for all": (
        5,
        [("    x += blockIdx.x * C * H * W;\n", "")],
        "image-0-for-all-blocks",
    ),
    "rows of cols, at one place for all": (
        5,
        [
            ("    cols += blockIdx.x * length * area;\n", ""),
            (
                LAYER[LAYER.index("    int k = t;") : LAYER.index(SYNC)],
                """
    for (int r = 0; r < length; r++)
        for (int q = t; q < area; q += step)
            cols[r * area + q] = column(x, r * area + q, C, H, W, KH, KW, S, P, OH, OW);
""",
            ),
        ],
        "columns-shared-by-blocks",
    ),
    "along a row of cols": (
        5,
        [("cols + j % area", "cols + j % area * length"), ("q += area", "++q")],
        "columns-turned",
    ),
}
OUTSIDE = {  # wrong in a way that the catalogue does not have
    "a sign": (1, [("value = x", "value = -x")]),
    "ones in the padding": (1, [("float value = 0", "float value = 1")]),
    "the first place is left out": (2, [("a >= 0", "a > 0")]),
    "the second largest": (3, [("int winner = 0", "int winner = K * K - 1")]),
    "y is the place": (3, [("y[t] = x[at]", "y[t] = at")]),
    "twice": (4, [("? gy[k]", "? 2 * gy[k]")]),
    "the last tap is left out": (5, [("left = length", "left = length - 1")]),
    "a bias that is subtracted": (5, [("+ b[j", "- b[j")]),
}


@pytest.mark.second
@pytest.mark.parametrize("step", BODIES)
def test_right_kernels_in_another_style_pass(step, tmp_path):
    outcome = of(CONV, with_step(CONV, step, BODIES[step]), tmp_path)
    assert outcome.ok, outcome.failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", WRONG)
def test_wrong_kernels_in_another_style_are_named(style, tmp_path):
    step, edits, name = WRONG[style]
    outcome = of(CONV, changed(CONV, step, BODIES[step], edits), tmp_path)
    assert outcome.step == step
    assert outcome.failure.mistake is not None, outcome.failure
    assert outcome.failure.mistake.name == name


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", OUTSIDE)
def test_what_the_catalogue_does_not_have_is_never_named_surely(style, tmp_path):
    step, edits = OUTSIDE[style]
    outcome = of(CONV, changed(CONV, step, BODIES[step], edits), tmp_path)
    assert outcome.step == step
    assert outcome.failure.mistake is None or not outcome.failure.sure


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
