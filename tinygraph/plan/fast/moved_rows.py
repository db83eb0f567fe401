"""Convolution without columns: a row of im2col is a row of the images, seen from another place.

    C H W      input channels, height, width          O      output channels
    K          C * KH * KW, what a filter sees        p      a place in the rows of a block's images

    maps[o, p] = b[o] + sum over k of w[o, k] * rows[moved[k] + p]
    gw[o, k]   = sum over p of gmaps[o, p] * rows[moved[k] + p]
    gx[c, p]   = the first with gmaps in the place of rows, and with the turned filters of c

Images lie in rows with zeros between their lines and, with a stride, in a row for each phase:
ops/shared/convolution_rows.py.  numpy copies each row of im2col, for BLAS wants all of them in
equal steps; these loops take a list of places in their stead.  They hold four outputs, or four
times three sums, while they read three of the rows: a loop that held one would wait for memory.

Source: Georganas et al., "Anatomy of high-performance deep learning convolutions on SIMD
architectures", SC 2018, for direct convolution with several outputs held at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tinygraph.memory import Memory
from tinygraph.ops.shared.convolution_rows import Layout, Rows, places_of
from tinygraph.ops.shared.launch import remembered
from tinygraph.ops.shared.windows import Windows2d
from tinygraph.plan.fast.jit import loop
from tinygraph.shapes import Array, Shape
from tinygraph.threads import share_out

OUTPUTS, TERMS = 4, 3  # which the loops take at once: of others, rows of zeros make up for the rest
CHUNK = 1024  # places: so many of four outputs, and of what they see, stay in the first cache
LINE, PAGE = 64, 4096  # bytes of a cache line, and of a page of memory
MOST_ZEROS = 2.5  # places for each output, with the zeros: beyond, numpy's columns have fewer


@loop("x1 i1 x2 x1 i i =x2")
def products(rows: Array, moved: Array, w: Array, b: Array, first: int, n: int, out: Array) -> None:
    """out[o, first + p] = b[o] + sum over k of w[o, k] * rows[moved[k] + p], for p below n.

    >>> out = np.empty((4, 2))
    >>> w = np.array([[1.0, 10.0, 0.0], *3 * [[0.0] * 3]])
    >>> products(np.arange(4.0), np.array([0, 2, 0]), w, np.zeros(4), 0, 2, out)
    >>> out[0]
    array([20., 31.])
    """
    for begin in range(0, n, CHUNK):
        size = min(CHUNK, n - begin)
        at = first + begin
        for o in range(0, len(w), 4):
            y0, y1 = out[o, at : at + size], out[o + 1, at : at + size]
            y2, y3 = out[o + 2, at : at + size], out[o + 3, at : at + size]
            b0, b1, b2, b3 = b[o], b[o + 1], b[o + 2], b[o + 3]
            for p in range(size):
                y0[p], y1[p], y2[p], y3[p] = b0, b1, b2, b3
            for k in range(0, w.shape[1], 3):
                from0, from1, from2 = moved[k] + begin, moved[k + 1] + begin, moved[k + 2] + begin
                x0, x1, x2 = (
                    rows[from0 : from0 + size],
                    rows[from1 : from1 + size],
                    rows[from2 : from2 + size],
                )
                w00, w01, w02 = w[o, k], w[o, k + 1], w[o, k + 2]
                w10, w11, w12 = w[o + 1, k], w[o + 1, k + 1], w[o + 1, k + 2]
                w20, w21, w22 = w[o + 2, k], w[o + 2, k + 1], w[o + 2, k + 2]
                w30, w31, w32 = w[o + 3, k], w[o + 3, k + 1], w[o + 3, k + 2]
                for p in range(size):
                    u0, u1, u2 = x0[p], x1[p], x2[p]  # before anything is written
                    y0[p] = y0[p] + w00 * u0 + w01 * u1 + w02 * u2
                    y1[p] = y1[p] + w10 * u0 + w11 * u1 + w12 * u2
                    y2[p] = y2[p] + w20 * u0 + w21 * u1 + w22 * u2
                    y3[p] = y3[p] + w30 * u0 + w31 * u1 + w32 * u2


@loop("x1 i1 x2 i i =x2", reorder=True)
def sums(rows: Array, moved: Array, g: Array, first: int, n: int, gw: Array) -> None:
    """gw[o, k] += sum over p below n of g[o, first + p] * rows[moved[k] + p].

    >>> gw = np.zeros((4, 3))
    >>> sums(np.arange(4.0), np.array([0, 1, 2]), np.ones((4, 2)), 0, 2, gw)
    >>> gw[0]
    array([1., 3., 5.])
    """
    zero = gw.dtype.type(0)
    for begin in range(0, n, CHUNK):
        size = min(CHUNK, n - begin)
        at = first + begin
        for o in range(0, len(gw), 4):
            g0, g1 = g[o, at : at + size], g[o + 1, at : at + size]
            g2, g3 = g[o + 2, at : at + size], g[o + 3, at : at + size]
            for k in range(0, gw.shape[1], 3):
                from0, from1, from2 = moved[k] + begin, moved[k + 1] + begin, moved[k + 2] + begin
                x0, x1, x2 = (
                    rows[from0 : from0 + size],
                    rows[from1 : from1 + size],
                    rows[from2 : from2 + size],
                )
                s00 = s01 = s02 = s10 = s11 = s12 = zero
                s20 = s21 = s22 = s30 = s31 = s32 = zero
                for p in range(size):
                    s00 += g0[p] * x0[p]
                    s01 += g0[p] * x1[p]
                    s02 += g0[p] * x2[p]
                    s10 += g1[p] * x0[p]
                    s11 += g1[p] * x1[p]
                    s12 += g1[p] * x2[p]
                    s20 += g2[p] * x0[p]
                    s21 += g2[p] * x1[p]
                    s22 += g2[p] * x2[p]
                    s30 += g3[p] * x0[p]
                    s31 += g3[p] * x1[p]
                    s32 += g3[p] * x2[p]
                for i, of_output in enumerate(
                    ((s00, s01, s02), (s10, s11, s12), (s20, s21, s22), (s30, s31, s32))
                ):
                    for j, found in enumerate(of_output):
                        gw[o + i, k + j] += found


LOOPS = products, sums


class MovedLayout(Layout):
    """A layout of a convolution of one group, and where in its rows each k begins."""

    def __init__(self, at: Windows2d, x: Shape, w: Shape, itemsize: int) -> None:
        super().__init__(at, x, w, itemsize, math.inf)
        self.margin = _up(self.margin, LINE // itemsize)

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


class _FlatRows(Rows):
    """Rows that begin at `flat`, with a row of zeros after them; and each phase made up."""

    def __init__(self, zeros: Any, layout: MovedLayout, dtype: Any, multiple: int = 1) -> None:
        self.layout = layout
        channels = _up(layout.x[1], multiple)
        whole = zeros((len(layout.phases) * channels + 1, layout.length), dtype)
        self.flat = whole.reshape(-1)
        self.phases = whole[:-1].reshape(len(layout.phases), channels, layout.length)
        self.rows = self.phases[:, : layout.x[1]]


class MovedRows:
    """The convolution of a layout, with buffers for as many threads as share its blocks."""

    def __init__(self, mem: Memory, layout: MovedLayout, w: Array) -> None:
        self.mem, self.layout, self.filters, self.dtype = mem, layout, w, w.dtype
        workers = mem.workers if layout.worth_sharing else 1
        self.threads = max(1, min(workers, layout.shares))

    def forward(self, x: Array, b: Array | None, leave: Callable[[slice, Array], None]) -> None:
        """`leave(block, maps)` for the maps (O, places) of each block; the next overwrites them."""
        layout, empty = self.layout, self.mem.empty
        w = self._matrix(self.filters.reshape(len(self.filters), -1))
        bias = bias_of(self.mem, b, len(w), self.dtype)
        rows = [self._rows() for _ in range(self.threads)]
        maps = [self._maps(empty, len(w)) for _ in range(self.threads)]

        def work(thread: int, share: int) -> None:
            for block in layout.of_share(share):
                rows[thread].put(x[block])
                given = rows[thread].flat, layout.moved, w, bias, *self._run(block)
                products(*given, maps[thread])
                leave(block, maps[thread])

        share_out(layout.shares, self.threads, work)

    def backward(
        self, x: Array | None, enter: Callable[[int, slice, Array], None], of_x: bool
    ) -> tuple[Array | None, Array | None]:
        """gx, where it is wanted, and gw, where x is given.

        `enter(share, block, maps)` writes the upstream gradient of a block's outputs into its maps.
        """
        layout, mem = self.layout, self.mem
        outputs, of_w = _up(layout.w[0], OUTPUTS), (_up(layout.w[0], OUTPUTS), len(layout.moved))
        gx = mem.empty(layout.x, self.dtype) if of_x else None
        parts = [mem.zeros(of_w, self.dtype) for _ in range(0 if x is None else layout.shares)]
        rows = [self._rows() for _ in range(0 if x is None else self.threads)]
        back = [self._rows(OUTPUTS) for _ in range(self.threads if of_x else 0)]
        maps = [self._maps(mem.zeros, outputs + 1) for _ in range(self.threads)]
        turned = self._turned() if of_x else []
        none = mem.zeros((_up(layout.x[1], OUTPUTS),), self.dtype)

        def work(thread: int, share: int) -> None:
            upstream = maps[thread]
            for block in layout.of_share(share):
                enter(share, block, upstream)
                if x is not None:
                    rows[thread].put(x[block])
                    given = rows[thread].flat, layout.moved, upstream, *self._run(block)
                    sums(*given, parts[share])
                if gx is not None:
                    flat, into = upstream.reshape(-1), back[thread]
                    phases = zip(layout.moved_back, turned, into.phases, strict=True)
                    for moved, w, row in phases:
                        products(flat, moved, w, none, *self._run(block), row)
                    into.take(gx[block])

        share_out(layout.shares, self.threads, work)
        return gx, None if x is None else self._sum(parts)

    def outputs(self, maps: Array, block: slice) -> Array:
        """The outputs (B, O, OH, OW) among the maps of a block."""
        (oh, ow), (first, width) = self.layout.at.out, self._run(block)
        images = maps[: self.layout.w[0], first : first + width]
        images = images.reshape(len(images), -1, *self.layout.grid)[:, :, :oh, :ow]
        return images.transpose(1, 0, 2, 3)

    def _run(self, block: slice) -> tuple[int, int]:
        """The first place of a block's images, and how many these are."""
        return self.layout.margin, (block.stop - block.start) * places_of(self.layout.grid)

    def _rows(self, multiple: int = 1) -> _FlatRows:
        return _FlatRows(self.mem.zeros, self.layout, self.dtype, multiple)

    def _maps(self, make: Any, outputs: int) -> Array:
        return make((outputs, self.layout.length), self.dtype)

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
