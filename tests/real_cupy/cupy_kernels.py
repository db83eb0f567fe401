"""CuPy's own kernels, fill and copy, in numpy; tinygraph needs no other.

CuPy makes their source for each layout and dtype.  The signature in it tells what the parameters
are: `CArray<float, 2, 0, 1>` is a pointer, a size, the shape and the strides; `CIndexer` is made of
the same shape; the rest are numbers.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_DTYPES = {
    "bool": "?",
    "signed char": "i1",
    "unsigned char": "u1",
    "short": "i2",
    "unsigned short": "u2",
    "int": "i4",
    "unsigned int": "u4",
    "long long": "i8",
    "unsigned long long": "u8",
    "float16": "f2",
    "float": "f4",
    "double": "f8",
}
_SIMULATED = re.compile(r"cupy_fill|cupy_copy__\w+")


class CupyKernel:
    """A kernel that CuPy wrote: its last array becomes a copy of its first argument."""

    def __init__(self, name: str, text: str) -> None:
        if not _SIMULATED.fullmatch(name):
            raise NotImplementedError(
                f"CuPy's own kernel {name} is not simulated: tinygraph should have used none"
            )
        self.name = name
        found = re.search(rf"__global__ void {name}\((.*?)\)\s*{{", text, re.S)
        assert found, name
        split = re.findall(r"(?:const )?((?:\w+ )*\w+(?:<[^>]*>)?) \w+(?:, |$)", found[1])
        self._types = [_type(word) for word in split]

    def work(
        self, grid: Any, block: Any, shared: int, parameters: Sequence[int]
    ) -> Callable[[], None]:
        values = [read(parameters[i]) for i, read in enumerate(self._types) if read]
        source, target = values[0], values[-1]

        def copy() -> None:
            np.copyto(target, source, casting="unsafe")

        return copy


def _type(word: str) -> Callable[[int], Any] | None:
    """A reader of one parameter at its address; None for an indexer."""
    kind, _, inside = word.rstrip(">").partition("<")
    if kind == "CIndexer":
        return None
    if kind != "CArray":
        dtype = np.dtype(_DTYPES[word])
        return lambda at: np.frombuffer(ctypes.string_at(at, dtype.itemsize), dtype)[0]
    ctype, ndim = inside.split(", ")[:2]
    return lambda at: _array(at, np.dtype(_DTYPES[ctype]), int(ndim))


def _array(at: int, dtype: np.dtype[Any], ndim: int) -> np.ndarray[Any, Any]:
    """The array that a CArray at this address describes."""
    first, size, *sizes = (ctypes.c_int64 * (2 + 2 * ndim)).from_address(at)
    shape, strides = sizes[:ndim], sizes[ndim:]
    if size == 0:
        return np.empty(shape, dtype)
    steps = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    before = -sum(min(0, step) for step in steps)
    whole = before + sum(max(0, step) for step in steps) + dtype.itemsize
    memory = (ctypes.c_char * whole).from_address(first - before)
    return np.ndarray(shape, dtype, memory, before, strides)
