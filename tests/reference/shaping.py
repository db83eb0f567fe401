"""Clipping, variance, sums and the moving of elements in loops.  Nothing here calls tinygraph."""

import math
import operator
from fractions import Fraction

import numpy as np

from tests.reference.basics import concatenate, elementwise, over_axes, refilled, transpose


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


def _place(x, axis, keepdims, before):
    """The place of the first element that no other comes before, along an axis or in all of x."""

    def first(values):
        best = 0
        for i, v in enumerate(values):
            if before(v, values[best]) or (math.isnan(v) and not math.isnan(values[best])):
                best = i
        return best

    return over_axes(first, x, axis, keepdims)


def argmax(x, axis=None, keepdims=False):
    return _place(x, axis, keepdims, operator.gt)


def argmin(x, axis=None, keepdims=False):
    return _place(x, axis, keepdims, operator.lt)


def norm(x, p=2, axis=None, keepdims=False):
    def one(values):
        sizes = [abs(v) for v in values]
        if p == 0:
            return float(sum(v != 0 for v in sizes))
        if math.isinf(p):
            return max(sizes) if p > 0 else min(sizes)
        return math.fsum(v**p for v in sizes) ** (1 / p)

    return over_axes(one, x, axis, keepdims)


def var(x, axis=None, keepdims=False, correction=1):
    """By the definition, in exact fractions: only the result is rounded."""

    def one(values):
        exact = [Fraction(v) for v in values]
        mean = sum(exact) / len(exact)
        return float(sum((v - mean) ** 2 for v in exact) / (len(exact) - Fraction(correction)))

    return over_axes(one, x, axis, keepdims)


def std(x, axis=None, keepdims=False, correction=1):
    return elementwise(math.sqrt, var(x, axis, keepdims, correction))


def squeeze(x, axis=None):
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    dropped = {a % x.ndim for a in axes if x.shape[a] == 1}
    return refilled(x, tuple(n for a, n in enumerate(x.shape) if a not in dropped))


def unflatten(x, axis, sizes):
    axis %= x.ndim
    known = math.prod(n for n in sizes if n != -1)
    found = [x.shape[axis] // known if n == -1 else n for n in sizes]
    return refilled(x, (*x.shape[:axis], *found, *x.shape[axis + 1 :]))


def tile(x, dims):
    counts = dims if isinstance(dims, tuple) else (dims,)
    ndim = max(x.ndim, len(counts))
    whole = refilled(x, (1,) * (ndim - x.ndim) + x.shape)
    counts = (1,) * (ndim - len(counts)) + counts
    y = np.empty([n * count for n, count in zip(whole.shape, counts, strict=True)])
    for index in np.ndindex(y.shape):
        y[index] = whole[tuple(i % n for i, n in zip(index, whole.shape, strict=True))]
    return y


def repeat_interleave(x, repeats, axis=None):
    if axis is None:
        x, axis = refilled(x, (x.size,)), 0
    axis %= x.ndim
    counts = [repeats] * x.shape[axis] if isinstance(repeats, int) else repeats
    order = [i for i, count in enumerate(counts) for _ in range(count)]
    return picked(x, order, axis)


def picked(x, order, axis):
    """Along an axis, the elements of these numbers."""
    y = np.empty([len(order) if a == axis else n for a, n in enumerate(x.shape)])
    for index in np.ndindex(y.shape):
        y[index] = x[tuple(order[i] if a == axis else i for a, i in enumerate(index))]
    return y


def roll(x, shifts, axis=None):
    if axis is None:
        return refilled(roll(refilled(x, (x.size,)), shifts, 0), x.shape)
    pairs = [(shifts, axis)] if isinstance(axis, int) else zip(shifts, axis, strict=True)
    for shift, a in pairs:
        n = x.shape[a]
        x = picked(x, [(i - shift) % n for i in range(n)], a % x.ndim)
    return x


def flip(x, axis=None):
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    for a in axes:
        x = picked(x, list(range(x.shape[a]))[::-1], a % x.ndim)
    return x


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


def part_along(x, axis, begin, end):
    """The elements from begin to end along an axis."""
    axis %= x.ndim
    y = np.empty([end - begin if a == axis else n for a, n in enumerate(x.shape)])
    for index in np.ndindex(y.shape):
        y[index] = x[tuple(i + begin if a == axis else i for a, i in enumerate(index))]
    return y


def part_of_split(x, part, size_or_sizes=None, axis=0, sections=None):
    """The part of that number, of all parts along the axis."""
    length, sizes = x.shape[axis], size_or_sizes
    if sections is not None:
        sizes = [length // sections] * sections
    elif isinstance(sizes, int):
        sizes = [min(sizes, length - at) for at in range(0, length, sizes)] or [0]
    start = sum(sizes[:part])
    return part_along(x, axis, start, start + sizes[part])


def part_of_tensor_split(x, part, indices_or_sections, axis=0):
    """One element after the other is dealt to a part, or each place is a cut."""
    length = x.shape[axis]
    if isinstance(indices_or_sections, int):
        sizes = [0] * indices_or_sections
        for i in range(length):
            sizes[i % indices_or_sections] += 1
        start = sum(sizes[:part])
        return part_along(x, axis, start, start + sizes[part])
    cuts = [0, *indices_or_sections, length]
    cuts = [min(max(c + length if c < 0 else c, 0), length) for c in cuts]
    return part_along(x, axis, cuts[part], max(cuts[part : part + 2]))


def part_of_chunk(x, part, chunks, axis=0):
    """The smallest size of which so many parts cover the axis."""
    size = next(s for s in range(x.shape[axis] + 1) if s * chunks >= x.shape[axis])
    begin = min(part * size, x.shape[axis])
    return part_along(x, axis, begin, min(begin + size, x.shape[axis]))


def part_of_unbind(x, part, axis=0):
    axis %= x.ndim
    y = part_along(x, axis, part, part + 1)
    return refilled(y, (*x.shape[:axis], *x.shape[axis + 1 :]))


def movedim(x, source, destination):
    axes = [a % x.ndim for a in (source if isinstance(source, tuple) else (source,))]
    places = destination if isinstance(destination, tuple) else (destination,)
    at = {p % x.ndim: a for p, a in zip(places, axes, strict=True)}
    left = iter([a for a in range(x.ndim) if a not in axes])
    return transpose(x, [at[p] if p in at else next(left) for p in range(x.ndim)])


def vstack(*arrays):
    rows = [refilled(a, (1, a.size)) if a.ndim < 2 else a for a in arrays]
    return concatenate(*rows, axis=0)


def hstack(*arrays):
    whole = [refilled(a, (1,)) if a.ndim == 0 else a for a in arrays]
    return concatenate(*whole, axis=min(whole[0].ndim - 1, 1))


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
