"""numba, where it is installed: loops in Python become machine code, which is kept on disk.

A loop is a plain function of arrays and numbers that returns nothing.  It runs without numba too,
a thousand times slower, and so its tests need none.  numba is imported when the first loop is
asked for, and never before.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.engine import Op

Function = Callable[..., None]

PIECE = 1024  # numbers that a loop adds up in its dtype, in several lanes, before float64 goes on

_lock = threading.Lock()  # numba's configuration is one for all threads


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
    function: Function, takes: str, dtype: Any, reorder: bool = False, contract: bool = True
) -> Function:
    """A loop as machine code, which lets other threads of Python run meanwhile.

    It calls no function of another file of ours: changes of that one would not be noticed by the
    cache.  Compiling takes seconds; the result lies in the folder of our cache, or in
    NUMBA_CACHE_DIR where the user has named one.

    Parameters
    ----------
    takes : str
        A word for each argument: "x4" for an array of four axes and of `dtype`, contiguous and
        aligned, "=x4" for one that is written, "u4" for one of uint8, "d4" for one of float64, "i"
        for a whole number.
    reorder : bool
        Whether sums over a loop may be taken in another order, as vectors of partial sums; which
        one is fixed when the loop is compiled.
    contract : bool
        Whether a product and a sum may become one instruction with one rounding.
    """
    import numba

    from tinygraph.plan.fast.kept_loops import kept  # heavy: not before something is compiled

    scalars = {"x": numba.from_dtype(np.dtype(dtype)), "u": numba.uint8, "d": numba.float64}
    scalars["i"] = numba.int64
    types = [
        numba.types.Array(scalars[kind], int(axes), "C", readonly=not written)
        if axes
        else scalars[kind]
        for word in takes.split()
        for written, kind, axes in [(word[0] == "=", word.lstrip("=")[0], word.lstrip("=")[1:])]
    ]
    options = {name for name, may in (("contract", contract), ("reassoc", reorder)) if may}
    make = numba.njit(
        numba.void(*types), cache=True, nogil=True, fastmath=options, error_model="numpy"
    )
    whose = [function.__module__, function.__qualname__, takes, np.dtype(dtype).str]
    with _lock:
        before = numba.config.CACHE_DIR
        try:
            with kept([*whose, *sorted(options)], before) as place:
                numba.config.CACHE_DIR = str(place)
                return _made(make, function, place)
        finally:
            numba.config.CACHE_DIR = before


def _made(make: Callable[[Function], Function], function: Function, place: Path) -> Function:
    """The loop, out of the folder if numba can read what it left there."""
    from tinygraph.base.build_cache import warn
    from tinygraph.plan.fast.kept_loops import forget

    try:
        return make(function)
    except Exception as error:  # of another version, for instance: numba has many
        if not forget(place):
            raise
        warn(f"{place} cannot be loaded ({type(error).__name__}: {error}), and is built again")
        return make(function)


def inlined(function: Callable[..., Any]) -> Any:
    """A function of numbers that a loop may call, and that is compiled as a part of the loop.

    In it a product and a sum may become one instruction with one rounding.
    """
    import numba

    return numba.njit(fastmath={"contract"}, error_model="numpy")(function)


class Loop:
    """A loop, compiled for the dtype of its arrays when it is first called; see `compiled`."""

    def __init__(self, function: Function, takes: str, reorder: bool = False) -> None:
        self.function, self.takes, self.reorder = function, takes, reorder
        self._of_dtype = next(i for i, word in enumerate(takes.split()) if "x" in word)

    def __call__(self, *given: Any) -> None:
        self.prepare(given[self._of_dtype].dtype)(*given)

    def prepare(self, dtype: Any) -> Function:
        """What is called for float32 or float64; compiled now, if it is not yet."""
        return compiled(self.function, self.takes, dtype, self.reorder)


def loop(takes: str, reorder: bool = False) -> Callable[[Function], Loop]:
    """A decorator: the function as a Loop."""
    return lambda function: Loop(function, takes, reorder)


def plain(array: Any) -> Any:
    """The array as loops take it: contiguous and aligned; itself where it is."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned:  # np.require takes microseconds to see that
        return array
    return np.require(array, requirements=("C", "A"))


class CompiledBody(Op):
    """An op of a plan with such bodies: the same function as its other base class, in numpy."""

    def loops(self) -> Sequence[Loop]:
        """All that it calls."""
        return ()

    def prepare(self, dtype: Any) -> None:
        """Compile all that the op will call, so that its first run does not wait."""
        for each in self.loops():
            each.prepare(dtype)


def compiled_body(op: Op | None) -> CompiledBody | None:
    """The op itself, or the product within it, that has compiled bodies; None if none has."""
    while op is not None and not isinstance(op, CompiledBody):
        op = getattr(op, "product", None)
    return op
