"""Expand: axes of size 1 repeated, and new axes put in front, by numpy's broadcasting rule.

    y[i_1, ..., i_n] = x[j_1, ..., j_m]     aligned from the right; j = 0 where x has size 1, else i
    gx = gy summed over the axes along which x was repeated

The output is a view whose repeated elements lie in one place of memory, so it cannot be written.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import ShapeError, frozen
from tinygraph.engine import Array, Gradients, Memory, Needs, Op, Operand, Shape, Spec, Tensor
from tinygraph.ops.common import sum_to, unbroadcast
from tinygraph.ops.shaping.reshape import as_sizes, rearranged


@frozen
class Expand(Op):
    shape: Shape  # as it was given, with its -1, so that it need not contain the batch size

    def infer(self, x: Spec) -> Spec:
        new = len(self.shape) - x.ndim
        if new < 0 or -1 in self.shape[:new]:
            places = "behind those of new axes, which cannot be -1"
            expected = f"a size for each of the {x.ndim} axes of x, {places}"
            way_out = f"x has shape {x.shape}, and -1 keeps a size"
            raise ShapeError(self.name, "shape", expected, self.shape, way_out)
        own = (*self.shape[:new], *x.shape)
        for axis, (old, size) in enumerate(zip(own, self.shape, strict=True)):
            if size not in (old, -1) and old != 1:
                expected = f"{old} or -1 on axis {axis}, for only a size of 1 can be expanded"
                got = f"{size} in {self.shape}"
                way_out = f"x has shape {x.shape}; its axes are aligned from the right"
                raise ShapeError(self.name, "shape", expected, got, way_out)
        return Spec(self._full(x.shape), x.dtype)

    def _full(self, shape: Shape) -> Shape:
        """The shape of the output: each -1 replaced by the size that x has there."""
        own = (*self.shape[: len(self.shape) - len(shape)], *shape)
        return tuple([old if n == -1 else n for n, old in zip(self.shape, own, strict=True)])

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return np.broadcast_to(x, self._full(x.shape)), x.shape

    def backward(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        return (unbroadcast(mem, gy, shape),)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return mem.broadcast_to(x, self._full(x.shape)), x.shape  # a view takes no kernel

    def backward_kernel(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        return (sum_to(mem, gy, shape),)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        # Samples stay where they are only if -1 stands for the batch, on axis 0 of both.
        return "map" if len(self.shape) == specs[0].ndim and self.shape[:1] == (-1,) else None


@rearranged
def expand(x: Operand, shape: int | Shape) -> Tensor:
    """x repeated along axes of size 1, and along new axes in front, without copying anything.

    Parameters
    ----------
    shape : int or tuple of int
        The new sizes, at least as many as `x` has axes; -1 keeps a size.  Write -1 for the batch,
        so that the graph can be run again with another batch size.

    Returns
    -------
    Tensor
        Of the dtype of `x`; a view whose array cannot be written.

    Raises
    ------
    ShapeError
        `shape` has fewer sizes than `x` has axes, differs from one that is not 1, or has -1 for a
        new axis.
    ArgumentError
        A size that is no integer.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.expand([[1.0], [2.0]], (-1, 3)).value
    array([[1., 1., 1.],
           [2., 2., 2.]], dtype=float32)
    """
    return Expand(as_sizes("expand", "shape", shape))(x)
