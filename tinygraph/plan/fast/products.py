"""The matrix products of a convolution over blocks of columns, forward and backward.

D M R OW   filters, images of a block, its rows, columns of the output
K          C * KH * KW

maps  = w @ cols                        (D, M * R * OW)
gw    = sum over blocks of gmaps @ cols^T
gx    = sum over blocks of fold(w^T @ gmaps)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tinygraph.memory import Memory
from tinygraph.ops.shared.windows import Windows2d
from tinygraph.plan.fast.columns import Columns, Strip
from tinygraph.shapes import Array, Shape


class Products:
    """Buffers for one block, and the products over it.

    Parameters
    ----------
    at : Windows2d
    image : shape (N, C, H, W)
    w : array (D, C, KH, KW)
        Contiguous.
    size : (int, int)
        Rows and columns of the output that are wanted.
    step : int
        Blocks begin at multiples of so many rows.
    """

    def __init__(
        self, mem: Memory, at: Windows2d, image: Shape, w: Array, size: Any, step: int = 1
    ) -> None:
        self.columns = Columns(mem, image, w.shape, at, size, w.dtype, step)
        self.filters = w.reshape(len(w), w[0].size)  # (D, K)
        self._maps = mem.empty((len(w) * self.columns.most * size[1],), w.dtype)

    def maps(self, block: Strip) -> Array:
        """Room for the maps of a block, (D, M, R, OW)."""
        shape = len(self.filters), block.size, block.rows, self.columns.width
        return self._maps[: int(np.prod(shape))].reshape(shape)

    def forward(self, x: Array) -> Iterator[tuple[Strip, Array]]:
        """Each block, and the maps (D, M, R, OW) of its images; the next block overwrites them."""
        for block in self.columns.blocks():
            maps = self.maps(block)
            cols = self.columns.gather(x, block)
            np.matmul(self.filters, cols, out=maps.reshape(len(maps), -1))
            yield block, maps

    def gradients(self, mem: Memory, x: Array, needs: tuple[bool, ...]) -> Gradients:
        return Gradients(mem, self, x, needs)


class Gradients:
    """Sums over blocks: the gradients of images and filters that are needed."""

    def __init__(self, mem: Memory, products: Products, x: Array, needs: tuple[bool, ...]) -> None:
        self.products, self.x, filters = products, x, products.filters
        self.gx = mem.zeros(x.shape, x.dtype) if needs[0] else None
        self.gw = mem.zeros(filters.shape, filters.dtype) if needs[1] else None
        self.share = mem.empty(filters.shape, filters.dtype) if needs[1] else None

    def blocks(self) -> Iterator[tuple[Strip, Array]]:
        """Each block, and room for the upstream gradient of its maps, (D, M, R, OW)."""
        for block in self.products.columns.blocks():
            yield block, self.products.maps(block)

    def add(self, block: Strip, maps: Array) -> None:
        """After the upstream gradient of a block's maps has been written."""
        columns, filters = self.products.columns, self.products.filters
        g = maps.reshape(len(maps), -1)  # (D, M * R * OW)
        if self.gw is not None:
            cols = columns.gather(self.x, block)
            self.gw += np.matmul(g, cols.T, out=self.share)
        if self.gx is not None:
            np.matmul(filters.T, g, out=columns.matrix(block))
            columns.scatter(block, self.gx)

    def sums(self) -> tuple[Array | None, Array | None]:
        """gx (N, C, H, W) and gw (D, C, KH, KW)."""
        shape = len(self.products.filters), *self.products.columns.taps
        return self.gx, None if self.gw is None else self.gw.reshape(shape)
