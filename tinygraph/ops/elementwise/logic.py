"""Operations on bits, of integers and bools: bitwise_and, bitwise_or, bitwise_xor, bitwise_not.

    z = x & y,  x | y,  x ^ y,  ~x = x ^ (all bits)

Of bools they are "and", "or", "either ... or", "not"; logical_and, ... are these of `x != 0`.  The
operands are broadcast together and brought to one dtype; there is no derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import DtypeError, frozen
from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Memory, Op, Operand, Spec, Tensor, as_tensor
from tinygraph.ops.common import Broadcasting, astype, device_of, joint_shape, promote
from tinygraph.ops.common.broadcast import for_each_broadcast


class Logic(Broadcasting):
    """Mixed into the ops below, which differ in one function."""

    join: ClassVar[Any]

    def infer(self, x: Spec, y: Spec) -> Spec:
        for name, spec in (("x", x), ("y", y)):
            if spec.dtype.kind not in "biu":
                way_out = "x.long(), or tg.logical_and and its kin, which take numbers as bools"
                raise DtypeError(self.name, name, "integers or bools", spec.dtype, way_out)
        return super().infer(x, y)

    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        z = mem.empty(joint_shape(self.name, x.shape, y.shape), x.dtype)
        self.join(x, y, out=z)
        return z, None

    def forward_kernel(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        z = mem.empty(joint_shape(self.name, x.shape, y.shape), x.dtype)
        for_each_broadcast(mem, op_kernel("logic", "logic", x.dtype, type(self).__name__), z, x, y)
        return z, None


@frozen
class BitwiseAnd(Logic, Op):
    join: ClassVar[Any] = np.bitwise_and


@frozen
class BitwiseOr(Logic, Op):
    join: ClassVar[Any] = np.bitwise_or


@frozen
class BitwiseXor(Logic, Op):
    join: ClassVar[Any] = np.bitwise_xor


_ALL_BITS = {"b": True, "i": -1}


def _bitwise(op: Op, sign: str, of_12_and_10: int) -> Callable[[Operand, Operand], Tensor]:
    """The public function of an op."""

    def join(x: Operand, y: Operand) -> Tensor:
        return op(*promote(op.name, x, y))

    join.__name__ = join.__qualname__ = op.name
    join.__doc__ = f"""The bits `x {sign} y`, element by element.

    Parameters
    ----------
    x, y : Tensor or number
        Integers or bools, of shapes that broadcast together.

    Returns
    -------
    Tensor
        The broadcast shape, in the promoted dtype; without a gradient.

    Raises
    ------
    ShapeError
        The shapes do not broadcast together.
    DtypeError
        An operand holds floats.

    Examples
    --------
    >>> import tinygraph as tg
    >>> (tg.tensor([12]) {sign} 10).value
    array([{of_12_and_10}])
    """
    return join


def _logical(op: Op, word: str, result: str) -> Callable[[Operand, Operand], Tensor]:
    """The public function of an op on numbers that are taken as bools."""
    name = op.name.replace("bitwise", "logical")

    def join(x: Operand, y: Operand) -> Tensor:
        device = device_of(x, y)
        return op(*[astype(as_tensor(each, device=device), bool) for each in (x, y)])

    join.__name__ = join.__qualname__ = name
    join.__doc__ = f"""Whether `{word}`, element by element; 0 is False and all else True.

    Parameters
    ----------
    x, y : Tensor or number
        Of any dtype, and of shapes that broadcast together.

    Returns
    -------
    Tensor
        The broadcast shape; bool, without a gradient.

    Raises
    ------
    ShapeError
        The shapes do not broadcast together.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.{name}([0.0, 0.5, 2.0], [0, 0, 1]).value
    array({result})
    """
    return join


_AND, _OR, _XOR = BitwiseAnd(), BitwiseOr(), BitwiseXor()
bitwise_and, bitwise_or = _bitwise(_AND, "&", 8), _bitwise(_OR, "|", 14)
bitwise_xor = _bitwise(_XOR, "^", 6)
logical_and = _logical(_AND, "x and y", "[False, False,  True]")
logical_or = _logical(_OR, "x or y", "[False,  True,  True]")
logical_xor = _logical(_XOR, "either x or y", "[False,  True, False]")


def bitwise_not(x: Operand) -> Tensor:
    """All bits the other way, `~x`: of an integer -1 - x, of a bool its opposite.

    Parameters
    ----------
    x : Tensor
        Integers or bools.

    Returns
    -------
    Tensor
        Same shape and dtype; without a gradient.

    Raises
    ------
    DtypeError
        `x` holds floats.

    Examples
    --------
    >>> import tinygraph as tg
    >>> (~tg.tensor([True, False])).value, (~tg.tensor([0, 5])).value
    (array([False,  True]), array([-1, -6]))
    """
    node = as_tensor(x)
    kind = node.dtype.kind
    ones = np.iinfo(node.dtype).max if kind == "u" else _ALL_BITS.get(kind, 0)
    return bitwise_xor(node, ones)


def logical_not(x: Operand) -> Tensor:
    """Whether a number is 0, or a bool False.

    Parameters
    ----------
    x : Tensor
        Of any dtype.

    Returns
    -------
    Tensor
        Same shape; bool, without a gradient.

    Raises
    ------
    DtypeError
        `x` does not hold numbers.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.logical_not([0.0, 0.5]).value
    array([ True, False])
    """
    return bitwise_xor(astype(x, bool), True)
