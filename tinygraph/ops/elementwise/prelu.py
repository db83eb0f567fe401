"""PReLU: a leaky ReLU whose slope below 0 is learned, one for all or one for each channel.

    y  = x where x > 0, else w * x
    gx = gy where x > 0, else w * gy                (the derivative at 0 is taken as w)
    gw = sum of gy * x over the elements of a channel with x <= 0

Source: He, Zhang, Ren, Sun, "Delving deep into rectifiers: surpassing human-level performance on
ImageNet classification", ICCV 2015.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import ShapeError, frozen
from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Gradients, Needs, Op, Operand, Spec, Tensor, require_float
from tinygraph.engine.memory import Memory
from tinygraph.ops.common import choose, documented, promote, select, sets_of, total
from tinygraph.ops.reductions.sum import sum_sets


@frozen
class Prelu(Op):
    def infer(self, x: Spec, weight: Spec) -> Spec:
        require_float(self.name, x=x, weight=weight)
        channels = x.shape[1] if x.ndim > 1 else 1
        if weight.ndim > 1 or (weight.shape or (1,))[0] not in (1, channels):
            expected = f"one number, or {channels}: one for each channel of x"
            raise ShapeError(self.name, "weight", expected, weight.shape)
        return x

    def forward(self, mem: Memory, x: Array, weight: Array) -> tuple[Array, Any]:
        return _leaky(mem, x, x, weight), (x, weight) if any(mem.needs) else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x, weight = saved
        gw = None
        if needs[1]:
            above = np.greater(x, 0, out=mem.empty(x.shape, bool))
            below = np.logical_not(above, out=above)  # NaN too
            terms = np.multiply(gy, x, out=mem.empty(x.shape, x.dtype))
            select(mem, terms, below, out=terms)
            gw = mem.empty(weight.shape, weight.dtype)
            sums = gw.reshape(() if weight.size == 1 else -1)
            total(terms, _others(x.ndim, weight.size), sums)
        return _leaky(mem, gy, x, weight) if needs[0] else None, gw

    def forward_kernel(self, mem: Memory, x: Array, weight: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, x.dtype)
        sets = sets_of(x.shape, _others(x.ndim, weight.size))
        sets.launch_on_elements(op_kernel("prelu", "prelu_forward", x.dtype), x, weight, y)
        return y, (x, weight) if any(mem.needs) else None

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x, weight = saved
        sets = sets_of(x.shape, _others(x.ndim, weight.size))
        gx = mem.empty(x.shape if needs[0] else (0,), x.dtype)
        gw = mem.empty(weight.shape if needs[1] else (0,), x.dtype)
        several = needs[1] and sets.slices > 1
        sums = mem.empty((sets.outputs, sets.slices), x.dtype) if several else gw
        sets.launch(op_kernel("prelu", "prelu_backward", x.dtype), gy, x, weight, gx, sums)
        if several:
            sum_sets(mem, sums, sets.parts(), gw)
        return gx if needs[0] else None, gw if needs[1] else None

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if carries == (True, False) else None


def _others(ndim: int, slopes: int) -> tuple[int, ...]:
    """The axes whose elements share a slope: all but the channels, or all."""
    return tuple([axis for axis in range(ndim) if slopes == 1 or axis != 1])


def _leaky(mem: Memory, g: Array, x: Array, weight: Array) -> Array:
    """g where x > 0, else g times the slope of its channel."""
    slopes = weight.reshape(() if weight.size == 1 else (-1, *[1] * (x.ndim - 2)))
    scaled = np.multiply(g, slopes, out=mem.empty(x.shape, x.dtype))
    above = np.greater(x, 0, out=mem.empty(x.shape, bool))
    y = mem.empty(x.shape, x.dtype)
    choose(above, g, scaled, y)
    return y


@documented()
def prelu(x: Operand, weight: Operand) -> Tensor:
    """Rectified linear unit with a slope below 0 that is learned.

    Parameters
    ----------
    x : Tensor (N, C, ...)
        float32 or float64; any shape where there is one slope.
    weight : Tensor (C,), (1,) or ()
        The slope of each channel, or of all.

    Returns
    -------
    Tensor
        Shape of `x`.  NaN propagates.

    Raises
    ------
    ShapeError
        There are neither one slope nor as many as channels.
    DtypeError
        `x` and `weight` hold no floats.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([[-2.0, -2.0], [3.0, 0.0]])
    >>> tg.prelu(x, [0.5, 0.1]).value
    array([[-1. , -0.2],
           [ 3. ,  0. ]], dtype=float32)
    """
    return Prelu()(*promote("prelu", x, weight))
