"""Norm over axes.

    R     the elements that meet in one element of the output: all combinations of the reduced axes

    y[k]     = (sum over r in R of abs(x[k, r])^p)^(1 / p)
    gx[k, r] = gy[k] * sign(x[k, r]) * (abs(x[k, r]) / y[k])^(p - 1)        0 where x is 0

For p = 2 that is sqrt(sum x^2), and gx = gy * x / y.  The limits for p = inf and -inf are the
largest and the smallest absolute value; p = 0 counts what is not 0.  These are other ops.

Powers leave the range of the dtype before norms do: lengths.py.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, frozen, number
from tinygraph.cuda import Kernel, op_kernel
from tinygraph.engine import Array, Axis, Memory, Operand, Shape, Tensor, as_tensor, require_float
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.ops.common import arranged, as_axes, astype, sets_of, total
from tinygraph.ops.elementwise.elementwise import abs
from tinygraph.ops.reductions.count_nonzero import count_nonzero
from tinygraph.ops.reductions.lengths import doubtful, make_again, scaled_length
from tinygraph.ops.reductions.max import Max, Min
from tinygraph.ops.reductions.reductions import Reduction, reduction, spread


@frozen
class Norm(Reduction, Op):
    p: float = 2.0

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        powers = mem.empty(x.shape, x.dtype)
        if self.p == 2:
            np.multiply(x, x, out=powers)
        else:
            np.absolute(x, out=powers)
            np.power(powers, self.p, out=powers)
        y = mem.empty(shape, x.dtype)
        total(powers, axes, y)
        again = doubtful(y) if self.p != 1 else None
        if self.p == 2:
            np.sqrt(y, out=y)
        else:
            np.power(y, 1 / self.p, out=y)
        if again is not None:
            make_again(y, again, x, axes, partial(scaled_length, p=self.p))
        return y, (x, y) if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x, y = saved
        axes, _ = self.over(x.shape)
        flat = np.equal(x, 0, out=mem.empty(x.shape, bool))
        gx = mem.empty(x.shape, x.dtype)
        if 0 < self.p < 2:  # a power of less than 1 brings back what x / y would round to 0
            np.absolute(x, out=gx)
            np.power(gx, self.p - 1, out=gx)
            gx *= spread(np.power(y, 1 - self.p), x.shape, axes)
            np.copysign(gx, x, out=gx)
        else:
            np.divide(x, spread(y, x.shape, axes), out=gx)
        if self.p > 2 or self.p < 0:
            np.absolute(gx, out=gx)
            np.power(gx, self.p - 1, out=gx)
            np.copysign(gx, x, out=gx)
        gx *= spread(gy, x.shape, axes)
        np.copyto(gx, 0, where=flat)
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        source, sets = arranged(mem, x, axes), sets_of(x.shape, axes)
        kernel = self.kernel("forward", x.dtype)
        elements = source
        while sets.slices > 1:
            parts = mem.empty((sets.outputs, sets.slices), x.dtype)
            sets.launch(kernel, elements, parts, self.p)
            elements, sets = parts, sets.parts()
        y = mem.empty(shape, x.dtype)
        sets.launch(kernel, elements, y, self.p)
        return y, (x.shape, source, y) if mem.needs[0] else None

    def kernel(self, function: str, dtype: np.dtype[Any]) -> Kernel:
        kind = "Euclidean" if self.p == 2 else "General"
        return op_kernel("norm", f"norm_{function}", dtype, kind)

    def numbers(self, shape: Shape, axes: tuple[int, ...]) -> tuple[float, ...]:
        return (self.p - 1,)


@reduction
def norm(
    x: Operand, p: float | str | None = 2.0, axis: Axis = None, keepdims: bool = False
) -> Tensor:
    """The length of vectors: (sum of abs(x)^p)^(1/p), over some axes or all.

    Parameters
    ----------
    p : float or "fro"
        2, which "fro" and None stand for too, is the Euclidean length, and for a matrix Frobenius's
        norm; 1 the sum of absolute values, inf the largest of them, -inf the smallest, and 0 the
        number of elements that are not 0.

    Returns
    -------
    Tensor
        ... The gradient is 0 where an element is 0, at the length 0 too; for p = inf and -inf
        equal absolute values share it evenly.

    Raises
    ------
    ShapeError
        There is no such axis, one is named twice, or for p = inf and -inf there is no element.
    ArgumentError
        `p` is neither a number nor "fro".

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = [[3.0, 4.0], [0.0, -2.0]]
    >>> tg.norm(x, axis=1).value, tg.norm(x, 1).item()
    (array([5., 2.], dtype=float32), 9.0)
    """
    node, axes, keep = as_tensor(x), as_axes("norm", axis), bool(keepdims)
    require_float("norm", x=node.spec)
    if isinstance(p, str) and p != "fro":
        raise ArgumentError("norm", "p", "a number, inf, -inf or 'fro'", repr(p))
    if p in (math.inf, -math.inf):
        return (Max if p > 0 else Min)(axes, keep)(abs(node))
    order = 2.0 if p is None or p == "fro" else number("norm", "p", p)
    if order == 0:
        return astype(count_nonzero(node, axes, keep), node.dtype)
    return Norm(axes, keep, order)(node)
