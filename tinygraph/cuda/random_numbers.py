"""Uniform numbers made by a kernel: the bits of `tinygraph.engine.random.uniform`."""

from __future__ import annotations

from tinygraph.cuda.extents import blocks
from tinygraph.cuda.op_kernels import op_kernel
from tinygraph.engine import Array

_THREADS, _MOST_BLOCKS = 256, 1024


def fill_uniform(out: Array, seed: int, stream: int, start: Array, first: int = 0) -> None:
    """Fill an array, which is not empty, with numbers in [0, 1): elements first, first + 1, ...

    `start` is a null pointer, or holds the seed and stream from which these count.
    """
    grid = min(blocks(out.size, 4 * _THREADS), _MOST_BLOCKS)  # a thread makes four
    kernel = op_kernel("random", "uniform", out.dtype)
    kernel(grid, _THREADS, out, out.size, seed, stream, 0, first, start)
