"""Leaves made from a shape: zeros, ones, full, arange, randn."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.device import Device
from tinygraph.errors import ArgumentError
from tinygraph.random import default_generator
from tinygraph.running import here
from tinygraph.tensor import Tensor


def _shape(op: str, shape: tuple[Any, ...]) -> tuple[int, ...]:
    """`zeros(2, 3)` and `zeros((2, 3))` mean the same."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if not all(isinstance(n, (int, np.integer)) and n >= 0 for n in sizes):
        raise ArgumentError(op, "shape", "sizes of 0 or more, as ints or a tuple", sizes)
    return tuple(int(n) for n in sizes)


def full(
    shape: int | tuple[int, ...],
    fill_value: float,
    requires_grad: bool = False,
    dtype: Any = np.float32,
    device: str | Device | None = None,
    name: str | None = None,
) -> Tensor:
    """A leaf of the given shape, filled with one value.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.full((2, 2), 7.0).value
    array([[7., 7.],
           [7., 7.]], dtype=float32)
    """
    array = np.full(_shape("full", (shape,)), fill_value, dtype)
    return Tensor(array, requires_grad, dtype, device, name)


def zeros(*shape: Any, **options: Any) -> Tensor:
    """A leaf of zeros; `options` are those of `full`: requires_grad, dtype, device, name.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.zeros(2, 3).shape, tg.zeros((2, 3)).dtype
    ((2, 3), dtype('float32'))
    """
    return full(_shape("zeros", shape), 0, **options)


def ones(*shape: Any, **options: Any) -> Tensor:
    """A leaf of ones; `options` are those of `full`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.ones(3).value
    array([1., 1., 1.], dtype=float32)
    """
    return full(_shape("ones", shape), 1, **options)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    requires_grad: bool = False,
    dtype: Any = None,
    device: str | Device | None = None,
    name: str | None = None,
) -> Tensor:
    """Evenly spaced numbers from `start` up to, without, `stop`; `arange(n)` counts from 0.

    int64 where all arguments are ints, else float32.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.arange(3).value, tg.arange(0.0, 1.0, 0.5).value
    (array([0, 1, 2]), array([0. , 0.5], dtype=float32))
    """
    if not step:
        raise ArgumentError("arange", "step", "any number but 0", step)
    first, last = (0, start) if stop is None else (start, stop)
    if dtype is None:
        whole = all(isinstance(v, (int, np.integer)) for v in (first, last, step))
        dtype = np.int64 if whole else np.float32
    return Tensor(np.arange(first, last, step, dtype=dtype), requires_grad, dtype, device, name)


def randn(
    *shape: Any,
    requires_grad: bool = False,
    dtype: Any = np.float32,
    device: str | Device | None = None,
    name: str | None = None,
) -> Tensor:
    """A leaf of standard normal numbers, from the generator that `manual_seed` seeds.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.randn(2, 3).shape
    (2, 3)
    """
    numbers = here.top.do(default_generator.numpy, "randn").standard_normal(_shape("randn", shape))
    return Tensor(numbers, requires_grad, dtype, device, name)
