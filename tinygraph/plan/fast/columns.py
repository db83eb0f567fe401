"""The windows of images as columns of a matrix, block by block: im2col and col2im, compiled.

    M C H W    images of a block, channels, height, width       KH KW   kernel size
    R OW       rows of a block, columns of the output
    PR PC      rows and columns of pixels that they see, with the padding

    seen[m, c, r, s]            = x[m, c, first * stride + r - top, s - left],  or 0 outside
    cols[(c, i, j), (m, u, v)]  = seen[m, c, u * stride + i * dilation, v * stride + j * dilation]

`pad` and `unfold` write these; `fold` and `crop` go the other way, and add up.  What a block sees
is copied first: each of its pixels is read KH * KW times, and rows without borders are read three
times as fast.  The images of a block lie side by side, so that one matrix product serves all of
them, and what has been written is still in the cache when the product reads it.  Nothing of it is
kept: backward unfolds again, which takes less time than memory does for the columns of a batch.

Source: Chellapilla, Puri, Simard, "High performance convolutional neural networks for document
processing", IWFHR 2006.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tinygraph.memory import Memory
from tinygraph.ops.shared.windows import Windows2d
from tinygraph.plan.fast.jit import loop
from tinygraph.shapes import Array, Shape

BLOCK_BYTES = 1 << 21  # of a block's columns: a few caches of a core; smaller products are slower


@loop("x4 i i =x4")
def pad(x: Array, top: int, left: int, seen: Array) -> None:
    """seen (M, C, PR, PC) of x (M, C, H, W); `top` rows and `left` columns of 0 come first.

    A negative `top` says how many rows of the images are above of what is seen.
    """
    images, channels, rows, columns = seen.shape
    height, width = x.shape[2], x.shape[3]
    zero, begin = x.dtype.type(0), min(left, columns)
    end = max(begin, min(columns, width + left))
    for m in range(images):
        for c in range(channels):
            for r in range(rows):
                target = seen[m, c, r]
                if not top <= r < height + top:
                    for v in range(columns):
                        target[v] = zero
                    continue
                source, inner, rest = x[m, c, r - top], target[begin:end], target[end:]
                for v in range(begin):
                    target[v] = zero
                for v in range(len(inner)):
                    inner[v] = source[v]
                for v in range(len(rest)):
                    rest[v] = zero


@loop("x4 i i =x4")
def crop(seen: Array, top: int, left: int, gx: Array) -> None:
    """The reverse: what lies within the images is added to gx (M, C, H, W)."""
    images, channels, rows, columns = seen.shape
    height, width = gx.shape[2], gx.shape[3]
    begin = min(left, columns)
    end = max(begin, min(columns, width + left))
    for m in range(images):
        for c in range(channels):
            for r in range(max(top, 0), min(rows, height + top)):
                source, target = seen[m, c, r, begin:end], gx[m, c, r - top]
                for v in range(len(source)):
                    target[v] += source[v]


@loop("x4 i i i i =x6")
def unfold(seen: Array, sh: int, sw: int, dh: int, dw: int, cols: Array) -> None:
    """cols (C, KH, KW, M, R, OW) of seen (M, C, PR, PC), for stride (sh, sw), dilation (dh, dw).

    >>> cols = np.empty((1, 1, 2, 1, 1, 2))
    >>> unfold(np.arange(3.0).reshape(1, 1, 1, 3), 1, 1, 1, 1, cols)
    >>> cols.reshape(2, 2)
    array([[0., 1.],
           [1., 2.]])
    """
    channels, kh, kw, images, rows, columns = cols.shape
    for c in range(channels):
        for i in range(kh):
            for j in range(kw):
                for m in range(images):
                    for u in range(rows):
                        source = seen[m, c, u * sh + i * dh, j * dw :]
                        target = cols[c, i, j, m, u]
                        if sw == 1:  # contiguous on both sides: vectors
                            for v in range(columns):
                                target[v] = source[v]
                        else:
                            for v in range(columns):
                                target[v] = source[v * sw]


@loop("x6 i i i i =x4")
def fold(cols: Array, sh: int, sw: int, dh: int, dw: int, seen: Array) -> None:
    """Each of seen (M, C, PR, PC) becomes the sum of the cols that `unfold` would read there."""
    channels, kh, kw, images, rows, columns = cols.shape
    for c in range(channels):
        for m in range(images):
            seen[m, c] = 0
            for i in range(kh):
                for j in range(kw):
                    for u in range(rows):
                        source = cols[c, i, j, m, u]
                        target = seen[m, c, u * sh + i * dh, j * dw :]
                        if sw == 1:
                            for v in range(columns):
                                target[v] += source[v]
                        else:
                            for v in range(columns):
                                target[v * sw] += source[v]


LOOPS = pad, crop, unfold, fold


class Strip(NamedTuple):
    """Some images, and some rows of their outputs; all rows where there are many images."""

    images: slice
    size: int  # how many images
    first: int
    rows: int


def bias_of(mem: Memory, w: Array, b: Array | None) -> Array:
    """b (D,) in a buffer, 0 where there is none."""
    bias = mem.zeros(w.shape[:1], w.dtype)
    if b is not None:
        bias[...] = b
    return bias


class Products:
    """The products with filters, over the columns of one block after the other, in buffers.

    Images are (N, C, H, W), filters w (D, C, KH, KW), contiguous; `size` says how many rows and
    columns of the output are wanted, from the first on, and blocks begin at multiples of `step`
    rows.

        maps  = w @ cols                       (D, M * R * OW), for w as (D, C * KH * KW)
        gw    = sum over blocks of gmaps @ cols^T
        gx    = sum over blocks of fold(w^T @ gmaps)
    """

    def __init__(
        self, mem: Memory, at: Windows2d, image: Shape, w: Array, size: Any, step: int = 1
    ) -> None:
        (rows, columns), self.at, self.filters = size, at, w.reshape(len(w), w[0].size)
        self.batch, self.taps, self.height, self.width = image[0], w.shape[1:], rows, columns
        per_row = prod(self.taps) * columns
        fitting = max(1, BLOCK_BYTES // (per_row * w.itemsize))  # rows of output
        self.rows = rows if rows <= fitting else max(fitting // step, 1) * step
        self.images = max(1, min(fitting // rows, self.batch))
        most = self.images * self.rows  # rows of all images of the largest block
        self._cols = mem.empty((per_row * most,), w.dtype)
        self._seen = mem.empty((self.images * prod(self._sees(self.rows)),), w.dtype)
        self._maps = mem.empty((len(w) * most * columns,), w.dtype)

    def forward(self, x: Array) -> Iterator[tuple[Strip, Array]]:
        """Each block, and the maps (D, M, R, OW) of its images; the next block overwrites them."""
        for block, maps in self._blocks():
            cols = self.gather(x, block)
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
        filters = self.filters
        gx = mem.zeros(x.shape, x.dtype) if needs[0] else None
        gw = mem.zeros(filters.shape, filters.dtype) if needs[1] else None
        share = mem.empty(filters.shape, filters.dtype) if needs[1] else None
        for block, maps in self._blocks():
            write(block, maps)
            g = maps.reshape(len(maps), -1)  # (D, M * R * OW)
            if gw is not None:
                gw += np.matmul(g, self.gather(x, block).T, out=share)
            if gx is not None:
                np.matmul(filters.T, g, out=self.matrix(block))
                self.scatter(block, gx)
        return gx, None if gw is None else gw.reshape(-1, *self.taps)

    def _blocks(self) -> Iterator[tuple[Strip, Array]]:
        """Each block, and room for its maps."""
        for n in range(0, self.batch, self.images):
            size = min(self.images, self.batch - n)
            for first in range(0, self.height, self.rows):
                rows = min(self.rows, self.height - first)
                shape = len(self.filters), size, rows, self.width
                maps = self._maps[: prod(shape)].reshape(shape)
                yield Strip(slice(n, n + size), size, first, rows), maps

    def gather(self, x: Array, block: Strip) -> Array:
        """The columns of a block as a matrix, (C * KH * KW, M * R * OW)."""
        seen, cols = self._rooms(block)
        pad(x[block.images], *self._corner(block), seen)
        unfold(seen, *self._steps(), cols)
        return self.matrix(block)

    def scatter(self, block: Strip, gx: Array) -> None:
        """Add what lies in the matrix of a block to the images (N, C, H, W) it stands for."""
        seen, cols = self._rooms(block)
        fold(cols, *self._steps(), seen)
        crop(seen, *self._corner(block), gx[block.images])

    def matrix(self, block: Strip) -> Array:
        """Room for the columns of a block."""
        return self._rooms(block)[1].reshape(prod(self.taps), -1)

    def _rooms(self, block: Strip) -> tuple[Array, Array]:
        """For what a block sees, (M, C, PR, PC), and its columns, (C, KH, KW, M, R, OW)."""
        seen = block.size, *self._sees(block.rows)
        cols = *self.taps, block.size, block.rows, self.width
        return self._seen[: prod(seen)].reshape(seen), self._cols[: prod(cols)].reshape(cols)

    def _sees(self, rows: int) -> Shape:
        """C PR PC for so many rows of one image."""
        return self.taps[0], *[
            (count - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1
            for count, axis in zip((rows, self.width), self.at, strict=True)
        ]

    def _corner(self, block: Strip) -> tuple[int, int]:
        """Rows and columns of padding before the first pixels that a block sees."""
        rows, columns = self.at
        return rows.before - block.first * rows.stride, columns.before

    def _steps(self) -> tuple[int, ...]:
        rows, columns = self.at
        return rows.stride, columns.stride, rows.dilation, columns.dilation
