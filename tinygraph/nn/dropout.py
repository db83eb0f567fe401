"""The dropout layer."""

from __future__ import annotations

from typing import ClassVar

from tinygraph.base import number
from tinygraph.engine import Operand, Tensor
from tinygraph.nn.module import Module
from tinygraph.ops.elementwise.dropout import dropout


class Dropout(Module):
    """In training, zeros at random places; in evaluation nothing: see `tg.dropout`.

    Parameters
    ----------
    p : float
        Probability of dropping an element, 0 to 1.
    inplace : bool
        Taken, and changes nothing.

    Examples
    --------
    >>> import tinygraph as tg
    >>> layer = tg.nn.Dropout(0.5)
    >>> sorted(set(layer(tg.ones(100)).value.tolist()))
    [0.0, 2.0]
    >>> set(layer.eval()(tg.ones(100)).value.tolist())
    {1.0}
    """

    _settings: ClassVar[tuple[str, ...]] = ("p",)

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        self.p = number("Dropout", "p", p, 0, 1)

    def forward(self, x: Operand) -> Tensor:
        return dropout(x, self.p, self.training)
