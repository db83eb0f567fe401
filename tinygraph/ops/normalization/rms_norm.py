"""Root mean square normalization: each sample divided by the length of its features.

    F...    the features, the last axes of x; x (..., F...), weight (F...)

    r = sqrt(mean of x^2 + eps)     over the features
    y = weight * x / r

Source: Zhang, Sennrich, "Root mean square layer normalization", NeurIPS 2019.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinygraph.base import ShapeError, number, whole
from tinygraph.engine import Operand, Tensor, as_tensor, require_float
from tinygraph.ops.common import device_of, documented
from tinygraph.ops.elementwise.arithmetic import add, mul
from tinygraph.ops.elementwise.elementwise import rsqrt, square
from tinygraph.ops.reductions.mean import mean


@documented()
def rms_norm(
    x: Operand,
    normalized_shape: int | Sequence[int],
    weight: Operand | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divide the features of each sample by their root mean square, then scale them.

    Parameters
    ----------
    x : Tensor (..., F...)
        float32 or float64.
    normalized_shape : int or sequence of int
        F..., the last axes of `x`, over which the mean is taken.
    weight : Tensor (F...), optional
        Scale of each feature; 1 where it is not given.
    eps : float, optional
        Added to the mean of squares; not given, the distance from 1 to the next number of the
        dtype.

    Returns
    -------
    Tensor
        Same shape and dtype as `x`.

    Raises
    ------
    ShapeError
        The last axes of `x`, or the shape of `weight`, are not `normalized_shape`, or it is empty.
    DtypeError
        `x` is not float32 or float64.
    ArgumentError
        `normalized_shape` has a size below 1, or eps is negative.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.rms_norm([[3.0, 4.0], [0.0, 0.0]], 2).value.round(2)
    array([[0.85, 1.13],
           [0.  , 0.  ]], dtype=float32)
    """
    x = as_tensor(x, device=device_of(x, weight))
    require_float("rms_norm", x=x.spec)
    several = isinstance(normalized_shape, (tuple, list))
    sizes = tuple(normalized_shape) if several else (normalized_shape,)  # type: ignore[arg-type]
    shape = tuple([whole("rms_norm", "normalized_shape", n) for n in sizes])
    if not shape or x.shape[-len(shape) :] != shape:
        expected = f"the last axes {shape}, as in normalized_shape, at least one"
        raise ShapeError("rms_norm", "x", expected, f"x.shape {x.shape}")
    least = np.finfo(x.dtype).eps if eps is None else number("rms_norm", "eps", eps, 0)
    squares = mean(square(x), tuple(range(-len(shape), 0)), keepdims=True)  # (..., 1)
    y = mul(x, rsqrt(add(squares, float(least))))
    if weight is None:
        return y
    w = as_tensor(weight, device=device_of(x))
    if w.shape != shape:
        raise ShapeError("rms_norm", "weight", f"shape {shape}, normalized_shape", w.shape)
    return mul(y, w)
