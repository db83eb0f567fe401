"""Images of a convolution as rows, and as the columns of im2col, in numpy.

    N C H W    batch, input channels, height, width        OH OW  output size
    O KH KW    output channels, kernel size

A block of images lies in one long row for each channel, with zeros between the lines of pixels and
between the images.  Two images of 2 x 3, for a kernel of 3 x 3 and a padding of 1:

    0 0 0 0 0 | a b c 0  d e f 0  0 0 0 0 | g h i 0  j k l 0  0 0 0 0 | 0 0 0 0 0
     margin                  one image, LINES x PITCH                   margin

The zeros after a line are the padding on its right, and on the left of the next line.  So each row
of im2col, the pixels that tap (i, j) of the kernel meets at every position, is this row moved by
i * PITCH + j - const: a copy without gaps.  col2im sees all taps moved back, and adds them up.
Results at the places of zeros are computed and left out; an upstream gradient is 0 there.

With a stride, pixels (h, w) with the same (h mod stride, w mod stride), a phase, have a row of
their own: in it the taps move by whole steps again.

Where the zeros would be many (a large kernel without padding), the columns have a place for each
output alone, OH x OW instead of LINES x PITCH, and the copies have gaps.  Where they would not be
too many the gradient of x, to which each column is added, still has the places of lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tinygraph.engine import Array, Pair, Shape
from tinygraph.ops.common import remembered
from tinygraph.ops.common.blocks import even
from tinygraph.ops.windows.sliding import Windows
from tinygraph.ops.windows.windows import Windows2d

BLOCK_BYTES = 2 << 20  # of a block's columns and maps: about what a core's caches hold
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
        self.dense = places_of(self.grid) > most_zeros * max(1, places_of(at.out))
        self.places: Pair = at.out if self.dense else self.grid
        self.lead = 0 if self.dense else self.margin  # zeros before columns that are folded
        each = places_of(self.kernel) * places_of(
            self.places
        )  # of the columns of an image's channel
        self.worth_sharing = x[0] * w[0] * w[1] * each >= WORTH_SHARING
        blocks = -(-x[0] // max(1, BLOCK_BYTES // max(1, self.bytes_of_image)))
        self.blocks = blocks = even(blocks, x[0]) if self.worth_sharing else blocks
        self.images = -(-x[0] // max(1, blocks))  # of the largest block
        self.shares = min(blocks, SHARES)

    @property
    def bytes_of_image(self) -> int:
        """Of its columns, and of its maps."""
        rows = self.x[1] * places_of(self.kernel) + self.w[0]
        return rows * places_of(self.places) * self.itemsize

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
        return self.images * places_of(self.grid) + 2 * self.margin

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


def places_of(size: Shape) -> int:
    return size[0] * size[1]


@remembered
def layout_of(at: Windows2d, x: Shape, w: Shape, itemsize: int) -> Layout:
    """Remembered: a network asks for the same ones in every step."""
    return Layout(at, x, w, itemsize)


class Rows:
    """Images (N, C, H, W) of one block after another, as rows and as columns."""

    def __init__(self, make: Any, layout: Layout, dtype: Any) -> None:
        self.layout = layout
        self.rows = make((len(layout.phases), layout.x[1], layout.length), dtype)

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
        if len(self.layout.phases) < places_of(self.layout.at.numbers("stride")):
            images[...] = 0
        for phase, places in self._pixels(images):
            phase[...] = places

    def unfold(self, cols: Array, images: int) -> None:
        """Write the columns (C * KH * KW, places) of so many images."""
        layout = self.layout
        lines, pitch = layout.grid
        by_tap = cols.reshape(layout.x[1], *layout.kernel, images, *layout.places)
        for row, phase in zip(self.rows, layout.phases, strict=True):
            columns = by_tap[:, phase.taps[0], phase.taps[1]]
            steps = layout.length, *phase.steps, lines * pitch, pitch, 1
            columns[...] = moved(row, layout.margin + phase.move, columns.shape, steps)

    def fold(self, cols: Array, images: int) -> None:
        """The rows become the sums of the columns that meet each pixel.

        Columns with places of lines begin with a margin of zeros, and there is one behind the last.
        So all taps of a pixel are seen at once, each moved back, and one call adds them up.
        """
        layout = self.layout
        if layout.dense:
            self._fold_dense(cols, images)
            return
        width, lead = images * places_of(layout.grid), layout.lead
        each, (height, kw) = lead + width, layout.kernel
        cols[layout.x[1] * height * kw * each :][:lead] = 0
        for row, phase in zip(self.rows, layout.phases, strict=True):
            (down, right), (i, j) = phase.steps, phase.taps
            first = (i.start * kw + j.start) * each + lead - phase.move
            steps = height * kw * each, i.step * kw * each - down, j.step * each - right, 1
            seen = moved(cols, first, (len(row), *phase.number, width), steps)
            if phase.number == (1, 1):
                row[:, lead:each] = seen[:, 0, 0]
            else:
                np.sum(seen, axis=(1, 2), out=row[:, lead:each])

    def _fold_dense(self, cols: Array, images: int) -> None:
        layout = self.layout
        self.rows[...] = 0
        columns = cols[: layout.x[1] * places_of(layout.kernel) * images * places_of(layout.places)]
        by_tap = columns.reshape(layout.x[1], *layout.kernel, images, *layout.places)
        for row, phase in zip(self.rows, layout.phases, strict=True):
            met = by_tap[:, phase.taps[0], phase.taps[1]]
            for i, j in np.ndindex(phase.number):
                move = phase.move + i * phase.steps[0] + j * phase.steps[1]
                places = self._seen(row, move, images, layout.places)
                places += met[:, i, j]


def moved(array: Array, first: int, shape: Shape, steps: Sequence[int]) -> Array:
    """An array, seen from one place of its memory on, and so many places further for each index.

    >>> moved(np.arange(8), 1, (2, 3), (2, 1)).tolist()
    [[1, 2, 3], [3, 4, 5]]
    """
    each = array.itemsize
    return np.ndarray(shape, array.dtype, array, first * each, [step * each for step in steps])
