"""The columns of a convolution whose output is pooled, one matrix for each place in a window.

    N C H W    batch, channels, height, width     KH KW   kernel size
    PH PW      pooled size                        a, b    a place in a pooling window, < pool

Pooling takes the maximum over pool * pool places (a, b) of each window.  The outputs of the
convolution at one such place, of all windows, are a convolution of their own: its stride is
pool * stride, and it begins at the pixel (a * stride, b * stride).  These are the phases of a
polyphase decomposition.  With one matrix of columns for each phase, the maximum runs over
contiguous arrays of the size of the pooled output.

    columns[a, b][(i, j, c), (n, u, v)] = x[n, c, (u * pool + a) * stride + i * dilation - pad, ...]

Phases share rows of pixels: row i of phase a is row i - stride / dilation of phase a + 1.  Such
rows are gathered once, and the columns of phase (a, b) are a slice of what has been gathered.

All works on a block of images, or of pooled rows of one image, so that what is written last is
still in the cache when it is read.

Source: Vaidyanathan, "Multirate systems and filter banks", 1993, for polyphase decompositions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tinygraph.base import frozen
from tinygraph.engine import Array, Memory, Shape
from tinygraph.ops.common import sum_over
from tinygraph.ops.windows.windows import Windows2d

# Of a block's columns and two of its pooled maps: about an L2 cache.  In smaller blocks the calls
# of numpy cost more than the cache gives.
BLOCK_BYTES = 1536 * 1024
FEWEST_CELLS = 512  # of a block: matrix products with fewer columns are slow


class Block(NamedTuple):
    """Some images, and some rows of their pooled outputs; all rows where there are many images."""

    images: slice
    rows: slice
    last: bool  # the last of these images
    shape: Shape  # images, pooled rows, pooled columns

    @property
    def cells(self) -> int:
        return prod(self.shape)

    def of(self, pooled: Array) -> Array:
        """This block of an array (N, D, PH, PW), as a view with the filters first."""
        return pooled[self.images, :, self.rows].transpose(1, 0, 2, 3)


@frozen
class PoolingPhases:
    image: Shape  # N C H W
    at: Windows2d
    pool: int
    filters: int
    itemsize: int

    @cached_property
    def pooled(self) -> Shape:
        return self.at[0].out // self.pool, self.at[1].out // self.pool

    @cached_property
    def distances(self) -> tuple[int, int]:
        """Taps from where a phase begins to where the next does, down and across.

        KH and KW where phases share no pixels.
        """
        down, across = (
            axis.kernel if axis.stride % axis.dilation else axis.stride // axis.dilation
            for axis in self.at
        )
        return min(down, self.at.rows.kernel), min(across, self.at.columns.kernel)

    @cached_property
    def gathered(self) -> Shape:
        """Phases b, gathered rows, and for each KW * C taps, as the columns are laid out."""
        rows, columns = self.at
        height = (self.pool - 1) * self.distances[0] + rows.kernel
        return self.pool, height, columns.kernel * self.image[1]

    def rows_of(self, a: int) -> slice:
        """Where, among the gathered rows, those of phase a lie."""
        return slice(a * self.distances[0], a * self.distances[0] + self.at[0].kernel)

    @cached_property
    def first(self) -> Block:
        """The first block, which is the largest."""
        n, (ph, pw) = self.image[0], self.pooled
        each = self.itemsize * (2 * self.filters + prod(self.gathered))
        cells = max(BLOCK_BYTES // each, FEWEST_CELLS)
        images = min(max(cells // (ph * pw), 1), n)
        rows = ph if ph * pw <= cells else max(cells // pw, 1)
        return Block(slice(0, images), slice(0, rows), rows == ph, (images, rows, pw))

    def blocks(self) -> Iterator[Block]:
        n, (ph, pw), (images, rows, _) = self.image[0], self.pooled, self.first.shape
        for i in range(0, n, max(images, 1)):
            many = slice(i, min(i + images, n))
            for u in range(0, ph, rows):
                some = slice(u, min(u + rows, ph))
                shape = many.stop - many.start, some.stop - some.start, pw
                yield Block(many, some, some.stop == ph, shape)

    def windows(self, images: Array) -> Array:
        """A view of padded images: (b, gathered rows, KW, C, N, PH, PW)."""
        (rows, columns), pool = self.at, self.pool
        by_n, by_c, by_row, by_column = images.strides
        down, across = by_row * rows.stride, by_column * columns.stride
        # where phases share no row, the gathered rows are two axes
        sizes: Shape = (pool, rows.kernel)
        steps: Shape = (down, by_row * rows.dilation)
        if self.distances[0] * rows.dilation == rows.stride:
            sizes, steps = self.gathered[1:2], steps[1:]
        return as_strided(
            images,
            (pool, *sizes, columns.kernel, *images.shape[1::-1], *self.pooled),
            (across, *steps, by_column * columns.dilation, by_c, by_n, down * pool, across * pool),
        )

    def padding(self) -> Shape | None:
        """Height and width of an image with its padding; None if there is none to be made."""
        size = []
        for axis, pixels, pooled in zip(self.at, self.image[2:], self.pooled, strict=True):
            span = (pooled * self.pool - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1
            size.append(max(span, axis.before + pixels))
        return None if tuple(size) == self.image[2:] else tuple(size)


class PhaseColumns:
    """The columns of one block after the other, gathered from images or added up into images.

    Buffers for one block come from `mem`.  `gather` reads the images (N, C, H, W), and `scatter`
    adds to them; it wants zeros there.
    """

    def __init__(self, mem: Memory, phases: PoolingPhases, images: Array) -> None:
        self.phases, self.images, first = phases, images, phases.first
        size = phases.padding()
        self._padded: Array | None = None
        if size is not None:
            self._padded = mem.zeros((first.shape[0], images.shape[1], *size), images.dtype)
        self._windows = phases.windows(images if self._padded is None else self._padded)
        self._buffer = mem.empty((prod(phases.gathered) * first.cells,), images.dtype)
        self._shared = phases.at[1].kernel - phases.distances[1]  # of KW, with the phase before
        self.begin(first)

    def of(self, a: int, b: int) -> Array:
        """The columns of phase (a, b), (KH * KW * C, cells), contiguous."""
        return self._columns[b, self.phases.rows_of(a)].reshape(-1, self.block.cells)

    def begin(self, block: Block) -> None:
        """Make `of` give columns of this block, which hold anything."""
        self.block = block
        b, rows, taps = self.phases.gathered
        self._columns = matrix(self._buffer, b * rows, taps * block.cells).reshape(b, rows, -1)

    def gather(self, block: Block) -> None:
        """Read the columns of a block."""
        self.begin(block)
        if self._padded is not None and block.rows.start == 0:
            self._inside(self._padded)[...] = self.images[block.images]
        windows, columns = self._by_tap()
        np.copyto(columns[0], windows[0])
        distance, shared = self.phases.distances[1], self._shared
        np.copyto(columns[1:, ..., shared:, :, :, :, :], windows[1:, ..., shared:, :, :, :, :])
        for b in range(1, len(columns) if shared else 0):
            columns[b, ..., :shared, :, :, :, :] = columns[b - 1, ..., distance:, :, :, :, :]

    def put(self, a: int, b: int, weights: Array, g: Array, product: Array) -> None:
        """Set the columns of phase (a, b) to weights @ g, or add it to those that are known.

        Phase (a, b) comes after phase (a - 1, b); `product` is a buffer.
        """
        known = self.phases.at[0].kernel - self.phases.distances[0] if a else 0
        if not known:
            np.dot(weights, g, out=self.of(a, b))
            return
        target = self._columns[b, self.phases.rows_of(a)]
        share = np.dot(weights, g, out=matrix(product, len(weights), g.shape[1]))
        share = share.reshape(target.shape)
        target[:known] += share[:known]
        target[known:] = share[known:]

    def scatter(self) -> None:
        """Add the columns to the pixels that they stand for, and spoil the columns."""
        if self._padded is not None and self.block.rows.start == 0:
            self._padded[...] = 0
        windows, columns = self._by_tap()
        distance, shared = self.phases.distances[1], self._shared
        for b in range(len(columns) - 1 if shared else 0, 0, -1):
            columns[b - 1, ..., distance:, :, :, :, :] += columns[b, ..., :shared, :, :, :, :]
        for index in np.ndindex(windows.shape[:-4]):
            if not index[0] or index[-1] >= shared:
                windows[index] += columns[index]
        if self._padded is not None and self.block.last:
            self.images[self.block.images] = self._inside(self._padded)

    def _by_tap(self) -> tuple[Array, Array]:
        """The block's windows and columns, both (b, gathered rows, KW, C, images, rows, PW)."""
        images = self.block.images if self._padded is None else slice(0, self.block.shape[0])
        windows = self._windows[..., images, self.block.rows, :]
        return windows, self._columns.reshape(windows.shape)

    def _inside(self, padded: Array) -> Array:
        """The real pixels of the padded images of the block."""
        top, left = (axis.before for axis in self.phases.at)
        h, w = self.images.shape[2:]
        return padded[: self.block.shape[0], :, top : top + h, left : left + w]


def matrix(buffer: Array, rows: int, columns: int) -> Array:
    """The beginning of a flat buffer, as a matrix."""
    return buffer[: rows * columns].reshape(rows, columns)


def rows_of_filters(mem: Memory, w: Array) -> Array:
    """w (D, C, KH, KW) as rows (D, KH * KW * C), in the order of the taps of PhaseColumns."""
    d, c, kh, kw = w.shape
    rows = mem.empty((d, kh, kw, c), w.dtype)
    rows[...] = w.transpose(0, 2, 3, 1)
    return rows.reshape(d, kh * kw * c)


class PartGradient:
    """The gradient of an input: for each block `begin`, `add` for its phases, `end`; then `sum`."""

    total: Array

    def __init__(self, mem: Memory, phases: PoolingPhases, x: Array, w: Array) -> None: ...

    def begin(self, block: Block) -> None:
        """Make ready for a block."""

    def add(self, g: Array, a: int, b: int) -> None:
        """Take phase (a, b) of the block's gradient g (D, cells); the phases come in order."""

    def end(self) -> None:
        """The block has had all its phases."""

    def sum(self) -> Array:
        return self.total


class WeightGradient(PartGradient):
    """gw = sum of g @ columns^T over the blocks, and the phases of each, in their order."""

    def __init__(self, mem: Memory, phases: PoolingPhases, x: Array, w: Array) -> None:
        self.columns = PhaseColumns(mem, phases, x)
        self.total = mem.zeros((len(w), w[0].size), w.dtype)
        self.product = mem.empty(self.total.shape, w.dtype)
        self.gradient = mem.empty(w.shape, w.dtype)

    def begin(self, block: Block) -> None:
        self.columns.gather(block)

    def add(self, g: Array, a: int, b: int) -> None:
        self.total += np.dot(g, self.columns.of(a, b).T, out=self.product)

    def sum(self) -> Array:
        d, c, kh, kw = self.gradient.shape
        self.gradient[...] = self.total.reshape(d, kh, kw, c).transpose(0, 3, 1, 2)
        return self.gradient


class BiasGradient(PartGradient):
    """gb = sum of g over the same; blocks may be many, so that they are added up in float64."""

    def __init__(self, mem: Memory, phases: PoolingPhases, x: Array, w: Array) -> None:
        self.part = mem.empty((len(w), 1), w.dtype)
        self.total = mem.zeros((len(w),), np.float64)
        self.gradient = mem.empty((len(w),), w.dtype)

    def add(self, g: Array, a: int, b: int) -> None:
        self.total += sum_over((1,), self.part, g)[:, 0]

    def sum(self) -> Array:
        self.gradient[...] = self.total
        return self.gradient


class InputGradient(PartGradient):
    """gx: the gradients w^T @ g of the columns, added up where these were read."""

    def __init__(self, mem: Memory, phases: PoolingPhases, x: Array, w: Array) -> None:
        self.total = mem.zeros(x.shape, x.dtype)
        self.columns = PhaseColumns(mem, phases, self.total)
        self.weights = rows_of_filters(mem, w).T  # (KH * KW * C, D)
        self.product = mem.empty((len(self.weights) * phases.first.cells,), w.dtype)

    def begin(self, block: Block) -> None:
        self.columns.begin(block)

    def add(self, g: Array, a: int, b: int) -> None:
        self.columns.put(a, b, self.weights, g, self.product)

    def end(self) -> None:
        self.columns.scatter()


class CorrelatedInputGradient(PartGradient):
    """gx as a convolution of the gradient's map with the filters turned by half a turn.

        gx[c, p, q] = sum of w[d, c, KH - 1 - i, KW - 1 - j] * map[d, p + i, q + j] over d, i, j

    The map has the outputs of the convolution before pooling, between borders of zeros.  Its
    columns are only written, where those of InputGradient are written, added to and added up.
    """

    def __init__(self, mem: Memory, phases: PoolingPhases, x: Array, w: Array) -> None:
        (_, c, h, width), (d, _, kh, kw), many = x.shape, w.shape, phases.first.shape[0]
        self.phases, self.block = phases, phases.first
        self.total = mem.zeros(x.shape, x.dtype)
        turned = mem.empty((c, kh, kw, d), w.dtype)
        turned[...] = w[:, :, ::-1, ::-1].transpose(1, 2, 3, 0)
        self.weights = turned.reshape(c, kh * kw * d)
        self.map = mem.zeros((d, many, h + kh - 1, width + kw - 1), x.dtype)
        self.columns = mem.empty((self.weights.shape[1] * many * h * width,), x.dtype)
        self.product = mem.empty((c * many * h * width,), x.dtype)

    @staticmethod
    def fits(phases: PoolingPhases) -> bool:
        """Whether it can be done so, and has no more columns to write than InputGradient adds up.

        Windows must overlap pixel by pixel, and a block hold whole images.
        """
        plain = all(axis.stride == axis.dilation == 1 for axis in phases.at)
        inside = all(
            max(axis.before, axis.out - pixels + axis.kernel - 1 - axis.before) < axis.kernel
            for axis, pixels in zip(phases.at, phases.image[2:], strict=True)
        )
        return plain and inside and phases.first.last and phases.filters <= 2 * phases.image[1]

    def begin(self, block: Block) -> None:
        self.block = block

    def add(self, g: Array, a: int, b: int) -> None:
        """Write the gradient of one phase to its places in the map."""
        pool, starts = self.phases.pool, [x.kernel - 1 - x.before for x in self.phases.at]
        rows, columns = (
            slice(start + place, start + pooled * pool, pool)
            for start, place, pooled in zip(starts, (a, b), self.phases.pooled, strict=True)
        )
        self.map[:, : self.block.shape[0], rows, columns] = g.reshape(len(g), *self.block.shape)

    def end(self) -> None:
        n, (_, c, h, w) = self.block.shape[0], self.total.shape
        kernel = [axis.kernel for axis in self.phases.at]
        by_d, by_n, *by_pixel = self.map.strides
        shape = *kernel, len(self.map), n, h, w
        windows = as_strided(self.map, shape, (*by_pixel, by_d, by_n, *by_pixel))
        columns = matrix(self.columns, self.weights.shape[1], n * h * w)
        columns.reshape(shape)[...] = windows
        product = np.dot(self.weights, columns, out=matrix(self.product, c, n * h * w))
        self.total[self.block.images] = product.reshape(c, n, h, w).transpose(1, 0, 2, 3)
