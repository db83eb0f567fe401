"""Clip: each element brought into an interval, whose ends may be open.

    a b     the bounds, hyper-parameters; a missing one is infinite

    y  = a where x < a,  b where x > b,  else x
    gx = gy where a <= x <= b, else 0

At a bound the derivative is 1, as in torch; but 0 if a = b, for then y is the same for all x.  NaN
stays NaN and has the derivative 0, for it lies in no interval.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import ArgumentError, DtypeError, frozen
from tinygraph.engine import Array, Memory, Op, Operand, Spec, Tensor, as_tensor
from tinygraph.ops.common import NUMBERS, astype, result_type, rounded, select
from tinygraph.ops.elementwise.unary import Unary, unary


@frozen
class Clip(Unary, Op):
    min: float | None = None
    max: float | None = None
    takes: ClassVar[str] = NUMBERS

    def infer(self, x: Spec) -> Spec:
        super().infer(x)
        if x.dtype.kind != "f":
            for argument, bound in (("min", self.min), ("max", self.max)):
                _require_integer(self.name, argument, bound, x.dtype)
        return x

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        np.clip(x, self.min, self.max, out=y)

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        low, high = self.numbers(x.dtype)
        if low == high:
            gx[...] = 0
            return
        inside = np.greater_equal(x, low, out=mem.empty(x.shape, bool))
        inside &= np.less_equal(x, high, out=mem.empty(x.shape, bool))
        select(mem, gy, inside, gx)

    def numbers(self, dtype: np.dtype[Any]) -> tuple[float, ...]:
        """Both bounds as elements of x: a missing one is beyond all of them."""
        if dtype.kind != "f":
            limits = np.iinfo(dtype)
            return (
                limits.min if self.min is None else self.min,
                limits.max if self.max is None else self.max,
            )
        low = -math.inf if self.min is None else rounded(self.min, dtype)
        return low, math.inf if self.max is None else rounded(self.max, dtype)


def _require_integer(op: str, argument: str, bound: float | None, dtype: np.dtype[Any]) -> None:
    """Integers are clipped to integers of their own range: anything else would change the dtype."""
    if bound is None:
        return
    if not isinstance(bound, int):
        expected = f"an integer, for x is {dtype}"
        way_out = "make x floating: x.astype('float32')"
        raise DtypeError(op, argument, expected, bound, way_out)
    require_in_range(op, argument, bound, dtype, "pass None for no bound")


def require_in_range(
    op: str, argument: str, bound: float, dtype: np.dtype[Any], way_out: str = ""
) -> None:
    """Raise unless an array of that integer dtype can hold a bound."""
    limits = np.iinfo(dtype)
    if not limits.min <= bound <= limits.max:
        expected = f"a number that {dtype}, the dtype of x, can hold"
        raise ArgumentError(op, argument, expected, bound, way_out)


def _bound(argument: str, value: Any) -> float | None:
    """A bound as a Python number, which does not promote float32 arrays."""
    if value is None:
        return None
    if isinstance(value, (int, np.integer)) and -(2**63) <= value < 2**64:
        return int(value)
    if isinstance(value, (float, np.floating)) and not math.isnan(value):
        return float(value)
    expected = "a number or None"
    way_out = "bounds that are tensors: tg.minimum(tg.maximum(x, min), max)"
    raise ArgumentError("clip", argument, expected, f"{value!r:.80}", way_out)


def _promoted(x: Tensor, *bounds: Any) -> Tensor:
    """x in the dtype that it has beside its bounds, but integers stay as narrow as they are."""
    if x.value.dtype.kind == "f":
        return x
    dtype = result_type(x, *[bound for bound in bounds if bound is not None])
    return x if dtype.kind in "iu" and x.value.dtype.kind in "iu" else astype(x, dtype)


@unary
def clip(x: Operand, min: float | None = None, max: float | None = None) -> Tensor:
    """x with what lies below `min` raised to it, and what lies above `max` lowered to it.

    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64 or integers.
    min, max : float, optional
        The bounds, of which at least one is given; infinities are allowed.  Where one is a float,
        integers become float32, as in PyTorch.

    Returns
    -------
    Tensor
        ... NaN propagates.  The gradient is 1 inside the interval and at the bounds, 0 outside
        and for NaN.

    Raises
    ------
    ArgumentError
        Neither bound is given, `min` is larger than `max`, or a bound is NaN, no number, or beyond
        the range of an integer `x`.
    DtypeError
        `x` is float16, or bool between bounds that are bools.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([-2.0, 0.5, 3.0], requires_grad=True)
    >>> y = tg.clip(x, 0, 1)
    >>> y.sum().backward()
    >>> y.value, x.grad
    (array([0. , 0.5, 1. ], dtype=float32), array([0., 1., 0.], dtype=float32))
    """
    low, high = _bound("min", min), _bound("max", max)
    if low is None and high is None:
        raise ArgumentError("clip", "min, max", "at least one bound", "None for both")
    if low is not None and high is not None and low > high:
        raise ArgumentError(
            "clip", "min, max", "a min not above max", f"{low} and {high}", "exchange the two"
        )
    return Clip(low, high)(_promoted(as_tensor(x), min, max))
