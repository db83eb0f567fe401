"""Lengths whose powers leave the range of their dtype: in float32, 1e-23**2 is 0 and 1e20**2 inf.

A sum of powers in which that may have counted is `doubtful`.  The length of such a set, and of no
other, is made again of abs(x) / u, where u is the largest of the set, for negative p the smallest:

    y = u * (sum of (abs(x) / u)^p)^(1 / p)

The powers are then at most 1, and one of them is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinygraph.base.dtypes import float32, float64
from tinygraph.engine import Array

# From there on no power that a sum lacks, for it was too small, is more than a rounding.
_LEAST = {float32: 2.0**-100, float64: 2.0**-960}
_MOST = {dtype: float(np.finfo(dtype).max) for dtype in _LEAST}


def doubtful(sums: Array) -> Array | None:
    """Where a sum may lack powers that were out of range; None is nowhere.

    >>> doubtful(np.float32([0.5, 2.0])), doubtful(np.float32([0.5, 1e-40]))
    (None, array([False,  True]))
    """
    if not sums.size:
        return None
    least, most = _LEAST[sums.dtype], _MOST[sums.dtype]
    if least <= sums.item(sums.argmin()) and sums.item(sums.argmax()) <= most:  # NaN comes first
        return None
    return np.asarray(~((sums >= least) & (sums <= most)))


def make_again(
    y: Array, where: Array, x: Array, axes: tuple[int, ...], length: Callable[[Array], Any]
) -> None:
    """Write `length(sets)` to y where `where` says so; `sets` are the elements of x, in rows."""
    if not x.size:
        return
    kept = y.reshape([n for a, n in enumerate(x.shape) if a not in axes])  # a view
    where = where.reshape(kept.shape)
    sets = np.moveaxis(x, axes, range(-len(axes), 0))[where]
    kept[where] = length(sets.reshape(len(sets), -1))


def scaled_length(sets: Array, p: float) -> Array:
    """The norm of each row, which is overwritten.

    >>> scaled_length(np.float32([[3e-30, -4e-30], [0, 0]]), 2)
    array([5.e-30, 0.e+00], dtype=float32)
    """
    np.absolute(sets, out=sets)
    unit = (np.max if p > 0 else np.min)(sets, axis=1)
    with np.errstate(all="ignore"):  # 0 / 0 of a row of zeros
        sets /= unit[:, None]
        np.power(sets, p, out=sets)
        y = unit * np.add.reduce(sets, axis=1) ** (1 / p)
    return np.where((unit > 0) & (unit < np.inf), y, unit)
