"""How many floating-point operations an update does for one element: it is run once on an array
that counts.

They are counted as those of kernels are, see cuda/reading/operation_counts.py: additions,
multiplications, divisions and roots are one each, maxima, signs and copies none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_COUNTED = {np.add, np.subtract, np.multiply, np.divide, np.sqrt, np.square, np.reciprocal}
_FREE = {np.maximum, np.minimum, np.sign, np.negative, np.positive, np.absolute, np.copysign}


class _Uncounted(Exception):
    """The update does something that has no count."""


class Counting(np.ndarray):
    """One element whose arithmetic is counted."""

    done = 0

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        if method != "__call__" or ufunc not in _COUNTED | _FREE:
            raise _Uncounted
        Counting.done += ufunc in _COUNTED
        plain = [x.view(np.ndarray) if isinstance(x, Counting) else x for x in inputs]
        target = out and out[0].view(np.ndarray)
        found = ufunc(*plain, out=target, **options)
        return out[0] if out else np.asarray(found).view(Counting)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function not in (np.empty_like, np.zeros_like, np.ones_like, np.full_like, np.copyto):
            raise _Uncounted
        return super().__array_function__(function, types, args, kwargs)


def counted(update: Callable[[Callable[[], Counting]], None]) -> int | None:
    """The operations of `update`, which makes its arrays by what it is given; None if unknown."""
    Counting.done = 0
    try:
        with np.errstate(all="ignore"):
            update(lambda: np.ones(1).view(Counting))
    except _Uncounted:
        return None
    return Counting.done
