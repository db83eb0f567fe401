"""Launches of single_channel_stage.cu: conv 3x3 + ReLU + max-pool 2x2 of images of one channel.

It stands in for conv2d_relu_max_pool2d.cu where shapes and settings are these, and writes the same
arrays.  The size of an image is compiled in: each size has kernels of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.cuda import Kernel, Out, blocks, op_kernel
from tinygraph.engine import Array, Memory, Shape
from tinygraph.ops.common import THREADS

# The same numbers stand in single_channel_stage.cu.
BLOCK_FILTERS = 32
FILTERS = 2
TAPS = 9

MOST_BLOCKS = 65535  # on the second axis of a grid
MOST_WINDOWS = 256  # threads of a block in backward, where they are of double
ENOUGH_THREADS = 132 * 512  # a block of that many on each multiprocessor of a large GPU
FEWEST_IMAGES = 16  # of a chunk: its sums are written, and read again


class SingleChannelStage:
    """The sizes of such a stage: images, their height and width, and filters."""

    def __init__(self, images: int, height: int, width: int, filters: int) -> None:
        self.images, self.height, self.width, self.filters = images, height, width, filters
        self.windows = ((height - 2) // 2) * ((width - 2) // 2)  # of one image

    @staticmethod
    def fits(x: Shape, w: Shape) -> bool:
        """Whether images and filters have the shapes; a block has a thread for each window, and a
        thread two filters."""
        n, channels, height, width = x
        windows = ((height - 2) // 2) * ((width - 2) // 2)
        small = 0 < windows <= MOST_WINDOWS and max(n, w[0]) * windows < 2**31
        return small and channels == 1 and w[2:] == (3, 3) and w[0] % FILTERS == 0

    def forward(self, x: Array, w: Array, b: Array, pooled: Array, argmax: Array) -> None:
        """Write pooled values and, where `argmax` is not empty, which output was the largest."""
        rows = min(blocks(self.images * self.windows, THREADS), MOST_BLOCKS)
        grid = blocks(self.filters, BLOCK_FILTERS), rows
        kernel = self._kernel("forward", x.dtype, ARGMAX=int(argmax.size > 0))
        kernel(grid, THREADS, x, w, b, Out(pooled), argmax, self.images, self.filters)

    def backward(
        self, gy: Array, x: Array, argmax: Array, gw: Array, gb: Array, per_chunk: int
    ) -> None:
        """Write the parts of the gradients of filters and bias: one for each chunk of images."""
        arrays = gy, x, argmax, gw, gb
        self._walk(self._kernel("backward", x.dtype), arrays, per_chunk, x.dtype)

    def linear_backward(
        self, classes: int, arrays: tuple[Array, ...], per_chunk: int, dtype: Any
    ) -> None:
        """The same, and with it that of a linear layer; the arrays as the kernel takes them."""
        kernel = self._kernel("linear_backward", dtype, CLASSES=classes)
        self._walk(kernel, arrays, per_chunk, dtype)

    def chunks(self, dtype: Any) -> tuple[int, int]:
        """Images of a chunk, and chunks: blocks enough, and few parts that are written."""
        groups, threads = self._block(dtype)
        busy = blocks(self.filters // FILTERS, groups) * threads
        chunks = max(min(ENOUGH_THREADS // busy, self.images // FEWEST_IMAGES), 1)
        per_chunk = max(blocks(self.images, chunks), 1)
        return per_chunk, max(blocks(self.images, per_chunk), 1)

    def _walk(self, kernel: Kernel, arrays: tuple[Array, ...], per_chunk: int, dtype: Any) -> None:
        """Launch what walks over the images of a chunk."""
        groups, threads = self._block(dtype)
        chunks = max(blocks(self.images, per_chunk), 1)
        grid = blocks(self.filters // FILTERS, groups), chunks
        kernel(grid, threads, *arrays, self.images, self.filters, groups, per_chunk)

    def _block(self, dtype: Any) -> tuple[int, int]:
        """Pairs of filters of a block that walks, a thread for each window of each; and threads."""
        room = 2048 // np.dtype(dtype).itemsize // self.windows
        groups = min(room, self.filters // FILTERS)
        return groups, blocks(groups * self.windows, 32) * 32

    def _kernel(self, function: str, dtype: Any, **macros: int) -> Kernel:
        stem, size = "single_channel_stage", {"IMAGE_H": self.height, "IMAGE_W": self.width}
        return op_kernel(stem, f"{stem}_{function}", dtype, **size, **macros)


def sum_parts(mem: Memory, *pairs: tuple[Array, Array | None]) -> None:
    """Add up the parts along axis 0 of up to four arrays, each into its sum, in one launch.

    A part that is the sum itself, of one chunk, is left as it is, and so is one without a sum.
    """
    summed = [(parts, total) for parts, total in pairs if total is not None and len(parts) > 1]
    if not summed:
        return
    dtype = summed[0][0].dtype
    nothing = mem.empty((0,), dtype)
    rest = 4 - len(summed)
    parts = [part for part, _ in summed] + [nothing] * rest
    totals = [Out(total) for _, total in summed] + [nothing] * rest
    sizes = [total.size for _, total in summed] + [0] * rest
    kernel = op_kernel("sums_of_parts", "sums_of_parts", dtype)
    kernel(blocks(sum(sizes), THREADS), THREADS, *parts, *totals, *sizes, len(parts[0]))
