"""Mean squared error.

    d = x - y                                   M elements
    loss = sum of d**2 / M  ("mean"), sum of d**2 ("sum"), d**2 ("none")
    gx = gloss * 2 * d / M  ("mean"), gloss * 2 * d ("sum", "none")         gy = -gx
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tinygraph.cuda import op_kernel
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.launch import THREADS, for_each, grid_of
from tinygraph.ops.losses import ResidualLoss, reduce, require_reduction
from tinygraph.shapes import Array
from tinygraph.tensor import Operand, Tensor


@dataclass(frozen=True)
class MseLoss(ResidualLoss, Op):
    factor: ClassVar[float] = 2.0  # the slope is 2 * d

    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        d = np.subtract(x, y, out=mem.empty(x.shape, x.dtype))
        square = np.multiply(d, d, out=mem.empty(x.shape, x.dtype))
        return reduce(mem, square, self.reduction), d if True in mem.needs else None

    def forward_kernel(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        wanted = True in mem.needs
        d = mem.empty(x.shape if wanted else (0,), x.dtype)
        saved = d if wanted else None
        if self.reduction == "none":
            each = mem.empty(x.shape, x.dtype)
            kernel = op_kernel("mse_loss", "squared_error_each", x.dtype)
            for_each(kernel, x.size, x, y, d, each, x.size)
            return each, saved
        loss = mem.empty((), x.dtype)
        blocks, divisor = max(grid_of(x.size), 1), x.size if self.reduction == "mean" else 1
        one = blocks == 1  # then its sum is the loss
        sums = loss if one else mem.empty((blocks,), x.dtype)
        op_kernel("mse_loss", "squared_error_sum", x.dtype)(
            blocks, THREADS, x, y, d, sums, x.size, divisor if one else 1
        )
        if not one:
            op_kernel("mse_loss", "squared_error_finish", x.dtype)(
                1, THREADS, sums, loss, blocks, divisor
            )
        return loss, saved

    def backward_kernel(
        self, mem: Memory, gy: Array, d: Array, needs: tuple[bool, ...]
    ) -> Gradients:
        gx, gt = (mem.empty(d.shape if needed else (0,), d.dtype) for needed in needs)
        scale, each = self.factor * self.scale(d.size), self.reduction == "none"
        kernel = op_kernel("mse_loss", "mse_loss_backward", d.dtype)
        for_each(kernel, d.size, gy, d, gx, gt, d.size, scale, int(each))
        return gx if needs[0] else None, gt if needs[1] else None


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
