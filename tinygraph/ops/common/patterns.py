"""Arrays made of the places of their elements, on the device that needs them: nothing is copied.

So a captured step may make them.  They have the bits of numpy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Device
from tinygraph.ops.common.launch import for_each

FARTHEST = 2**31  # no matrix has so many diagonals


def spaced(device: Device, count: int, first: Any, step: Any, place: int, value: Any) -> Array:
    """first + i * step for each place i, but `value` at one `place`; all are numpy's, of one dtype.

    >>> from tinygraph.engine.device import CPU
    >>> spaced(CPU, 4, np.float64(1), np.float64(0.5), 3, np.float64(9))
    array([1. , 1.5, 2. , 9. ])
    """
    if not device.runs_kernels:
        out = np.arange(count, dtype=first.dtype)
        np.multiply(out, step, out=out)
        np.add(out, first, out=out)
        out[place : place + 1] = value
        return out
    out = device.empty((count,), first.dtype)
    kernel = op_kernel("patterns", "spaced", first.dtype)
    for_each(kernel, count, out, count, first, step, place, value)
    return out


def band(device: Device, rows: int, columns: int, least: int, most: int) -> Array:
    """A matrix of bools: whether an element is on one of the diagonals `least` to `most`.

    >>> from tinygraph.engine.device import CPU
    >>> band(CPU, 2, 3, 0, 1).astype(int)
    array([[1, 1, 0],
           [0, 1, 1]])
    """
    if not device.runs_kernels:
        made: Array = np.tri(rows, columns, most, bool)
        if least > -rows:
            made &= ~np.tri(rows, columns, least - 1, bool)
        return made
    out = device.empty((rows, columns), bool)
    for_each(op_kernel("patterns", "band"), out.size, out, out.size, columns, least, most)
    return out
