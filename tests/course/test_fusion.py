"""Exercise 13: right and wrong kernels in other styles, their bits, and the bytes they move."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests.course.bodies import changed, with_step
from tests.course.test_exercises import of
from tinygraph.cuda import InOut, Kernel, Out
from tinygraph_course.content.exercise import find
from tinygraph_course.exercises.fusion.network import Stage, TwoLayers
from tinygraph_course.exercises.fusion.steps import moved

FUSION = find("fusion")

# ---- bodies in the manner of learners: other names, loops and order ------------------------------
BIAS = """
    int t = blockDim.x * blockIdx.x + threadIdx.x;
    if (t < P * C * N) {
        int rest = t % (C * P);
        float value = b[rest / P];
        value += x[t];
        if (value < 0) value = 0;
        y[t] = value;
    }
"""
DELTA = """
    int t = blockDim.x * blockIdx.x + threadIdx.x;
    if (t < N * IN) {
        const float *row = gy + t / IN * OUT, *column = w + t % IN;
        float total = 0;
        for (int left = OUT; left > 0; left--, row++, column += IN)
            total = total + *row * *column;
        float open = h[t];
        if (open <= 0) total = 0;
        gx[t] = total;
    }
"""
STAGE = """
    int t = blockDim.x * blockIdx.x + threadIdx.x;
    int area = PH * PW, filter = t / area % D, image = t / area / D;
    if (image >= N) return;
    int top = t % area / PW * 2, left = t % PW * 2;
    float a = 0, e = 0, f = 0, g = 0, tile[(K + 1) * (K + 1)];
    for (int c = 0; c < C; c++) {
        const float* plane = x + (image * C + c) * H * W + top * W + left;
        const float* taps = w + (filter * C + c) * K * K;
        for (int k = 0; k < (K + 1) * (K + 1); k++)
            tile[k] = plane[k / (K + 1) * W + k % (K + 1)];
        for (int k = 0; k < K * K; k++) {
            float weight = taps[k];
            const float* from = tile + k / K * (K + 1) + k % K;
            a += weight * from[0];
            e += weight * from[1];
            f += weight * from[K + 1];
            g += weight * from[K + 2];
        }
    }
    float four[4] = {a + b[filter], e + b[filter], f + b[filter], g + b[filter]};
    for (int k = 0; k < 4; k++)
        four[k] = fmaxf(four[k], 0);
    int winner = 0;
    for (int k = 1; k < 4; k++)
        if (four[k] > four[winner]) winner = k;
    y[t] = four[winner];
    argmax[t] = winner;
"""
BYTES = """
    double elements = (double)N * IN;
    double product = elements * OUT * 5, ends = elements * 8;
    if (fused)
        return product + ends;
    return product + 2 * ends;
"""
BODIES = {1: BIAS, 2: DELTA, 3: STAGE, 4: BYTES}
RIGHT = {
    **{f"step {step}": (step, body) for step, body in BODIES.items()},
    "three in a hundred too many": (
        4,
        BYTES.replace("product + ends", "1.03 * (product + ends)").replace(
            "2 * ends", "2.1 * ends"
        ),
    ),
}
WRONG = {  # the step, what is replaced in the body above by what, and the mistake that it is
    "bias later": (
        1,
        [
            ("float value = b[rest / P];\n        value += x[t];", "float value = x[t];"),
            ("        y[t] = value;", "        y[t] = value + b[rest / P];"),
        ],
        "relu-before-bias",
    ),
    "pixel for channel": (1, [("rest / P", "rest % C")], "bias-by-pixel"),
    "in between": (
        1,
        [
            (
                "if (value < 0) value = 0;\n        y[t] = value;",
                "y[t] = value;\n        if (y[t] < 0) y[t] = 0;",
            )
        ],
        "intermediate-written",
    ),
    "no bias": (1, [("float value = b[rest / P];", "float value = 0;")], "relu-alone"),
    "no ReLU": (1, [("        if (value < 0) value = 0;\n", "")], "bias-alone"),
    "its own sign": (2, [("float open = h[t]", "float open = total")], "mask-of-the-gradient"),
    "no mask": (2, [("        if (open <= 0) total = 0;\n", "")], "mask-missing"),
    "zeros left out": (
        2,
        [("if (open <= 0) total = 0;\n        gx[t] = total", "if (open > 0) gx[t] = total")],
        "closed-not-written",
    ),
    "sum in memory": (
        2,
        [
            ("float total = 0;", "gx[t] = 0;"),
            ("total = total + *row", "gx[t] = gx[t] + *row"),
            ("if (open <= 0) total = 0;\n        gx[t] = total;", "if (open <= 0) gx[t] = 0;"),
        ],
        "summed-in-memory",
    ),
    "w by columns": (
        2,
        [("*column = w + t % IN", "*column = w + t % IN * OUT"), ("column += IN", "column++")],
        "weight-turned",
    ),
    "everybody comes": (2, [("    if (t < N * IN) {", "    {")], "inputs-without-guard"),
    "pool first": (
        3,
        [
            ("        four[k] = fmaxf(four[k], 0);\n    int", "        four[k] += 0;\n    int"),
            ("y[t] = four[winner]", "y[t] = fmaxf(four[winner], 0)"),
        ],
        "pooled-before-relu",
    ),
    "3 for K": (
        3,
        [
            ("filter * C + c) * K * K", "filter * C + c) * 9"),
            ("k < K * K", "k < 9"),
            ("k / K * (K + 1) + k % K", "k / 3 * 4 + k % 3"),
            ("tile[(K + 1) * (K + 1)]", "tile[16]"),
            ("k < (K + 1) * (K + 1)", "k < 16"),
            ("plane[k / (K + 1) * W + k % (K + 1)]", "plane[k / 4 * W + k % 4]"),
            ("from[K + 1]", "from[4]"),
            ("from[K + 2]", "from[5]"),
        ],
        "filters-of-3-alone",
    ),
    "equal is enough": (3, [("four[k] > four", "four[k] >= four")], "last-of-equals"),
    "one apart": (3, [("PW * 2, left", "PW, left"), ("% PW * 2;", "% PW;")], "windows-1-apart"),
    "down is 1": (
        3,
        [
            ("e += weight * from[1]", "e += weight * from[K + 1]"),
            ("f += weight * from[K + 1]", "f += weight * from[1]"),
        ],
        "places-turned",
    ),
    "no tile": (
        3,
        [
            ("            tile[k] = plane[k / (K + 1) * W + k % (K + 1)];", "            ;"),
            ("tile + k / K * (K + 1) + k % K", "plane + k / K * W + k % K"),
            ("from[K + 1]", "from[W]"),
            ("from[K + 2]", "from[W + 1]"),
        ],
        "pixels-read-for-each-output",
    ),
    "4 bytes a number": (4, [("OUT * 5", "OUT * 4.125")], "one-number-four-bytes"),
    "128 bytes a number": (4, [("OUT * 5", "OUT * 8")], "elements-counted"),
    "the same for both": (4, [("2 * ends", "ends")], "two-as-one"),
    "doubled": (4, [("product + 2 * ends", "2 * (product + ends)")], "everything-twice"),
    "without ends": (
        4,
        [("return product + ends", "return product"), ("2 * ends", "ends")],
        "ends-forgotten",
    ),
}
OUTSIDE = {  # wrong in a way that the catalogue does not have
    "a bias that is subtracted": (1, [("= b[", "= -b[")]),
    "at most 6": (1, [("if (value < 0) value = 0;", "value = fminf(fmaxf(value, 0), 6);")]),
    "the first output is left out": (2, [("left = OUT", "left = OUT - 1")]),
    "half": (2, [("gx[t] = total", "gx[t] = total / 2")]),
    "the first winner is 3": (3, [("int winner = 0", "int winner = 3")]),
    "the last tap is left out": (3, [("k < K * K", "k < K * K - 1")]),
    "sectors of 64": (4, [("OUT * 5", "OUT * 6"), ("elements * 8", "elements * 9")]),
}


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", RIGHT)
def test_right_kernels_in_another_style_pass(style, tmp_path):
    outcome = of(FUSION, with_step(FUSION, *RIGHT[style]), tmp_path)
    assert outcome.ok, outcome.failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", WRONG)
def test_wrong_kernels_in_another_style_are_named(style, tmp_path):
    step, edits, name = WRONG[style]
    outcome = of(FUSION, changed(FUSION, step, BODIES[step], edits), tmp_path)
    assert outcome.step == step
    assert outcome.failure.mistake is not None, outcome.failure
    assert outcome.failure.mistake.name == name


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", OUTSIDE)
def test_what_the_catalogue_does_not_have_is_never_named_surely(style, tmp_path):
    step, edits = OUTSIDE[style]
    outcome = of(FUSION, changed(FUSION, step, BODIES[step], edits), tmp_path)
    assert outcome.step == step
    assert outcome.failure.mistake is None or not outcome.failure.sure


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
