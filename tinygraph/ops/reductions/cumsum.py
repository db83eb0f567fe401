"""Cumulative sum along one axis.

    L     size of the axis

    y[i]  = x[0] + ... + x[i]
    gx[i] = gy[i] + ... + gy[L - 1]

x[i] is part of the sum at its place and of every later one, so its gradient is a sum from the end.

Of float32 the cpu makes these sums in float64, and rounds each of them once.  Where each addition
waits for the one before, time goes by, so large arrays are cut into blocks of B neighbours:

    s[k, j] = x[k B] + ... + x[k B + j]                 for all k at once, j after j
    y[k, j] = s[0, B - 1] + ... + s[k - 1, B - 1] + s[k, j]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygraph.base import frozen
from tinygraph.base.dtypes import float32, float64
from tinygraph.cuda import op_kernel
from tinygraph.engine import Gradients, Memory, Needs, Op, Operand, Tensor
from tinygraph.engine.spec import Array, Shape, Spec, normalize_axes, require_float
from tinygraph.ops.common import Sets, as_axis, astype, given_in, sets_of, with_dtype
from tinygraph.ops.reductions.sum import as_summed, sum_dtype

_BLOCK = 8  # neighbours
_SHORT = 3 * _BLOCK  # an axis whose float32 sums round too seldom to matter
_SMALL = 1 << 14  # elements that are summed up one by one
_ROOM = 1 << 16  # elements of a piece, half a megabyte in float64
_LONG = 1 << 10  # of these along the axis, before the others count


def _scan(mem: Memory, x: Array, axis: int, y: Array) -> None:
    """Write the cumulative sums of x to y; both may be any views."""
    length = x.shape[axis]
    if x.dtype != float32 or length <= _SHORT:
        np.add.accumulate(x, axis=axis, dtype=y.dtype, out=y)
    elif x.size <= _SMALL:
        sums = np.add.accumulate(x, axis=axis, out=mem.empty(x.shape, float64))
        y[...] = sums
    else:
        room = min(x.size // length * _padded(length), _ROOM)
        starts = mem.empty((room // 4,), float64)  # one and one more for each run of two blocks
        sums = mem.empty((room,), float64)
        behind = x.shape[axis + 1 :]
        if math.prod(behind) >= _BLOCK:
            _scan_pieces(x, axis, y, sums, starts)
            return
        for place in np.ndindex(behind):  # numpy's loops, as short as that, would cost too much
            _scan_pieces(x[..., *place], axis, y[..., *place], sums, starts)


def _padded(length: int) -> int:
    return -(-length // _BLOCK) * _BLOCK


def _scan_pieces(x: Array, axis: int, y: Array, room: Array, starts: Array) -> None:
    """Cut the other axes until a long run along this one has room beside the others."""
    others = x.size // x.shape[axis]
    most = room.size // min(_padded(x.shape[axis]), _LONG)
    if others <= most:
        _scan_piece(x, axis, y, room, starts)
        return
    cut = next(a for a, n in enumerate(x.shape) if n > 1 and a != axis)
    step = max(most * x.shape[cut] // others, 1)
    for first in range(0, x.shape[cut], step):
        part = (slice(None),) * cut + (slice(first, first + step),)
        _scan_pieces(x[part], axis, y[part], room, starts)


def _scan_piece(x: Array, axis: int, y: Array, room: Array, starts: Array) -> None:
    """Sum up one run of blocks after the other; `starts` is what their blocks begin with."""
    before, after = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    longest = room.size // (before * after) // _BLOCK * _BLOCK
    ahead = (slice(None),) * axis
    carry: Any = -0.0  # which added to any number leaves it as it is
    for first in range(0, x.shape[axis], longest):
        part = (*ahead, slice(first, first + longest))
        length = x[part].shape[axis]
        blocks = _padded(length) // _BLOCK
        run = room[: before * blocks * _BLOCK * after]
        run = run.reshape(*x.shape[:axis], blocks * _BLOCK, *x.shape[axis + 1 :])
        run[(*ahead, slice(length))] = x[part]
        run[(*ahead, slice(length, None))] = 0
        sums = run.reshape(before, blocks, _BLOCK, after)
        for j in range(1, _BLOCK):
            sums[:, :, j] += sums[:, :, j - 1]
        begin = starts[: before * (blocks + 1) * after].reshape(before, blocks + 1, after)
        begin[:, 0] = carry
        begin[:, 1:] = sums[:, :, -1]
        np.add.accumulate(begin, axis=1, out=begin)
        sums += begin[:, :-1, None]
        carry = begin[:, -1].copy()
        y[part] = run[(*ahead, slice(length))]


def _scan_sets(mem: Memory, x: Array, sets: Sets, y: Array, reverse: bool) -> None:
    """Launch the kernels that write the cumulative sums of each set of x to y."""
    if not y.size:
        return
    starts = mem.empty((0,), x.dtype)
    if sets.slices > 1:
        sums = mem.empty((sets.outputs, sets.slices), x.dtype)
        sets.launch(op_kernel("cumsum", "slice_sums", x.dtype), x, sums, int(reverse))
        starts = mem.empty(sums.shape, x.dtype)
        _scan_sets(mem, sums, sets.parts(), starts, reverse=False)
    sets.launch(op_kernel("cumsum", "cumulative_sums", x.dtype), x, starts, y, int(reverse))


@frozen
class Cumsum(Op):
    axis: int

    def infer(self, x: Spec) -> Spec:
        normalize_axes(self.name, self.axis, x.ndim)
        if x.dtype.kind == "f":
            require_float(self.name, x=x)
        return Spec(x.shape, sum_dtype(x.dtype))

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, sum_dtype(x.dtype))
        _scan(mem, x, self.axis % x.ndim, y)
        return y, None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        gx = mem.empty(gy.shape, gy.dtype)
        axis = self.axis % gy.ndim
        _scan(mem, np.flip(gy, axis), axis, np.flip(gx, axis))  # views: the sums run from the end
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, sum_dtype(x.dtype))
        x = as_summed(mem, x)
        _scan_sets(mem, x, self._sets(x.shape), y.view(x.dtype), reverse=False)
        return y, None

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        gx = mem.empty(gy.shape, gy.dtype)
        _scan_sets(mem, gy, self._sets(gy.shape), gx, reverse=True)
        return (gx,)

    def _sets(self, shape: Shape) -> Sets:
        return sets_of(shape, normalize_axes(self.name, self.axis, len(shape)))

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if self.axis % specs[0].ndim else None


@with_dtype
def cumsum(x: Operand, axis: int, *, dtype: Any = None) -> Tensor:
    """At each place the sum of all elements up to it, along one axis.

    Parameters
    ----------
    x : Tensor
        At least one axis; float32, float64, integers or bools.
    axis : int
        The axis to sum along.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`, but int64 for bools and small integers, or as `dtype` says.
        Sums of float32 are right to a rounding error on the cpu, and to one for each doubling of
        the length in kernels, which add up long axes in pieces.  float64 is added one by one on the
        cpu.

    Raises
    ------
    ShapeError
        There is no such axis.
    DtypeError
        `axis` is no integer, or `x` is float16.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.cumsum([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], axis=1).value
    array([[ 1.,  3.,  6.],
           [ 4.,  9., 15.]], dtype=float32)
    """
    y = Cumsum(as_axis("cumsum", axis))(given_in("cumsum", x, dtype))
    return y if dtype is None else astype(y, dtype)
