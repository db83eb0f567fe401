"""Clipping, variance, sums and the moving of elements in loops.  Nothing here calls tinygraph."""

import math
from fractions import Fraction

import numpy as np

from tests.reference.basics import elementwise, over_axes, refilled


def clip(x, min=None, max=None):
    def one(v):
        if min is not None and v < min:
            return float(min)
        return float(max) if max is not None and v > max else v

    return elementwise(one, x)


def min_over(x, axis=None, keepdims=False):
    return over_axes(
        lambda values: math.nan if any(map(math.isnan, values)) else min(values), x, axis, keepdims
    )


def var(x, axis=None, keepdims=False, correction=0):
    """By the definition, in exact fractions: only the result is rounded."""

    def one(values):
        exact = [Fraction(v) for v in values]
        mean = sum(exact) / len(exact)
        return float(sum((v - mean) ** 2 for v in exact) / (len(exact) - Fraction(correction)))

    return over_axes(one, x, axis, keepdims)


def squeeze(x, axis=None):
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    dropped = {a % x.ndim for a in axes if x.shape[a] == 1}
    return refilled(x, tuple(n for a, n in enumerate(x.shape) if a not in dropped))


def unsqueeze(x, axis):
    axes = axis if isinstance(axis, tuple) else (axis,)
    ndim = x.ndim + len(axes)
    shape = list(x.shape)
    for a in sorted(a % ndim for a in axes):
        shape.insert(a, 1)
    return refilled(x, tuple(shape))


def expand(x, shape):
    new = len(shape) - x.ndim
    y = np.empty([x.shape[a - new] if n == -1 else n for a, n in enumerate(shape)])
    for index in np.ndindex(y.shape):
        y[index] = x[tuple(0 if n == 1 else i for i, n in zip(index[new:], x.shape, strict=True))]
    return y


def part_of_split(x, sizes_or_sections, axis, part):
    """The part of that number, of all parts along the axis."""
    axis %= x.ndim
    sizes = sizes_or_sections
    if isinstance(sizes, int):
        sizes = [x.shape[axis] // sizes] * sizes
    start = sum(sizes[:part])
    y = np.empty([sizes[part] if a == axis else n for a, n in enumerate(x.shape)])
    for index in np.ndindex(y.shape):
        y[index] = x[tuple(i + start if a == axis else i for a, i in enumerate(index))]
    return y


def gather(x, indices, axis):
    axis %= x.ndim
    y = np.empty(indices.shape)
    for index in np.ndindex(indices.shape):
        y[index] = x[(*index[:axis], int(indices[index]), *index[axis + 1 :])]
    return y


def cumsum(x, axis):
    axis %= x.ndim
    y = np.empty(x.shape)
    for index in np.ndindex(x.shape):
        before = [x[(*index[:axis], i, *index[axis + 1 :])] for i in range(index[axis] + 1)]
        y[index] = math.fsum(before)
    return y
