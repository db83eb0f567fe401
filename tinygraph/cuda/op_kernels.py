"""The kernels of ops, by file and function: each is made once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tinygraph.base import DtypeError
from tinygraph.cuda.kernel import Kernel
from tinygraph.cuda.reading.source import kernel_file

_C_TYPES = {
    "float32": "float",
    "float64": "double",
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
}


@lru_cache(maxsize=None, typed=True)  # 1 and 1.0 are two macros
def op_kernel(stem: str, function: str, *template: Any, **macros: object) -> Kernel:
    """A kernel of an op: an instance of a function in <stem>.cu, beside its op.

    The same Kernel comes back for the same arguments.

    Parameters
    ----------
    stem : str
        The op's file without `.cu`.
    function : str
    *template : dtype or str
        The template arguments: a dtype stands for its C type, another name for itself.
    **macros
        Macro definitions: TILE=16.

    Raises
    ------
    DtypeError
        For a dtype that C++ has no type for, such as float16.

    Examples
    --------
    >>> op_kernel("comparison", "compare", "uint8", "Less").name
    'compare<unsigned char, Less>'
    """
    words = []
    for t in template:
        is_name = isinstance(t, str) and t not in _C_TYPES
        word = t if is_name else _C_TYPES.get(np.dtype(t).name)
        if word is None:
            expected, way_out = f"one of {', '.join(_C_TYPES)}", "convert with x.astype('float32')"
            raise DtypeError(stem, "dtype", expected, np.dtype(t), way_out)
        words.append(word)
    name = f"{function}<{', '.join(words)}>" if words else function
    return _instance(stem, name, **dict(sorted(macros.items())))


@lru_cache(maxsize=None, typed=True)
def _instance(stem: str, name: str, **macros: object) -> Kernel:
    return Kernel(kernel_file(f"{stem}.cu"), name, macros)
