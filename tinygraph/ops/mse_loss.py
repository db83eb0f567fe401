"""Mean squared error.

    d = x - y                                   M elements
    loss = sum of d**2 / M  ("mean"), sum of d**2 ("sum"), d**2 ("none")
    gx = gloss * 2 * d / M  ("mean"), gloss * 2 * d ("sum", "none")         gy = -gx
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.errors import ShapeError, explain
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.softmax_cross_entropy import require_reduction
from tinygraph.shapes import Array, Spec, require_float
from tinygraph.tensor import Operand, Tensor


@dataclass(frozen=True)
class MseLoss(Op):
    reduction: str = "mean"

    def infer(self, x: Spec, y: Spec) -> Spec:
        require_float(self.name, x=x, y=y)
        if x.shape != y.shape:
            raise ShapeError(
                explain(self.name, "y", f"the shape of x, {x.shape}", y.shape,
                        "reshape one; broadcasting (N, 1) with (N,) would give (N, N)")
            )  # fmt: skip
        return x if self.reduction == "none" else Spec((), x.dtype)

    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        d = np.subtract(x, y, out=mem.empty(x.shape, x.dtype))
        square = np.multiply(d, d, out=mem.empty(x.shape, x.dtype))
        if self.reduction == "none":
            return square, d
        loss = np.sum(square, axis=None, out=mem.empty((), x.dtype))
        if self.reduction == "mean":
            loss /= x.dtype.type(d.size)  # no element at all: 0 / 0 is NaN
        return loss, d

    def backward(self, mem: Memory, gy: Array, d: Array, needs: tuple[bool, ...]) -> Gradients:
        scale = d.dtype.type(2 / d.size if self.reduction == "mean" and d.size else 2)
        gx = gt = None
        if needs[0]:
            gx = np.multiply(d, gy * scale, out=mem.empty(d.shape, d.dtype))
        if needs[1]:
            gt = np.multiply(d, gy * -scale, out=mem.empty(d.shape, d.dtype))
        return gx, gt

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        if not all(carries):
            return None
        return "map" if self.reduction == "none" else "sum"

    def tile_scale(self, samples: int, batch: int) -> float:
        return samples / batch if self.reduction == "mean" else 1.0


def mse_loss(x: Operand, y: Operand, reduction: str = "mean") -> Tensor:
    """Mean squared error between two arrays of one shape.

    Parameters
    ----------
    x, y : Tensor
        Same shape and dtype, float32 or float64.
    reduction : {"mean", "sum", "none"}
        Over all elements; "none" keeps them.

    Returns
    -------
    Tensor
        0-d, or of the shape of `x` for "none".  The mean of no element is NaN.

    Raises
    ------
    ShapeError
        The shapes differ: nothing is broadcast here, for a loss of (N, 1) with (N,) is a mistake.
    ArgumentError
        An unknown reduction.

    References
    ----------
    Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, section 5.1.4.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.mse_loss([1.0, 2.0], [1.0, 4.0]).item()
    2.0
    """
    return MseLoss(require_reduction("mse_loss", reduction))(x, y)
