"""Maxima and sums along axes in numpy; the axes stay, with size 1.

numpy reduces each line of the last axis by itself, which takes longer than the numbers of a short
one do.  So short lines are laid side by side before their maxima are taken; BLAS adds up the
shortest, whose rounding cannot grow, and einsum those below LONG.
"""

from __future__ import annotations

import numpy as np

from tinygraph.engine import Array, Memory, reduced_shape
from tinygraph.ops.common.totals import sum_over, total

MANY = 256  # lines; for fewer the calls of numpy cost more than they save
SHORT = 48  # numbers; 65536 of them in lines of 10 take 268 us by np.max and 33 so, of 65 as long
LONG = 512  # from here on np.sum is as fast as einsum
SHORTEST = 16  # that BLAS adds up: 65536 lines of 10 take 120 us, by einsum 280, by np.sum 1290


def maxima(mem: Memory, x: Array, axis: int) -> Array:
    """The largest number of each line; NaN where there is one, and -inf of an empty line.

    >>> from tinygraph.engine.memory import eager_memory
    >>> maxima(eager_memory((False,)), np.array([[1.0, 5.0], [7.0, 3.0]]), -1).tolist()
    [[5.0], [7.0]]
    """
    axis %= x.ndim
    out = mem.empty(reduced_shape(x.shape, (axis,), keepdims=True), x.dtype)
    if _are_many(x, axis, SHORT):
        beside = mem.empty((x.shape[-1], *x.shape[:-1]), x.dtype)
        beside[...] = np.moveaxis(x, -1, 0)
        np.max(beside, axis=0, out=out[..., 0], initial=-np.inf)
    else:
        np.max(x, axis=axis, keepdims=True, out=out, initial=-np.inf)  # `initial`: see max.py
    return out


def sums(mem: Memory, x: Array, axis: int) -> Array:
    """The sum of each line.

    >>> from tinygraph.engine.memory import eager_memory
    >>> sums(eager_memory((False,)), np.array([[1.0, 5.0], [7.0, 3.0]]), -1).tolist()
    [[6.0], [10.0]]
    """
    axis %= x.ndim
    out = mem.empty(reduced_shape(x.shape, (axis,), keepdims=True), x.dtype)
    if _are_many(x, axis, SHORTEST):
        ones = mem.constant(np.ones(x.shape[-1], x.dtype))
        np.matmul(x.reshape(-1, x.shape[-1]), ones, out=out.reshape(-1))
        return out
    return sum_over((axis,), out, x) if _are_many(x, axis, LONG) else total(x, (axis,), out)


def _are_many(x: Array, axis: int, below: int) -> bool:
    """Whether the lines are many, those of the last axis, and shorter than that."""
    return axis == x.ndim - 1 and 0 < x.shape[-1] < below and x.size >= MANY * x.shape[-1]
