"""Half the squared error: the cost whose derivative is the error itself.

    d = x - y                                   M elements
    loss = sum of d**2 / 2 ("sum"), sum of d**2 / (2 * M) ("mean"), d**2 / 2 ("none")
    gx = gloss * d ("sum", "none"), gloss * d / M ("mean")         gy = -gx

Source: Rumelhart, Hinton, Williams, "Learning representations by back-propagating errors", Nature
323, 1986, equation 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Op
from tinygraph.ops.shared.losses import ResidualLoss, reduce, require_reduction
from tinygraph.shapes import Array
from tinygraph.tensor import Operand, Tensor


@frozen
class HalfSquaredError(ResidualLoss, Op):
    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        d = np.subtract(x, y, out=mem.empty(x.shape, x.dtype))
        loss = np.multiply(d, d, out=mem.empty(x.shape, x.dtype))
        loss /= 2
        return reduce(mem, loss, self.reduction), d if True in mem.needs else None


def half_squared_error(x: Operand, y: Operand, reduction: str = "sum") -> Tensor:
    """Half the sum of squared differences between two arrays of one shape.

    Parameters
    ----------
    x, y : Tensor
        Same shape and dtype, float32 or float64.
    reduction : {"sum", "mean", "none"}
        Over all elements; "none" keeps them.

    Returns
    -------
    Tensor
        0-d, or of the shape of `x` for "none".  The mean of no element is NaN.

    Raises
    ------
    ShapeError
        The shapes differ: nothing is broadcast here.
    DtypeError
        The inputs are not both float32 or both float64.
    ArgumentError
        An unknown reduction.

    References
    ----------
    Rumelhart, Hinton, Williams, "Learning representations by back-propagating errors", Nature 323,
    1986.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.half_squared_error([1.0, 2.0], [1.0, 5.0]).item()
    4.5
    """
    return HalfSquaredError(require_reduction("half_squared_error", reduction))(x, y)
