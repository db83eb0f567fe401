"""Reductions: the elements that meet in one element of the output, over some axes or all.

A member states forward and backward, for the axes that `over` finds.  `@reduction` above the public
function says of arguments and errors what all members do.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import frozen
from tinygraph.cuda import Kernel, op_kernel
from tinygraph.engine import Array, Axes, Shape, Spec, normalize_axes, reduced_shape, require_float
from tinygraph.engine.memory import Memory
from tinygraph.engine.op import Gradients, Needs
from tinygraph.ops.common import documented, remembered, restored, sets_of


@frozen
class Reduction:
    """Mixed into the ops."""

    axis: Axes = None
    keepdims: bool = False

    name: ClassVar[str]

    def over(self, shape: Shape) -> tuple[tuple[int, ...], Shape]:
        """The reduced axes of an input, and the shape of the output."""
        return _over(self.name, self.axis, self.keepdims, shape)

    def infer(self, x: Spec) -> Spec:
        require_float(self.name, x=x)
        return Spec(self.over(x.shape)[1], x.dtype)

    def kernel(self, function: str, dtype: np.dtype[Any]) -> Kernel:
        """A kernel of the op by what its name ends in: "forward" or "backward"."""
        return op_kernel(self.name, f"{self.name}_{function}", dtype)

    def numbers(self, shape: Shape, axes: tuple[int, ...]) -> tuple[float, ...]:
        """What the kernel of backward takes at its end, before the sets."""
        return ()

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        """`saved` is the shape of x, and the arrays that the kernel reads beside gy."""
        shape, *arrays = saved
        axes, _ = self.over(shape)
        gx = mem.empty(shape, gy.dtype)
        kernel, numbers = self.kernel("backward", gy.dtype), self.numbers(shape, axes)
        sets_of(shape, axes).launch_on_elements(kernel, gy, *arrays, gx, *numbers)
        return (restored(gx, shape, axes),)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return None if 0 in self.over(specs[0].shape)[0] else "map"


@remembered
def _over(op: str, axis: Axes, keepdims: bool, shape: Shape) -> tuple[tuple[int, ...], Shape]:
    axes = normalize_axes(op, axis, len(shape))
    return axes, reduced_shape(shape, axes, keepdims)


def count(shape: Shape, axes: tuple[int, ...]) -> int:
    """How many elements meet in one."""
    return math.prod([shape[a] for a in axes])


def spread(g: Array, shape: Shape, axes: tuple[int, ...]) -> Array:
    """A reduced array repeated over the axes that were reduced, as a view of stride 0."""
    return np.broadcast_to(g.reshape(reduced_shape(shape, axes, keepdims=True)), shape)


reduction = documented(
    """
    Parameters
    ----------
    x : Tensor
        Any shape; float32 or float64.
    axis : int or tuple of int, optional
        The axes to reduce; all where it is not given.
    keepdims : bool
        Keep the reduced axes with size 1, so that the result broadcasts against `x`.

    Returns
    -------
    Tensor
        Of the dtype of `x`.

    Raises
    ------
    ShapeError
        There is no such axis, or one is named twice.
    DtypeError
        `x` is not of a float dtype, or `axis` is no integer.
    """
)
