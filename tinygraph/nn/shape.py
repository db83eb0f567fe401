"""Layers that change the shape alone."""

from __future__ import annotations

from tinygraph.nn.module import Module
from tinygraph.ops.reshape import flatten
from tinygraph.tensor import Operand, Tensor


class Flatten(Module):
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

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, x: Operand) -> Tensor:
        return flatten(x, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
