"""The arrays of a page: each once, by its bits, and of large ones a corner.

As JSON has them:

    {shape, dtype, kept, corner, low, high, code, data}
    kept        what is there of `shape`: leading axes are cut, so fewer samples, fewer channels; of
                an image that is still too large, and of a matrix of long rows, the upper left part
    corner      what would be there if the page had only this array: origins.py counts in it
    low, high   the smallest and the largest finite number of the whole array
    code        f4, f8, i4 or u1: how numbers lie in `data`, base64, little-endian; exactly, but
                for integers beyond 2**53.  One number stands for an array of equal bits
"""

from __future__ import annotations

import base64
import hashlib
import math
from typing import Any, NamedTuple

import numpy as np

from tinygraph.engine import Array, Shape

MOST = 4096  # elements of an array on a page
ROWS, SAMPLES = 32, 4  # so many rows of an image, and of a matrix, are enough
BUDGET = 340_000  # bytes of all arrays; where they take more, each keeps less


class Kept(NamedTuple):
    """What is kept of an array, and what is known of the whole."""

    shape: Shape
    dtype: str
    low: float
    high: float
    corner: Array

    def cut(self, most: int) -> Array:
        """A smaller corner: at most so many elements."""
        return self.corner[tuple([slice(0, n) for n in corner(self.corner.shape, most)])]


class Arrays:
    """Arrays that get a number each when they are added."""

    def __init__(self) -> None:
        self.kept: list[Kept] = []
        self._seen: dict[Any, int] = {}

    def add(self, array: Array) -> int:
        """The number of an array; an equal one that was added before has the same."""
        whole = np.ascontiguousarray(array).reshape(np.shape(array))
        key = whole.shape, str(whole.dtype), hashlib.sha1(whole.data).digest()
        if key not in self._seen:
            self._seen[key] = len(self.kept)
            part = whole[tuple([slice(0, n) for n in corner(whole.shape, MOST)])].copy()
            self.kept.append(Kept(whole.shape, str(whole.dtype), *_range(whole), part))
        return self._seen[key]

    def limit(self) -> int:
        """How many elements each array may keep, so that all of them fit the budget."""
        most = MOST
        while most > 64 and sum(_plain(k.cut(most)).nbytes for k in self.kept) > BUDGET:
            most = most * 3 // 4
        return most

    def to_json(self) -> list[dict[str, Any]]:
        most = self.limit()
        return [_entry(kept, kept.cut(most)) for kept in self.kept]


def corner(shape: Shape, most: int) -> Shape:
    """How much is kept of each axis: leading axes are cut first.

    >>> corner((1000, 3, 32, 32), 4096), corner((10, 10), 4096), corner((100, 700), 4096)
    ((1, 3, 32, 32), (10, 10), (5, 700))

    Where too few rows would be left, rows and columns are cut alike.

    >>> corner((2, 3, 224, 224), 4096), corner((10, 5000), 4096)
    ((1, 1, 64, 64), (10, 409))
    """
    kept = list(shape)
    for axis in range(len(kept)):
        if math.prod(kept) <= most:
            break
        rest = math.prod(kept[axis + 1 :]) or 1
        kept[axis] = max(1, min(kept[axis], most // rest))
    if len(shape) > 1 and kept[-2] < min(shape[-2], ROWS if len(shape) > 2 else SAMPLES):
        rows = min(shape[-2], max(math.isqrt(most), most // shape[-1]))
        kept[-2:] = rows, min(shape[-1], most // rows)
    return tuple(kept)


def places(index: Array, shape: Shape, kept: Shape) -> tuple[Array, Array]:
    """Of elements of an array, counted row by row: which are in its corner, and where in it.

    >>> [a.tolist() for a in places(np.array([0, 9, 11]), (4, 10), (2, 5))]
    [[True, False, True], [0, 6]]
    """
    if not shape:
        return np.ones(len(index), bool), index
    at = np.unravel_index(index, shape)
    inside = np.logical_and.reduce([a < n for a, n in zip(at, kept, strict=True)])
    return inside, np.ravel_multi_index([a[inside] for a in at], kept)


def encoded(array: Array) -> str:
    """The numbers of an array in base64, little-endian."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(np.ascontiguousarray(little).tobytes()).decode()


def _entry(kept: Kept, part: Array) -> dict[str, Any]:
    plain = np.ascontiguousarray(_plain(part)).reshape(-1)
    bits = plain.view(f"u{plain.itemsize}")
    same = plain.size > 1 and bool((bits == bits[0]).all())
    cut = {} if part.shape == kept.corner.shape else {"corner": list(kept.corner.shape)}
    return {
        "shape": list(kept.shape),
        "dtype": kept.dtype,
        "kept": list(part.shape),
        **cut,
        "low": kept.low,
        "high": kept.high,
        "code": f"{plain.dtype.kind}{plain.dtype.itemsize}",
        "data": encoded(plain[:1] if same else plain),
    }


def _plain(array: Array) -> Array:
    """The array in a dtype that scripts can read: float16 as float32, small integers as int32."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "b" or (kind, size) == ("u", 1):
        return array.astype(np.uint8)
    if kind == "f":
        return array if size >= 4 else array.astype(np.float32)
    small = not array.size or (array.min() >= -(2**31) and array.max() < 2**31)
    return array.astype(np.int32 if small else np.float64)


def _range(array: Array) -> tuple[float, float]:
    """The smallest and the largest finite number; 0 where there is none."""
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
