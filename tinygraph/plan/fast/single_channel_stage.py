"""conv 3x3 + ReLU + max-pool 2x2 on images of one channel, compiled: all from one 4x4 patch.

    N H W      images, height, width          D        filters
    PH PW      pooled size                    T        PH * PW windows of one image

    patches[n, r, s, t] = x[n, 0, 2u + r - top, 2v + s - left]      t = (u, v), r and s below 4
    c[a, b]             = sum over i, j < 3 of w[d, i, j] * patches[n, a + i, b + j, t]
    y[n, d, t]          = max(0, b[d] + max over a, b < 2 of c[a, b])
    gw[d, i, j]         = sum over n, t of gy[n, d, t] * patches[n, a + i, b + j, t], a b the argmax
    gb[d]               = sum over n, t of gy[n, d, t]                        where ReLU gives no 0

A pooling window of the convolution sees 16 pixels, and these serve all filters.  They lie in 16
rows, one number for each window, so that the loop over windows runs over contiguous memory: the
compiler makes vectors of it, which hold the four outputs and their maximum in registers.  Matrix
products of 9 columns, as numpy would have them, wait for memory most of the time.

Source: ops/windows/conv2d_relu_max_pool2d.py has the derivation, and the same in numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygraph.engine import Array, Gradients, Memory, Op, Spec
from tinygraph.ops.windows.conv2d_relu_max_pool2d import NONE, Conv2dReluMaxPool2d
from tinygraph.plan.fast.jit import PIECE, CompiledBody, Loop, loop, plain
from tinygraph.plan.fast.moved_rows import bias_of


@loop("x4 i i =x5")
def gather(x: Array, top: int, left: int, patches: Array) -> None:
    """patches (N, 4, 4, PH, PW) of x (N, 1, H, W); what lies outside of an image is 0."""
    height, width, columns = x.shape[2], x.shape[3], patches.shape[4]
    zero = x.dtype.type(0)
    for n in range(len(x)):
        for s in range(4):
            begin = min(max(0, (left - s + 1) // 2), columns)  # the first v within the image
            end = max(begin, min(columns, (width - 1 + left - s) // 2 + 1))
            for r in range(4):
                for u in range(patches.shape[3]):
                    row, target = 2 * u + r - top, patches[n, r, s, u]
                    if not 0 <= row < height:
                        for v in range(columns):
                            target[v] = zero
                        continue
                    source, inner = x[n, 0, row, 2 * begin + s - left :], target[begin:end]
                    for v in range(begin):
                        target[v] = zero
                    for v in range(len(inner)):
                        inner[v] = source[2 * v]
                    for v in range(end, columns):
                        target[v] = zero


@loop("x4 x2 x1 =x3 =u3")
def forward(patches: Array, w: Array, b: Array, y: Array, argmax: Array) -> None:
    """y, argmax (N, D, T) for w (D, 9) and b (D,).

    The first maximum wins.  `not (c1 <= c0)` is true for a NaN too, and `c0 == c0` says that there
    is none yet: so a NaN counts as larger than everything.
    """
    zero = w.dtype.type(0)
    for n in range(len(y)):
        for d in range(len(w)):
            bias = b[d] + zero  # not -0: then no sum with it is -0
            for t in range(y.shape[2]):
                c0 = c1 = c2 = c3 = zero
                for i in range(3):
                    for j in range(3):
                        weight = w[d, 3 * i + j]
                        c0 += weight * patches[n, i, j, t]
                        c1 += weight * patches[n, i, j + 1, t]
                        c2 += weight * patches[n, i + 1, j, t]
                        c3 += weight * patches[n, i + 1, j + 1, t]
                second = (not (c1 <= c0)) & (c0 == c0)
                upper, first = (c1, np.int32(1)) if second else (c0, np.int32(0))
                second = (not (c3 <= c2)) & (c2 == c2)
                lower, last = (c3, np.int32(3)) if second else (c2, np.int32(2))
                second = (not (lower <= upper)) & (upper == upper)
                best = (lower if second else upper) + bias
                y[n, d, t] = zero if best <= zero else best
                winner = last if second else first
                argmax[n, d, t] = np.int32(NONE) if best <= zero else winner


@loop("x4 x3 u3 =d2", reorder=True)
def backward(patches: Array, gy: Array, argmax: Array, sums: Array) -> None:
    """Write sums (D, 10) in float64: of each filter gw, and then gb.

    A piece of an image is added up in the dtype of gy, in vectors.

    What does not change with t is indexed outside of that loop: indexed inside, as in
    `patches[n, :, :, t]`, it took ten times as long, and t from `begin` on twice as long.
    """
    zero = gy.dtype.type(0)
    sums[:] = 0
    for n in range(len(gy)):
        p = patches[n]
        for d in range(len(sums)):
            for begin in range(0, gy.shape[2], PIECE):
                stop = min(begin + PIECE, gy.shape[2])
                upstream, winner = gy[n, d, begin:stop], argmax[n, d, begin:stop]
                p00, p01, p02, p03 = (
                    p[0, 0, begin:stop],
                    p[0, 1, begin:stop],
                    p[0, 2, begin:stop],
                    p[0, 3, begin:stop],
                )
                p10, p11, p12, p13 = (
                    p[1, 0, begin:stop],
                    p[1, 1, begin:stop],
                    p[1, 2, begin:stop],
                    p[1, 3, begin:stop],
                )
                p20, p21, p22, p23 = (
                    p[2, 0, begin:stop],
                    p[2, 1, begin:stop],
                    p[2, 2, begin:stop],
                    p[2, 3, begin:stop],
                )
                p30, p31, p32, p33 = (
                    p[3, 0, begin:stop],
                    p[3, 1, begin:stop],
                    p[3, 2, begin:stop],
                    p[3, 3, begin:stop],
                )
                w0 = w1 = w2 = w3 = w4 = w5 = w6 = w7 = w8 = total = zero
                for t in range(len(upstream)):
                    g, at = upstream[t], np.int32(winner[t])
                    g0 = g if at == 0 else zero
                    g1 = g if at == 1 else zero
                    g2 = g if at == 2 else zero
                    g3 = g if at == 3 else zero
                    total += g0 + g1 + g2 + g3
                    w0 += g0 * p00[t] + g1 * p01[t] + g2 * p10[t] + g3 * p11[t]
                    w1 += g0 * p01[t] + g1 * p02[t] + g2 * p11[t] + g3 * p12[t]
                    w2 += g0 * p02[t] + g1 * p03[t] + g2 * p12[t] + g3 * p13[t]
                    w3 += g0 * p10[t] + g1 * p11[t] + g2 * p20[t] + g3 * p21[t]
                    w4 += g0 * p11[t] + g1 * p12[t] + g2 * p21[t] + g3 * p22[t]
                    w5 += g0 * p12[t] + g1 * p13[t] + g2 * p22[t] + g3 * p23[t]
                    w6 += g0 * p20[t] + g1 * p21[t] + g2 * p30[t] + g3 * p31[t]
                    w7 += g0 * p21[t] + g1 * p22[t] + g2 * p31[t] + g3 * p32[t]
                    w8 += g0 * p22[t] + g1 * p23[t] + g2 * p32[t] + g3 * p33[t]
                found = (w0, w1, w2, w3, w4, w5, w6, w7, w8, total)
                for k, share in enumerate(found):
                    sums[d, k] += share


class SingleChannelStage(CompiledBody, Conv2dReluMaxPool2d):
    """`Conv2dReluMaxPool2d` on images of one channel, with filters of 3x3 and windows of 2x2."""

    name = Conv2dReluMaxPool2d.name

    def loops(self) -> Sequence[Loop]:
        return gather, forward, backward

    def forward(self, mem: Memory, x: Array, w: Array, b: Array | None = None) -> tuple[Array, Any]:
        n, d, ph, pw = self._pooled(x.shape, w.shape)
        rows, columns = self._windows(x.shape, w.shape)
        patches = mem.empty((n, 4, 4, ph, pw), x.dtype)
        gather(plain(x), rows.before, columns.before, patches)
        patches = patches.reshape(n, 4, 4, ph * pw)
        bias = bias_of(mem, b, d, w.dtype)
        y, argmax = mem.empty((n, d, ph, pw), x.dtype), mem.empty((n, d, ph, pw), np.uint8)
        filters = plain(w).reshape(d, 9)
        forward(patches, filters, bias, y.reshape(n, d, -1), argmax.reshape(n, d, -1))
        return y, (argmax, x, w, patches) if any(mem.needs) else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        argmax, x, w, patches = saved
        gx = gw = gb = None
        if needs[0]:  # rare: the images of one channel are mostly the data
            gx = super().backward(mem, gy, (argmax, x, w), (True, False, False))[0]
        if any(needs[1:]):
            n, d = gy.shape[:2]
            sums = mem.empty((d, 10), np.float64)
            backward(patches, plain(gy).reshape(n, d, -1), argmax.reshape(n, d, -1), sums)
            gw, gb = mem.empty(w.shape, w.dtype), mem.empty((d,), w.dtype)
            gw.reshape(d, 9)[...] = sums[:, :9]
            gb[...] = sums[:, 9]
        return tuple(
            [g if needed else None for g, needed in zip((gx, gw, gb), needs, strict=False)]
        )


def single_channel_stage(op: Op, specs: tuple[Spec, ...]) -> SingleChannelStage | None:
    """The op with compiled bodies; None for one that this file has no bodies for, or no images."""
    if type(op) is not Conv2dReluMaxPool2d or op.stride != (1, 1) or op.dilation != (1, 1):
        return None
    x, w = specs[:2]
    if op.pool != 2 or x.shape[1] != 1 or w.shape[2:] != (3, 3) or 0 in x.shape:
        return None
    return SingleChannelStage(op.stride, op.padding, op.dilation, op.groups, op.pool)
