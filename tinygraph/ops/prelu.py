"""PReLU: a leaky ReLU whose slope below 0 is learned, one for all or one for each channel.

    y  = x where x > 0, else w * x
    gx = gy where x > 0, else w * gy                (the derivative at 0 is taken as w)
    gw = sum of gy * x over the elements of a channel with x <= 0

Source: He, Zhang, Ren, Sun, "Delving deep into rectifiers: surpassing human-level performance on
ImageNet classification", ICCV 2015.
"""

from __future__ import annotations

from tinygraph.errors import DtypeError, ShapeError
from tinygraph.ops.arithmetic import mul
from tinygraph.ops.comparison import greater
from tinygraph.ops.reshape import reshape
from tinygraph.ops.shared.docstrings import documented
from tinygraph.ops.shared.operands import promote
from tinygraph.ops.where import where
from tinygraph.tensor import Operand, Tensor


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
    x, weight = promote("prelu", x, weight)
    if x.dtype.kind != "f":
        way_out = "convert it, for example with .astype('float32')"
        raise DtypeError("prelu", "x", "float32 or float64", x.dtype, way_out)
    channels = x.shape[1] if x.ndim > 1 else 1
    slopes = weight.shape[0] if weight.ndim == 1 else 1
    if weight.ndim > 1 or slopes not in (1, channels):
        expected = f"one number, or {channels}, for each channel of x one"
        raise ShapeError("prelu", "weight", expected, weight.shape)
    axes = (slopes, *[1] * (x.ndim - 2)) if slopes > 1 else ()  # (C, 1, ...)
    return where(greater(x, 0), x, mul(reshape(weight, axes), x))
