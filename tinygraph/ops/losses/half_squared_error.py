"""Half the squared error: the cost whose derivative is the error itself.

    d = x - y                                   M elements
    loss = sum of d**2 / 2 ("sum"), sum of d**2 / (2 * M) ("mean"), d**2 / 2 ("none")
    gx = gloss * d ("sum", "none"), gloss * d / M ("mean")         gy = -gx

Source: Rumelhart, Hinton, Williams, "Learning representations by back-propagating errors", Nature
323, 1986, equation 3.
"""

from __future__ import annotations

import numpy as np

from tinygraph.base import frozen
from tinygraph.engine import Array, Memory, Op, Operand, Tensor
from tinygraph.ops.common import promote
from tinygraph.ops.losses.losses import ResidualLoss, pair_loss


@frozen
class HalfSquaredError(ResidualLoss, Op):
    def of_residual(self, mem: Memory, d: Array) -> tuple[Array, Array]:
        loss = np.multiply(d, d, out=mem.empty(d.shape, d.dtype))
        loss /= 2
        return loss, d


@pair_loss
def half_squared_error(x: Operand, y: Operand, reduction: str = "sum") -> Tensor:
    """Half the sum of squared differences between two arrays of one shape.

    Parameters
    ----------
    reduction : {"sum", "mean", "none"}
        Over all elements; "none" keeps them.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.half_squared_error([1.0, 2.0], [1.0, 5.0]).item()
    4.5
    """
    return HalfSquaredError(reduction)(*promote("half_squared_error", x, y))
