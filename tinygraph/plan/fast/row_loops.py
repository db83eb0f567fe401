"""Loops over images as rows: two that lay them out and take them back, two that multiply and add.

    M C H W    images of a block, channels, height, width          O      output channels
    K          what a filter sees, C * KH * KW                     p      a place in the rows

    rows[c, first + (m * lines + u) * pitch + v] = x[m, c, u * down + i, v * right + j],  else 0
    maps[o, p] = b[o] + sum over k of w[o, k] * rows[moved[k] + p]
    gw[o, k]   = sum over p of gmaps[o, p] * rows[moved[k] + p]

The last two hold four outputs, or four times three sums, while they read three of the rows: a loop
that held one would wait for memory.

Source: Georganas et al., "Anatomy of high-performance deep learning convolutions on SIMD
architectures", SC 2018, for direct convolution with several outputs held at once.
"""

from __future__ import annotations

from tinygraph.engine import Array
from tinygraph.plan.fast.jit import loop

CHUNK = 1024  # places: so many of four outputs, and of what they see, stay in the first cache


@loop("x4 i i i i i i i =x2")
def put(
    images: Array,
    i: int,
    j: int,
    down: int,
    right: int,
    first: int,
    lines: int,
    pitch: int,
    rows: Array,
) -> None:
    """rows (C, places) of pixels (i::down, j::right) of images (M, C, H, W); 0 everywhere else.

    >>> import numpy as np
    >>> rows = np.empty((1, 8))
    >>> put(np.arange(4.0).reshape(1, 1, 2, 2), 0, 0, 1, 1, 1, 2, 3, rows)
    >>> rows
    array([[0., 0., 1., 0., 2., 3., 0., 0.]])
    """
    zero = images.dtype.type(0)
    number = (images.shape[3] - j + right - 1) // right  # pixels of a line
    for c in range(images.shape[1]):
        row = rows[c]
        for p in range(len(row)):  # zeros after each line would take four times as long
            row[p] = zero
        for m in range(len(images)):
            for u in range((images.shape[2] - i + down - 1) // down):
                begin = first + (m * lines + u) * pitch
                source, target = images[m, c, u * down + i, j:], row[begin : begin + pitch]
                if right == 1:  # contiguous on both sides: vectors
                    for v in range(number):
                        target[v] = source[v]
                else:
                    for v in range(number):
                        target[v] = source[v * right]


@loop("x2 i i i i i i i =x4")
def take(
    rows: Array,
    i: int,
    j: int,
    down: int,
    right: int,
    first: int,
    lines: int,
    pitch: int,
    images: Array,
) -> None:
    """The reverse: these pixels of images (M, C, H, W), of which others stay as they are."""
    number = (images.shape[3] - j + right - 1) // right
    for c in range(images.shape[1]):
        for m in range(len(images)):
            for u in range((images.shape[2] - i + down - 1) // down):
                begin = first + (m * lines + u) * pitch
                source, target = rows[c, begin : begin + pitch], images[m, c, u * down + i, j:]
                if right == 1:
                    for v in range(number):
                        target[v] = source[v]
                else:
                    for v in range(number):
                        target[v * right] = source[v]


@loop("x1 i1 x2 x1 i i =x2")
def products(rows: Array, moved: Array, w: Array, b: Array, first: int, n: int, out: Array) -> None:
    """out[o, first + p] = b[o] + sum over k of w[o, k] * rows[moved[k] + p], for p below n.

    >>> import numpy as np
    >>> out = np.empty((4, 2))
    >>> w = np.array([[1.0, 10.0, 0.0], *3 * [[0.0] * 3]])
    >>> products(np.arange(4.0), np.array([0, 2, 0]), w, np.zeros(4), 0, 2, out)
    >>> out[0]
    array([20., 31.])
    """
    for begin in range(0, n, CHUNK):
        size = min(CHUNK, n - begin)
        at = first + begin
        for o in range(0, len(w), 4):
            y0, y1 = out[o, at : at + size], out[o + 1, at : at + size]
            y2, y3 = out[o + 2, at : at + size], out[o + 3, at : at + size]
            b0, b1, b2, b3 = b[o], b[o + 1], b[o + 2], b[o + 3]
            for p in range(size):
                y0[p], y1[p], y2[p], y3[p] = b0, b1, b2, b3
            for k in range(0, w.shape[1], 3):
                from0, from1, from2 = moved[k] + begin, moved[k + 1] + begin, moved[k + 2] + begin
                x0, x1, x2 = (
                    rows[from0 : from0 + size],
                    rows[from1 : from1 + size],
                    rows[from2 : from2 + size],
                )
                w00, w01, w02 = w[o, k], w[o, k + 1], w[o, k + 2]
                w10, w11, w12 = w[o + 1, k], w[o + 1, k + 1], w[o + 1, k + 2]
                w20, w21, w22 = w[o + 2, k], w[o + 2, k + 1], w[o + 2, k + 2]
                w30, w31, w32 = w[o + 3, k], w[o + 3, k + 1], w[o + 3, k + 2]
                for p in range(size):
                    u0, u1, u2 = x0[p], x1[p], x2[p]  # before anything is written
                    y0[p] = y0[p] + w00 * u0 + w01 * u1 + w02 * u2
                    y1[p] = y1[p] + w10 * u0 + w11 * u1 + w12 * u2
                    y2[p] = y2[p] + w20 * u0 + w21 * u1 + w22 * u2
                    y3[p] = y3[p] + w30 * u0 + w31 * u1 + w32 * u2


@loop("x1 i1 x2 i i =d2", reorder=True)
def sums(rows: Array, moved: Array, g: Array, first: int, n: int, gw: Array) -> None:
    """gw[o, k] += sum over p below n of g[o, first + p] * rows[moved[k] + p]; gw is float64.

    A chunk is added up in the dtype of the rows, in vectors; chunks are many, and float64.

    >>> import numpy as np
    >>> gw = np.zeros((4, 3))
    >>> sums(np.arange(4.0), np.array([0, 1, 2]), np.ones((4, 2)), 0, 2, gw)
    >>> gw[0]
    array([1., 3., 5.])
    """
    zero = rows.dtype.type(0)
    for begin in range(0, n, CHUNK):
        size = min(CHUNK, n - begin)
        at = first + begin
        for o in range(0, len(gw), 4):
            g0, g1 = g[o, at : at + size], g[o + 1, at : at + size]
            g2, g3 = g[o + 2, at : at + size], g[o + 3, at : at + size]
            for k in range(0, gw.shape[1], 3):
                from0, from1, from2 = moved[k] + begin, moved[k + 1] + begin, moved[k + 2] + begin
                x0, x1, x2 = (
                    rows[from0 : from0 + size],
                    rows[from1 : from1 + size],
                    rows[from2 : from2 + size],
                )
                s00 = s01 = s02 = s10 = s11 = s12 = zero
                s20 = s21 = s22 = s30 = s31 = s32 = zero
                for p in range(size):
                    s00 += g0[p] * x0[p]
                    s01 += g0[p] * x1[p]
                    s02 += g0[p] * x2[p]
                    s10 += g1[p] * x0[p]
                    s11 += g1[p] * x1[p]
                    s12 += g1[p] * x2[p]
                    s20 += g2[p] * x0[p]
                    s21 += g2[p] * x1[p]
                    s22 += g2[p] * x2[p]
                    s30 += g3[p] * x0[p]
                    s31 += g3[p] * x1[p]
                    s32 += g3[p] * x2[p]
                for i, of_output in enumerate(
                    ((s00, s01, s02), (s10, s11, s12), (s20, s21, s22), (s30, s31, s32))
                ):
                    for j, found in enumerate(of_output):
                        gw[o + i, k + j] += found


LOOPS = put, take, products, sums
