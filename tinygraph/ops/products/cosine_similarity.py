"""Cosine similarity: the cosine of the angle between two vectors.

    n = max(sqrt(sum of x**2), eps)         the length of x, of eps at least; m that of y
    z = sum of (x / n) * (y / m)            along an axis

Each vector is divided by its length before the product, which could overflow.  `norm` makes the
length of numbers whose squares would.
"""

from __future__ import annotations

from tinygraph.base import number
from tinygraph.engine import Operand, Tensor, broadcast_shapes, normalize_axes
from tinygraph.ops.common import promote
from tinygraph.ops.elementwise.arithmetic import div, maximum, mul
from tinygraph.ops.reductions.norm import norm
from tinygraph.ops.reductions.sum import sum
from tinygraph.ops.shaping.expand import expand


def cosine_similarity(x: Operand, y: Operand, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors that lie along an axis: from -1 to 1.

    Parameters
    ----------
    x, y : Tensor
        Shapes that broadcast together; dtypes promote as in PyTorch.
    axis : int
        The axis of the vectors, in the broadcast shape.
    eps : float
        At least 0.  Shorter vectors count as of this length, so that of a vector of zeros the
        result and the gradient are finite.

    Returns
    -------
    Tensor
        The broadcast shape without the axis.

    Raises
    ------
    ShapeError
        The shapes do not broadcast together, or the axis is not there.
    DtypeError
        Neither operand is of a float dtype.
    ArgumentError
        `eps` is out of its range.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.cosine_similarity([[3.0, 4.0]], [[6.0, 8.0], [-4.0, 3.0]]).value
    array([1., 0.], dtype=float32)
    """
    eps = number("cosine_similarity", "eps", eps, 0)
    x, y = promote("cosine_similarity", x, y)
    shape = broadcast_shapes("cosine_similarity", x.shape, y.shape)
    (axis,) = normalize_axes("cosine_similarity", axis, len(shape))
    directions = []
    for v in (x, y):
        vectors = v if v.shape == shape else expand(v, shape)
        length = maximum(norm(vectors, 2, axis, keepdims=True), eps)
        directions.append(div(vectors, length))
    return sum(mul(*directions), axis)
