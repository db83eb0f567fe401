"""Large arrays in blocks that threads share, and small products that keep BLAS to one thread."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinygraph.base.threads import one_blas_thread, share_out
from tinygraph.engine import Array

# Bytes of an array from which on it is cut into blocks, and of a block.  numpy's calls on smaller
# ones are so short that threads wait for the interpreter.
WORTH_BLOCKS, BLOCK_BYTES = 4 << 20, 2 << 20
# Multiplications of a product: up to so many OpenBLAS takes one thread by itself; and from so many
# on, several are told to it.
ONE_ANYHOW, WORTH_BLAS_THREADS = 1 << 18, 1 << 22


class Blocks:
    """So many equal parts of large arrays, such as samples, in blocks that threads share.

    Small arrays are one block, for one thread.

    Attributes
    ----------
    largest : int
        Parts of the largest block.
    threads : int
        How many share them: `mem.workers`, which is asked where there are several blocks.

    >>> from types import SimpleNamespace
    >>> found, mem = [], SimpleNamespace(workers=1)
    >>> Blocks(mem, 7, BLOCK_BYTES // 2).run(lambda thread, block: found.append(block))
    >>> found
    [slice(0, 1, None), slice(1, 3, None), slice(3, 5, None), slice(5, 7, None)]
    """

    __slots__ = ("count", "largest", "parts", "threads")

    def __init__(self, mem: Any, parts: int, bytes_each: int) -> None:
        self.parts, self.count, self.threads = parts, 1, 1
        total = parts * bytes_each
        if total >= WORTH_BLOCKS:
            self.count = even(-(-total // BLOCK_BYTES), parts)
            self.threads = min(mem.workers, self.count)
        self.largest = -(-parts // self.count) if parts else 0

    def run(self, work: Callable[[int, slice], None]) -> None:
        """`work(thread, block)` for every block."""
        if self.count == 1:
            work(0, slice(0, self.parts))
            return

        def share(thread: int, number: int) -> None:
            work(thread, slice(*(self.parts * n // self.count for n in (number, number + 1))))

        share_out(self.count, self.threads, share)


def even(blocks: int, parts: int) -> int:
    """So many blocks of parts, or one more: as much work for each of two threads.

    >>> even(3, 10), even(3, 3)
    (4, 3)
    """
    return min(blocks + blocks % 2, parts)


def product(a: Array, b: Array, out: Array) -> Array:
    """a @ b as of np.matmul; by one thread, where several would save less than 50 us.

    >>> product(np.ones((2, 3)), np.ones((3, 1)), np.empty((2, 1))).tolist()
    [[3.0], [3.0]]
    """
    if b.ndim > 1 and ONE_ANYHOW < math.prod(a.shape[-2:]) * b.shape[-1] < WORTH_BLAS_THREADS:
        with one_blas_thread():
            return np.matmul(a, b, out=out)
    return np.matmul(a, b, out=out)
