"""conv + ReLU + max-pool with compiled products and pooling, for any channels, kernel and stride.

    maps = w applied to x                   for a block of images, as in moved_rows.py
    y    = max(0, b + the largest of each window of maps),  and which it was
    g    = gy where a position has won, 0 everywhere else;  gw, gx from g as in moved_rows.py

One pass over the maps, which are still in the cache, takes the maximum, notes its place in one
byte, adds the bias and cuts at 0; numpy needs a pass for each of these, for each position.

Source: ops/windows/conv2d_relu_max_pool2d.py has the derivation, and the same in numpy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from tinygraph.engine import Array, Gradients, Memory, Op, Shape, Spec
from tinygraph.ops.windows.conv2d_relu_max_pool2d import NONE, Conv2dReluMaxPool2d
from tinygraph.plan.code import Code
from tinygraph.plan.fast import row_loops
from tinygraph.plan.fast.jit import PIECE, CompiledBody, Loop, loop, plain
from tinygraph.plan.fast.moved_rows import MovedLayout, MovedRows, bias_of, moved_layout_of
from tinygraph.plan.rewrites.convolution_stage import find_convolution_stages


@cache
def pooling(pool: int) -> Loop:
    """The loop for windows of pool x pool: with a known size its loops need no counting."""

    @loop("x2 i i i x1 =x4 =u4")
    def pool_maps(
        maps: Array, first: int, lines: int, pitch: int, b: Array, y: Array, argmax: Array
    ) -> None:
        """y, argmax (M, D, PH, PW) of maps (D, places) and b (D,).

        Images begin at `first` and have `lines` of `pitch` places.  The first maximum wins; a NaN
        counts as larger than everything.
        """
        zero = b.dtype.type(0)
        for d in range(y.shape[1]):
            bias = b[d] + zero  # not -0: then no sum with it is -0
            for m in range(y.shape[0]):
                for u in range(y.shape[2]):
                    window = maps[d, first + (m * lines + u * pool) * pitch :]
                    for v in range(y.shape[3]):
                        best, winner = window[v * pool], np.int32(0)
                        for i in range(pool):
                            for j in range(pool):
                                other = window[i * pitch + v * pool + j]
                                wins = (not (other <= best)) & (best == best)
                                best = other if wins else best
                                winner = np.int32(i * pool + j) if wins else winner
                        best += bias
                        dead = best <= zero
                        y[m, d, u, v] = zero if dead else best
                        argmax[m, d, u, v] = np.int32(NONE) if dead else winner

    return pool_maps


@cache
def routing(pool: int) -> Loop:
    """The loop of backward for windows of pool x pool."""

    @loop("x4 u4 i i i =x2 =d1", reorder=True)
    def route(
        gy: Array, argmax: Array, first: int, lines: int, pitch: int, maps: Array, gb: Array
    ) -> None:
        """maps (D, places): gy (M, D, PH, PW) where a position has won, else 0; gb += sums.

        A piece of a line is added up in the dtype of gy, in vectors; lines are many, and float64.
        """
        zero = gy.dtype.type(0)
        for d in range(gy.shape[1]):
            for m in range(gy.shape[0]):
                for u in range(gy.shape[2]):
                    upstream, winner = gy[m, d, u], argmax[m, d, u]
                    for i in range(pool):
                        row = maps[d, first + (m * lines + u * pool + i) * pitch :]
                        for v in range(len(upstream)):
                            for j in range(pool):
                                won = winner[v] == i * pool + j
                                row[v * pool + j] = upstream[v] if won else zero
                    for begin in range(0, len(upstream), PIECE):
                        some, of_some = (
                            upstream[begin : begin + PIECE],
                            winner[begin : begin + PIECE],
                        )
                        total = zero
                        for v in range(len(some)):
                            total += some[v] if of_some[v] != NONE else zero
                        gb[d] += total

    return route


class PooledConvolution(CompiledBody, Conv2dReluMaxPool2d):
    """`Conv2dReluMaxPool2d`, block by block."""

    name = Conv2dReluMaxPool2d.name

    def loops(self) -> Sequence[Loop]:
        return pooling(self.pool), routing(self.pool), *row_loops.LOOPS

    def layout(self, x: Shape, w: Shape, itemsize: int) -> MovedLayout:
        return moved_layout_of(self._windows(x, w), x, w, itemsize)

    def forward(self, mem: Memory, x: Array, w: Array, b: Array | None = None) -> tuple[Array, Any]:
        shape, layout = self._pooled(x.shape, w.shape), self.layout(x.shape, w.shape, w.itemsize)
        y, argmax = mem.empty(shape, x.dtype), mem.empty(shape, np.uint8)
        bias, run = bias_of(mem, b, len(w), w.dtype), pooling(self.pool)

        def leave(block: slice, maps: Array) -> None:
            run(maps, layout.margin, *layout.grid, bias, y[block], argmax[block])

        MovedRows(mem, layout, w).forward(plain(x), None, leave)
        return y, (argmax, x, w) if any(mem.needs) else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        argmax, x, w = saved
        layout = self.layout(x.shape, w.shape, w.itemsize)
        gy, sums = plain(gy), mem.zeros((layout.shares, len(w)), np.float64)
        run = routing(self.pool)

        def enter(share: int, block: slice, maps: Array) -> None:
            maps[...] = 0
            run(gy[block], argmax[block], layout.margin, *layout.grid, maps, sums[share])

        gx, gw = MovedRows(mem, layout, w).backward(plain(x) if needs[1] else None, enter, needs[0])
        gb = mem.empty((len(w),), w.dtype)
        gb[...] = sums.sum(axis=0)
        return (gx, gw, gb if True in needs[2:] else None)[: len(needs)]


def pooled_convolution(op: Op, specs: tuple[Spec, ...]) -> PooledConvolution | None:
    """The op with compiled bodies; None where numpy's has fewer zeros, or for no images."""
    if type(op) is not Conv2dReluMaxPool2d:
        return None
    found = PooledConvolution(op.stride, op.padding, op.dilation, op.groups, op.pool)
    x, w = specs[:2]
    return found if found.layout(x.shape, w.shape, x.dtype.itemsize).fits else None


def find_pooled_convolutions(code: Code) -> Iterator[tuple[Sequence[int], Op, Sequence[int]]]:
    """Every stage that has compiled bodies; numpy's is the slower one from some channels on."""
    for chain, op, inputs in find_convolution_stages(code, most_taps=math.inf):
        if pooled_convolution(op, tuple([code.instructions[i].spec for i in inputs])):
            yield chain, op, inputs
