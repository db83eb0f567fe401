"""What differs between an answer and the right one, in a learner's words."""

from __future__ import annotations

from typing import Any

import numpy as np

RELATIVE = {"float64": 1e-9, "float32": 1e-5, "float16": 1e-2}


def difference(got: Any, expected: Any, within: float | None = None) -> str:
    """Empty where they are the same; otherwise what differs, the kind first: "shape: ...".

    Floats may differ by what their dtype rounds, or by `within` of the largest number, of 1 where
    all are smaller.  For a list of numbers, or of such lists, an array does as well.

    >>> difference(np.zeros((2, 3)), np.zeros((3, 2)))
    'shape: expected (3, 2), yours is (2, 3)'
    >>> difference([1, 2], (1, 2))
    ''
    >>> difference(np.array([1, 2]), [1, 2])
    ''
    >>> difference((0, [1]), (0, [1, 2]))
    'type: expected 2 values, you return 1 (value 2)'
    """
    if isinstance(expected, (list, tuple)):
        due = "1 value" if len(expected) == 1 else f"{len(expected)} values"
        of_arrays = any(isinstance(e, np.ndarray) for e in expected)
        if isinstance(got, np.ndarray) and got.ndim > 0 and not of_arrays:
            got = list(got)
        if not isinstance(got, (list, tuple)):
            return f"type: expected {due}, you return {_kind(got)}"
        if len(got) != len(expected):
            return f"type: expected {due}, you return {len(got)}"
        for i, (g, e) in enumerate(zip(got, expected, strict=True), 1):
            if what := difference(g, e, within):
                several = len(expected) > 1 and what != "values"
                return f"{what} (value {i})" if several else what
        return ""
    if isinstance(expected, np.ndarray):
        return _of_arrays(got, expected, within)
    if isinstance(expected, (int, float, np.number)) and not isinstance(expected, bool):
        if isinstance(got, bool) or not isinstance(got, (int, float, np.number)):
            return f"type: expected a number, you return {_kind(got)}"
        return "" if _close(np.asarray(got), np.asarray(expected), within) else "values"
    got = bool(got) if isinstance(got, np.bool_) else got
    return "" if type(got) is type(expected) and got == expected else "values"


def _of_arrays(got: Any, expected: np.ndarray, within: float | None) -> str:
    if not isinstance(got, np.ndarray):
        return f"type: expected an array, you return {_kind(got)}"
    if got.shape != expected.shape:
        return f"shape: expected {expected.shape}, yours is {got.shape}"
    if not _close(got, expected, within):
        return "values"
    if got.dtype != expected.dtype:
        return f"dtype: expected {expected.dtype}, yours is {got.dtype}"
    return ""


def _close(got: np.ndarray, expected: np.ndarray, within: float | None) -> bool:
    if expected.dtype.kind != "f":
        return bool(np.array_equal(got, expected))
    size = float(np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0))
    if within is not None:
        return bool(np.allclose(got, expected, 0.0, within * max(size, 1.0), equal_nan=True))
    relative = RELATIVE.get(str(expected.dtype), 1e-5)
    return bool(np.allclose(got, expected, relative, relative * min(size, 1.0), equal_nan=True))


def _kind(value: Any) -> str:
    return "nothing (no return?)" if value is None else type(value).__name__
