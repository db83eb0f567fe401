"""Bound calls: what the body of an op does with arrays that stay where they are, as a flat list.

    body          y = mem.empty(...); np.matmul(x, w.T, out=y); y += b
    bound calls   partial(np.matmul, x, wᵀ, y), partial(np.add, y, b, y)

A body is run once on `Watched` arrays, which see every ufunc.  Shapes, views and branches are
settled then; what is left is calls without arguments, each of which runs in C from its first
instruction to its last.  A result that a body did not say where to put gets an array that is kept.

Copies and indices are seen too.  What else a body does with values cannot be: it reads a number,
or calls a function that is no ufunc.  Such a body is refused, and runs as it is written.  To be
safe, every operand must lie in memory that is known: an array that a body made unseen does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tinygraph.engine import Array
from tinygraph.plan.buffers import KeptMemory, owner

BoundCall = partial[Any]
Body = Callable[..., Any]

MOST_BYTES = 64 << 10  # of an array that is kept for a body, besides those that it asked for


class NotBound(Exception):
    """The body does something that no list of ufuncs repeats."""


class Binder:
    """Notes the ufuncs of one body after the other.

    The memory of `known` arrays stays where it is, filled by earlier calls or by somebody else.
    """

    def __init__(self, known: Iterable[Array]) -> None:
        self.calls: list[BoundCall] = []  # of the body that runs
        self._made: list[Array] = []  # arrays that are kept for the body that runs
        self._known: dict[int, Any] = {}  # by id, which is good while the array is held
        for array in known:
            self.know(array)

    def know(self, array: Array) -> None:
        held = owner(array)
        self._known[id(held)] = held

    def knows(self, array: Any) -> bool:
        return id(owner(array)) in self._known

    def calls_of(self, body: Body, memory: KeptMemory, *given: Any) -> tuple[list[BoundCall], Any]:
        """The calls of `body(memory, *given)`, which are made on the way, and what it returns.

        After NotBound, or an error of the body, it may have run in part: what it writes is to be
        written again.
        """
        self.calls, self._made = [], []
        asked = memory.arrays
        constant = memory.constant
        memory.arrays = [self.watched(array) for array in asked]
        memory.position, memory.constant = 0, self.constant
        try:
            result = self.plain(body(memory, *self.watched(given)))
        finally:
            memory.arrays, memory.constant = asked, constant
        self._require_all_seen([*asked[: memory.position], *self._made])
        return self.calls, result

    def _require_all_seen(self, arrays: Sequence[Array]) -> None:
        """The calls must write what the body has written, whatever stood there before."""
        wanted = [array.copy(order="K") for array in arrays]
        for array in arrays:
            flat = array.ravel(order="K")
            np.invert(flat, out=flat) if array.dtype == bool else _invert_bits(flat)
        for call in self.calls:
            call()
        for array, want in zip(arrays, wanted, strict=True):
            if array.tobytes() != want.tobytes():
                raise NotBound("it writes an array unseen")

    def watched(self, thing: Any) -> Any:
        """The same with every array as a Watched view of it."""
        if isinstance(thing, np.ndarray):
            view = thing.view(Watched)
            view.binder, view.original = self, thing
            return view
        return _mapped(self.watched, thing)

    def plain(self, thing: Any) -> Any:
        """The same with the arrays that Watched ones are views of."""
        if isinstance(thing, np.ndarray):
            if not self.knows(thing):
                raise NotBound("it takes an array that was not made by a ufunc")
            if not isinstance(thing, Watched):
                return thing
            return thing.view(np.ndarray) if thing.original is None else thing.original
        return _mapped(self.plain, thing)

    def constant(self, array: Array) -> Any:
        """In the place of `Memory.constant`."""
        self.know(array)
        return self.watched(array)

    def kept(self, like: Array) -> Array:
        """An array for a result that the body has no place for."""
        if like.nbytes > MOST_BYTES:
            raise NotBound(f"it makes an array of {like.nbytes} bytes")
        array = np.empty_like(like)
        self.know(array)
        self._made.append(array)
        return array

    def ufunc(self, ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
        """Make a call of a ufunc, and note it."""
        if method not in ("__call__", "reduce"):
            raise NotBound(f"{ufunc.__name__}.{method}")
        function = ufunc if method == "__call__" else ufunc.reduce
        inputs, options = _numbers_as_arrays(self.plain(tuple(inputs))), self.plain(options)
        out = options.pop("out", ())
        if not out or any(place is None for place in out):
            made = function(*inputs, **options)
            if isinstance(made, tuple):
                raise NotBound(f"{ufunc.__name__} has several results")
            out = (self.kept(np.asarray(made)),)
        place = out if len(out) > 1 else out[0]
        if method == "__call__" and not options and ufunc not in _OUT_BY_NAME:
            self._call(function, *inputs, *out)
        else:
            self._call(function, *inputs, out=place, **options)
        return self.watched(place)

    def gather(self, array: Array, key: tuple[Any, ...]) -> Any:
        """Read elements by arrays of indices, and note it."""
        array, key = self.plain(array), self.plain(key)
        place = self.kept(array[key])
        self._call(_gather, place, array, key)
        return self.watched(place)

    def scatter(self, array: Array, key: tuple[Any, ...], source: Any) -> None:
        """Write elements by arrays of indices, and note it."""
        array, key, source = self.plain(array), self.plain(key), self.plain(source)
        self._call(array.__setitem__, key, source)

    def copy(self, target: Array, source: Any, casting: Any = "same_kind") -> None:
        """Copy, and note it."""
        target, source = self.plain(target), self.plain(source)
        self._call(np.copyto, target, source, casting)

    def _call(self, function: Any, *given: Any, **options: Any) -> None:
        call = partial(function, *given, **options)
        call()
        self.calls.append(call)


def _invert_bits(flat: Array) -> None:
    unsigned = flat.view(f"u{flat.itemsize}")
    np.invert(unsigned, out=unsigned)


def _gather(place: Array, array: Array, key: tuple[Any, ...]) -> None:
    place[...] = array[key]


def _numbers_as_arrays(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Numbers as 0-d arrays of the other operands' dtype: a ufunc takes them in half the time."""
    dtypes = {x.dtype for x in operands if isinstance(x, np.ndarray)}
    if len(dtypes) != 1 or (dtype := dtypes.pop()).kind != "f":
        return operands
    return tuple([np.array(x, dtype) if type(x) in (int, float) else x for x in operands])


def _mapped(change: Callable[[Any], Any], thing: Any) -> Any:
    """A structure with its parts changed; NotBound for something that cannot be looked into."""
    if isinstance(thing, (tuple, list)):
        if hasattr(thing, "_fields"):
            return type(thing)(*[change(part) for part in thing])
        return type(thing)([change(part) for part in thing])
    if isinstance(thing, dict):
        return {key: change(part) for key, part in thing.items()}
    if thing is None or isinstance(thing, _NUMBERS):
        return thing
    raise NotBound(f"a {type(thing).__name__} may hold arrays")


_NUMBERS = (bool, int, float, str, np.generic, np.dtype, type, slice)
_OUT_BY_NAME = (np.maximum, np.minimum)  # numpy takes the place of their result by name alone
_REDUCTIONS = (np.sum, np.prod, np.max, np.min, np.amax, np.amin, np.mean)
_VIEWS = (
    *(np.broadcast_to, np.reshape, np.transpose, np.swapaxes, np.moveaxis),
    *(np.expand_dims, np.squeeze, np.shape, np.ndim, np.size),
)


class Watched(np.ndarray):
    """An array whose ufuncs are noted, and which refuses what cannot be."""

    binder: Any = None
    original: Any = None  # the array that this is a view of as a whole

    def __array_finalize__(self, source: Any) -> None:
        self.binder = getattr(source, "binder", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        found = (*inputs, *options.get("out", ()))
        binder = next(x.binder for x in found if isinstance(x, Watched))
        return binder.ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Any:
        if function is np.copyto and set(options) <= {"casting"}:
            return self.binder.copy(*given, **options)
        if function in _REDUCTIONS or function in _VIEWS:
            return super().__array_function__(function, types, given, options)
        raise NotBound(function.__name__)

    def __getitem__(self, key: Any) -> Any:
        key = key if isinstance(key, tuple) else (key,)
        if not all(map(_is_basic, key)):
            arrays = [part for part in key if not _is_basic(part)]
            if any(isinstance(part, list) or part.dtype.kind == "b" for part in arrays):
                raise NotBound("how many elements it reads depends on values")
            return self.binder.gather(self, key)
        part = super().__getitem__(key)
        if not isinstance(part, np.ndarray):
            raise NotBound("it reads a number")
        return part

    def __setitem__(self, key: Any, value: Any) -> None:
        key = key if isinstance(key, tuple) else (key,)
        if all(map(_is_basic, key)):
            whole = key if ... in key else (*key, ...)  # an array even of one element
            self.binder.copy(super().__getitem__(whole), value, "unsafe")
        else:
            self.binder.scatter(self, key, value)

    def fill(self, value: Any) -> None:
        self.binder._call(self.binder.plain(self).fill, self.binder.plain(value))


def _is_basic(part: Any) -> bool:
    """Whether a part of an index makes a view: it is no array."""
    return part is None or part is ... or isinstance(part, (int, np.integer, slice))


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(self: Watched, *given: Any, **options: Any) -> Any:
        raise NotBound(f"ndarray.{name}")

    return refuse


# What reads values, or writes them, past `__array_ufunc__`: all methods but views and ufuncs.
_SEEN = re.compile(
    "all|any|clip|diagonal|fill|max|mean|min|prod|ravel|reshape|squeeze|std|sum|swapaxes|transpose|"
    "var|view|__(?!bool|int|float|complex|index|iter|contains).*"
)
for _name in dir(np.ndarray):
    if callable(getattr(np.ndarray, _name)) and not _SEEN.fullmatch(_name):
        setattr(Watched, _name, _refusing(_name))
