"""The matrix products of a convolution over blocks of columns, forward and backward.

D M R OW   filters, images of a block, its rows, columns of the output
K          C * KH * KW

maps  = w @ cols                        (D, M * R * OW)
gw    = sum over blocks of gmaps @ cols^T
gx    = sum over blocks of fold(w^T @ gmaps)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinygraph.memory import Memory
from tinygraph.ops.shared.windows import Windows2d
from tinygraph.plan.fast.columns import Columns, Strip
from tinygraph.shapes import Array, Shape


def bias_of(mem: Memory, w: Array, b: Array | None) -> Array:
    """b (D,) in a buffer, 0 where there is none."""
    bias = mem.zeros(w.shape[:1], w.dtype)
    if b is not None:
        bias[...] = b
    return bias


class Products:
    """Buffers for one block, and the products over it; see Columns for the arguments."""

    def __init__(
        self, mem: Memory, at: Windows2d, image: Shape, w: Array, size: Any, step: int = 1
    ) -> None:
        self.columns = Columns(mem, image, w.shape, at, size, w.dtype, step)
        self.filters = w.reshape(len(w), w[0].size)  # (D, K)
        self._maps = mem.empty((len(w) * self.columns.most * size[1],), w.dtype)

    def forward(self, x: Array) -> Iterator[tuple[Strip, Array]]:
        """Each block, and the maps (D, M, R, OW) of its images; the next block overwrites them."""
        for block, maps in self._blocks():
            cols = self.columns.gather(x, block)
            np.matmul(self.filters, cols, out=maps.reshape(len(maps), -1))
            yield block, maps

    def backward(
        self,
        mem: Memory,
        x: Array,
        needs: tuple[bool, ...],
        write: Callable[[Strip, Array], None],
    ) -> tuple[Array | None, Array | None]:
        """gx (N, C, H, W) and gw (D, C, KH, KW), as far as they are needed.

        `write(block, maps)` writes the upstream gradient of the maps of a block, (D, M, R, OW).
        """
        filters, columns = self.filters, self.columns
        gx = mem.zeros(x.shape, x.dtype) if needs[0] else None
        gw = mem.zeros(filters.shape, filters.dtype) if needs[1] else None
        share = mem.empty(filters.shape, filters.dtype) if needs[1] else None
        for block, maps in self._blocks():
            write(block, maps)
            g = maps.reshape(len(maps), -1)  # (D, M * R * OW)
            if gw is not None:
                gw += np.matmul(g, columns.gather(x, block).T, out=share)
            if gx is not None:
                np.matmul(filters.T, g, out=columns.matrix(block))
                columns.scatter(block, gx)
        return gx, None if gw is None else gw.reshape(-1, *columns.taps)

    def _blocks(self) -> Iterator[tuple[Strip, Array]]:
        """Each block, and room for its maps."""
        for block in self.columns.blocks():
            shape = len(self.filters), block.size, block.rows, self.columns.width
            yield block, self._maps[: int(np.prod(shape))].reshape(shape)
