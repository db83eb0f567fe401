"""Transpose: the axes in another order.

    y[i_p(0), i_p(1), ...]  = x[i_0, i_1, ...]        p = axes, a permutation
    gx = gy with the axes in the order of the inverse permutation

Both are views.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tinygraph.errors import DtypeError, ShapeError, explain
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.shapes import Array, Shape, Spec
from tinygraph.tensor import Operand, Tensor


@dataclass(frozen=True)
class Transpose(Op):
    axes: tuple[int, ...] | None = None

    def _order(self, ndim: int) -> Shape:
        """Which axis of x comes to lie at each axis of y."""
        if self.axes is None:
            return tuple(range(ndim - 1, -1, -1))
        order = tuple([a + ndim if a < 0 else a for a in self.axes])
        if sorted(order) != list(range(ndim)):
            raise ShapeError(
                explain(self.name, "axes", f"each of the {ndim} axes of x exactly once",
                        f"{self.axes} for x of rank {ndim}",
                        f"pass a permutation of {tuple(range(ndim))}, or None to reverse the axes")
            )  # fmt: skip
        return order

    def infer(self, x: Spec) -> Spec:
        return Spec(tuple([x.shape[a] for a in self._order(x.ndim)]), x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        order = self._order(x.ndim)
        return x.transpose(order), order

    def backward(self, mem: Memory, gy: Array, order: Shape, needs: tuple[bool, ...]) -> Gradients:
        inverse = sorted(range(len(order)), key=order.__getitem__)
        return (gy.transpose(inverse),)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if self._order(specs[0].ndim)[:1] == (0,) else None


def transpose(x: Operand, axes: int | Sequence[int] | None = None) -> Tensor:
    """The axes in another order.

    Parameters
    ----------
    x : Tensor
        Any shape and dtype.
    axes : tuple of int, optional
        A permutation: axis i of the result is axis `axes[i]` of `x`.  Not given: in reverse.

    Returns
    -------
    Tensor
        Of the dtype of `x`; a view.

    Raises
    ------
    ShapeError
        `axes` does not name each axis once.
    DtypeError
        `axes` are no integers.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.transpose([[1.0, 2.0, 3.0]]).shape, tg.transpose(tg.zeros(2, 3, 4), (0, 2, 1)).shape
    ((3, 1), (2, 4, 3))
    """
    if axes is None:
        return Transpose()(x)
    try:
        listed = axes if isinstance(axes, Sequence) else (axes,)
        order = tuple([operator.index(a) for a in listed])
    except TypeError:
        raise DtypeError(
            explain("transpose", "axes", "a tuple of ints or None", repr(axes))
        ) from None
    return Transpose(order)(x)
