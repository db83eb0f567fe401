"""conv2d of one group with compiled products that need no columns: see moved_rows.py.

Source: ops/windows/conv2d.py has the derivation, and the same in numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinygraph.engine import Array, Memory, Op, Shape, Spec
from tinygraph.ops.windows.conv2d import Conv2d
from tinygraph.plan.fast import row_loops
from tinygraph.plan.fast.jit import CompiledBody, Loop, plain
from tinygraph.plan.fast.moved_rows import MovedLayout, MovedRows, moved_layout_of


class CompiledConv2d(CompiledBody, Conv2d):
    """`Conv2d` of one group."""

    name = Conv2d.name

    def loops(self) -> Sequence[Loop]:
        return row_loops.LOOPS

    def layout(self, x: Shape, w: Shape, itemsize: int) -> MovedLayout:
        return moved_layout_of(self._windows(x, w), x, w, itemsize)

    def _in_blocks(self, mem: Memory, x: Shape, w: Array) -> Any:
        return Whole(mem, self.layout(x, w.shape, w.itemsize), w)


class Whole(MovedRows):
    """From whole arrays to whole arrays, as numpy's body asks for it."""

    def forward(self, x: Array, b: Array | None) -> Array:  # type: ignore[override]
        y = self.mem.empty(self.layout.outputs, self.dtype)

        def leave(block: slice, maps: Array) -> None:
            self.take(maps, y[block])

        super().forward(plain(x), b, leave)
        return y

    def backward(  # type: ignore[override]
        self, gy: Array, x: Array | None, of_x: bool
    ) -> tuple[Array | None, Array | None]:
        gy = plain(gy)

        def enter(share: int, block: slice, maps: Array) -> None:
            self.put(gy[block], maps)

        return super().backward(None if x is None else plain(x), enter, of_x)


def compiled_convolution(op: Op, specs: tuple[Spec, ...]) -> CompiledConv2d | None:
    """The op with compiled bodies; None for several groups, and where numpy's has fewer zeros."""
    if type(op) is not Conv2d or op.groups != 1:
        return None
    found = CompiledConv2d(op.stride, op.padding, op.dilation, op.groups)
    x, w = specs[:2]
    return found if found.layout(x.shape, w.shape, x.dtype.itemsize).fits else None
