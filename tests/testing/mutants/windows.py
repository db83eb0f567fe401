"""Mistakes in convolutions and pooling: what square kernels, stride 1 or one channel hide."""

import numpy as np

from tests.testing.mutants import Mutant, with_first, with_input
from tinygraph.engine.memory import eager_memory


def square_kernel(call):
    return call.x[1].shape[2] == call.x[1].shape[3]


def shifted(g, offset, axis):
    moved = np.roll(g, offset, axis)
    ends = slice(0, offset) if offset > 0 else slice(offset, None)
    moved[(slice(None),) * axis + (ends,)] = 0
    return moved


def no_border(g):
    """Zero at the first row and column: the padding was cut off once too often."""
    inside = g.copy()
    inside[:, :, 0] = 0
    inside[..., 0] = 0
    return inside


def unless(right, call, wrong):
    return call.g if right else with_first(call, wrong)


def with_kernel(call, w):
    """gx for other weights, by the real op."""
    op = type(call.op).__mro__[1]
    arrays = [call.x[0], np.ascontiguousarray(w), *call.x[2:]]
    mem = eager_memory((True,) * len(arrays))
    _, saved = op.forward(call.op, mem, *arrays)
    if isinstance(saved, tuple) and len(saved) == 3 and isinstance(saved[1], tuple):
        saved = saved[0]
    needs = (True,) + (False,) * (len(arrays) - 1)
    return with_first(call, op.backward(call.op, mem, call.gy, saved, needs)[0])


def last_window_only(call):
    """= in place of += where pooling windows overlap."""
    rows, columns = call.op._windows(call.x[0].shape)
    share = call.gy / call.op._divisor(call.x[0].shape, call.gy.dtype)
    gx = np.zeros_like(call.g[0])
    for u in range(rows.out):
        for v in range(columns.out):
            top, left = u * rows.stride - rows.before, v * columns.stride - columns.before
            h, w = slice(max(top, 0), top + rows.kernel), slice(max(left, 0), left + columns.kernel)
            gx[:, :, h, w] = share[:, :, u : u + 1, v : v + 1]
    return [gx]


def stride_one_fold(call):
    """col2im that forgets the stride: right for stride 1."""
    if tuple(call.op.stride) == (1, 1):
        return call.g
    gx = np.zeros_like(call.g[0])
    gx[..., : gx.shape[-1]] = call.g[0]
    return [np.roll(gx, 1, -1)]


MUTANTS = [
    Mutant(
        "Conv2d", "kernel flipped", "flipped", lambda c: with_kernel(c, c.x[1][..., ::-1, ::-1])
    ),
    Mutant(
        "Conv2d",
        "kernel transposed where it is square",
        "transposed|flipped",
        lambda c: with_kernel(c, c.x[1].swapaxes(2, 3)) if square_kernel(c) else c.g,
    ),
    Mutant(
        "Conv2d",
        "gw transposed where the kernel is square",
        "transposed",
        lambda c: (
            with_input(c, 1, np.ascontiguousarray(c.g[1].swapaxes(2, 3)))
            if square_kernel(c)
            else c.g
        ),
    ),
    Mutant(
        "Conv2d",
        "gw flipped",
        "flipped",
        lambda c: with_input(c, 1, np.ascontiguousarray(c.g[1][..., ::-1, ::-1])),
    ),
    Mutant(
        "Conv2d",
        "gw divided by the batch",
        "too small|half",
        lambda c: with_input(c, 1, c.g[1] / len(c.x[0])),
    ),
    Mutant(
        "Conv2d",
        "bias over the batch alone",
        "sample|index|first use",
        lambda c: with_input(c, 2, c.gy[..., 0, 0].sum(0)) if len(c.g) > 2 else c.g,
    ),
    Mutant(
        "Conv2d", "gx shifted by one", "shifted", lambda c: with_first(c, shifted(c.g[0], 1, 3))
    ),
    Mutant(
        "Conv2d",
        "first row and column lost",
        "border|mask",
        lambda c: with_first(c, no_border(c.g[0])),
    ),
    Mutant(
        "Conv2d",
        "one channel only",
        "indices|index|all zero|mask",
        lambda c: with_first(c, np.concatenate([c.g[0][:, :1], 0 * c.g[0][:, 1:]], axis=1)),
    ),
    Mutant("Conv2d", "0.999 of gw", r"0\.1 % off", lambda c: with_input(c, 1, 0.999 * c.g[1])),
    Mutant("Im2colConv2d", "gx zeros", "all zero", lambda c: with_first(c, 0 * c.g[0])),
    Mutant("Im2colConv2d", "sign of gw", "wrong sign", lambda c: with_input(c, 1, -c.g[1])),
    Mutant(
        "Im2colConv2d",
        "gw right for batch 1",
        "too large|twice",
        lambda c: with_input(c, 1, len(c.x[0]) * c.g[1]),
    ),
    Mutant("Im2col", "shifted", "shifted", lambda c: [shifted(c.g[0], 1, 2)]),
    Mutant(
        "Im2col", "right for stride 1", "shifted|upstream gradient shifted|border", stride_one_fold
    ),
    Mutant("Col2im", "flipped", "flipped|backwards", lambda c: [np.flip(c.g[0], 2)]),
    Mutant(
        "AvgPool2d",
        "not divided",
        "too large|twice",
        lambda c: [c.g[0] * np.prod(c.op.kernel_size)],
    ),
    Mutant("AvgPool2d", "overwritten where windows overlap", "overwritten", last_window_only),
    Mutant(
        "AvgPool2d",
        "last row lost",
        "border|mask|leaves out",
        lambda c: [shifted(shifted(c.g[0], 1, 2), -1, 2)],
    ),
    Mutant(
        "GlobalAvgPool2d",
        "not divided",
        "too large|twice",
        lambda c: [c.g[0] * (c.x[0].shape[2] * c.x[0].shape[3])],
    ),
    Mutant(
        "GlobalAvgPool2d",
        "divided by H^2",
        "too|times|half|twice",
        lambda c: [c.g[0] * c.x[0].shape[3] / c.x[0].shape[2]],
    ),
    Mutant("MaxPool2d", "to the pixel beside", "shifted", lambda c: [shifted(c.g[0], 1, 3)]),
    Mutant(
        "MaxPool2d",
        "transposed where the image is square",
        "transposed",
        lambda c: [c.g[0].swapaxes(2, 3).copy()] if c.x[0].shape[2] == c.x[0].shape[3] else c.g,
    ),
    Mutant(
        "MaxPool2d",
        "ones for gy",
        "ignores the upstream",
        lambda c: [(c.g[0] != 0).astype(c.gy.dtype)] if c.op.kernel_size == c.op.stride else c.g,
    ),
    Mutant("Conv2dReluMaxPool2d", "gw sign", "wrong sign", lambda c: with_input(c, 1, -c.g[1])),
]
