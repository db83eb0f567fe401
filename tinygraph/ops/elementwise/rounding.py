"""Whole numbers near x, and its sign: functions that are flat between their jumps.

    sign   y = -1 where x < 0, 0 at 0, 1 where x > 0
    floor  y = the largest whole number <= x
    ceil   y = the smallest whole number >= x
    trunc  y = x without its fraction
    round  y = the nearest whole number, of two the even one
           gx = 0, at the jumps too

Infinities and NaN come out as they are, but for the sign of an infinity.  Integers have a sign;
whole they are.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tinygraph.base import ArgumentError, frozen
from tinygraph.engine import Op, Operand, Tensor, as_tensor, integers
from tinygraph.ops.common import NUMBERS, require_one_dtype
from tinygraph.ops.elementwise.unary import Flat, number_unary


def _whole(op: Op, x: Operand) -> Tensor:
    """What the op gives for floats; integers are whole already, and stay the node that they are."""
    node = as_tensor(x)
    require_one_dtype(op.name, NUMBERS, x=node.spec)
    return op(node) if node.dtype.kind == "f" else node


@frozen
class Sign(Flat, Op):
    of = np.sign
    takes: ClassVar[str] = NUMBERS


@frozen
class Floor(Flat, Op):
    of = np.floor


@frozen
class Ceil(Flat, Op):
    of = np.ceil


@frozen
class Trunc(Flat, Op):
    of = np.trunc


@frozen
class Round(Flat, Op):
    of = np.rint


@number_unary
def sign(x: Operand) -> Tensor:
    """The sign: -1, 0 or 1.

    Returns
    -------
    Tensor
        ... NaN propagates.  The gradient is 0.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.sign([-2.5, 0.0, 7.0]).value
    array([-1.,  0.,  1.], dtype=float32)
    """
    return Sign()(x)


@number_unary
def floor(x: Operand) -> Tensor:
    """The largest whole number that is not above x.

    Returns
    -------
    Tensor
        ... The gradient is 0.  Integers are `x` itself.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.floor([-1.5, 1.5]).value
    array([-2.,  1.], dtype=float32)
    """
    return _whole(Floor(), x)


@number_unary
def ceil(x: Operand) -> Tensor:
    """The smallest whole number that is not below x.

    Returns
    -------
    Tensor
        ... The gradient is 0.  Integers are `x` itself.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.ceil([-1.5, 1.5]).value
    array([-1.,  2.], dtype=float32)
    """
    return _whole(Ceil(), x)


@number_unary
def trunc(x: Operand) -> Tensor:
    """The whole number that is left when the fraction is cut off.

    Returns
    -------
    Tensor
        ... The gradient is 0.  Integers are `x` itself.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.trunc([-1.5, 1.5]).value
    array([-1.,  1.], dtype=float32)
    """
    return _whole(Trunc(), x)


@number_unary
def round(x: Operand, *, decimals: int = 0) -> Tensor:
    """The nearest whole number; where two are as near, the even one.

    Parameters
    ----------
    decimals : int
        Digits behind the point that are kept: x is multiplied by so many tens, and divided after.
        Negative ones make tens, hundreds, ... and floats alone are rounded so.

    Returns
    -------
    Tensor
        ... The gradient is 0.  Integers are `x` itself.

    Raises
    ------
    ArgumentError
        `decimals` is no integer, or is negative and `x` holds integers.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.round([0.5, 1.5, 2.4]).value
    array([0., 2., 2.], dtype=float32)
    >>> tg.round([0.126, 12.5], decimals=1).value
    array([ 0.1, 12.5], dtype=float32)
    """
    (digits,) = integers("round", "decimals", decimals)
    node = as_tensor(x)
    if digits == 0 or (digits > 0 and node.dtype.kind != "f"):
        return _whole(Round(), node)
    require_one_dtype("round", NUMBERS, x=node.spec)
    if node.dtype.kind != "f":
        raise ArgumentError("round", "decimals", "0 or more for integers", digits, "x.float()")
    tens = 10.0 ** abs(digits)
    return Round()(node * tens) / tens if digits > 0 else Round()(node / tens) * tens
