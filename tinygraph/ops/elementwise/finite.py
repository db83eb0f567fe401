"""Whether numbers are NaN, infinite or neither.

    isnan     y = x != x
    isinf     y = |x| == inf
    isfinite  y = |x| < inf

A comparison with NaN is false, but for `!=`.
"""

from __future__ import annotations

import math

from tinygraph.engine import Operand, Tensor, as_tensor
from tinygraph.ops.common import documented
from tinygraph.ops.elementwise.comparison import equal, less, not_equal
from tinygraph.ops.elementwise.elementwise import abs

_question = documented(
    """
    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64, integers or bool.

    Returns
    -------
    Tensor
        Same shape; bool, without a gradient.

    Raises
    ------
    DtypeError
        `x` does not hold numbers.
    """
)


@_question
def isnan(x: Operand) -> Tensor:
    """Whether each element is NaN.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.isnan([1.0, float("nan"), float("inf")]).value
    array([False,  True, False])
    """
    node = as_tensor(x)
    return not_equal(node, node)


@_question
def isinf(x: Operand) -> Tensor:
    """Whether each element is infinite, of either sign.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.isinf([1.0, float("nan"), float("-inf")]).value
    array([False, False,  True])
    """
    return equal(abs(x), math.inf)


@_question
def isfinite(x: Operand) -> Tensor:
    """Whether each element is neither infinite nor NaN.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.isfinite([1.0, float("nan"), float("inf")]).value
    array([ True, False, False])
    """
    return less(abs(x), math.inf)
