"""Roll and flip: the elements of an axis in another order.

    L     size of x along an axis          s     how far

    roll    y[i] = x[(i - s) mod L]        gx[i] = gy[(i + s) mod L]
    flip    y[i] = x[L - 1 - i]            gx[i] = gy[L - 1 - i]

roll is two slices in the other order, flip one slice that runs backwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinygraph.base import ShapeError
from tinygraph.engine import Axis, Operand, Tensor, as_tensor, integers, normalize_axes
from tinygraph.engine.spec import axes_in_order
from tinygraph.ops.common import as_axes
from tinygraph.ops.shaping.concatenate import Concatenate
from tinygraph.ops.shaping.getitem import getitem
from tinygraph.ops.shaping.reshape import Flatten, Reshape, rearranged


@rearranged
def roll(x: Operand, shifts: int | Sequence[int], axis: Axis = None) -> Tensor:
    """The elements moved along axes; those that leave at the end come in at the beginning.

    Parameters
    ----------
    shifts : int or tuple of int
        How far; towards the beginning where negative.
    axis : int or tuple of int, optional
        One axis for each shift.  Not given: all of `x`, row by row.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    ShapeError
        There is no such axis, one is named twice, or there are not as many axes as shifts.
    DtypeError
        `axis` is no integer.
    ArgumentError
        A shift that is no integer.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.roll([1.0, 2.0, 3.0], 1).value
    array([3., 1., 2.], dtype=float32)
    """
    node, given = as_tensor(x), integers("roll", "shifts", shifts)
    named = as_axes("roll", axis)
    y = Flatten()(node) if named is None else getitem(node, ...)
    axes = (0,) if named is None else axes_in_order("roll", named, node.ndim)
    if len(given) != len(axes):
        expected = f"one shift for each axis, {len(axes)}"
        raise ShapeError("roll", "shifts", expected, f"{len(given)}: {given}")
    for shift, place in zip(given, axes, strict=True):
        far = shift % y.shape[place] if y.shape[place] else 0
        if far:
            before = (slice(None),) * place
            end, begin = (getitem(y, (*before, s)) for s in (slice(-far, None), slice(None, -far)))
            y = Concatenate(place)(end, begin)
    if named is not None:
        return y
    return Reshape((-1, *node.shape[1:]) if node.size and node.ndim else node.shape)(y)


@rearranged
def flip(x: Operand, axis: Axis = None, *others: int) -> Tensor:
    """The elements along axes in reverse.

    Parameters
    ----------
    axis : int or tuple of int, optional
        The axes; all where it is not given.
    others : int
        More axes, where they are not a tuple.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; a view on the cpu.

    Raises
    ------
    ShapeError
        There is no such axis, or one is named twice.
    DtypeError
        `axis` is no integer.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.flip([[1.0, 2.0], [3.0, 4.0]], 1).value
    array([[2., 1.],
           [4., 3.]], dtype=float32)
    """
    node = as_tensor(x)
    named = as_axes("flip", (axis, *others) if others else axis)  # type: ignore[arg-type]
    axes = normalize_axes("flip", named, node.ndim)
    order = [slice(None, None, -1 if a in axes else 1) for a in range(node.ndim)]
    return getitem(node, tuple(order))
