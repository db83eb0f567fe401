"""Convolution in numpy, as one matrix product for a block of images.

    N C H W    batch, input channels, height, width        G      groups
    O KH KW    output channels, kernel size                OH OW  output size
    K = C/G * KH * KW                                      M = O/G

**Rows.**  A block of images lies in one long row for each channel, with zeros between the lines of
pixels and between the images.  Two images of 2 x 3, for a kernel of 3 x 3 and a padding of 1:

    0 0 0 0 0 | a b c 0  d e f 0  0 0 0 0 | g h i 0  j k l 0  0 0 0 0 | 0 0 0 0 0
     margin                  one image, LINES x PITCH                   margin

The zeros after a line are the padding on its right, and on the left of the next line.  So each row
of im2col, the pixels that tap (i, j) of the kernel meets at every position, is this row moved by
i * PITCH + j - const: a copy without gaps.  col2im adds the row back in the same place.  Results
at the places of zeros are computed and left out; an upstream gradient is 0 there.

With a stride, pixels (h, w) with the same (h mod stride, w mod stride), a phase, have a row of
their own: in it the taps move by whole steps again.

Where the zeros would be many (a large kernel without padding), the columns have a place for each
output alone, OH x OW instead of LINES x PITCH, and the copies have gaps.

**Products.**  cols (G, K, places) are made block by block and stay in a cache, for backward again:

    maps = w @ cols              gw += gmaps @ cols^T

The gradient of x is col2im(w^T @ gmaps), or where that has the shorter columns a convolution of the
upstream gradient with turned weights: gx[place] = sum over taps of w^T @ gmaps[place - tap].

Threads share the blocks.  Sums over blocks are those of up to `SHARES` shares, so that their bits
do not depend on how many threads there are.

Source: Chellapilla, Puri, Simard, "High performance convolutional neural networks for document
processing", IWFHR 2006, for im2col and the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from tinygraph.memory import Memory
from tinygraph.ops.shared.launch import remembered
from tinygraph.ops.shared.windows import Windows2d
from tinygraph.shapes import Array, Pair, Shape
from tinygraph.threads import share_out

COLUMN_BYTES = 2 << 20  # of a block: about what a core's caches hold
SHARES = 4  # of the blocks, at most
WORTH_SHARING = 1 << 24  # multiplications below which threads cost more than they save
MOST_ZEROS = 1.6  # places of a line and its zeros, for each output; with more, outputs alone


class Layout:
    """Where the pixels of a block of images lie, and which of them a tap meets."""

    def __init__(self, at: Windows2d, x: Shape, w: Shape, itemsize: int) -> None:
        self.at, self.x, self.w = at, x, w
        stride = at.numbers("stride")
        starts = [
            [offset * axis.dilation - axis.before for offset in range(axis.kernel)] for axis in at
        ]
        steps = [[i // s for i in axis] for axis, s in zip(starts, stride, strict=True)]
        self.data: Pair = -(-x[2] // stride[0]), -(-x[3] // stride[1])  # of the largest phase
        self.grid: Pair = (  # LINES and PITCH
            _long_enough(self.data[0], at.out[0], steps[0]),
            _long_enough(self.data[1], at.out[1], steps[1]),
        )
        pitch = self.grid[1]
        rests = [(i % stride[0], j % stride[1]) for i in starts[0] for j in starts[1]]
        self.phases: list[Pair] = list(dict.fromkeys(rests))
        moves = [i * pitch + j for i in steps[0] for j in steps[1]]
        # For each tap, in the order of the weights: its phase, and how far it moves the row.
        self.taps = list(zip(map(self.phases.index, rests), moves, strict=True))
        # For each phase the taps that meet it.
        self.taps_of_phases = [
            [tap for tap, rest in enumerate(rests) if rest == phase] for phase in self.phases
        ]
        self.margin = max(map(abs, moves))
        self.dense = _places(self.grid) > MOST_ZEROS * max(1, _places(at.out))
        self.places: Pair = at.out if self.dense else self.grid
        each = max(1, x[1] * len(self.taps) * _places(self.places) * itemsize)
        blocks = -(-x[0] // max(1, COLUMN_BYTES // each))
        self.images = -(-x[0] // max(1, blocks))  # of a block; the last one may have fewer
        self.blocks = blocks
        self.shares = min(blocks, SHARES)
        self.multiplications = x[0] * w[0] * w[1] * len(self.taps) * _places(self.places)

    @property
    def outputs(self) -> Shape:
        return self.x[0], self.w[0], *self.at.out

    @cached_property
    def length(self) -> int:
        """Of a row, with its margins."""
        return self.images * _places(self.grid) + 2 * self.margin

    def of_share(self, share: int) -> Iterator[slice]:
        """The images of each block of a share."""
        first, stop = (self.blocks * n // self.shares for n in (share, share + 1))
        for block in range(first, stop):
            yield slice(block * self.images, min((block + 1) * self.images, self.x[0]))


def _long_enough(data: int, out: int, steps: list[int]) -> int:
    """So many places that what lies before a line and after it are the zeros of its neighbours."""
    return max(data, out, data - min(steps), out + max(steps))


def _places(size: Shape) -> int:
    return size[0] * size[1]


@remembered
def layout_of(at: Windows2d, x: Shape, w: Shape, itemsize: int) -> Layout:
    """Remembered: a network asks for the same ones in every step."""
    return Layout(at, x, w, itemsize)


class Rows:
    """Images (N, C, H, W) of one block after another, as rows and as columns."""

    def __init__(self, mem: Memory, layout: Layout, dtype: Any) -> None:
        self.layout = layout
        self.rows = mem.zeros((len(layout.phases), layout.x[1], layout.length), dtype)

    def _pixels(self, images: Array) -> Iterator[tuple[Array, Array]]:
        """Each phase of a block's images (C, B, H', W'), and its places in the rows."""
        layout = self.layout
        down, right = layout.at.numbers("stride")
        for row, (i, j) in zip(self.rows, layout.phases, strict=True):
            phase = images[:, :, i::down, j::right].transpose(1, 0, 2, 3)
            yield phase, self._seen(row, 0, len(images), phase.shape[2:])

    def _seen(self, row: Array, move: int, images: int, size: Shape) -> Array:
        """(C, B, *size): the places of a row from which on the images lie, moved."""
        lines, pitch = self.layout.grid
        first = self.layout.margin + move
        block = row[:, first : first + images * lines * pitch]
        return block.reshape(len(row), images, lines, pitch)[:, :, : size[0], : size[1]]

    def put(self, images: Array) -> None:
        """Write a block of images into the rows."""
        for phase, places in self._pixels(images):
            places[...] = phase

    def take(self, images: Array) -> None:
        """Write the rows into a block of images; a pixel that no tap meets is 0."""
        if len(self.layout.phases) < _places(self.layout.at.numbers("stride")):
            images[...] = 0
        for phase, places in self._pixels(images):
            phase[...] = places

    def _tap_by_tap(self, cols: Array, images: int) -> Iterator[tuple[Array, Array]]:
        """Each row of columns (C, B, places), and what the tap meets."""
        layout = self.layout
        by_tap = cols.reshape(layout.x[1], len(layout.taps), images, *layout.places)
        for tap, (phase, move) in enumerate(layout.taps):
            yield by_tap[:, tap], self._seen(self.rows[phase], move, images, layout.places)

    def unfold(self, cols: Array, images: int) -> None:
        """Write the columns (C * KH * KW, places) of so many images."""
        for column, met in self._tap_by_tap(cols, images):
            column[...] = met

    def fold(self, cols: Array, images: int) -> None:
        """The rows become the sums of the columns that meet each pixel."""
        self.rows[...] = 0
        for column, met in self._tap_by_tap(cols, images):
            met += column


class Convolution:
    """The convolution of a layout, with buffers for as many threads as share its blocks."""

    def __init__(self, mem: Memory, layout: Layout, groups: int, w: Array) -> None:
        self.mem, self.layout, self.groups, self.dtype = mem, layout, groups, w.dtype
        worth = layout.multiplications >= WORTH_SHARING
        self.threads = max(1, min(mem.workers if worth else 1, layout.shares))
        self.w = w.reshape(groups, len(w) // groups, -1)  # (G, M, K)
        self.turns = not layout.dense and len(w) <= layout.x[1]

    def forward(self, x: Array, b: Array | None) -> Array:
        """y (N, O, OH, OW)."""
        layout = self.layout
        y = self.mem.empty(layout.outputs, self.dtype)
        rows, cols, maps = self._rows(), self._columns(), self._maps()
        bias = None if b is None else b[:, None, None]

        def work(thread: int, share: int) -> None:
            for block in layout.of_share(share):
                columns = self._unfolded(rows[thread], cols[thread], x[block])
                result, images = self._matrix_of(maps[thread], block)
                _multiply(self.w, columns, result)
                if bias is None:
                    y[block] = images
                else:
                    np.add(images, bias, out=y[block])

        share_out(layout.shares, self.threads, work)
        return y

    def backward(self, gy: Array, x: Array | None, of_x: bool) -> tuple[Array | None, Array | None]:
        """gx, where it is wanted, and gw, where x is given."""
        layout, mem = self.layout, self.mem
        gx = mem.empty(layout.x, self.dtype) if of_x else None
        parts = [] if x is None else self._each(mem.zeros, self.w.shape, times=layout.shares)
        terms = [] if x is None else self._each(mem.empty, self.w.shape)
        rows = [] if x is None else self._rows()
        back, cols, maps = self._rows() if of_x else [], self._columns(), self._maps()
        filters = self._turned_filters() if of_x and self.turns else []

        def work(thread: int, share: int) -> None:
            for block in layout.of_share(share):
                upstream, images = self._matrix_of(maps[thread], block)
                images[...] = gy[block]
                if x is not None:
                    columns = self._unfolded(rows[thread], cols[thread], x[block])
                    np.matmul(upstream, columns.transpose(0, 2, 1), out=terms[thread])
                    parts[share] += terms[thread]
                if gx is not None and self.turns:
                    self._turn(filters, maps[thread], cols[thread], back[thread], len(images))
                    back[thread].take(gx[block])
                elif gx is not None:
                    columns = self._columns_of(cols[thread], layout.x[1], len(images))
                    _multiply(self.w.transpose(0, 2, 1), upstream, columns)
                    back[thread].fold(columns, len(images))
                    back[thread].take(gx[block])

        share_out(layout.shares, self.threads, work)
        return gx, self._sum(parts) if x is not None else None

    def _sum(self, parts: list[Array]) -> Array:
        gw = self.mem.zeros(self.layout.w, self.dtype)
        for part in parts:
            gw += part.reshape(gw.shape)
        return gw

    def _turned_filters(self) -> list[Array]:
        """(G, C/G, M * taps) for each phase, of the taps that meet it."""
        (groups, filters, _), taps = self.w.shape, len(self.layout.taps)
        w = self.w.reshape(groups, filters, -1, taps).transpose(0, 2, 1, 3)  # (G, C/G, M, taps)
        turned = []
        for met in self.layout.taps_of_phases:
            made = self.mem.empty((*w.shape[:3], len(met)), self.dtype)
            for n, tap in enumerate(met):
                made[..., n] = w[..., tap]
            turned.append(made.reshape(*w.shape[:2], -1))
        return turned

    def _turn(
        self, filters: list[Array], maps: Array, cols: Array, back: Rows, images: int
    ) -> None:
        """Rows `back` become the convolution of upstream maps with the turned filters."""
        layout, width = self.layout, images * _places(self.layout.grid)
        first, outputs = layout.margin, layout.w[0]
        for row, turned, met in zip(back.rows, filters, layout.taps_of_phases, strict=True):
            moved = cols[: outputs * len(met) * width].reshape(outputs, len(met), width)
            for n, tap in enumerate(met):
                start = first - layout.taps[tap][1]
                moved[:, n] = maps[:, start : start + width]
            result = row[:, first : first + width].reshape(self.groups, -1, width)
            _multiply(turned, moved.reshape(self.groups, -1, width), result)

    def _unfolded(self, rows: Rows, cols: Array, images: Array) -> Array:
        """The columns (G, K, places) of a block: for a kernel of 1 x 1 the rows as they are."""
        layout = self.layout
        rows.put(images)
        if len(layout.taps) == 1 and not layout.margin and not layout.dense:
            width = len(images) * _places(layout.grid)
            return rows.rows[0, :, :width].reshape(self.groups, -1, width)
        columns = self._columns_of(cols, layout.x[1], len(images))
        rows.unfold(columns, len(images))
        return columns

    # ---- buffers, one for each thread

    def _each(self, make: Any, shape: Shape, times: int = 0) -> list[Array]:
        return [make(shape, self.dtype) for _ in range(times or self.threads)]

    def _rows(self) -> list[Rows]:
        return [Rows(self.mem, self.layout, self.dtype) for _ in range(self.threads)]

    def _columns(self) -> list[Array]:
        layout = self.layout
        places = layout.images * _places(layout.places)
        return self._each(self.mem.empty, (layout.x[1] * len(layout.taps) * places,))

    def _columns_of(self, cols: Array, channels: int, images: int) -> Array:
        """(G, K, places), for so many images."""
        height, width = channels * len(self.layout.taps), images * _places(self.layout.places)
        return cols[: height * width].reshape(self.groups, height // self.groups, width)

    def _maps(self) -> list[Array]:
        """Rows (O, places) of outputs, with margins; 0 at the places that are none."""
        layout = self.layout
        width = layout.images * _places(layout.places) + 2 * layout.margin
        return self._each(self.mem.zeros, (layout.w[0], width))

    def _matrix_of(self, maps: Array, block: slice) -> tuple[Array, Array]:
        """Maps of a block as (G, M, places), and the outputs among them, (B, O, OH, OW)."""
        (oh, ow), (lines, pitch), first = self.layout.at.out, self.layout.places, self.layout.margin
        images = block.stop - block.start
        width = images * lines * pitch
        rows = maps[:, first : first + width]
        outputs = rows.reshape(len(maps), images, lines, pitch)[:, :, :oh, :ow]
        return rows.reshape(*self.w.shape[:2], width), outputs.transpose(1, 0, 2, 3)


def _multiply(a: Array, b: Array, out: Array) -> None:
    """a @ b; of one column and one row a product without sums, for which BLAS takes longer."""
    if a.shape[-1] == 1:
        np.multiply(a, b, out=out)
    else:
        np.matmul(a, b, out=out)
