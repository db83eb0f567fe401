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
output alone, OH x OW instead of LINES x PITCH, and the copies have gaps.  Where they would not be
too many the gradient of x, to which each column is added, still has the places of lines.

**Products.**  cols (G, K, places) are made block by block and stay in a cache, for backward again:

    maps = w @ cols              gw^T += cols @ gmaps^T

The gradient of x is col2im(w^T @ gmaps), or where that has the shorter columns a convolution of the
upstream gradient with turned weights: gx[place] = sum over taps of w^T @ gmaps[place - tap].

Threads share the blocks.  Sums over blocks are those of up to `SHARES` shares, so that their bits
do not depend on how many threads there are.

Source: Chellapilla, Puri, Simard, "High performance convolutional neural networks for document
processing", IWFHR 2006, for im2col and the product.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tinygraph.memory import Memory
from tinygraph.ops.shared.launch import remembered
from tinygraph.ops.shared.windows import Windows2d
from tinygraph.shapes import Array, Pair, Shape, Windows
from tinygraph.threads import share_out

COLUMN_BYTES = 2 << 20  # of a block: about what a core's caches hold
SHARES = 4  # of the blocks, at most
WORTH_SHARING = 1 << 25  # multiplications below which threads cost more than they save
# Places of a line and its zeros, for each output: with more, outputs alone.  col2im gains more by
# copies without gaps, for it adds.
MOST_ZEROS, MOST_ZEROS_TO_FOLD = 1.6, 2.5

# Taps of an axis that meet pixels of the same rest modulo the stride, which are evenly spaced: that
# rest, which taps, how many, the move of the first, and from one to the next.
AxisTaps = tuple[int, slice, int, int, int]


class Phase:
    """Pixels (i::stride, j::stride) in a row of their own, and the taps that meet them.

    Attributes
    ----------
    rest : i and j
    taps : slices of KH and KW
    number : how many these are, on each axis
    move : of the row, for the first of these taps
    steps : from its move to that of the tap below, and of the tap on its right
    """

    def __init__(self, rows: AxisTaps, columns: AxisTaps, pitch: int) -> None:
        self.rest = rows[0], columns[0]
        self.taps = rows[1], columns[1]
        self.number = rows[2], columns[2]
        self.move = rows[3] * pitch + columns[3]
        self.steps = rows[4] * pitch, columns[4]


class Layout:
    """Where the pixels of a block of images lie, and which of them a tap meets."""

    def __init__(
        self, at: Windows2d, x: Shape, w: Shape, itemsize: int, most_zeros: float = MOST_ZEROS
    ) -> None:
        self.at, self.x, self.w, self.itemsize = at, x, w, itemsize
        stride = at.numbers("stride")
        steps = [
            [(offset * axis.dilation - axis.before) // axis.stride for offset in range(axis.kernel)]
            for axis in at
        ]
        self.data: Pair = -(-x[2] // stride[0]), -(-x[3] // stride[1])  # of the largest phase
        self.grid: Pair = (  # LINES and PITCH
            _long_enough(self.data[0], at.out[0], steps[0]),
            _long_enough(self.data[1], at.out[1], steps[1]),
        )
        pitch = self.grid[1]
        self.phases = [
            Phase(i, j, pitch) for i in _axis_taps(at.rows) for j in _axis_taps(at.columns)
        ]
        self.kernel: Pair = at.rows.kernel, at.columns.kernel
        self.margin = max(abs(i * pitch + j) for i in steps[0] for j in steps[1])
        self.dense = _places(self.grid) > most_zeros * max(1, _places(at.out))
        self.places: Pair = at.out if self.dense else self.grid
        each = _places(self.kernel) * _places(self.places)  # of the columns of an image's channel
        self.worth_sharing = x[0] * w[0] * w[1] * each >= WORTH_SHARING
        blocks = -(-x[0] // max(1, COLUMN_BYTES // max(1, x[1] * each * itemsize)))
        if self.worth_sharing:  # an even number, for as much work in each of two threads
            blocks = min(blocks + blocks % 2, x[0])
        self.blocks = blocks
        self.images = -(-x[0] // max(1, blocks))  # of the largest block
        self.shares = min(blocks, SHARES)

    @property
    def outputs(self) -> Shape:
        return self.x[0], self.w[0], *self.at.out

    @cached_property
    def to_fold(self) -> Layout:
        """For the gradient of x."""
        if not self.dense:
            return self
        return Layout(self.at, self.x, self.w, self.itemsize, MOST_ZEROS_TO_FOLD)

    @cached_property
    def length(self) -> int:
        """Of a row, with its margins."""
        return self.images * _places(self.grid) + 2 * self.margin

    def of_share(self, share: int) -> Iterator[slice]:
        """The images of each block of a share."""
        first, stop = (self.blocks * n // self.shares for n in (share, share + 1))
        for block in range(first, stop):
            yield slice(*(self.x[0] * n // self.blocks for n in (block, block + 1)))


def _axis_taps(axis: Windows) -> Iterator[AxisTaps]:
    """The taps offset * dilation - before, phase by phase."""
    starts = [offset * axis.dilation - axis.before for offset in range(axis.kernel)]
    period = axis.stride // math.gcd(axis.stride, axis.dilation)  # taps until the rest comes again
    step = period * axis.dilation // axis.stride
    for first, start in enumerate(starts[:period]):
        taps, number = slice(first, None, period), len(starts[first::period])
        yield start % axis.stride, taps, number, start // axis.stride, step


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
        for row, phase in zip(self.rows, layout.phases, strict=True):
            i, j = phase.rest
            pixels = images[:, :, i::down, j::right].transpose(1, 0, 2, 3)
            yield pixels, self._seen(row, 0, len(images), pixels.shape[2:])

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

    def _by_phase(self, cols: Array, images: int) -> Iterator[tuple[Array, Array, Phase]]:
        """For each row the columns (C, KH', KW', B, *places) of its taps."""
        layout = self.layout
        by_tap = cols.reshape(layout.x[1], *layout.kernel, images, *layout.places)
        for row, phase in zip(self.rows, layout.phases, strict=True):
            yield row, by_tap[:, phase.taps[0], phase.taps[1]], phase

    def unfold(self, cols: Array, images: int) -> None:
        """Write the columns (C * KH * KW, places) of so many images."""
        layout = self.layout
        lines, pitch = layout.grid
        for row, columns, phase in self._by_phase(cols, images):
            steps = *phase.steps, lines * pitch, pitch, 1
            columns[...] = moved(row, layout.margin + phase.move, columns.shape, steps)

    def fold(self, cols: Array, images: int) -> None:
        """The rows become the sums of the columns that meet each pixel."""
        self.rows[...] = 0
        for row, columns, phase in self._by_phase(cols, images):
            for i, j in np.ndindex(columns.shape[1:3]):
                move = phase.move + i * phase.steps[0] + j * phase.steps[1]
                places = self._seen(row, move, images, self.layout.places)
                places += columns[:, i, j]


def moved(row: Array, first: int, shape: Shape, steps: Sequence[int]) -> Array:
    """A row (C, L) seen as (C, ...): from place `first` on, and so many places for each index.

    >>> moved(np.arange(8).reshape(1, 8), 1, (1, 2, 3), (2, 1)).tolist()
    [[[1, 2, 3], [3, 4, 5]]]
    """
    each = row.itemsize
    strides = row.strides[0], *[step * each for step in steps]
    return np.ndarray(shape, row.dtype, row, first * each, strides)


class Convolution:
    """The convolution of a layout, with buffers for as many threads as share its blocks."""

    def __init__(self, mem: Memory, layout: Layout, groups: int, w: Array) -> None:
        self.mem, self.layout, self.groups, self.dtype = mem, layout, groups, w.dtype
        workers = mem.workers if layout.worth_sharing else 1
        self.threads = max(1, min(workers, layout.shares))
        self.w = w.reshape(groups, len(w) // groups, -1)  # (G, M, K)
        self.turns = not layout.dense and len(w) <= layout.x[1]

    def forward(self, x: Array, b: Array | None) -> Array:
        """y (N, O, OH, OW)."""
        layout = self.layout
        y = self.mem.empty(layout.outputs, self.dtype)
        rows, cols, maps = self._rows(), self._columns(), self._maps(self.mem.empty)
        bias = None if b is None else b.reshape(*self.w.shape[:2], 1)

        def work(thread: int, share: int) -> None:
            for block in layout.of_share(share):
                columns = self._unfolded(rows[thread], cols[thread], x[block])
                result, images = self._matrix_of(maps[thread], block)
                _multiply(self.w, columns, result)
                if bias is not None:
                    result += bias
                y[block] = images

        share_out(layout.shares, self.threads, work)
        return y

    def backward(self, gy: Array, x: Array | None, of_x: bool) -> tuple[Array | None, Array | None]:
        """gx, where it is wanted, and gw, where x is given."""
        layout, mem = self.layout, self.mem
        if of_x and layout.to_fold.dense is not layout.dense:
            alone = Convolution(mem, layout.to_fold, self.groups, self.w.reshape(layout.w))
            gx, _ = alone.backward(gy, None, True)
            return gx, None if x is None else self.backward(gy, x, False)[1]
        gx = mem.empty(layout.x, self.dtype) if of_x else None
        of_w = self.w.transpose(0, 2, 1).shape  # (G, K, M): BLAS is slow where the other is summed
        parts = [] if x is None else self._each(mem.empty, of_w, times=layout.shares)
        terms = [] if x is None else self._each(mem.empty, of_w)
        rows = [] if x is None else self._rows()
        back, cols = self._rows() if of_x else [], self._columns()
        maps = self._maps(mem.zeros)  # 0 at the places that are no outputs
        filters = self._turned_filters() if of_x and self.turns else []

        def work(thread: int, share: int) -> None:
            for number, block in enumerate(layout.of_share(share)):
                upstream, images = self._matrix_of(maps[thread], block)
                images[...] = gy[block]
                if x is not None:
                    columns = self._unfolded(rows[thread], cols[thread], x[block])
                    part = terms[thread] if number else parts[share]
                    _multiply(columns, upstream.transpose(0, 2, 1), part)
                    if number:
                        parts[share] += part
                if gx is not None and self.turns:
                    self._turn(filters, maps[thread], cols[thread], back[thread], len(images))
                    back[thread].take(gx[block])
                elif gx is not None:
                    columns = self._columns_of(cols[thread], layout.x[1], len(images))
                    _multiply(self.w.transpose(0, 2, 1), upstream, columns)
                    back[thread].fold(columns, len(images))
                    back[thread].take(gx[block])

        share_out(layout.shares, self.threads, work)
        return gx, None if x is None else self._sum(parts)

    def _sum(self, parts: list[Array]) -> Array:
        gw = self.mem.zeros(self.layout.w, self.dtype)
        if parts:  # there are images
            total, *others = parts
            for part in others:
                total += part
            gw.reshape(self.w.shape)[...] = total.transpose(0, 2, 1)
        return gw

    def _turned_filters(self) -> list[Array]:
        """(G, C/G, M * taps) for each phase, of the taps that meet it."""
        (groups, filters, _), kernel = self.w.shape, self.layout.kernel
        w = self.w.reshape(groups, filters, -1, *kernel).swapaxes(1, 2)  # (G, C/G, M, KH, KW)
        turned = []
        for phase in self.layout.phases:
            met = w[..., phase.taps[0], phase.taps[1]]
            made = self.mem.empty(met.shape, self.dtype)
            made[...] = met
            turned.append(made.reshape(*w.shape[:2], -1))
        return turned

    def _turn(
        self, filters: list[Array], maps: Array, cols: Array, back: Rows, images: int
    ) -> None:
        """Rows `back` become the convolution of upstream maps with the turned filters."""
        layout, width = self.layout, images * _places(self.layout.grid)
        first, outputs = layout.margin, layout.w[0]
        for row, turned, phase in zip(back.rows, filters, layout.phases, strict=True):
            shape = outputs, *phase.number, width
            columns = cols[: math.prod(shape)].reshape(shape)
            steps = -phase.steps[0], -phase.steps[1], 1
            columns[...] = moved(maps, first - phase.move, columns.shape, steps)
            result = row[:, first : first + width].reshape(self.groups, -1, width)
            _multiply(turned, columns.reshape(self.groups, -1, width), result)

    def _unfolded(self, rows: Rows, cols: Array, images: Array) -> Array:
        """The columns (G, K, places) of a block: for a kernel of 1 x 1 the rows as they are."""
        layout = self.layout
        rows.put(images)
        if layout.kernel == (1, 1) and not layout.margin and not layout.dense:
            width = len(images) * _places(layout.grid)
            return rows.rows[0, :, :width].reshape(self.groups, -1, width)
        columns = self._columns_of(cols, layout.x[1], len(images))
        rows.unfold(columns, len(images))
        return columns

    # ---- buffers, one for each thread

    def _each(self, make: Any, shape: Shape, times: int | None = None) -> list[Array]:
        return [make(shape, self.dtype) for _ in range(self.threads if times is None else times)]

    def _rows(self) -> list[Rows]:
        return [Rows(self.mem, self.layout, self.dtype) for _ in range(self.threads)]

    def _columns(self) -> list[Array]:
        layout = self.layout
        places = layout.images * _places(layout.places)
        return self._each(self.mem.empty, (layout.x[1] * _places(layout.kernel) * places,))

    def _columns_of(self, cols: Array, channels: int, images: int) -> Array:
        """(G, K, places), for so many images."""
        height, width = channels * _places(self.layout.kernel), images * _places(self.layout.places)
        return cols[: height * width].reshape(self.groups, height // self.groups, width)

    def _maps(self, make: Any) -> list[Array]:
        """Rows (O, places) of outputs, with margins."""
        layout = self.layout
        width = layout.images * _places(layout.places) + 2 * layout.margin
        return self._each(make, (layout.w[0], width))

    def _matrix_of(self, maps: Array, block: slice) -> tuple[Array, Array]:
        """Maps of a block as (G, M, places), and the outputs among them, (B, O, OH, OW)."""
        (oh, ow), (lines, pitch), first = self.layout.at.out, self.layout.places, self.layout.margin
        images = block.stop - block.start
        width = images * lines * pitch
        rows = maps[:, first : first + width]
        outputs = rows.reshape(len(maps), images, lines, pitch)[:, :, :oh, :ow]
        return rows.reshape(*self.w.shape[:2], width), outputs.transpose(1, 0, 2, 3)


def _multiply(a: Array, b: Array, out: Array) -> None:
    """a @ b; of one column and one row a product without sums, for which BLAS takes longer.

    While np.matmul makes a result of 500 numbers or fewer, no other thread runs: np.dot lets them.
    """
    if a.shape[-1] == 1:
        np.multiply(a, b, out=out)
    elif len(a) == 1 and out.size <= 500 and out.flags.c_contiguous:
        np.dot(a[0], b[0], out=out[0])
    else:
        np.matmul(a, b, out=out)
