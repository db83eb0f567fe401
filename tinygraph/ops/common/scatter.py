"""Sums by row, for the gradients of look-ups: the host's side of scatter.cu.

    n         keys int64, one for each term; rows, features of the result

    sums[r, d] = sum of terms[k, d] over all k with keys[k] = r, in the order of k

The keys stay on the device: they are sorted there, digit by digit, without atomics, so that runs
repeat bit for bit and the work is proportional to the number of terms.
"""

from __future__ import annotations

import numpy as np

from tinygraph.cuda import Kernel, blocks, op_kernel
from tinygraph.engine import Array, Memory
from tinygraph.ops.common.launch import MOST_BLOCKS, THREADS, for_each

BITS, RUN = 4, 32  # of a digit, and keys of a thread; the same numbers stand in scatter.cu
DIGITS = 1 << BITS


def sum_by_row(mem: Memory, keys: Array, terms: Array, rows: int, features: int) -> Array:
    """The terms (n, features) that share a key, summed: (rows, features), zeros where none does.

    Terms whose key is no row are left out.
    """
    if not (terms.size and rows):
        return mem.zeros((rows, features), terms.dtype)
    keys, order = _sorted(mem, keys, rows)
    starts = mem.empty((rows + 1,), np.int64)
    for_each(_kernel("row_starts"), rows + 1, keys, starts, keys.size, rows)
    sums = mem.empty((rows, features), terms.dtype)
    kernel = op_kernel("scatter", "sum_rows", terms.dtype)
    for_each(kernel, sums.size, terms, order, starts, sums, sums.size, features)
    return sums


def _kernel(function: str) -> Kernel:
    """A kernel of the sort, which knows int64 alone."""
    return op_kernel("scatter", function)


def _sorted(mem: Memory, keys: Array, rows: int) -> tuple[Array, Array]:
    """The keys in order, and where each of them stood; equal ones stay in their order."""
    n, runs = keys.size, blocks(keys.size, RUN)
    keys, order = keys.reshape(-1), mem.empty((0,), np.int64)
    for shift in range(0, rows.bit_length(), BITS):  # keys are at most `rows`
        counts = mem.empty((DIGITS * runs,), np.int64)
        for_each(_kernel("digit_counts"), runs, keys, counts, n, runs, rows, shift)
        places = _scan(mem, counts)
        by_digit, by_digit_order = mem.empty((n,), np.int64), mem.empty((n,), np.int64)
        arrays = keys, order, places, by_digit, by_digit_order
        for_each(_kernel("place_by_digit"), runs, *arrays, n, runs, rows, shift)
        keys, order = by_digit, by_digit_order
    return keys, order


def _scan(mem: Memory, x: Array) -> Array:
    """For each element of x, the sum of those before it."""
    per_chunk = blocks(blocks(x.size, THREADS), MOST_BLOCKS) * THREADS  # whole tiles
    chunks = blocks(x.size, per_chunk)
    totals = mem.empty((chunks if chunks > 1 else 0,), np.int64)
    if chunks > 1:
        _kernel("chunk_totals")(chunks, THREADS, x, totals, x.size, per_chunk)
    y = mem.empty(x.shape, np.int64)
    _kernel("exclusive_scan")(chunks, THREADS, x, totals, y, x.size, per_chunk)
    return y
