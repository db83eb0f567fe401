"""What users give as data, as arrays of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.errors import DtypeError
from tinygraph.shapes import Array


def as_numbers(data: Any, dtype: Any, copy: bool | None) -> Array:
    """A numpy array of floats, integers or bools; Python floats become float32."""
    try:
        array = np.array(data, dtype=dtype, copy=copy)
    except (TypeError, ValueError) as error:
        raise DtypeError(
            "Tensor", "data", "numbers in a rectangular array", f"{data!r:.80} ({error})"
        ) from None
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise DtypeError(
            "Tensor",
            "data",
            "floats up to 64 bits, integers or bools",
            array.dtype,
            "pass dtype='float32', or convert the array with .astype",
        )
    if dtype is None and array.dtype == np.float64 and not hasattr(data, "dtype"):
        array = array.astype(np.float32)
    return array
