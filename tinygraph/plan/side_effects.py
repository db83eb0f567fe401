"""Side effects: what a function changes of Python's objects while it is traced.

    self.calls += 1            a number of an object, a closure, a module of Python
    history.append(loss)       a list, dict, set or small array
    self.mask = made(n)        something that is no plain value

All that the function can reach is looked at before and after, object by object: its arguments, the
globals and closures of the functions that run, and what these hold.  A plan writes plain values
again at each call.  For anything else there is no plan.  Where a trace is given up, all is as it
was.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from tinygraph.engine import Tensor
from tinygraph.plan.declared import declared, declared_of

MISSING: Any = object()
PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic, np.dtype, Enum)
LOOKED_AT = ("", "settings", "program")  # of what packages declare; all others know what they read
NOT_OF_USERS = {*sys.stdlib_module_names, "numpy", "numba", "cupy"} - {"__main__"}

MOST_OBJECTS = 100_000  # that are looked at
MOST_PARTS = 10_000  # of one container, that are looked into
MOST_REPEATED = 64  # parts of a list or a set that a plan writes again
MOST_BYTES = 1 << 20  # of an array that is compared


def is_of_users(module: str) -> bool:
    return module.split(".")[0] not in NOT_OF_USERS and declared(module) in LOOKED_AT


def is_plain(value: Any) -> bool:
    if type(value) in (tuple, frozenset):
        return all(map(is_plain, value))
    return isinstance(value, PLAIN)


def same(a: Any, b: Any) -> bool:
    """Whether two values are plain and equal: of one type, NaN as itself, 0 apart from -0."""
    if type(a) is not type(b):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(map(same, a, b))
    return repr(a) == repr(b) if isinstance(a, (float, complex, np.generic)) else bool(a == b)


def _unchanged(a: Any, b: Any) -> bool:
    """The same object, or an equal value; of tuples and sets the parts."""
    if a is b:
        return True
    if type(a) is tuple and type(b) is tuple:
        return len(a) == len(b) and all(map(_unchanged, a, b))
    if is_plain(a) and is_plain(b):
        return same(a, b)
    both_sets = type(a) is frozenset and type(b) is frozenset
    return both_sets and {*map(id, a)} == {*map(id, b)}


# ---- places: each is read and written by names -------------------------------------------------


class Cell(NamedTuple):
    """A closure variable, to be read like a dict."""

    owner: CellType

    def get(self, key: Any, default: Any) -> Any:
        try:
            return self.owner.cell_contents
        except ValueError:  # it is empty
            return default

    def put(self, key: Any, value: Any) -> None:
        if value is MISSING:
            del self.owner.cell_contents
        else:
            self.owner.cell_contents = value


class Owner(NamedTuple):
    """An object with `__slots__`, a class, a list or a tuple, to be read like a dict."""

    owner: Any

    def get(self, key: Any, default: Any) -> Any:
        if isinstance(self.owner, type):
            return vars(self.owner).get(key, default)
        if isinstance(key, str):
            return getattr(self.owner, key, default)
        return self.owner[key] if -len(self.owner) <= key < len(self.owner) else default

    def put(self, key: Any, value: Any) -> None:
        if value is MISSING:
            delattr(self.owner, key)
        else:
            setattr(self.owner, key, value)


class Whole(NamedTuple):
    """A list, deque, set, bytearray or array: its contents are one value."""

    owner: Any

    def get(self, key: Any, default: Any) -> Any:
        owner = self.owner
        if isinstance(owner, np.ndarray):
            return owner.tobytes()
        if isinstance(owner, bytearray):
            return bytes(owner)
        return frozenset(owner) if isinstance(owner, set) else tuple(owner)

    def put(self, key: Any, value: Any) -> None:
        owner = self.owner
        if isinstance(owner, np.ndarray):
            owner[...] = np.frombuffer(value, owner.dtype).reshape(owner.shape)
        elif isinstance(owner, (list, bytearray)):
            owner[:] = value
        else:
            owner.clear()
            owner.update(value) if isinstance(owner, set) else owner.extend(value)


class Change(NamedTuple):
    """A place where a function left something else than it found."""

    holder: Any
    key: Any
    before: Any
    after: Any
    told: str

    @property
    def place(self) -> tuple[int, Any]:
        """Tells places apart, as long as their holders live."""
        return id(getattr(self.holder, "owner", self.holder)), self.key

    @property
    def is_of_a_state(self) -> bool:
        """Whether it is a mode or a `requires_grad`: plans are found by these in another way."""
        of_leaf = isinstance(getattr(self.holder, "owner", None), Tensor)
        return self.key == ("requires_grad" if of_leaf else "training")

    @property
    def can_be_repeated(self) -> bool:
        values = [x for x in (self.before, self.after) if x is not MISSING]
        few = all(len(x) <= MOST_REPEATED for x in values if type(x) in (tuple, frozenset))
        return few and all(map(is_plain, values))

    def repeat(self) -> None:
        _put(self.holder, self.key, self.after)

    def undo(self) -> None:
        _put(self.holder, self.key, self.before)

    def holds(self) -> bool:
        """Whether that stands there now which the function left."""
        return _unchanged(self.holder.get(self.key, MISSING), self.after)


def _put(holder: Any, key: Any, value: Any) -> None:
    if not isinstance(holder, dict):
        holder.put(key, value)
    elif value is MISSING:
        holder.pop(key, None)
    else:
        holder[key] = value


class _Kept(NamedTuple):
    """A holder as it was when it was reached first."""

    holder: Any
    names: Callable[[], Iterable[Any]]
    before: dict[Any, Any]
    told: str
    of_optim: bool  # whether an optimiser or a schedule computes with it

    def changes(self) -> Iterator[Change]:
        for key in {**self.before, **dict.fromkeys(self.names())}:
            now, was = self.holder.get(key, MISSING), self.before.get(key, MISSING)
            if not _unchanged(was, now):
                told = _name(self.told, key, self.holder)
                yield Change(self.holder, key, was, now, told)


def _name(told: str, key: Any, holder: Any) -> str:
    if isinstance(holder, (Whole, Cell)) or not told:
        return told or str(key)
    return f"{told}.{key}" if type(key) is str and key.isidentifier() else f"{told}[{key!r}]"


def other_changes(first: Iterable[Change], second: Iterable[Change]) -> str:
    """What the second call left behind otherwise than the first, as a reason; "" for nothing."""
    mine, theirs = ({x.place: x for x in changes} for changes in (first, second))
    for place, change in {**mine, **theirs}.items():
        a = mine[place].after if place in mine else change.before
        b = theirs[place].after if place in theirs else change.holder.get(change.key, MISSING)
        if not _unchanged(a, b):
            return (
                f"it left {change.told} as {_shown(a)} at one call and as {_shown(b)} at the next"
            )
    return ""


def _shown(value: Any) -> str:
    return "nothing" if value is MISSING else repr(value)[:40]


# ---- what a function reaches -------------------------------------------------------------------


class Reached:
    """All objects that a function can change, as they were when it came to them."""

    def __init__(self, know: Callable[[FunctionType], None]) -> None:
        self._know = know  # is told of each function
        self._kept: dict[Any, _Kept] = {}
        self._seen: dict[int, Any] = {}  # holds them, so that an id stays its own
        self._locked: list[np.ndarray] = []  # arrays that are not to be written meanwhile

    def look(self, thing: Any, told: str) -> None:
        """An object, and all that it holds."""
        waiting = [(thing, told, False)]
        while waiting:
            thing, told, of_optim = waiting.pop()
            if id(thing) in self._seen or isinstance(thing, PLAIN):
                continue
            if len(self._seen) >= MOST_OBJECTS:
                return
            self._seen[id(thing)] = thing
            of_optim = of_optim or is_of_optim(thing)
            for part, name in self._parts(thing, told, of_optim):
                waiting.append((part, name, of_optim))

    def unlock(self) -> None:
        """The trace is over: arrays may be written again."""
        while self._locked:
            array = self._locked.pop(0)
            try:
                array.flags.writeable = True
            except ValueError:  # a view: first the array that it is a part of
                self._locked.append(array)

    def variable(self, holder: Any, key: Any) -> None:
        """One name among many, as of a module."""
        place = id(getattr(holder, "owner", holder)), key
        if place not in self._kept:
            value = holder.get(key, MISSING)
            before = {} if value is MISSING else {key: value}
            self._kept[place] = _Kept(holder, lambda: (key,), before, "", False)
            self.look(value, str(key))

    def changes(self) -> list[Change]:
        """What is not as it was."""
        found = {change.place: change for kept in self._kept.values() for change in kept.changes()}
        return [*found.values()]

    def undo(self) -> None:
        """Let all be as it was."""
        for change in self.changes():
            change.undo()

    def of_optim(self, place: tuple[int, Any]) -> bool:
        """Whether an optimiser or a schedule computes with what stands there."""
        kept = self._kept.get(place[0])
        return kept is not None and kept.of_optim

    def before(self, place: tuple[int, Any], default: Any) -> Any:
        """What stood at a place at first."""
        kept, key = self._kept.get(place) or self._kept.get(place[0]), place[1]
        if kept is None:
            return default
        if isinstance(kept.holder, Whole) and type(key) is int:  # of a list
            values = kept.before[""]
            return values[key] if -len(values) <= key < len(values) else MISSING
        return kept.before.get(key, MISSING)

    def knows(self, place: tuple[int, Any]) -> bool:
        """Whether it was looked at."""
        return place in self._kept or place[0] in self._kept

    def _keep(
        self, holder: Any, names: Callable[[], Iterable[Any]], told: str, of_optim: bool
    ) -> None:
        before = {key: holder.get(key, MISSING) for key in names()}
        before = {key: value for key, value in before.items() if value is not MISSING}
        place = id(getattr(holder, "owner", holder))
        self._kept[place] = _Kept(holder, names, before, told, of_optim)

    def _lock(self, array: Any) -> None:
        """What is written into a large array could not be taken back: writing is an error."""
        if isinstance(array, np.ndarray) and array.flags.writeable:
            array.flags.writeable = False
            self._locked.append(array)

    def _parts(self, thing: Any, told: str, of_optim: bool) -> Iterable[tuple[Any, str]]:
        """What an object holds, once it is kept itself."""
        if isinstance(thing, dict):
            if len(thing) > MOST_PARTS:
                return ()
            self._keep(thing, lambda: list(thing), told, of_optim)
            return [(x, f"{told}[{key!r}]") for key, x in thing.items()]
        if isinstance(thing, (list, tuple, set, deque, bytearray)):
            if len(thing) > MOST_PARTS:
                return ()
            if not isinstance(thing, tuple):
                self._keep(Whole(thing), lambda: ("",), told, of_optim)
            return [(x, f"{told}[{i}]") for i, x in enumerate(thing)]
        if isinstance(thing, np.ndarray):
            if thing.nbytes > MOST_BYTES:
                self._lock(thing)
            elif thing.flags.writeable and not thing.dtype.hasobject:
                self._keep(Whole(thing), lambda: ("",), told, of_optim)
            return ()
        if isinstance(thing, Tensor):
            if thing.op is None:
                self._keep(Owner(thing), lambda: ("value", "requires_grad"), told, False)
                self._lock(thing.value)
            return ()
        if isinstance(thing, CellType):
            self._keep(Cell(thing), lambda: ("",), told, of_optim)
            return [(Cell(thing).get("", None), told)]
        return self._parts_of_code(thing, told) or self._parts_of_object(thing, told, of_optim)

    def _parts_of_code(self, thing: Any, told: str) -> list[tuple[Any, str]]:
        """Of functions and classes."""
        if isinstance(thing, MethodType):
            return [(thing.__self__, told), (thing.__func__, told)]
        if isinstance(thing, partial):
            return [(thing.func, told), (thing.args, told), (thing.keywords, told)]
        room = getattr(thing, "__module__", None) or ""
        if not is_of_users(room) or declared(room) == "settings":
            return []
        if isinstance(thing, FunctionType):
            self._know(thing)
            names = zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True)
            given = [(vars(thing), told), (thing.__defaults__, told), (thing.__kwdefaults__, told)]
            return [*given, *[(cell, name) for name, cell in names]]
        if isinstance(thing, type) and not issubclass(thing, Enum):
            own = vars(thing)
            self._keep(Owner(thing), lambda: [k for k in own if k[:2] != "__"], told, False)
            made = [getattr(x, "__func__", getattr(x, "fget", x)) for x in vars(thing).values()]
            return [*[(x, told) for x in made], *[(base, told) for base in thing.__bases__]]
        return []

    def _parts_of_object(self, thing: Any, told: str, of_optim: bool) -> Iterable[tuple[Any, str]]:
        kind = type(thing)
        if of_optim and isinstance(groups := getattr(thing, "groups", None), list):
            return [(groups, f"{told}.groups")]  # an optimiser, whose state no trace changes
        room = kind.__module__
        looked_at = of_optim or room in ("types", "argparse", "collections") or is_of_users(room)
        if isinstance(thing, (ModuleType, type)) or not looked_at:
            return ()
        parts = [(kind, kind.__name__)]
        slots = [s for k in kind.__mro__ for s in _slots(k)]
        if slots:
            self._keep(Owner(thing), lambda: slots, told, of_optim)
            parts += [(getattr(thing, s), f"{told}.{s}") for s in slots if hasattr(thing, s)]
        own = getattr(thing, "__dict__", None)
        if type(own) is dict:
            self._keep(own, lambda: list(own), told, of_optim)
            parts += [(x, f"{told}.{name}") for name, x in list(own.items())]
        return parts


def is_of_optim(thing: Any) -> bool:
    """Whether it is an optimiser or a schedule, also where users have made the class."""
    return any(declared_of(kind) == "optim" for kind in type(thing).__mro__)


def _slots(kind: type) -> list[str]:
    names = [name for name, x in vars(kind).items() if type(x).__name__ == "member_descriptor"]
    return names if is_of_users(kind.__module__) else []
