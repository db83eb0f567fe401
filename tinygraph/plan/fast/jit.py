"""numba, where it is installed: loops in Python become machine code, which is kept on disk.

A kernel is a plain function of arrays and numbers that returns nothing.  It runs without numba too,
a thousand times slower, and so its tests need none.  numba is imported when the first kernel is
asked for, and never before.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

Kernel = Callable[..., None]

_lock = threading.Lock()  # numba's configuration is one for all threads


class Argument(NamedTuple):
    """An array, or a number, that a kernel takes.

    Attributes
    ----------
    dtype : numpy dtype
    ndim : int
        0 for a number.
    written : bool
        Whether the kernel writes it; it may read any other array, also one that is read-only.
    """

    dtype: Any
    ndim: int = 0
    written: bool = False


INDEX = Argument(np.int64)


def installed() -> bool:
    """Whether there is a numba to import; finding out imports nothing."""
    return importlib.util.find_spec("numba") is not None


@cache
def why_not() -> str:
    """Why numba cannot be used; "" where it can.  This imports it."""
    try:
        importlib.import_module("numba")
    except ImportError as error:  # not there, or not for this numpy
        return str(error)
    except Exception as error:  # of one of the packages that it looks for and uses
        return f"{type(error).__name__}: {error}"
    return ""


@cache
def compiled(
    function: Kernel, arguments: tuple[Argument, ...], reorder: bool = False, contract: bool = True
) -> Kernel:
    """A kernel as machine code, for contiguous arrays of these dtypes, aligned.

    Parameters
    ----------
    function : function
        Of the arguments, in their order.  It calls no function of another file of ours: changes of
        that one would not be noticed by the cache.
    arguments : tuple of Argument
    reorder : bool
        Whether sums over a loop may be taken in another order, as vectors of partial sums.  The
        order is fixed when the kernel is compiled.
    contract : bool
        Whether a product and a sum may become one instruction with one rounding.

    Returns
    -------
    function
        It lets other threads of Python run meanwhile.

    Notes
    -----
    Compiling takes seconds; the result lies in the folder of our cache, or in NUMBA_CACHE_DIR where
    the user has named one.
    """
    import numba

    from tinygraph.build_cache import folder  # heavy: not before something is compiled

    types = [_type(argument, numba) for argument in arguments]
    options = {name for name, may in (("contract", contract), ("reassoc", reorder)) if may}
    with _lock:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = before or str(folder() / "numba")
        try:
            return numba.njit(
                numba.void(*types), cache=True, nogil=True, fastmath=options, error_model="numpy"
            )(function)
        finally:
            numba.config.CACHE_DIR = before


def inlined(function: Callable[..., Any]) -> Any:
    """A function of numbers that a kernel may call, and that is compiled as a part of the kernel.

    In it a product and a sum may become one instruction with one rounding.
    """
    import numba

    return numba.njit(fastmath={"contract"}, error_model="numpy")(function)


def _type(argument: Argument, numba: Any) -> Any:
    scalar = numba.from_dtype(np.dtype(argument.dtype))
    if not argument.ndim:
        return scalar
    return numba.types.Array(scalar, argument.ndim, "C", readonly=not argument.written)


def plain(array: Any) -> Any:
    """The array as kernels take it: contiguous and aligned; itself where it is."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned:  # np.require takes microseconds to see that
        return array
    return np.require(array, requirements=("C", "A"))
