"""conv2d with compiled im2col and col2im: block by block, and nothing of the columns is kept.

    for each block of images:    cols = unfold(x)        y     = w @ cols + b
    backward:                    cols = unfold(x)        gw   += gy @ cols^T
                                 gcols = w^T @ gy        gx   += fold(gcols)

The products are BLAS's.  Source: ops/conv2d.py has the derivation, and the same in numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.conv2d import Conv2d
from tinygraph.plan.fast import columns
from tinygraph.plan.fast.columns import Products, Strip, bias_of
from tinygraph.plan.fast.jit import CompiledBody, Loop, loop, plain
from tinygraph.shapes import Array, Spec


@loop("x4 x1 i =x4")
def put(maps: Array, b: Array, first: int, y: Array) -> None:
    """y (M, D, OH, OW) from row `first` on: the maps (D, M, R, OW), and b (D,) added."""
    for d in range(maps.shape[0]):
        for m in range(maps.shape[1]):
            for u in range(maps.shape[2]):
                for v in range(maps.shape[3]):
                    y[m, d, first + u, v] = maps[d, m, u, v] + b[d]


@loop("x4 i =x4 =x1", reorder=True)
def take(gy: Array, first: int, maps: Array, gb: Array) -> None:
    """The reverse: maps of the upstream gradient, and its sums are added to gb (D,)."""
    for d in range(maps.shape[0]):
        for m in range(maps.shape[1]):
            for u in range(maps.shape[2]):
                total = gb.dtype.type(0)
                for v in range(maps.shape[3]):
                    maps[d, m, u, v] = gy[m, d, first + u, v]
                    total += gy[m, d, first + u, v]
                gb[d] += total


class BlockedConv2d(CompiledBody, Conv2d):
    """`Conv2d` of one group, block by block."""

    name = Conv2d.name

    def loops(self) -> Sequence[Loop]:
        return put, take, *columns.LOOPS

    def forward(self, mem: Memory, x: Array, w: Array, b: Array | None = None) -> tuple[Array, Any]:
        x, spec = plain(x), self.infer(Spec(x.shape, x.dtype), Spec(w.shape, w.dtype))
        y, bias = mem.empty(spec.shape, spec.dtype), bias_of(mem, w, b)
        products = Products(mem, self._windows(x.shape, w.shape), x.shape, plain(w), y.shape[2:])
        for block, maps in products.forward(x):
            put(maps, bias, block.first, y[block.images])
        return y, (x, w) if any(mem.needs) else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        x, w = saved
        gy, at = plain(gy), self._windows(x.shape, w.shape)
        products = Products(mem, at, x.shape, plain(w), gy.shape[2:])
        gb = mem.zeros(w.shape[:1], w.dtype)

        def write(block: Strip, maps: Array) -> None:
            take(gy[block.images], block.first, maps, gb)

        found = products.backward(mem, x, needs, write)
        return (*found, gb if len(needs) > 2 and needs[2] else None)[: len(needs)]


def blocked_convolution(op: Op, specs: tuple[Spec, ...]) -> BlockedConv2d | None:
    """The op with compiled bodies; None for one of several groups, or of empty images."""
    if type(op) is not Conv2d or op.groups != 1 or 0 in (*specs[0].shape, *specs[1].shape):
        return None
    return BlockedConv2d(op.stride, op.padding, op.dilation, op.groups)
