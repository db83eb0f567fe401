"""Exercise 7: it is the op of the framework; answers in other styles are right, or named."""

import numpy as np
import pytest

import tinygraph as tg
from tests.course.test_exercises import of
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find

CONV = find("conv")

LOOPS = """
    (N, C, H, W), (O, _, KH, KW) = x.shape, w.shape
    y = np.zeros((N, O, out_size(H, KH, s[0], p[0]), out_size(W, KW, s[1], p[1])), x.dtype)
    for n, o, u, v in np.ndindex(y.shape):
        total = b[o]
        for c in range(C):
            for i in range(KH):
                for j in range(KW):
                    h, m = u * s[0] + i - p[0], v * s[1] + j - p[1]
                    if 0 <= h < H and 0 <= m < W:
                        total += w[o, c, i, j] * x[n, c, h, m]
        y[n, o, u, v] = total
    return y
"""
VIEWS = """
    padded = np.pad(x, [(0, 0), (0, 0), (p[0],) * 2, (p[1],) * 2])
    views = np.lib.stride_tricks.sliding_window_view(padded, k, axis=(2, 3))[:, :, ::s[0], ::s[1]]
    N, C, OH, OW, KH, KW = views.shape
    return views.transpose(0, 1, 4, 5, 2, 3).reshape(N, C * KH * KW, OH * OW)
"""
EINSUM = """
    N, C = x.shape[:2]
    OH, OW = (out_size(x.shape[a + 2], w.shape[a + 2], s[a], p[a]) for a in (0, 1))
    cols = im2col(x, w.shape[2:], s, p).reshape(N, C, *w.shape[2:], OH, OW)
    return np.einsum('ocij,ncijuv->nouv', w, cols) + b[None, :, None, None]
"""
SCATTER = """
    (H, W), (KH, KW) = size, k
    OH, OW = out_size(H, KH, s[0], p[0]), out_size(W, KW, s[1], p[1])
    N, C = cols.shape[0], cols.shape[1] // (KH * KW)
    x = np.zeros((N, C, H, W), cols.dtype)
    six = cols.reshape(N, C, KH, KW, OH, OW)
    for n, c, i, j, u, v in np.ndindex(six.shape):
        h, m = u * s[0] + i - p[0], v * s[1] + j - p[1]
        if 0 <= h < H and 0 <= m < W:
            x[n, c, h, m] += six[n, c, i, j, u, v]
    return x
"""
BACKWARD = """
        x, w = saved
        N, O = gy.shape[:2]
        gx, gw = np.zeros_like(x), np.zeros_like(w)
        gb = gy.sum(axis=(0, 2, 3))
        for n in range(N):
            flat = gy[n].reshape(O, -1)
            one = im2col(x[n : n + 1], w.shape[2:], self.stride, self.padding)[0]
            gw += np.dot(flat, one.T).reshape(w.shape)
            back = np.dot(w.reshape(O, -1).T, flat)[None]
            gx[n] = col2im(back, x.shape[2:], w.shape[2:], self.stride, self.padding)[0]
        return (gx, gw, gb)
"""
RIGHT = {
    "size by counting": ("out_size", "\n    return len(range(0, n + 2 * p - k + 1, s))\n"),
    "seven loops": ("direct", LOOPS),
    "a shift for each weight": (
        "direct",
        """
    OH, OW = (out_size(x.shape[a + 2], w.shape[a + 2], s[a], p[a]) for a in (0, 1))
    big = np.zeros((*x.shape[:2], x.shape[2] + 2 * p[0], x.shape[3] + 2 * p[1]), x.dtype)
    big[:, :, p[0] : p[0] + x.shape[2], p[1] : p[1] + x.shape[3]] = x
    y = np.tile(b[:, None, None], (len(x), 1, OH, OW))
    for i, j in np.ndindex(*w.shape[2:]):
        part = big[:, :, i::s[0], j::s[1]][:, :, :OH, :OW]
        y = y + np.tensordot(part, w[:, :, i, j], axes=(1, 1)).transpose(0, 3, 1, 2)
    return y
""",
    ),
    "views of the windows": ("im2col", VIEWS),
    "a product by einsum": ("gemm", EINSUM),
    "a loop over all entries": ("col2im", SCATTER),
    "sample by sample": ("backward", BACKWARD),
}
SHAPES = "    OH, OW = (out_size(x.shape[a + 2], w.shape[a + 2], s[a], p[a]) for a in (0, 1))\n"
WRONG = {  # (function, body, name of the mistake)
    "moves counted in a loop": (
        "out_size",
        "\n    u = 0\n    while (u + 1) * s + k <= n + 2 * p:\n        u += 1\n    return u\n",
        "place-lost",
    ),
    "ceil of a quotient": (
        "out_size",
        "\n    return int(np.ceil((n + 2 * p - k) / s)) + 1\n",
        "rounded-up",
    ),
    "the kernel from its end": (
        "direct",
        LOOPS.replace("w[o, c, i, j]", "w[o, c, KH - 1 - i, KW - 1 - j]"),
        "flipped",
    ),
    "the sum begins anew at each channel": (
        "direct",
        LOOPS.replace(
            "        for c in range(C):\n", "        for c in range(C):\n            total = b[o]\n"
        ),
        "last-channel-alone",
    ),
    "the bias in the innermost loop": (
        "direct",
        """
    (KH, KW), C = w.shape[2:], w.shape[1]
"""
        + SHAPES
        + """    pad = np.pad(x, [(0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])])
    y = np.zeros((len(x), len(w), OH, OW), x.dtype)
    for n, o, u, v in np.ndindex(y.shape):
        for c, i, j in np.ndindex(C, KH, KW):
            y[n, o, u, v] += w[o, c, i, j] * pad[n, c, u * s[0] + i, v * s[1] + j] + b[o]
    return y
""",
        "bias-in-the-sum",
    ),
    "strides the other way round, in loops": (
        "direct",
        """
    (KH, KW), C = w.shape[2:], w.shape[1]
"""
        + SHAPES
        + """    pad = np.pad(x, [(0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])])
    y = np.zeros((len(x), len(w), OH, OW), x.dtype)
    for n, o, u, v in np.ndindex(y.shape):
        y[n, o, u, v] = b[o]
        for c, i, j in np.ndindex(C, KH, KW):
            y[n, o, u, v] += w[o, c, i, j] * pad[n, c, u * s[1] + i, v * s[0] + j]
    return y
""",
        "strides-exchanged",
    ),
    "a bound that is looked at above alone": (
        "direct",
        LOOPS.replace("if 0 <= h < H and 0 <= m < W", "if h < H and m < W"),
        "counted-from-the-end",
    ),
    "no bound at all": (
        "direct",
        LOOPS.replace("if 0 <= h < H and 0 <= m < W", "if True"),
        "counted-from-the-end",
    ),
    "padding that is not subtracted": (
        "direct",
        LOOPS.replace(" + i - p[0]", " + i").replace(" + j - p[1]", " + j"),
        "all-padding-behind",
    ),
    "row 0 is outside": (
        "direct",
        LOOPS.replace("if 0 <= h < H and 0 <= m < W", "if 0 < h < H and 0 < m < W"),
        "first-pixels-as-padding",
    ),
    "channels at the end of each column": (
        "im2col",
        VIEWS.replace("transpose(0, 1, 4, 5, 2, 3)", "transpose(0, 4, 5, 1, 2, 3)"),
        "channels-last",
    ),
    "views reshaped as they come": (
        "im2col",
        """
    pad, cols = np.pad(x, [(0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])]), []
    for u in range(0, pad.shape[2] - k[0] + 1, s[0]):
        for v in range(0, pad.shape[3] - k[1] + 1, s[1]):
            cols.append(pad[:, :, u : u + k[0], v : v + k[1]].reshape(len(x), -1))
    return np.stack(cols, axis=1).reshape(len(x), cols[0].shape[1], -1)
""",
        "windows-as-rows-reshaped",
    ),
    "windows appended as rows": (
        "im2col",
        """
    pad, cols = np.pad(x, [(0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])]), []
    for u in range(0, pad.shape[2] - k[0] + 1, s[0]):
        for v in range(0, pad.shape[3] - k[1] + 1, s[1]):
            cols.append(pad[:, :, u : u + k[0], v : v + k[1]].reshape(len(x), -1))
    return np.stack(cols, axis=1)
""",
        "windows-as-rows",
    ),
    "np.dot of filters and columns": (
        "gemm",
        "\n"
        + SHAPES
        + """    y = np.dot(w.reshape(len(w), -1), im2col(x, w.shape[2:], s, p))
    return y.reshape(len(x), len(w), OH, OW) + b.reshape(1, -1, 1, 1)
""",
        "samples-and-filters-mixed",
    ),
    "the loops of step 2": ("gemm", "\n    return direct(x, w, b, s, p)\n", "by-loops"),
    "a bias without axes": (
        "gemm",
        EINSUM.replace("b[None, :, None, None]", "b"),
        "bias-along-the-width",
    ),
    "an entry for each pixel, by assignment": (
        "col2im",
        SCATTER.replace("x[n, c, h, m] += ", "x[n, c, h, m] = "),
        "overwritten",
    ),
    "added below zero": (
        "col2im",
        SCATTER.replace("if 0 <= h < H and 0 <= m < W", "if h < H and m < W"),
        "added-from-the-end",
    ),
    "the padded image is returned": (
        "col2im",
        SCATTER.replace("(N, C, H, W)", "(N, C, H + 2 * p[0], W + 2 * p[1])")
        .replace(" + i - p[0]", " + i")
        .replace(" + j - p[1]", " + j")
        .replace("if 0 <= h < H and 0 <= m < W", "if True"),
        "padding-not-cropped",
    ),
    "gw of each sample written over": (
        "backward",
        BACKWARD.replace("gw += ", "gw = "),
        "gw-of-the-last-sample",
    ),
    "gb of one sample after the other": (
        "backward",
        BACKWARD.replace(
            "gb = gy.sum(axis=(0, 2, 3))", "gb = np.array([g.sum((1, 2)) for g in gy])"
        ),
        "gb-of-each-sample",
    ),
    "a kernel turned by 180 degrees on the way back": (
        "backward",
        BACKWARD.replace("w.reshape(O, -1).T", "np.rot90(w, 2, (2, 3)).reshape(O, -1).T"),
        "gx-through-a-flipped-kernel",
    ),
}
OUTSIDE = {  # (function, body): of these the case is told, and no name
    "the kernel counts twice": ("out_size", "\n    return (n + 2 * p - 2 * k) // s + 1\n"),
    "the weights squared": ("direct", LOOPS.replace("* x[n", "* w[o, c, i, j] * x[n")),
    "a sum without the last row of the kernel": (
        "direct",
        LOOPS.replace("range(KH)", "range(max(1, KH - 1))"),
    ),
    "the loops of step 2, once more": ("gemm", LOOPS),
    "the bias of the next filter": ("gemm", EINSUM.replace("b[None", "np.roll(b, 1)[None")),
    "a window less": (
        "im2col",
        VIEWS.replace("return views", "views = views * (views > 1)\n    return views"),
    ),
    "every other entry": (
        "col2im",
        SCATTER.replace("if 0 <= h < H", "if (i + j) % 2 == 0 and 0 <= h < H"),
    ),
    "half of gw": ("backward", BACKWARD.replace("gw += ", "gw += 0.5 * ")),
    "gx without the last sample": (
        "backward",
        BACKWARD.replace("gx[n] = ", "gx[n] = (n + 1 < N or N == 1) * "),
    ),
}


def with_body(function, body):
    """The solution with another body of one function, or of a method of its class."""
    text = CONV.solution
    start = text.index(f"def {function}(")
    end = text.find("\n\n\n" if function != "backward" else "\0", start)
    head = text[start : text.index('"""', text.index('"""', start) + 3) + 3]
    return text[:start] + head + body + text[end if end >= 0 else len(text) :]


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", RIGHT)
def test_right_answers_in_another_style_pass(style, tmp_path):
    outcome = of(CONV, with_body(*RIGHT[style]), tmp_path)
    assert outcome.ok, outcome.failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", WRONG)
def test_wrong_answers_in_another_style_are_named(style, tmp_path):
    function, body, name = WRONG[style]
    failure = of(CONV, with_body(function, body), tmp_path).failure
    assert failure is not None and failure.mistake is not None, failure
    assert failure.mistake.name == name and failure.sure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", OUTSIDE)
def test_a_mistake_outside_of_the_catalogue_has_no_name(style, tmp_path):
    failure = of(CONV, with_body(*OUTSIDE[style]), tmp_path).failure
    assert failure is not None and failure.mistake is None
    assert failure.case and failure.expected and failure.got


@pytest.mark.second
def test_of_several_inputs_gradcheck_names_the_one_that_is_wrong(tmp_path):
    text = with_body("backward", BACKWARD.replace("gw += ", "gw += 0.5 * "))
    failure = of(CONV, text, tmp_path).failure
    assert failure.text.startswith("gradcheck: the gradient of w is half of what it should be")
    assert failure.case.splitlines()[1:] == [
        "  x = [[[[1, 2, 3]]]]",
        "  w = [[[[1, 10]]]]",
        "  b = [0]",
        "  gy = [[[[1, 8]]]]",
    ]
    assert (failure.expected, failure.got) == ("[[[[17, 26]]]]", "[[[[8.5, 13]]]]")


def test_the_worked_example_of_the_text():
    solution = module(CONV.solution)
    x, w = np.array([[[[1.0, 2, 3, 4]]]]), np.array([[[[1.0, 10]]]])
    assert solution.direct(x, w, np.zeros(1), (1, 1), (0, 0)).tolist() == [[[[21, 32, 43]]]]
    op = solution.Conv2d((1, 1), (0, 0))
    gx, gw, gb = op.backward(None, np.array([[[[1.0, 0, 2]]]]), (x, w), (True,) * 3)
    assert (gx.tolist(), gw.tolist(), gb.tolist()) == ([[[[1, 10, 2, 20]]]], [[[[7, 10]]]], [3])


@pytest.mark.parametrize("seed", range(20))
def test_the_solution_is_the_op_of_the_framework(seed):
    draw = np.random.default_rng(seed)
    k, s, p = draw.integers(1, 4, 2), draw.integers(1, 4, 2), draw.integers(0, 3, 2)
    size = np.maximum(k - 2 * p, 1) + draw.integers(0, 5, 2)
    (N, C, filters), solution = draw.integers(1, 4, 3), module(CONV.solution)
    shapes = (N, C, *size), (filters, C, *k), (filters,)
    x, w, b = (tg.Tensor(draw.standard_normal(shape), requires_grad=True) for shape in shapes)
    k, s, p, size = (tuple(map(int, pair)) for pair in (k, s, p, size))
    y = tg.conv2d(x, w, b, s, p)
    arrays = x.value, w.value, b.value
    np.testing.assert_allclose(solution.direct(*arrays, s, p), y.value, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(solution.gemm(*arrays, s, p), y.value, rtol=1e-9, atol=1e-12)
    cols = tg.im2col(x, k, s, p).value
    np.testing.assert_array_equal(solution.im2col(x.value, k, s, p), cols)
    image = tg.col2im(cols, size, k, s, p).value
    np.testing.assert_allclose(solution.col2im(cols, size, k, s, p), image, rtol=1e-12)
    gy = draw.standard_normal(y.shape)
    y.backward(gy)
    made = solution.Conv2d(s, p).backward(None, gy, arrays[:2], (True,) * 3)
    for got, leaf in zip(made, (x, w, b), strict=True):
        np.testing.assert_allclose(got, leaf.grad, rtol=1e-9, atol=1e-12)
