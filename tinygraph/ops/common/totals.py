"""Sums over axes, and of terms that meet, in numpy: rounding grows with the log of their number.

numpy adds up in pairs what lies side by side, but rows one to the other, so that 2^20 rows of 0.1
in float32 come to 105891.8 in the place of 104857.6.  Here no number takes part in more than CHAIN
additions in a row: the rows are cut into stacks of so many, whose sums are added up likewise.

    rows (S * CHAIN * G, K)  ->  (S, CHAIN, G, K)  ->  sums over CHAIN (S * G, K)  ->  ...

G rows side by side make one long row of them, for numpy's calls on short ones cost more.

Sources: Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14, 1993; numpy's
own pairwise summation is `pairwise_sum` of numpy/_core/src/umath/loops_utils.h.src.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable
from typing import Any

import numpy as np

from tinygraph.engine import Array, Memory, Shape, eager_memory, reduced_shape

CHAIN = 64  # terms that are added one after the other
WIDE = 1 << 12  # numbers of the rows that are laid side by side
LANES = {1: 16, 2: 4}  # in which einsum adds up a line of an array, or of a product of two

Add = Callable[..., Array]  # of views of the factors and an axis: the sum of products along it


def total(x: Array, axes: Shape, out: Array) -> Array:
    """Write the sum of x over `axes` to `out`, which has dropped them or keeps them with size 1.

    >>> sums = total(np.full((1 << 20, 2), 0.1, np.float32), (0,), np.empty(2, np.float32))
    >>> sums.round().tolist()  # one added to the other: 105892
    [104858.0, 104858.0]
    """
    line = axes and axes[0] == x.ndim - len(axes) and x.flags.c_contiguous  # numpy's own pairs
    exact = x.dtype.kind != "f"  # as integers are
    if line or exact or math.prod([x.shape[a] for a in axes]) <= CHAIN:
        np.add.reduce(x, axis=axes, dtype=out.dtype, out=out, keepdims=out.ndim == x.ndim)
        return out
    order = sorted(range(x.ndim), key=lambda a: -abs(x.strides[a]))  # the largest step first
    kept = out.reshape(reduced_shape(x.shape, axes, keepdims=True)).transpose(order)
    _total(x.transpose(order), tuple([i for i, a in enumerate(order) if a in axes]), kept)
    return out


def _total(x: Array, axes: Shape, out: Array) -> None:
    """The same for axes in the order of memory, which stay."""
    line = _line(x, axes)
    if line:  # in pairs by numpy itself
        rest = axes[: len(axes) - len(line)]
        sums = np.add.reduce(x, axis=line, keepdims=True, out=None if rest else out)
    else:
        rest = axes[:-1]
        sums = _rows(_add, axes[-1], None if rest else out, x)
    if rest:
        _total(sums, rest, out)


def _line(x: Array, axes: Shape) -> Shape:
    """Those of the axes that end x and lie together in memory, so that numpy sees one."""
    first = x.ndim
    while first - 1 in axes:
        behind = first < x.ndim
        if behind and x.strides[first - 1] != x.shape[first] * x.strides[first]:
            break
        first -= 1
    return tuple(range(first, x.ndim))


def _rows(add: Add, axis: int, out: Array | None, *factors: Array) -> Array:
    """The sum along one axis, which stays, of an array or of a product."""
    shape = factors[0].shape
    size = shape[axis]
    if size <= CHAIN:
        return add(axis, out, *factors)
    side_by_side = max(1, min(size // CHAIN, WIDE // max(1, math.prod(shape[axis + 1 :]))))
    stacks = size // (CHAIN * side_by_side)
    whole = stacks * CHAIN * side_by_side
    cut = (*shape[:axis], stacks, CHAIN, side_by_side, *shape[axis + 1 :])
    before = (slice(None),) * axis
    sums = add(axis + 1, None, *[f[(*before, slice(whole))].reshape(cut) for f in factors])
    sums = sums.reshape(*shape[:axis], stacks * side_by_side, *shape[axis + 1 :])
    y = _rows(_add, axis, out, sums)
    if whole < size:
        y += _rows(add, axis, None, *[f[(*before, slice(whole, size))] for f in factors])
    return y


def _add(axis: int, out: Array | None, x: Array) -> Array:
    return np.add.reduce(x, axis=axis, keepdims=True, out=out)


# ---- products -------------------------------------------------------------------------------


def sum_over(axes: Shape, out: Array, *factors: Array) -> Array:
    """The sum over `axes` of an array, or of the product of two; in `out` they have size 1.

    numpy's einsum adds up in a third of the time of its sums, and makes no array of the products.

    >>> sum_over((0,), np.empty((1, 2)), np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[4.0, 6.0]]
    """
    shape = factors[0].shape
    if math.prod([shape[a] for a in axes]) <= CHAIN:
        return _einsum(axes, out, *factors)
    lanes = LANES[len(factors)] if all(f.flags.c_contiguous for f in factors) else 1
    line = _short_line(shape, axes, CHAIN * lanes)
    if line == axes:
        return _einsum(axes, out, *factors)
    rest = axes[: len(axes) - len(line)]
    if line:
        sums = _einsum(line, None, *factors)
    elif axes[-1] < len(shape) - 1:
        rest = axes[:-1]
        sums = _rows(_einsum_along, axes[-1], None, *factors)
    else:
        sums = _pieces(CHAIN * lanes, *factors)
    return total(sums, rest, out)


def _short_line(shape: Shape, axes: Shape, longest: int) -> Shape:
    """The axes at the end that have so many numbers together, or fewer."""
    first, size = len(shape), 1
    while first - 1 in axes and size * shape[first - 1] <= longest:
        first -= 1
        size *= shape[first]
    return tuple(range(first, len(shape)))


def _pieces(length: int, *factors: Array) -> Array:
    """Sums over pieces of the last axis, each of so many numbers; then it is that of the pieces."""
    *others, size = factors[0].shape
    count = size // length
    whole = count * length
    sums = np.empty((*others, count + (whole < size)), factors[0].dtype)
    cut = [f[..., :whole].reshape(*others, count, length) for f in factors]
    _einsum((len(others) + 1,), sums[..., :count, None], *cut)
    if whole < size:
        _einsum((len(others),), sums[..., count:], *[f[..., whole:] for f in factors])
    return sums


def _einsum_along(axis: int, out: Array | None, *factors: Array) -> Array:
    return _einsum((axis,), out, *factors)


def _einsum(axes: Shape, out: Array | None, *factors: Array) -> Array:
    """The sum in one call, term by term."""
    ndim = factors[0].ndim
    if out is None:
        out = np.empty(reduced_shape(factors[0].shape, axes, keepdims=True), factors[0].dtype)
    letters = string.ascii_letters[:ndim]
    kept = [axis for axis in range(ndim) if axis not in axes]
    equation = ",".join([letters] * len(factors)) + "->" + "".join([letters[a] for a in kept])
    np.einsum(equation, *factors, out=out.reshape([out.shape[a] for a in kept]))
    return out


# ---- terms that meet ------------------------------------------------------------------------


def add_parts(y: Array, part: Callable[[int], tuple[Any, Array]], first: int, stop: int) -> None:
    """Add to y the parts from `first` to `stop`; part(i) has the index in y, and what is added.

    >>> y = np.zeros(2)
    >>> add_parts(y, lambda i: (i % 2, i), 0, 5)
    >>> y.tolist()
    [6.0, 4.0]
    """
    if stop - first <= CHAIN:
        for i in range(first, stop):
            index, added = part(i)
            y[index] += added
        return
    middle = (first + stop) // 2
    add_parts(y, part, first, middle)
    later = np.zeros(y.shape, y.dtype)
    add_parts(later, part, middle, stop)
    y += later


def add_where(mem: Memory, sums: Array, keys: Array, terms: Array) -> None:
    """Add each of the terms (n, D) to a row of the sums (rows, D), which its key (n,) names.

    One after the other, so that a row that is named twice is no race, and runs repeat bit for bit.
    Where a row of float32 is named more than CHAIN times, sums are float64 until they are whole.

    >>> from tinygraph.engine.memory import eager_memory
    >>> sums, keys = np.zeros((2, 1), np.float32), np.ones(1 << 20, np.intp)
    >>> add_where(eager_memory((True,)), sums, keys, np.full((1 << 20, 1), 0.1, np.float32))
    >>> sums.tolist()
    [[0.0], [104857.6015625]]
    """
    features = terms.shape[1]
    if features == 1:
        positions = keys
    else:  # numpy adds single numbers several times as fast as rows
        positions = mem.empty((len(keys), features), np.intp)
        np.multiply(keys[:, None], features, out=positions)
        positions += np.arange(features)
    if terms.itemsize == 8 or _most(keys, len(sums)) <= CHAIN:
        np.add.at(sums.reshape(-1), positions.reshape(-1), terms.reshape(-1))
    elif len(sums) <= len(keys):
        found = np.bincount(positions.reshape(-1), terms.reshape(-1), sums.size)
        sums += found.reshape(sums.shape)
    else:  # no float64 for rows that nobody names
        rows, keys = np.unique(keys, return_inverse=True)
        part = np.zeros((len(rows), features), sums.dtype)
        add_where(eager_memory((True,)), part, keys, terms)
        sums[rows] += part


def _most(keys: Array, rows: int) -> int:
    """How often the row is named that is named most."""
    if len(keys) <= CHAIN:
        return len(keys)
    if rows <= 8 * len(keys):
        return int(np.bincount(keys).max())
    return int(np.unique(keys, return_counts=True)[1].max())
