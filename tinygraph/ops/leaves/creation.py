"""Leaves: from data, filled or counted, and like another tensor.  Drawn ones: sampling.py.

What every leaf can be told stands in leaf_options.py, and is described there.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

import numpy as np

from tinygraph.base import ArgumentError, DtypeError, ShapeError, unmasked, whole
from tinygraph.base.dtypes import Dtype, float32, int64
from tinygraph.base.incoming import as_numbers
from tinygraph.engine import Array, Device, Operand, Shape, Tensor, get_device
from tinygraph.engine import as_tensor as as_node
from tinygraph.ops.common.to import to
from tinygraph.ops.leaves import counted
from tinygraph.ops.leaves.options import (
    Options,
    created,
    like,
    like_options,
    new_leaf,
    shape_of,
    sized,
)

__all__ = [
    "arange",
    "as_tensor",
    "empty",
    "empty_like",
    "eye",
    "from_numpy",
    "full",
    "full_like",
    "is_tensor",
    "linspace",
    "ones",
    "ones_like",
    "tensor",
    "zeros",
    "zeros_like",
]

# ---- from data ------------------------------------------------------------------------------


@created
def tensor(data: Any, **options: Unpack[Options]) -> Tensor:
    """A leaf with a copy of the data.

    Parameters
    ----------
    data : array_like
        Numbers; of a Tensor, the value.
    dtype : dtype, optional
        By default that of an array; int64, float32 or bool for Python's numbers.
    device : str, optional
        By default that of a Tensor, and else "cpu".

    Raises
    ------
    DtypeError
        ... Or `data` is not made of numbers in a rectangular array.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.tensor([1, 2.5]), tg.tensor([1, 2])
    (Tensor([1. , 2.5], dtype=float32), Tensor([1, 2], dtype=int64))
    """
    if isinstance(data, Tensor) and options.get("device") is None:
        options["device"] = data.device
    array = as_numbers(data, options.get("dtype"), copy=True)
    return new_leaf("tensor", lambda place, _: place.from_numpy(array), array.dtype, **options)


def as_tensor(data: Operand, dtype: Any = None, device: str | Device | None = None) -> Tensor:
    """The data as a tensor, copied only where another dtype or device asks for it.

    Parameters
    ----------
    data : Tensor or array_like
        A Tensor stays the node that it is, or is brought to dtype and device by ops that gradients
        go through.
    dtype, device : optional
        By default those of the data; Python's numbers are int64, float32 or bool, on the cpu.

    Returns
    -------
    Tensor
        On the cpu it shares the memory of an array of its dtype.

    Raises
    ------
    DtypeError
        `data` is not made of numbers, or there is no such dtype.
    ArgumentError
        There is no such device.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> array = np.zeros(2)
    >>> x = tg.as_tensor(array)
    >>> array[0] = 5
    >>> x, tg.as_tensor(x) is x
    (Tensor([5., 0.], dtype=float64), True)
    """
    if isinstance(data, Tensor):
        return to(data, device, dtype)
    return as_node(data, dtype, get_device(device))


def from_numpy(array: Array) -> Tensor:
    """A tensor on the cpu that shares the memory of a numpy array.

    Parameters
    ----------
    array : numpy.ndarray
        Of floats up to 64 bits, integers or bools.

    Returns
    -------
    Tensor
        A leaf of the array's shape and dtype.

    Raises
    ------
    DtypeError
        `array` is no numpy array, or of another dtype.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> tg.from_numpy(np.arange(3.0))
    Tensor([0., 1., 2.], dtype=float64)
    """
    if not isinstance(array, np.ndarray):
        got = type(array).__name__
        raise DtypeError("from_numpy", "array", "a numpy array", got, "tg.tensor takes all data")
    return as_node(array)


def is_tensor(x: Any) -> bool:
    """Whether x is a Tensor.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.is_tensor(tg.zeros(2)), tg.is_tensor([0.0, 0.0])
    (True, False)
    """
    return isinstance(x, Tensor)


# ---- filled ---------------------------------------------------------------------------------


def _filled(op: str, shape: Shape, value: Any, default: Dtype, options: Options) -> Tensor:
    return new_leaf(op, lambda at, dtype: at.full(shape, dtype, value), default, **options)


@sized
def zeros(*sizes: Any, size: Any = None, **options: Unpack[Options]) -> Tensor:
    """A leaf of zeros.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.zeros(2, 3).shape, tg.zeros((2, 3)).dtype
    ((2, 3), dtype('float32'))
    """
    return _filled("zeros", shape_of("zeros", sizes, size), 0, float32, options)


@sized
def ones(*sizes: Any, size: Any = None, **options: Unpack[Options]) -> Tensor:
    """A leaf of ones.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.ones(3).value
    array([1., 1., 1.], dtype=float32)
    """
    return _filled("ones", shape_of("ones", sizes, size), 1, float32, options)


@sized
def empty(*sizes: Any, size: Any = None, **options: Unpack[Options]) -> Tensor:
    """A leaf that nobody has written to: its numbers are what was in memory.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.empty(2, 3).shape
    (2, 3)
    """
    shape = shape_of("empty", sizes, size)
    return new_leaf("empty", lambda at, dtype: at.empty(shape, dtype), float32, **options)


@sized
def full(size: Any, fill_value: Any, **options: Unpack[Options]) -> Tensor:
    """A leaf filled with one number.

    Parameters
    ----------
    fill_value : number
        Or a tensor or array of a single element.
    dtype : dtype, optional
        By default that of the number: int64 for an int, float32 for a float, bool for a bool.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.full((2, 2), 7.0).value
    array([[7., 7.],
           [7., 7.]], dtype=float32)
    >>> tg.full((2,), 7).dtype
    dtype('int64')
    """
    number = as_numbers(fill_value, options.get("dtype"), copy=None)
    if number.size != 1:
        expected, got = "a single number", f"shape {number.shape}"
        raise ShapeError("full", "fill_value", expected, got, "tg.expand repeats a tensor")
    return _filled("full", shape_of("full", (size,)), number.item(), number.dtype, options)


@created
def eye(n: int, m: int | None = None, **options: Unpack[Options]) -> Tensor:
    """A matrix with ones on its diagonal, and zeros.

    Parameters
    ----------
    n : int
        The number of rows.
    m : int, optional
        The number of columns; by default `n`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.eye(2).value
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    rows = whole("eye", "n", n, least=0)
    columns = rows if m is None else whole("eye", "m", m, least=0)
    return new_leaf("eye", partial(counted.eye, rows=rows, columns=columns), float32, **options)


# ---- counted --------------------------------------------------------------------------------


@created
def arange(
    start: float, end: float | None = None, step: float = 1, **options: Unpack[Options]
) -> Tensor:
    """Evenly spaced numbers from `start` up to, without, `end`; `arange(n)` counts from 0.

    Parameters
    ----------
    start, end, step : number
        A step of -1 counts down.
    dtype : dtype, optional
        By default int64 where all three are ints, else float32.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.arange(3).value, tg.arange(0.0, 1.0, 0.5).value
    (array([0, 1, 2]), array([0. , 0.5], dtype=float32))
    """
    unmasked("arange", "start, end, step", (start, end, step))
    if not step:
        raise ArgumentError("arange", "step", "any number but 0", step)
    first, last = (0, start) if end is None else (start, end)
    for name, value in (("start", first), ("end", last), ("step", step)):
        if isinstance(value, (float, np.floating)) and not np.isfinite(value):
            raise ArgumentError("arange", name, "a finite number", value)
    whole = all(isinstance(v, (int, np.integer)) for v in (first, last, step))
    make = partial(counted.arange, first=first, last=last, step=step)
    return new_leaf("arange", make, int64 if whole else float32, **options)


@created
def linspace(start: float, end: float, steps: int, **options: Unpack[Options]) -> Tensor:
    """So many evenly spaced numbers from `start` to `end`, both of them included.

    Parameters
    ----------
    start, end : number
        The first and the last number.
    steps : int
        How many numbers.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.linspace(0, 1, 5).value
    array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    unmasked("linspace", "start, end", (start, end))
    count = whole("linspace", "steps", steps, least=0)
    make = partial(counted.linspace, start=start, end=end, count=count)
    return new_leaf("linspace", make, float32, **options)


# ---- like another tensor --------------------------------------------------------------------


@like
def zeros_like(x: Operand, **options: Unpack[Options]) -> Tensor:
    """Zeros of the shape of x.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.zeros_like(tg.arange(2)).value
    array([0, 0])
    """
    return zeros(**like_options(x, options))


@like
def ones_like(x: Operand, **options: Unpack[Options]) -> Tensor:
    """Ones of the shape of x.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.ones_like(tg.zeros(2)).value
    array([1., 1.], dtype=float32)
    """
    return ones(**like_options(x, options))


@like
def empty_like(x: Operand, **options: Unpack[Options]) -> Tensor:
    """A leaf of the shape of x that nobody has written to.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.empty_like(tg.zeros(2, 3)).shape
    (2, 3)
    """
    return empty(**like_options(x, options))


@like
def full_like(x: Operand, fill_value: Any, **options: Unpack[Options]) -> Tensor:
    """One number in the shape of x.

    Parameters
    ----------
    fill_value : number
        Or a tensor or array of a single element.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.full_like(tg.zeros(2), 7).value
    array([7., 7.], dtype=float32)
    """
    return full(fill_value=fill_value, **like_options(x, options))
