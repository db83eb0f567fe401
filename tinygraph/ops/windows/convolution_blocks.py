"""Convolution in numpy, as one matrix product for a block of images.

    N C H W    batch, input channels, height, width        G      groups
    O KH KW    output channels, kernel size                OH OW  output size
    K = C/G * KH * KW                                      M = O/G

Images lie in rows, of which columns are copies without gaps: see convolution_rows.py.  The columns
cols (G, K, places) are made block by block and stay in a cache, for backward again:

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
from typing import Any

import numpy as np

from tinygraph.base.threads import share_out
from tinygraph.engine import Array, Memory, Shape
from tinygraph.ops.windows.convolution_rows import Layout, Rows, moved, places_of


class Convolution:
    """The convolution of a layout, with buffers for as many threads as share its blocks."""

    def __init__(self, mem: Memory, layout: Layout, groups: int, w: Array) -> None:
        self.mem, self.layout, self.groups, self.dtype = mem, layout, groups, w.dtype
        workers = mem.workers if layout.worth_sharing else 1
        self.threads = max(1, min(workers, layout.shares))
        self.w = w.reshape(groups, len(w) // groups, math.prod(layout.w[1:]))  # (G, M, K)
        self.turns = not layout.dense and len(w) <= layout.x[1]

    def forward(self, x: Array, b: Array | None) -> Array:
        """y (N, O, OH, OW)."""
        layout = self.layout
        y = self.mem.empty(layout.outputs, self.dtype)
        if not self.w.size:  # nothing to sum
            y[...] = 0 if b is None else b[:, None, None]
            return y
        rows, cols, maps = self._rows(self.mem.zeros), self._columns(), self._maps(self.mem.empty)
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
        if not self.w.size:
            return mem.zeros(layout.x, self.dtype), mem.zeros(layout.w, self.dtype)
        if of_x and layout.to_fold.dense is not layout.dense:
            alone = Convolution(mem, layout.to_fold, self.groups, self.w.reshape(layout.w))
            gx, _ = alone.backward(gy, None, True)
            return gx, None if x is None else self.backward(gy, x, False)[1]
        gx = mem.empty(layout.x, self.dtype) if of_x else None
        of_w = self.w.transpose(0, 2, 1).shape  # (G, K, M): BLAS is slow where the other is summed
        parts = [] if x is None else self._each(mem.empty, of_w, times=layout.shares)
        terms = [] if x is None else self._each(mem.empty, of_w)
        rows = [] if x is None else self._rows(mem.zeros)
        back = self._rows(mem.empty) if of_x else []  # all that is read of them is written before
        cols = self._columns()
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
                    upstream = self._with_margin(maps[thread], len(images))
                    columns = self._columns_of(cols[thread], upstream.shape[-1])
                    _multiply(self.w.transpose(0, 2, 1), upstream, columns)
                    back[thread].fold(cols[thread], len(images))
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
        layout, width = self.layout, images * places_of(self.layout.grid)
        first, outputs = layout.margin, layout.w[0]
        for row, turned, phase in zip(back.rows, filters, layout.phases, strict=True):
            shape = outputs, *phase.number, width
            columns = cols[: math.prod(shape)].reshape(shape)
            steps = maps.shape[1], -phase.steps[0], -phase.steps[1], 1
            columns[...] = moved(maps, first - phase.move, columns.shape, steps)
            result = row[:, first : first + width].reshape(self.groups, -1, width)
            _multiply(turned, columns.reshape(self.groups, -1, width), result)

    def _unfolded(self, rows: Rows, cols: Array, images: Array) -> Array:
        """The columns (G, K, places) of a block: for a kernel of 1 x 1 the rows as they are."""
        layout = self.layout
        rows.put(images)
        if layout.kernel == (1, 1) and not layout.margin and not layout.dense:
            width = len(images) * places_of(layout.grid)
            return rows.rows[0, :, :width].reshape(self.groups, -1, width)
        columns = self._columns_of(cols, len(images) * places_of(layout.places))
        rows.unfold(columns, len(images))
        return columns

    # ---- buffers, one for each thread

    def _each(self, make: Any, shape: Shape, times: int | None = None) -> list[Array]:
        return [make(shape, self.dtype) for _ in range(self.threads if times is None else times)]

    def _rows(self, make: Any) -> list[Rows]:
        return [Rows(make, self.layout, self.dtype) for _ in range(self.threads)]

    def _columns(self) -> list[Array]:
        layout = self.layout
        each = layout.lead + layout.images * places_of(layout.places)
        size = layout.x[1] * places_of(layout.kernel) * each + layout.lead
        return self._each(self.mem.empty, (size,))

    def _columns_of(self, cols: Array, places: int) -> Array:
        """(G, K, places)."""
        height = self.layout.x[1] * places_of(self.layout.kernel)
        return cols[: height * places].reshape(self.groups, height // self.groups, places)

    def _maps(self, make: Any) -> list[Array]:
        """Rows (O, places) of outputs, with margins."""
        layout = self.layout
        width = layout.images * places_of(layout.places) + 2 * layout.margin
        return self._each(make, (layout.w[0], width))

    def _matrix_of(self, maps: Array, block: slice) -> tuple[Array, Array]:
        """Maps of a block as (G, M, places), and the outputs among them, (B, O, OH, OW)."""
        (oh, ow), (lines, pitch), first = self.layout.at.out, self.layout.places, self.layout.margin
        images = block.stop - block.start
        width = images * lines * pitch
        rows = maps[:, first : first + width]
        outputs = rows.reshape(len(maps), images, lines, pitch)[:, :, :oh, :ow]
        return rows.reshape(*self.w.shape[:2], width), outputs.transpose(1, 0, 2, 3)

    def _with_margin(self, maps: Array, images: int) -> Array:
        """Maps of so many images (G, M, places), with the zeros before them that a fold needs."""
        first, width = self.layout.margin, images * places_of(self.layout.places)
        rows = maps[:, first - self.layout.lead : first + width]
        return rows.reshape(*self.w.shape[:2], self.layout.lead + width)


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
