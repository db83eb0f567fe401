"""Cast: the same numbers in another dtype.

    y  = x, rounded to the new dtype        (float to integer: towards zero)
    gx = gy, rounded to the dtype of x      (from float to float; an integer has no derivative)

Of bools and numbers, 0 is False and anything else is True.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import DtypeError, frozen
from tinygraph.base.dtypes import as_dtype, float32
from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Gradients, Memory, Needs, Op, Operand, Spec, Tensor, as_tensor
from tinygraph.ops.common.docstrings import documented
from tinygraph.ops.common.launch import for_each


@frozen
class Cast(Op):
    dtype: np.dtype[Any]

    def infer(self, x: Spec) -> Spec:
        if self.dtype.kind not in "fiub" or self.dtype.itemsize > 8:
            expected = "a float up to 64 bits, an integer or bool"
            raise DtypeError(self.name, "dtype", expected, self.dtype)
        return Spec(x.shape, self.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, self.dtype)
        np.copyto(y, x, casting="unsafe")
        return y, x.dtype

    def backward(self, mem: Memory, gy: Array, dtype: np.dtype[Any], needs: Needs) -> Gradients:
        gx = mem.empty(gy.shape, dtype)
        np.copyto(gx, gy, casting="same_kind")
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return _launch(mem, x, self.dtype), x.dtype

    def backward_kernel(
        self, mem: Memory, gy: Array, dtype: np.dtype[Any], needs: Needs
    ) -> Gradients:
        return (_launch(mem, gy, dtype),)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if carries[0] else None


def _launch(mem: Memory, x: Array, dtype: np.dtype[Any]) -> Array:
    """x in that dtype; float16, which C++ has no type for, goes in and out as its bits."""
    y = mem.empty(x.shape, dtype)
    x_half, y_half = x.dtype == np.float16, y.dtype == np.float16
    if x_half and y_half:
        kernel = op_kernel("cast", "cast", *[np.dtype(np.uint16)] * 2)
    elif x_half:
        kernel = op_kernel("cast", "cast_from_half", y.dtype)
    elif y_half:
        kernel = op_kernel("cast", "cast_to_half", x.dtype)
    else:
        kernel = op_kernel("cast", "cast", x.dtype, y.dtype)
    read, write = (a.view(np.uint16) if half else a for a, half in ((x, x_half), (y, y_half)))
    for_each(kernel, x.size, read, write, x.size)
    return y


def astype(x: Operand, dtype: Any) -> Tensor:
    """The same numbers in another dtype; `x` itself where it has that dtype already.

    Parameters
    ----------
    x : Tensor
        Any shape and dtype.
    dtype : dtype
        A float, an integer or bool: tg.float64, "float64", np.int32, bool.

    Returns
    -------
    Tensor
        Differentiable where both dtypes are floats: the gradient is cast back.  Floats become
        integers by dropping the fraction, and every number but 0 becomes True.

    Raises
    ------
    DtypeError
        `dtype` is no dtype, or none that a Tensor can have.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.astype([1.0, -2.7], "int32").value
    array([ 1, -2], dtype=int32)
    """
    node, target = as_tensor(x), as_dtype("astype", dtype)
    return node if node.dtype == target else Cast(target)(node)


def floats(x: Operand) -> Tensor:
    """x itself where it is of floats; integers and bools in float32, the dtype of their functions.

    >>> floats([1, 2]).value
    array([1., 2.], dtype=float32)
    """
    node = x if isinstance(x, Tensor) else as_tensor(x)
    return node if node.value.dtype.kind == "f" else Cast(float32)(node)


def given_in(op: str, x: Operand, dtype: Any, kinds: str = "fiub") -> Operand:
    """x in the dtype that an argument `dtype=` of an op asks for; x itself where it is None."""
    if dtype is None:
        return x
    target = as_dtype(op, dtype)
    if target.kind not in kinds:
        raise DtypeError(op, "dtype", "float32 or float64", target)
    return astype(x, target)


with_dtype = documented(
    """
    Parameters
    ----------
    dtype : dtype, optional
        `x` is made this dtype first, and the result has it.
    """
)


def clone(x: Operand) -> Tensor:
    """A copy: a node of its own, through which the gradient goes on as it is.

    Parameters
    ----------
    x : Tensor
        Any shape and dtype.

    Returns
    -------
    Tensor
        Same shape, dtype and numbers, in memory of its own.

    Raises
    ------
    DtypeError
        `x` does not hold numbers.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([1.0, 2.0])
    >>> y = x.clone()
    >>> y.value is x.value, y.value
    (False, array([1., 2.], dtype=float32))
    """
    node = as_tensor(x)
    return Cast(node.dtype)(node)
