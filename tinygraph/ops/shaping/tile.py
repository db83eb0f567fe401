"""Tile and repeat_interleave: a tensor repeated along its axes.

    L     size of x along an axis          r     how many times

    tile                 y[i] = x[i mod L]        0 <= i < r * L        on each axis
    repeat_interleave    y[i] = x[i div r]        0 <= i < r * L        on one axis
    gx = the sum of gy over the places where an element stands

A new axis of size 1 beside the repeated one is expanded, which copies nothing, and joined with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinygraph.base import ArgumentError, ShapeError
from tinygraph.engine import Array, Operand, Tensor, as_tensor, integers, normalize_axes
from tinygraph.ops.common import as_axis
from tinygraph.ops.shaping.expand import Expand
from tinygraph.ops.shaping.getitem import getitem
from tinygraph.ops.shaping.reshape import Flatten, Unsqueeze, rearranged


def _repeated(x: Tensor, times: dict[int, int], behind: int) -> Tensor:
    """x with a new axis of so many elements before each of some axes, or behind it, joined."""
    axes = sorted(times)
    places = {axis + k + behind: times[axis] for k, axis in enumerate(axes)}
    if places:
        x = Unsqueeze(tuple(places))(x)
    x = Expand(tuple([places.get(a, -1) for a in range(x.ndim)]))(x)
    for k in reversed(range(len(axes))):  # from the end, so that the numbers of the others stay
        x = Flatten(axes[k] + k, axes[k] + k + 1)(x)
    return x


@rearranged
def tile(x: Operand, dims: int | Sequence[int], *others: int) -> Tensor:
    """x repeated as a whole, along each axis.  A Tensor's method `repeat` is this function.

    Parameters
    ----------
    dims : int or tuple of int
        How many times along each axis, from the last one on; more numbers than axes make new axes
        in front.
    others : int
        The rest of them where they are not a tuple.

    Returns
    -------
    Tensor
        Of the dtype of `x`.

    Raises
    ------
    ShapeError
        A number is negative.
    ArgumentError
        A number that is no integer.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.tile([1.0, 2.0], 2).value
    array([1., 2., 1., 2.], dtype=float32)
    >>> tg.tile([1.0, 2.0], (3, 1)).shape
    (3, 2)
    """
    node = as_tensor(x)
    given = integers("tile", "dims", (dims, *others) if others else dims)
    if min(given, default=0) < 0:
        raise ShapeError("tile", "dims", "numbers of 0 or more", given)
    if len(given) > node.ndim:
        node = Unsqueeze(tuple(range(len(given) - node.ndim)))(node)
    first = node.ndim - len(given)
    return _repeated(node, {first + k: n for k, n in enumerate(given) if n != 1}, behind=0)


@rearranged
def repeat_interleave(
    x: Operand, repeats: int | Sequence[int] | Array | Tensor, axis: int | None = None
) -> Tensor:
    """Each element repeated along one axis: numpy's `repeat`.

    Parameters
    ----------
    repeats : int or sequence of int
        How many times; a sequence has a number for each element along the axis.
    axis : int, optional
        The axis.  Not given: `x` is flattened.

    Returns
    -------
    Tensor
        Of the dtype of `x`.

    Raises
    ------
    ShapeError
        There is no such axis, a number is negative, or there are more or fewer than elements.
    DtypeError
        `axis` is no integer.
    ArgumentError
        A number that is no integer.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.repeat_interleave([1.0, 2.0], 2).value, tg.repeat_interleave([1.0, 2.0], [1, 3]).value
    (array([1., 1., 2., 2.], dtype=float32), array([1., 2., 2., 2.], dtype=float32))
    """
    op, node = "repeat_interleave", as_tensor(x)
    if axis is None:
        node, axis = Flatten()(node), 0
    (place,) = normalize_axes(op, as_axis(op, axis), node.ndim)
    listed = repeats.numpy() if isinstance(repeats, Tensor) else repeats
    given = integers(op, "repeats", listed.tolist() if isinstance(listed, np.ndarray) else listed)
    if min(given, default=0) < 0:
        raise ShapeError(op, "repeats", "numbers of 0 or more", given)
    if isinstance(repeats, Sequence) or len(given) > 1:
        if len(given) != node.shape[place]:
            expected = f"one number, or one for each of {node.shape[place]} elements"
            raise ShapeError(op, "repeats", expected, f"{len(given)} numbers")
        index = np.repeat(np.arange(len(given)), given)
        return getitem(node, (*[slice(None)] * place, index))
    if not given:
        raise ArgumentError(op, "repeats", "a number, or one for each element", "none")
    return _repeated(node, {place: given[0]}, behind=1)
