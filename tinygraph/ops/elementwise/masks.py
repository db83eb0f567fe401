"""Elements replaced by their place: masked_fill, tril, triu.

    masked_fill  y = value where the mask holds, else x
    tril         y[..., i, j] = x[..., i, j] where j <= i + d, else 0       d is the diagonal
    triu         y[..., i, j] = x[..., i, j] where j >= i + d, else 0

What is replaced has no influence, NaN included, and gets no gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import DtypeError, ShapeError, unmasked, whole
from tinygraph.engine import Operand, Tensor, as_tensor, broadcast_shapes, leaf
from tinygraph.ops.common import astype, device_of, documented
from tinygraph.ops.common.patterns import FARTHEST, band
from tinygraph.ops.elementwise.where import where


def masked_fill(x: Operand, mask: Operand, value: Operand) -> Tensor:
    """`x` with `value` in the place of the elements where the mask holds.

    Parameters
    ----------
    x : Tensor
        Any shape.
    mask : Tensor
        bool, of a shape that broadcasts to that of `x`.
    value : number
        Or a tensor of one element.

    Returns
    -------
    Tensor
        Shape and dtype of `x`.  What is replaced gets no gradient, and its NaN has no influence.

    Raises
    ------
    ShapeError
        `mask` does not broadcast to the shape of `x`, or `value` is not one number.
    DtypeError
        `mask` is not bool, or `x` holds integers and `value` is none of theirs.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([1.0, -2.0, 3.0])
    >>> tg.masked_fill(x, x < 0, 0.5).value
    array([1. , 0.5, 3. ], dtype=float32)
    """
    x = as_tensor(x, device=device_of(x, mask))
    mask = mask if isinstance(mask, Tensor) else np.asarray(unmasked("masked_fill", "mask", mask))
    if mask.dtype != bool:
        way_out = "a comparison makes it: mask != 0"
        raise DtypeError("masked_fill", "mask", "bool", mask.dtype, way_out)
    if broadcast_shapes("masked_fill", x.shape, mask.shape) != x.shape:
        expected = f"a shape that broadcasts to {x.shape}, that of x"
        raise ShapeError("masked_fill", "mask", expected, mask.shape, "tg.where broadcasts both")
    if np.shape(value) not in ((), (1,)):
        expected, way_out = "one number", "tg.where(mask, value, x)"
        raise ShapeError("masked_fill", "value", expected, np.shape(value), way_out)
    return where(mask, _as_one_of(x.dtype, value), x)


def _as_one_of(dtype: np.dtype[Any], value: Operand) -> Operand:
    """The value in that dtype, which it does not widen.  A bool is whether it is not 0."""
    if isinstance(value, Tensor):
        return value if value.dtype == dtype else astype(value, dtype)
    number = np.asarray(unmasked("masked_fill", "value", value))
    with np.errstate(invalid="ignore"):
        held = number.astype(dtype)
    if dtype.kind in "iu" and (held != number).any():
        raise DtypeError("masked_fill", "value", f"one that {dtype} can hold", value, "x.float()")
    return held


_triangle = documented(
    """
    Parameters
    ----------
    x : Tensor (..., M, N)
    diagonal : int
        The diagonal where it ends: 0 is the main one, 1 the one above, -1 the one below.

    Returns
    -------
    Tensor (..., M, N)
        Same dtype.  What is replaced gets no gradient, and its NaN has no influence.

    Raises
    ------
    ShapeError
        `x` has fewer than two axes.
    ArgumentError
        `diagonal` is not an int.
    """
)


@_triangle
def tril(x: Operand, diagonal: int = 0) -> Tensor:
    """The lower triangle of matrices, 0 above it.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.tril(tg.ones((2, 3))).value
    array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    node, d = _matrices("tril", x, diagonal)
    return where(triangle(node, most=d), node, node.dtype.type(0))


@_triangle
def triu(x: Operand, diagonal: int = 0) -> Tensor:
    """The upper triangle of matrices, 0 below it.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.triu(tg.ones((2, 3)), 1).value
    array([[0., 1., 1.],
           [0., 0., 1.]], dtype=float32)
    """
    node, d = _matrices("triu", x, diagonal)
    return where(triangle(node, least=d), node, node.dtype.type(0))


def _matrices(op: str, x: Operand, diagonal: int) -> tuple[Tensor, int]:
    node, d = as_tensor(x), whole(op, "diagonal", diagonal, -FARTHEST, FARTHEST)
    if node.ndim < 2:
        raise ShapeError(op, "x", "at least two axes, (..., M, N)", node.shape)
    return node, d


def triangle(x: Tensor, least: int = -FARTHEST, most: int = FARTHEST) -> Tensor:
    """A mask of the matrices x (..., M, N): True on the diagonals `least` to `most`."""
    rows, columns = x.shape[-2:]
    device = device_of(x)
    return leaf(band(device, rows, columns, least, most), device)
