"""Layers that change the shape alone."""

from __future__ import annotations

import math
from typing import ClassVar

from tinygraph.base import ArgumentError, ShapeError
from tinygraph.engine import Operand, Shape, Tensor, as_tensor
from tinygraph.nn.module import Module
from tinygraph.nn.settings import Function, layer
from tinygraph.ops.shaping.reshape import as_shape, flatten, reshape


@layer(flatten)
class Flatten(Function):
    """Several axes as one, by default all but the batch axis: see `tg.flatten`.

    Parameters
    ----------
    start_dim, end_dim : int
        The first and the last axis that are merged.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.nn.Flatten()(tg.ones((5, 2, 3, 4))).shape
    (5, 24)
    """

    start_dim: int = 1
    end_dim: int = -1


class Unflatten(Module):
    """One axis as several: the inverse of `Flatten`.

    Parameters
    ----------
    dim : int
        The axis.
    unflattened_size : tuple of int
        What takes its place; one of the sizes may be -1 and follows from the others.

    Raises
    ------
    ArgumentError
        Sizes that are no integers, or none.
    ShapeError
        The axis has another number of elements, or there is no such axis.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.nn.Unflatten(1, (2, 3, -1))(tg.ones((5, 24))).shape
    (5, 2, 3, 4)
    """

    _settings: ClassVar[tuple[str, ...]] = ("dim", "unflattened_size")

    def __init__(self, dim: int, unflattened_size: Shape) -> None:
        if not isinstance(dim, int):
            raise ArgumentError("Unflatten", "dim", "an int", repr(dim))
        self.dim = dim
        self.unflattened_size = as_shape("Unflatten", unflattened_size)

    def forward(self, x: Operand) -> Tensor:
        x = as_tensor(x)
        if not -x.ndim <= self.dim < x.ndim:
            raise ShapeError(
                "Unflatten", "x", f"an axis {self.dim}", f"{x.ndim} axes, shape {x.shape}"
            )
        axis = self.dim % x.ndim
        before, after = x.shape[:axis], x.shape[axis + 1 :]
        if axis:  # any batch size, when the graph is run again
            before = (-1, *before[1:])
        return reshape(x, (*before, *self._sizes(x.shape[axis]), *after))

    def _sizes(self, elements: int) -> Shape:
        """The new sizes, without a -1."""
        rest = math.prod(n for n in self.unflattened_size if n >= 0)
        missing = elements // rest if rest else 0
        sizes = tuple(missing if n < 0 else n for n in self.unflattened_size)
        if math.prod(sizes) != elements:
            raise ShapeError(
                "Unflatten",
                "x",
                f"an axis {self.dim} of as many elements as {self.unflattened_size} has",
                f"{elements}",
            )
        return sizes
