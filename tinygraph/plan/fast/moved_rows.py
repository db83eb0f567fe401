"""Convolution without columns: a row of im2col is a row of the images, seen from another place.

    C H W      input channels, height, width          O      output channels
    K          C * KH * KW, what a filter sees        p      a place in the rows of a block's images

    maps[o, p] = b[o] + sum over k of w[o, k] * rows[moved[k] + p]
    gw[o, k]   = sum over p of gmaps[o, p] * rows[moved[k] + p]
    gx[c, p]   = the first with gmaps in the place of rows, and with the turned filters of c

Images lie in rows with zeros between their lines and, with a stride, in a row for each phase:
ops/windows/convolution_rows.py.  numpy copies each row of im2col, for BLAS wants all of them in
equal steps; the loops of row_loops.py take a list of places in their stead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tinygraph.base.threads import share_out
from tinygraph.engine import Array, Memory, Pair, Shape
from tinygraph.ops.common import remembered
from tinygraph.ops.windows.convolution_rows import Layout, places_of
from tinygraph.ops.windows.windows import Windows2d
from tinygraph.plan.fast.row_loops import products, put, sums, take

OUTPUTS, TERMS = 4, 3  # which the loops take at once: of others, rows of zeros make up for the rest
LINE, PAGE = 64, 4096  # bytes of a cache line, and of a page of memory
MOST_ZEROS = 2.5  # places for each output, with the zeros: beyond, numpy's columns have fewer


class MovedLayout(Layout):
    """A layout of a convolution of one group, and where in its rows each k begins."""

    def __init__(self, at: Windows2d, x: Shape, w: Shape, itemsize: int) -> None:
        super().__init__(at, x, w, itemsize, math.inf)
        self.margin = _up(self.margin, LINE // itemsize)
        self.stride: Pair = at.rows.stride, at.columns.stride

    @cached_property
    def length(self) -> int:
        """Whole cache lines, and never so that all rows begin at the same place of a page.

        The buffers of a plan begin with a cache line, and so do all rows then: a write across two
        lines takes twice as long.
        """
        least = self.images * places_of(self.grid) + 2 * self.margin
        lines = _up(least * self.itemsize, LINE) // LINE
        return (lines + (lines % (PAGE // LINE) == 0)) * LINE // self.itemsize

    @property
    def bytes_of_image(self) -> int:
        """Of its rows and maps."""
        return (len(self.phases) * self.x[1] + self.w[0]) * places_of(self.grid) * self.itemsize

    @property
    def fits(self) -> bool:
        """Whether zeros between the lines are not too many, and there is something to sum."""
        few = places_of(self.grid) <= MOST_ZEROS * places_of(self.at.out)
        return few and 0 not in (*self.x, *self.w)

    @cached_property
    def moved(self) -> Array:
        """For each k, and then of zeros: (K,), made up to a multiple of TERMS."""
        channels = self.x[1]
        found = np.empty((channels, *self.kernel), np.int64)
        for number, phase in enumerate(self.phases):
            first = self.margin + phase.move + number * channels * self.length
            found[:, phase.taps[0], phase.taps[1]] = _places(
                first, (channels, *phase.number), (self.length, *phase.steps)
            )
        return _made_up(found, len(self.phases) * channels * self.length)

    @cached_property
    def moved_back(self) -> list[Array]:
        """For each phase and its turned filters, the same in the maps: (O * taps,)."""
        found = []
        for phase in self.phases:
            down, right = phase.steps
            shape = self.w[0], *phase.number
            places = _places(self.margin - phase.move, shape, (self.length, -down, -right))
            found.append(_made_up(places, _up(self.w[0], OUTPUTS) * self.length))
        return found


def _places(first: int, shape: Shape, steps: Sequence[int]) -> Array:
    """first + index times steps, for each index of a shape."""
    return first + np.tensordot(np.array(steps, np.int64), np.indices(shape), 1)


def _made_up(places: Array, zeros: int) -> Array:
    rest = -places.size % TERMS
    return np.append(places.reshape(-1), np.full(rest, zeros, np.int64))


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


@remembered
def moved_layout_of(at: Windows2d, x: Shape, w: Shape, itemsize: int) -> MovedLayout:
    """Remembered: `moved` takes longer than a small convolution."""
    return MovedLayout(at, x, w, itemsize)


def bias_of(mem: Memory, b: Array | None, size: int, dtype: Any) -> Array:
    """b and then zeros, in a buffer of so many."""
    bias = mem.zeros((size,), dtype)
    if b is not None:
        bias[: len(b)] = b
    return bias


class MovedRows:
    """The convolution of a layout, with buffers for as many threads as share its blocks.

    Images, outputs and their gradients are contiguous.
    """

    def __init__(self, mem: Memory, layout: MovedLayout, w: Array) -> None:
        self.mem, self.layout, self.filters, self.dtype = mem, layout, w, w.dtype
        self.grid = layout.margin, *layout.grid
        workers = mem.workers if layout.worth_sharing else 1
        self.threads = max(1, min(workers, layout.shares))

    def forward(self, x: Array, b: Array | None, leave: Callable[[slice, Array], None]) -> None:
        """`leave(block, maps)` for the maps (O, places) of each block; the next overwrites them."""
        layout = self.layout
        w = self._matrix(self.filters.reshape(len(self.filters), -1))
        bias = bias_of(self.mem, b, len(w), self.dtype)
        rows = self._rows(len(layout.phases) * layout.x[1])
        maps = self._rows(len(w))

        def work(thread: int, share: int) -> None:
            for block in layout.of_share(share):
                self._put(x[block], rows[thread])
                flat = rows[thread].reshape(-1)
                products(flat, layout.moved, w, bias, *self._run(block), maps[thread])
                leave(block, maps[thread])

        share_out(layout.shares, self.threads, work)

    def backward(
        self, x: Array | None, enter: Callable[[int, slice, Array], None], of_x: bool
    ) -> tuple[Array | None, Array | None]:
        """gx, where it is wanted, and gw, where x is given.

        `enter(share, block, maps)` writes the upstream gradient of a block's outputs into its maps
        (O, places), and 0 everywhere else.
        """
        layout, mem = self.layout, self.mem
        outputs, channels = _up(layout.w[0], OUTPUTS), _up(layout.x[1], OUTPUTS)
        gx = mem.empty(layout.x, self.dtype) if of_x else None
        shares = 0 if x is None else layout.shares
        parts = [mem.zeros((outputs, len(layout.moved)), np.float64) for _ in range(shares)]
        rows = [] if x is None else self._rows(len(layout.phases) * layout.x[1])
        back = self._rows(channels) if of_x else []
        maps = self._rows(layout.w[0], outputs - layout.w[0] + 1)
        turned = self._turned() if of_x else []
        none = mem.zeros((channels,), self.dtype)

        def work(thread: int, share: int) -> None:
            upstream = maps[thread]
            for block in layout.of_share(share):
                enter(share, block, upstream)
                if x is not None:
                    self._put(x[block], rows[thread])
                    flat = rows[thread].reshape(-1)
                    sums(flat, layout.moved, upstream, *self._run(block), parts[share])
                if gx is not None:
                    if len(layout.phases) < places_of(layout.stride):
                        gx[block] = 0  # some pixels no tap meets
                    flat, into = upstream.reshape(-1), back[thread]
                    for phase, moved, w in zip(
                        layout.phases, layout.moved_back, turned, strict=True
                    ):
                        products(flat, moved, w, none, *self._run(block), into)
                        take(into, *phase.rest, *layout.stride, *self.grid, gx[block])

        share_out(layout.shares, self.threads, work)
        return gx, None if x is None else self._sum(parts)

    def take(self, maps: Array, outputs: Array) -> None:
        """Write the outputs of a block, (M, O, OH, OW), that are among its maps."""
        take(maps, 0, 0, 1, 1, *self.grid, outputs)

    def put(self, outputs: Array, maps: Array) -> None:
        """The reverse, and 0 everywhere else."""
        put(outputs, 0, 0, 1, 1, *self.grid, maps)

    def _put(self, images: Array, rows: Array) -> None:
        channels = self.layout.x[1]
        for number, phase in enumerate(self.layout.phases):
            into = rows[number * channels : (number + 1) * channels]
            put(images, *phase.rest, *self.layout.stride, *self.grid, into)

    def _run(self, block: slice) -> tuple[int, int]:
        """The first place of a block's images, and how many these are."""
        return self.layout.margin, (block.stop - block.start) * places_of(self.layout.grid)

    def _rows(self, written: int, zeros: int = 1) -> list[Array]:
        """For each thread so many rows that will be written, and after them so many zeros."""
        shape = written + zeros, self.layout.length
        made = [self.mem.empty(shape, self.dtype) for _ in range(self.threads)]
        for each in made:
            each[written:] = 0
        return made

    def _matrix(self, w: Array) -> Array:
        """w, made up with zeros to multiples of OUTPUTS and TERMS."""
        made = self.mem.zeros((_up(len(w), OUTPUTS), _up(w.shape[1], TERMS)), self.dtype)
        made[: len(w), : w.shape[1]] = w
        return made

    def _turned(self) -> list[Array]:
        """(C, O * taps) for each phase, of the taps that meet it."""
        w = self.filters.swapaxes(0, 1)
        phases = [w[:, :, phase.taps[0], phase.taps[1]] for phase in self.layout.phases]
        return [self._matrix(met.reshape(len(met), -1)) for met in phases]

    def _sum(self, parts: list[Array]) -> Array:
        gw = self.mem.empty(self.layout.w, self.dtype)
        total, *others = parts
        for part in others:
            total += part
        gw.reshape(len(gw), -1)[...] = total[: len(gw), : gw[0].size]
        return gw
