"""conv + ReLU + max-pool with compiled im2col and pooling, for any channels, kernel and stride.

    maps = w @ unfold(x)                    for a block of images, as in convolution.py
    y    = max(0, b + the largest of each window of maps),  and which it was
    g    = gy where a position has won, 0 everywhere else;  gw, gx from g as in convolution.py

One pass over the maps, which are still in the cache, takes the maximum, notes its place in one
byte, adds the bias and cuts at 0; numpy needs a pass for each of these, for each position.

Source: ops/conv2d_relu_max_pool2d.py has the derivation, and the same in numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.conv2d_relu_max_pool2d import NONE, Conv2dReluMaxPool2d
from tinygraph.plan.fast import columns
from tinygraph.plan.fast.columns import Products, Strip, bias_of
from tinygraph.plan.fast.jit import CompiledBody, Loop, loop, plain
from tinygraph.shapes import Array, Spec


@cache
def pooling(pool: int) -> Loop:
    """The loop for windows of pool x pool: with a known size its loops need no counting."""

    @loop("x4 x1 i =x4 =u4")
    def pool_maps(maps: Array, b: Array, first: int, y: Array, argmax: Array) -> None:
        """y, argmax (M, D, PH, PW), from row `first` on, of maps (D, M, R, OW) and b (D,).

        The first maximum wins; a NaN counts as larger than everything.
        """
        zero = b.dtype.type(0)
        for d in range(maps.shape[0]):
            bias = b[d] + zero  # not -0: then no sum with it is -0
            for m in range(maps.shape[1]):
                for u in range(maps.shape[2] // pool):
                    for v in range(maps.shape[3] // pool):
                        best, winner = maps[d, m, u * pool, v * pool], np.int32(0)
                        for i in range(pool):
                            for j in range(pool):
                                other = maps[d, m, u * pool + i, v * pool + j]
                                wins = (not (other <= best)) & (best == best)
                                best = other if wins else best
                                winner = np.int32(i * pool + j) if wins else winner
                        best += bias
                        dead = best <= zero
                        y[m, d, first + u, v] = zero if dead else best
                        argmax[m, d, first + u, v] = np.int32(NONE) if dead else winner

    return pool_maps


@cache
def routing(pool: int) -> Loop:
    """The loop of backward for windows of pool x pool."""

    @loop("x4 u4 i =x4 =x1", reorder=True)
    def route(gy: Array, argmax: Array, first: int, maps: Array, gb: Array) -> None:
        """maps (D, M, R, OW): gy (M, D, PH, PW) where a position has won, else 0; gb += sums."""
        zero = gb.dtype.type(0)
        for d in range(maps.shape[0]):
            for m in range(maps.shape[1]):
                for u in range(maps.shape[2] // pool):
                    upstream, winner = gy[m, d, first + u], argmax[m, d, first + u]
                    for i in range(pool):
                        row = maps[d, m, u * pool + i]
                        for v in range(len(upstream)):
                            for j in range(pool):
                                won = winner[v] == i * pool + j
                                row[v * pool + j] = upstream[v] if won else zero
                    total = zero
                    for v in range(len(upstream)):
                        total += upstream[v] if winner[v] != NONE else zero
                    gb[d] += total

    return route


class PooledConvolution(CompiledBody, Conv2dReluMaxPool2d):
    """`Conv2dReluMaxPool2d`, block by block."""

    name = Conv2dReluMaxPool2d.name

    def loops(self) -> Sequence[Loop]:
        return pooling(self.pool), routing(self.pool), *columns.LOOPS

    def forward(self, mem: Memory, x: Array, w: Array, b: Array | None = None) -> tuple[Array, Any]:
        x, shape = plain(x), self._pooled(x.shape, w.shape)
        y, argmax = mem.empty(shape, x.dtype), mem.empty(shape, np.uint8)
        bias = bias_of(mem, w, b)
        run = pooling(self.pool)
        for block, maps in self._products(mem, x, w).forward(x):
            some = block.images
            run(maps, bias, block.first // self.pool, y[some], argmax[some])
        return y, (argmax, x, w) if any(mem.needs) else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        argmax, x, w = saved
        gy, gb = plain(gy), mem.zeros(w.shape[:1], w.dtype)
        run = routing(self.pool)

        def write(block: Strip, maps: Array) -> None:
            some = block.images
            run(gy[some], argmax[some], block.first // self.pool, maps, gb)

        found = self._products(mem, x, w).backward(mem, x, needs, write)
        return (*found, gb if len(needs) > 2 and needs[2] else None)[: len(needs)]

    def _products(self, mem: Memory, x: Array, w: Array) -> Products:
        """Over the positions that lie in a pooling window."""
        ph, pw = self._pooled(x.shape, w.shape)[2:]
        size = ph * self.pool, pw * self.pool
        return Products(mem, self._windows(x.shape, w.shape), x.shape, plain(w), size, self.pool)


def pooled_convolution(op: Op, specs: tuple[Spec, ...]) -> PooledConvolution | None:
    """The op with compiled bodies; None for empty images."""
    if type(op) is not Conv2dReluMaxPool2d or 0 in (*specs[0].shape, *specs[1].shape):
        return None
    return PooledConvolution(op.stride, op.padding, op.dilation, op.groups, op.pool)
