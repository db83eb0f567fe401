"""GLU, the gated linear unit: one half of x opens and closes the other.

    y = a * sigmoid(b)      a and b are the halves of x along an axis

Source: Dauphin, Fan, Auli, Grangier, "Language modeling with gated convolutional networks", ICML
2017.
"""

from __future__ import annotations

from tinygraph.base import ShapeError
from tinygraph.engine import Operand, Tensor, as_tensor, normalize_axes
from tinygraph.ops.common import documented
from tinygraph.ops.elementwise.arithmetic import mul
from tinygraph.ops.elementwise.sigmoid import sigmoid
from tinygraph.ops.shaping.split import split


@documented()
def glu(x: Operand, axis: int = -1) -> Tensor:
    """Gated linear unit: the first half of `x`, times the sigmoid of the second half.

    Parameters
    ----------
    x : Tensor
        float32 or float64; an even number of elements along the axis.
    axis : int
        The axis that is halved.

    Returns
    -------
    Tensor
        Half as long as `x` along the axis.

    Raises
    ------
    ShapeError
        The axis is not there, or its length is odd.
    DtypeError
        `x` is not of a float dtype.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.glu([3.0, 4.0, 0.0, 100.0]).value
    array([1.5, 4. ], dtype=float32)
    """
    x = as_tensor(x)
    (axis,) = normalize_axes("glu", axis, x.ndim)
    if x.shape[axis] % 2:
        raise ShapeError("glu", "x", f"an even length along axis {axis}", x.shape)
    half, gate = split(x, [x.shape[axis] // 2] * 2, axis)
    return mul(half, sigmoid(gate))
