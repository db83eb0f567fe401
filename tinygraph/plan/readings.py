"""Readings: what a function finds outside of its arguments while it is traced.

    if epoch > 5:              the global or closure variable `epoch`
    loss * self.scale          the attribute `scale`
    config["rate"]             an element, by a constant
    nn.Dropout(p)              its `forward` reads `self.p`

Plain values that are read so belong to what a plan is found by, and of everything else on the way
(a model, an optimiser, a configuration) which object it is.  Which names a function reads is seen
in its bytecode; which objects they are, in each frame of Python that runs while it is traced.

A function that draws from Python's or numpy's generators is another one at each call: Refused.

What is read in another way (through `getattr`, a list that is walked over, a local variable that
changes) is not seen here, but where the function is traced once more: see changes.py.
"""

from __future__ import annotations

import dis
import random
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from functools import lru_cache, partial
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

import numpy as np

from tinygraph.plan.tracing import Refused
from tinygraph.tensor import Tensor

Step = tuple[bool, Any]  # whether it is an element, by a constant, and the name or the constant

MISSING: Any = object()
_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic, np.dtype, Enum)
# Rooms of ours whose objects have settings that users change; all others know what they read.
_LOOKED_AT = ("tinygraph.nn.", "tinygraph.recipes.")
_GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)
_NOT_OF_USERS = {*sys.stdlib_module_names, "numpy", "tinygraph", "numba", "cupy"} - {"__main__"}


class Reading(NamedTuple):
    """One value that a function has read, as `holder.get(key)`."""

    holder: Any
    key: Any  # a name or a constant
    value: Any  # what was there
    told: str  # how the function names it

    @property
    def place(self) -> tuple[int, Any]:
        """Tells places apart, as long as their holders live."""
        return id(getattr(self.holder, "owner", self.holder)), self.key

    def holds(self) -> bool:
        """Whether it is still there."""
        now = self.holder.get(self.key, MISSING)
        return now is self.value or (_is_plain(now) and _same(now, self.value))


class Chain(NamedTuple):
    """A variable, and what is read of it: `self.config.rate`."""

    kind: str  # "global", "free" or "local"
    name: str
    steps: tuple[Step, ...] = ()


class _Cell(NamedTuple):
    """A closure variable, to be read like a dict."""

    owner: CellType

    def get(self, key: Any, default: Any) -> Any:
        try:
            return self.owner.cell_contents
        except ValueError:  # it is empty
            return default


class _Owner(NamedTuple):
    """An object with `__slots__`, a list or a tuple, to be read like a dict."""

    owner: Any

    def get(self, key: Any, default: Any) -> Any:
        if isinstance(key, str):
            return getattr(self.owner, key, default)
        return self.owner[key] if -len(self.owner) <= key < len(self.owner) else default


class Readings:
    """What is read while it is on, by the functions of users and by `forward` of modules.

    It stands in the place of a profiler.  Where another one runs, nothing is seen.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._found: dict[tuple[int, Any], Reading] = {}
        self._functions: dict[CodeType, FunctionType] = {}  # for their closures
        self._classes: dict[type, Any] = {}
        self._on = False
        self.drawn = ""  # how the function names a draw from a generator, once there is one
        self._know(function)

    def __enter__(self) -> Readings:
        self._on = sys.getprofile() is None
        if self._on:
            sys.setprofile(self._look)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._on:
            sys.setprofile(None)

    def lasting(self) -> list[Reading]:
        """Those that the function has not changed itself."""
        return [reading for reading in self._found.values() if reading.holds()]

    def _look(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and _is_of_users(room := frame.f_globals.get("__name__", "")):
            for chain in chains_of(frame.f_code):
                if chain.kind == "local" or not room.startswith("tinygraph."):
                    self._follow(chain, frame)
            if self.drawn:  # said before the frame has drawn: the next number is that of the run
                raise Refused(
                    f"it draws from a generator ({self.drawn}), which a plan does not repeat. Way "
                    "out: draw outside, and pass the numbers as arguments"
                )

    def _follow(self, chain: Chain, frame: FrameType) -> None:
        """Note what a chain leads over, as far as that is plain to see."""
        value, told = self._variable(chain, frame), chain.name
        if isinstance(getattr(value, "__self__", None), _GENERATORS):  # `from random import random`
            self.drawn = told
        for is_element, key in chain.steps:
            if value is MISSING or isinstance(value, _PLAIN):
                return
            told += f"[{key!r}]" if is_element else f".{key}"
            if value is np and key == "random":
                value = np.random
                continue
            if value is random or value is np.random or isinstance(value, _GENERATORS):
                makes = key == "default_rng" or isinstance(getattr(value, str(key), None), type)
                self.drawn = self.drawn if makes else told
                return
            found = self._holder(value, is_element, key, told)
            if found is None:
                return
            value = self._read(found, key, told)

    def _variable(self, chain: Chain, frame: FrameType) -> Any:
        if chain.kind == "global":
            if chain.name not in frame.f_globals:  # of builtins
                return MISSING
            return self._read(frame.f_globals, chain.name, chain.name)
        function = self._functions.get(frame.f_code)
        if chain.kind == "free" and function is not None and function.__closure__:
            at = frame.f_code.co_freevars.index(chain.name)
            return self._read(_Cell(function.__closure__[at]), chain.name, chain.name)
        return frame.f_locals.get(chain.name, MISSING)

    def _holder(self, value: Any, is_element: bool, key: Any, told: str) -> Any:
        """What is to be asked for an attribute or element; None where that is not followed."""
        if is_element:
            if type(value) is dict:
                return value
            return _Owner(value) if type(value) in (list, tuple) and type(key) is int else None
        if isinstance(value, ModuleType):
            return vars(value) if _is_of_users(value.__name__) else None
        if isinstance(value, (Tensor, np.ndarray, FunctionType, MethodType)):
            return None
        is_class = isinstance(value, type)
        kind = value if is_class else type(value)
        defines = next((k for k in kind.__mro__ if key in vars(k)), None)
        # One view of a class for all: `vars` makes another one at every call.
        of_class = None if defines is None else self._classes.setdefault(defines, vars(defines))
        if not is_class:
            if of_class is not None and hasattr(type(of_class[key]), "__set__"):
                is_slot = type(of_class[key]).__name__ == "member_descriptor"
                return _Owner(value) if is_slot else None  # a property has a frame of its own
            own = getattr(value, "__dict__", {})
            if key in own:
                return own
            if of_class is not None and _is_plain(of_class[key]):  # one of its own may come later
                self._note(own, key, MISSING, told)
        return of_class

    def _read(self, holder: Any, key: Any, told: str) -> Any:
        """The value, which is noted where it may be another one at a later call."""
        value = holder.get(key, MISSING)
        if isinstance(value, (FunctionType, MethodType, partial)):
            self._know(value)
            if type(holder) is dict or type(holder) is _Cell:  # not a method
                self._note(holder, key, value, told)
        elif not isinstance(value, _UNNOTED) and type(value) not in (Tensor, staticmethod):
            self._note(holder, key, value, told)
        return value

    def _note(self, holder: Any, key: Any, value: Any, told: str) -> None:
        # The reading holds its holder, so that the id stays its own.
        reading = Reading(holder, key, value, told)
        self._found.setdefault(reading.place, reading)

    def _know(self, function: Any) -> None:
        while isinstance(function, (partial, MethodType)):
            function = function.func if isinstance(function, partial) else function.__func__
        if isinstance(function, FunctionType):
            self._functions[function.__code__] = function


_UNNOTED = (
    *(ModuleType, type, np.ndarray, list, dict, set),
    *(BuiltinFunctionType, MethodDescriptorType, classmethod, property),
)


def _is_of_users(module: str) -> bool:
    return module.split(".")[0] not in _NOT_OF_USERS or module.startswith(_LOOKED_AT)


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


def _same(a: Any, b: Any) -> bool:
    """Whether two values are plain and equal: of one type, NaN as itself, 0 apart from -0."""
    if type(a) is not type(b):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(map(_same, a, b))
    return repr(a) == repr(b) if isinstance(a, (float, complex, np.generic)) else bool(a == b)


# ---- bytecode -----------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def chains_of(code: CodeType) -> tuple[Chain, ...]:
    """What a function reads of variables that it does not set itself, in order.

    >>> chains_of((lambda self: self.config["rate"] * scale).__code__)[0]
    Chain(kind='local', name='self', steps=((False, 'config'), (True, 'rate')))
    """
    stored = [name for made in dis.get_instructions(code) for name in _stored(made)]
    aliases: dict[str, Chain] = {}  # local variables that stand for a chain
    found: dict[Chain, None] = {}
    for chain, alias in _walked(code, aliases):
        if chain.kind != "local" or chain.name not in stored:
            found[chain] = None
            if alias is not None and stored.count(alias) == 1:
                aliases[alias] = chain
    return tuple(found)


def _walked(code: CodeType, aliases: dict[str, Chain]) -> Iterator[tuple[Chain, str | None]]:
    """Each chain, and the local variable that it is stored in."""
    chain: Chain | None = None
    constant: Any = MISSING  # that was loaded on top of the chain
    for made in dis.get_instructions(code):
        name, given = made.opname, made.argval
        if name in ("EXTENDED_ARG", "PUSH_NULL", "CACHE", "NOP"):
            continue
        if chain is not None:
            if name in ("LOAD_ATTR", "LOAD_METHOD") and constant is MISSING:
                chain = chain._replace(steps=(*chain.steps, (False, given)))
                continue
            if name in ("LOAD_CONST", "LOAD_SMALL_INT") and type(given) in (str, int):
                if constant is MISSING:
                    constant = given
                    continue
            elif constant is not MISSING and (name == "BINARY_SUBSCR" or made.argrepr == "[]"):
                chain = chain._replace(steps=(*chain.steps, (True, constant)))
                constant = MISSING
                continue
            yield chain, given if name == "STORE_FAST" and constant is MISSING else None
        chain, constant = _begun(name, given, code, aliases), MISSING
    if chain is not None:
        yield chain, None


def _begun(opname: str, given: Any, code: CodeType, aliases: dict[str, Chain]) -> Chain | None:
    """The variable that an instruction leaves on top of the stack."""
    if opname in ("LOAD_GLOBAL", "LOAD_NAME"):
        return Chain("global", given)
    if opname == "LOAD_DEREF":
        return Chain("free" if given in code.co_freevars else "local", given)
    if opname.startswith("LOAD_FAST") or opname == "STORE_FAST_LOAD_FAST":
        name = given[-1] if isinstance(given, tuple) else given
        return aliases.get(name) or Chain("local", name)
    return None


def _stored(made: dis.Instruction) -> tuple[str, ...]:
    """The variables that an instruction changes."""
    if not made.opname.startswith(("STORE_FAST", "DELETE_FAST", "STORE_DEREF", "DELETE_DEREF")):
        return ()
    names: tuple[str, ...] = made.argval if isinstance(made.argval, tuple) else (made.argval,)
    return names[:1] if made.opname == "STORE_FAST_LOAD_FAST" else names
