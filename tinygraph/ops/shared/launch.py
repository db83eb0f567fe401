"""What kernels of many ops share: how elements are dealt out to threads, and sums over an array.

grid  = min(ceil(elements / 256), 1024) blocks of 256 threads; a thread takes every
        (256 * grid)-th element, and the 32 threads of a warp take neighbours

sum   = partial sums, one for each block, and their sum by one more block
"""

from __future__ import annotations

from typing import Any

from tinygraph.cuda import Kernel, blocks

THREADS = 256  # in a block; the same number stands in prelude.cuh
MOST_BLOCKS = 1024  # about what a large GPU holds at once: more would only wait


def grid_of(elements: int) -> int:
    """The number of blocks that a launch over so many elements takes; 0 for none.

    >>> grid_of(0), grid_of(1), grid_of(257), grid_of(10**9)
    (0, 1, 2, 1024)
    """
    return min(blocks(elements, THREADS), MOST_BLOCKS)


def for_each(kernel: Kernel, elements: int, *arguments: Any) -> None:
    """Launch a kernel whose threads own one element after the other; for none, launch nothing."""
    if elements:
        kernel(grid_of(elements), THREADS, *arguments)
