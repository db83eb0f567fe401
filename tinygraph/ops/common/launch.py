"""What kernels of many ops share: launches that are remembered, elements for threads, sums.

grid  = min(ceil(elements / 256), 1024) blocks of 256 threads; a thread takes every
        (256 * grid)-th element, and the 32 threads of a warp take neighbours

sum   = partial sums, one for each block, and their sum by one more block

What is launched is a function of shapes, dtypes, hyper-parameters and the precision of products:

    @remembered
    def _launch(shape, dtype) -> BoundLaunch:        kernel, grid, block and numbers, checked once
        return on_elements(op_kernel(...), math.prod(shape), ...)

    _launch(x.shape, x.dtype)(x, y)                  a step looks it up, and gives the arrays

A number that is a float is given with the arrays: -0.0 and 0.0 would be remembered as one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tinygraph.base import frozen
from tinygraph.cuda import BoundLaunch, Kernel, Out, blocks, op_kernel
from tinygraph.engine import Array, Memory

THREADS = 256  # in a block; the same number stands in prelude.cuh
MOST_BLOCKS = 1024  # about what a large GPU holds at once: more would only wait
MOST_IN_A_COLUMN = 65535  # blocks on the second axis of a grid: the hardware's limit
ROWS_PER_CHUNK = 1024  # column_sums: one block sums so many rows

# Keeps what a function has returned for its arguments; where it has raised, it raises again.
remembered = lru_cache(maxsize=4096)


def grid_of(elements: int) -> int:
    """The number of blocks that a launch over so many elements takes; 0 for none.

    >>> grid_of(0), grid_of(1), grid_of(257), grid_of(10**9)
    (0, 1, 2, 1024)
    """
    return min(blocks(elements, THREADS), MOST_BLOCKS)


def on_elements(kernel: Kernel, elements: int, *numbers: int) -> BoundLaunch:
    """The launch over so many elements, at least one, with the kernel's last numbers."""
    return kernel.bind(grid_of(elements), THREADS, *numbers)


def for_each(kernel: Kernel, elements: int, *arguments: Any) -> None:
    """Launch a kernel whose threads own one element after the other; for none, launch nothing."""
    if elements:
        kernel(grid_of(elements), THREADS, *arguments)


# ---- sums -----------------------------------------------------------------------------------


@frozen
class ChunkedLaunch:
    """A launch that writes sums, each cut into chunks; the parts are added up by one more."""

    launch: BoundLaunch
    chunks: int

    def write(self, mem: Memory | None, sums: Array, *arrays: Array) -> None:
        """Write the sums: the launch takes the arrays, then where sums or their parts go."""
        if self.chunks == 1 or mem is None:
            self.launch(*arrays, Out(sums))
            return
        parts = mem.empty((self.chunks, sums.size), sums.dtype)
        self.launch(*arrays, Out(parts))
        column_sums(mem, parts, sums.reshape(-1))


def column_sums(mem: Memory, x: Array, sums: Array) -> None:
    """Write the sums over axis 0 of x (rows, columns) into sums (columns).

    A long axis is cut into chunks: several blocks work on it, and short sums round less.  The cut
    depends on the shape alone.
    """
    if sums.size:
        _column_sums(*x.shape, x.dtype).write(mem, sums, x)


@remembered
def _column_sums(rows: int, columns: int, dtype: Any) -> ChunkedLaunch:
    rows_per_chunk = max(ROWS_PER_CHUNK, blocks(rows, MOST_IN_A_COLUMN))
    chunks = max(blocks(rows, rows_per_chunk), 1)
    kernel, grid = op_kernel("linear", "column_sums", dtype), (blocks(columns, 32), chunks)
    return ChunkedLaunch(kernel.bind(grid, THREADS, rows, columns, rows_per_chunk), chunks)
