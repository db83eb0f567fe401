"""Dtypes: numpy's, what may be asked for as one, and which one several operands have in common.

Promotion follows PyTorch.  Of two dtypes it takes the one of the higher kind, bool < integer <
float; within a kind, the narrowest that holds both.  Operands come in three tiers, arrays, 0-d
tensors and Python numbers, and a later tier counts only where its kind is higher:

    float32, int64               float32     an integer never widens a float
    float32, float64             float64
    float32, float64 of 0 axes   float32
    int8, float64 of 0 axes      float64
    int8, Python's 1             int8        Python numbers are int64, float32 (the default
    int8, Python's 1.0           float32     float) or bool

Where PyTorch has no answer, for uint16, uint32 and uint64 among integers, it is numpy's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from tinygraph.base.errors import DtypeError

__all__ = [
    "float16",
    "float32",
    "float64",
    "int16",
    "int32",
    "int64",
    "int8",
    "promote_types",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]

Dtype: TypeAlias = np.dtype[Any]

bool_ = np.dtype(np.bool_)
uint8, uint16, uint32, uint64 = [np.dtype(f"u{size}") for size in (1, 2, 4, 8)]
int8, int16, int32, int64 = [np.dtype(f"i{size}") for size in (1, 2, 4, 8)]
float16, float32, float64 = [np.dtype(f"f{size}") for size in (2, 4, 8)]

OF_NUMBERS = {bool: bool_, int: int64, float: float32}  # Python's

_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2}  # of kinds


def as_dtype(op: str, dtype: Any) -> Dtype:
    """What was asked for as a dtype: one of numpy's, its name, or a type of numpy or Python.

    >>> as_dtype("zeros", "int8"), as_dtype("zeros", np.float32), as_dtype("zeros", float)
    (dtype('int8'), dtype('float32'), dtype('float64'))
    """
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError):
        found = None
    if found is None or dtype is None or found.kind not in _RANKS or found.itemsize > 8:
        expected = "a float up to 64 bits, an integer or bool"
        way_out = "tg.float32, tg.float64, tg.int64, tg.bool or one of their names"
        if any(word in str(dtype) for word in ("bfloat16", "complex")):
            way_out = "tg.float32; there are no bfloat16 and no complex numbers"
        raise DtypeError(op, "dtype", expected, repr(dtype) if found is None else found, way_out)
    return found


def differentiable(op: str, requires_grad: bool, dtype: Dtype) -> bool:
    """`requires_grad` as it was asked for; of what is no float it is refused."""
    if not isinstance(requires_grad, (bool, np.bool_)):
        raise DtypeError(op, "requires_grad", "True or False", f"{requires_grad!r:.80}")
    if requires_grad and dtype.kind != "f":
        expected, got = "False for a dtype without derivatives", f"True with {dtype}"
        raise DtypeError(op, "requires_grad", expected, got, "dtype='float32', or x.float()")
    return bool(requires_grad)


def promote_types(a: Any, b: Any) -> Dtype:
    """The dtype in which arrays of two dtypes are computed.

    Parameters
    ----------
    a, b : dtype
        Dtypes, or their names.

    Returns
    -------
    dtype
        The one of the higher kind, bool < integer < float; within a kind the narrowest that holds
        both.  As in PyTorch; as in numpy for integers that PyTorch does not combine.

    Raises
    ------
    DtypeError
        One is no dtype that a Tensor can have.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.promote_types(tg.float32, tg.int64), tg.promote_types(tg.uint8, tg.int8)
    (dtype('float32'), dtype('int16'))
    """
    x, y = as_dtype("promote_types", a), as_dtype("promote_types", b)
    if _RANKS[x.kind] == _RANKS[y.kind]:
        return np.promote_types(x, y)
    return x if _RANKS[x.kind] > _RANKS[y.kind] else y


@lru_cache(maxsize=1024)
def common_dtype(*tiers: tuple[Dtype, ...]) -> Dtype:
    """The dtype of operands in tiers: that of the first tier among those of the highest kind.

    >>> common_dtype((float32, int64), (float64,)), common_dtype((int8,), (float64,))
    (dtype('float32'), dtype('float64'))
    """
    found: list[Dtype] = []
    for first, *others in filter(None, tiers):
        for other in others:
            first = promote_types(first, other)
        found.append(first)
    return max(found, key=lambda dtype: _RANKS[dtype.kind])  # of equal ones the first
