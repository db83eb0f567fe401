"""Maxima and sums along axes in numpy; the axes stay, with size 1.

numpy reduces each line of the last axis by itself, which takes longer than the numbers of a short
one do.  So short lines are laid side by side before their maxima are taken, and BLAS adds them up.
"""

from __future__ import annotations

import string

import numpy as np

from tinygraph.memory import Memory
from tinygraph.shapes import Array, Shape, reduced_shape

MANY = 256  # lines; for fewer the calls of numpy cost more than they save
SHORT = 48  # numbers; 65536 of them in lines of 10 take 268 us by np.max and 33 so, of 65 as long
LONG = 512  # from here on np.sum, which adds up in pairs, is as fast, and loses fewer digits


def maxima(mem: Memory, x: Array, axis: int) -> Array:
    """The largest number of each line; NaN where there is one, and -inf of an empty line.

    >>> from tinygraph.memory import eager_memory
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

    >>> from tinygraph.memory import eager_memory
    >>> sums(eager_memory((False,)), np.array([[1.0, 5.0], [7.0, 3.0]]), -1).tolist()
    [[6.0], [10.0]]
    """
    axis %= x.ndim
    out = mem.empty(reduced_shape(x.shape, (axis,), keepdims=True), x.dtype)
    if _are_many(x, axis, LONG):
        ones = mem.constant(np.ones(x.shape[-1], x.dtype))
        np.matmul(x.reshape(-1, x.shape[-1]), ones, out=out.reshape(-1))
    else:
        np.sum(x, axis=axis, keepdims=True, out=out)
    return out


def _are_many(x: Array, axis: int, below: int) -> bool:
    """Whether the lines are many, those of the last axis, and shorter than that."""
    return axis == x.ndim - 1 and 0 < x.shape[-1] < below and x.size >= MANY * x.shape[-1]


def sum_over(axes: Shape, out: Array, *factors: Array) -> Array:
    """The sum over `axes` of an array, or of the product of two; in `out` they have size 1.

    numpy's einsum adds up in a third of the time of its sums, and makes no array of the products.

    >>> sum_over((0,), np.empty((1, 2)), np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[4.0, 6.0]]
    """
    letters = string.ascii_letters[: out.ndim]
    kept = [axis for axis in range(out.ndim) if axis not in axes]
    equation = ",".join([letters] * len(factors)) + "->" + "".join([letters[a] for a in kept])
    np.einsum(equation, *factors, out=out.reshape([out.shape[a] for a in kept]))
    return out
