"""Counted leaves and identity matrices on a device that runs kernels: the bits of numpy's.

    arange      a, a + s, then a + i * d; d is the difference of the first two as they were rounded
    linspace    a + i * d with d = (b - a) / (n - 1), and b itself at the end
    eye         the main diagonal

All are made in the dtype that numpy would make them in, and cast.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygraph.base.dtypes import Dtype, int64
from tinygraph.engine import Array, Device, eager_memory
from tinygraph.ops.common import Cast
from tinygraph.ops.common.patterns import band, spaced

_LARGEST = 2**62  # of integers whose sums are int64 for certain


def arange(device: Device, dtype: Dtype, first: Any, last: Any, step: Any) -> Array:
    """As np.arange, in a dtype.

    >>> from tinygraph.engine.device import CPU
    >>> arange(CPU, np.dtype("f4"), 0, 1, 0.25)
    array([0.  , 0.25, 0.5 , 0.75], dtype=float32)
    """
    given = first, last, step
    if not device.runs_kernels or not all(map(_is_number, given)):
        return _from_host(device, np.arange(first, last, step), dtype)
    kinds = [np.asarray(v).dtype for v in given]
    kind = np.result_type(int64, *kinds)
    count = _quotient(first, last, step)
    if not math.isfinite(count) or (kind == int64 and max(map(abs, given)) > _LARGEST):
        return _from_host(device, np.arange(first, last, step), dtype)
    start, second = kind.type(first), kind.type(first + step)
    exact = (1, second) if start else (0, start)  # -0 stays
    made = spaced(device, max(math.ceil(count), 0), start, second - start, *exact)
    return _cast(device, made, dtype, min(first, last) < 0)


def _quotient(first: Any, last: Any, step: Any) -> float:
    """The number of steps, and a part of one."""
    with np.errstate(all="ignore"):
        return float((last - first) / step)


def linspace(device: Device, dtype: Dtype, start: Any, end: Any, count: int) -> Array:
    """As np.linspace, in a dtype.

    >>> from tinygraph.engine.device import CPU
    >>> linspace(CPU, np.dtype("f8"), 0, 1, 3)
    array([0. , 0.5, 1. ])
    """
    if device.runs_kernels and _is_number(start) and _is_number(end):
        first, last = np.multiply(start, 1.0), np.multiply(end, 1.0)
        kind = np.result_type(first, last, float(count))
        first, last = kind.type(first), kind.type(last)
        with np.errstate(all="ignore"):
            all_steps = last - first
            step = all_steps / kind.type(count - 1) if count > 1 else all_steps
        if step or not all_steps:
            made = spaced(device, count, first, step, count - 1 if count > 1 else -1, last)
            return _cast(device, made, dtype, min(first, last) < 0)
    return _from_host(device, np.linspace(start, end, count), dtype)


def eye(device: Device, dtype: Dtype, rows: int, columns: int) -> Array:
    """As np.eye, in a dtype.

    >>> from tinygraph.engine.device import CPU
    >>> eye(CPU, np.dtype("f4"), 1, 2)
    array([[1., 0.]], dtype=float32)
    """
    if device.runs_kernels:
        return _cast(device, band(device, rows, columns, 0, 0), dtype)
    return np.eye(rows, columns, dtype=dtype)


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.number, np.bool_))


def _from_host(device: Device, array: Array, dtype: Dtype) -> Array:
    return device.from_numpy(array.astype(dtype, copy=False))


def _cast(device: Device, array: Array, dtype: Dtype, negative: bool = False) -> Array:
    """The array in a dtype.  By way of int64 a negative float wraps around, as in numpy."""
    wraps = negative and dtype.kind == "u" and array.dtype.kind == "f"
    for kind in (int64, dtype) if wraps else (dtype,):
        if array.dtype != kind:
            array = Cast(kind).forward_kernel(eager_memory((False,), device), array)[0]
    return array
