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

What the function changes itself (side_effects.py) belongs to it too, as it was before the call: a
flag that it turns over has a plan for each side, and a count of calls, which is another one each
time, has none in the end.
"""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from tinygraph.engine import Tensor
from tinygraph.plan.bytecode import Chain, chains_of
from tinygraph.plan.declared import declared, declared_of
from tinygraph.plan.side_effects import (
    MISSING,
    PLAIN,
    Cell,
    Change,
    Owner,
    Reached,
    is_of_users,
    is_plain,
    same,
)
from tinygraph.plan.tracing import Deed, Refused

_GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)


class Unrepeatable(Refused):
    """The function leaves something behind that a plan cannot write."""


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
        return now is self.value or (is_plain(now) and same(now, self.value))


class Readings:
    """What is read while it is on, by the functions of users and by `forward` of modules.

    It stands in the place of a profiler.  Where another one runs, nothing is seen.
    """

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any] = ()) -> None:
        self._found: dict[tuple[int, Any], Reading] = {}
        self._functions: dict[CodeType, list[FunctionType]] = {}  # for their closures
        self._classes: dict[type, Any] = {}
        self._class_of: dict[int, type] = {}  # by the id of its view
        self._owners: dict[int, Any] = {}  # what has an attribute, by the id of its `__dict__`
        self._stores: dict[tuple[int, Any], Reading] = {}  # what the function names as a target
        self._on = False
        self.drawn = ""  # how the function names a draw from a generator, once there is one
        self._function, self._arguments = function, arguments
        self.reached = Reached(self._know)
        self._copies = Reached(self._know)  # of arguments, which are made anew for a trace
        self._know(function)

    def __enter__(self) -> Readings:
        try:
            self._look_at_first()
        except BaseException:
            self.reached.unlock()
            raise
        self._collects = gc.isenabled()
        gc.disable()  # its callbacks, and `__del__`, are no part of the function
        self._on = sys.getprofile() is None
        if self._on:
            sys.setprofile(self._look)
        return self

    def _look_at_first(self) -> None:
        """What the function can change of what leads to it."""
        owner = getattr(self._function, "__self__", None)
        if owner is not None and not is_of_users(type(owner).__module__):  # such as a Trainer
            for name, part in vars(owner).items():
                self.reached.look(part, name)
        self.reached.look(self._function, "")
        self.reached.look(self._arguments, "an argument")

    def __exit__(self, *exception: object) -> None:
        if self._on:
            sys.setprofile(None)
        self.reached.unlock()
        self._copies.unlock()
        if self._collects:
            gc.enable()

    def copies(self, arguments: Any) -> None:
        """The arguments as the function gets them: what it does to these is lost."""
        self._copies.look(arguments, "an argument")

    def lasting(self) -> list[Reading]:
        """Those that the function has not changed itself."""
        changed = {change.place for change in self.reached.changes()}
        return [x for x in self._found.values() if self._place(x) not in changed and x.holds()]

    def undo(self) -> None:
        """Take back what the function has changed."""
        self.reached.undo()

    def settled(self, deeds: Iterable[Deed]) -> tuple[list[Reading], list[Change]]:
        """What a plan is found by, as it was before the call, and what it leaves behind.

        Refused where it could not write that.
        """
        changes, reached = self.reached.changes(), self.reached
        lost = [x.told for x in self._copies.changes() if not reached.knows(x.place)]
        lost += [x.told for x in changes if not x.can_be_repeated]
        lost += [x.told for x in self._found.values() if self._is_lost(x)]
        if lost:
            raise Unrepeatable(
                f"it leaves another {lost[0]} behind than it found, which a plan does not write: "
                "only numbers, strings, flags and short lists of them. Way out: do that outside, "
                "with what the function returns"
            )
        changed = {change.place: change for change in changes}
        told = [self._before(x) for x in self._found.values()]
        seen = {self._place(x) for x in told}
        told += [x for place, x in self._stores.items() if place not in {*seen, *changed}]
        # What is not reached was made by the function, if it is another one now.
        told = [x for x in told if reached.knows(self._place(x)) or x.holds()]
        told += [
            Reading(x.holder, x.key, x.before, x.told)
            for place, x in changed.items()
            if place not in seen and place not in self._stores
        ]
        self._refuse_beside_steps(told, changes, [deed.name for deed in deeds])
        return told, changes

    def _refuse_beside_steps(
        self, readings: Iterable[Reading], changes: Iterable[Change], deeds: Sequence[str]
    ) -> None:
        """A plan has steps of optimisers and schedules at its ends, not where the function has."""
        found: list[Any] = []
        if "the schedule's step" in deeds:
            found += [x for x in readings if is_plain(x.value)]
        if "the schedule's step" in deeds or "step" in deeds:
            found += changes
        for each in found:
            if self.reached.of_optim(each.place):
                raise Refused(
                    f"it uses {each.told} in the call that makes the step. Way out: make the step "
                    "after the call, or use that number before it and pass it as an argument"
                )

    def _is_lost(self, reading: Reading) -> bool:
        """Whether it has changed in an object that nothing leads to, and that stays there."""
        stays = self._owners.get(id(reading.holder), lambda: None)() is not None
        known = reading.value is MISSING or self.reached.knows(self._place(reading))
        return stays and not known and not reading.holds()

    def _before(self, reading: Reading) -> Reading:
        """The same with what stood there when the call began."""
        return reading._replace(value=self.reached.before(self._place(reading), reading.value))

    def _place(self, reading: Reading) -> tuple[int, Any]:
        kind = self._class_of.get(id(reading.holder))
        return reading.place if kind is None else (id(kind), reading.key)

    def _look(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        room, code = frame.f_globals.get("__name__", ""), frame.f_code
        if code.co_name == "get_last_lr" and declared(room) == "optim":
            self._note_groups(frame.f_locals["self"].optimizer.groups, "lr")
        if is_of_users(room):
            is_ours = declared(room) != ""
            for name in () if is_ours else code.co_names:
                if name in frame.f_globals:
                    self.reached.variable(frame.f_globals, name)
            for chain in chains_of(code):
                if chain.kind == "local" or not is_ours:
                    self._follow(chain, frame)
            if self.drawn:  # said before the frame has drawn: the next number is that of the run
                raise Refused(
                    f"it draws from a generator ({self.drawn}), which a plan does not repeat. Way "
                    "out: draw outside, and pass the numbers as arguments"
                )

    def _follow(self, chain: Chain, frame: FrameType) -> None:
        """Note what a chain leads over, as far as that is plain to see."""
        for value in self._variables(chain, frame):
            self._walk(chain, value)

    def _walk(self, chain: Chain, value: Any) -> None:
        told = chain.name
        if isinstance(getattr(value, "__self__", None), _GENERATORS):  # `from random import random`
            self.drawn = told
        for at, (is_element, key) in enumerate(chain.steps, 1):
            if value is MISSING or isinstance(value, PLAIN):
                return
            told += f"[{key!r}]" if is_element else f".{key}"
            if value is np and key == "random":
                value = np.random
                continue
            if value is random or value is np.random or isinstance(value, _GENERATORS):
                makes = key == "default_rng" or isinstance(getattr(value, str(key), None), type)
                self.drawn = self.drawn if makes else told
                return
            is_target = chain.is_target and at == len(chain.steps)
            found = self._holder(value, is_element, key, told, is_target)
            if found is None:
                return
            value = self._read(found, key, told, is_target)
        if not chain.is_target:
            self._end(chain, value, told)

    def _end(self, chain: Chain, value: Any, told: str) -> None:
        """Where a chain ends: an iterator that goes on, the groups of an optimiser."""
        if isinstance(value, Iterator) and (chain.steps or chain.kind != "local"):
            self.drawn = told
        if type(value) is list and self.reached.of_optim((id(value), "")):
            self._note_groups(value)

    def _note_groups(self, groups: Iterable[Any], *names: str) -> None:
        """The numbers of an optimiser that are read in a loop over its groups."""
        for group in groups:
            for name in names or (group if type(group) is dict else ()):
                if is_plain(group[name]):
                    self._note(group, name, group[name], name)

    def _variables(self, chain: Chain, frame: FrameType) -> list[Any]:
        """What the variable of a chain may be: of closures that are alike, that of each."""
        name, target = chain.name, chain.is_target and not chain.steps
        if chain.kind == "global":
            if name not in frame.f_globals and not target:  # of builtins
                return []
            return [self._read(frame.f_globals, name, name, target)]
        now = frame.f_locals.get(name, MISSING)
        if chain.kind == "free":
            at, functions = frame.f_code.co_freevars.index(name), self._functions
            known = functions.get(frame.f_code, ())
            cells = [Cell(f.__closure__[at]) for f in known if f.__closure__]
            own = [cell for cell in cells if cell.get("", MISSING) is now]
            if own:
                return [self._read(cell, "", name, target) for cell in own]
        return [now]

    def _holder(self, value: Any, is_element: bool, key: Any, told: str, is_target: bool) -> Any:
        """What is to be asked for an attribute or element; None where that is not followed."""
        if is_element:
            if type(value) is dict:
                return value
            return Owner(value) if type(value) in (list, tuple) and type(key) is int else None
        if isinstance(value, ModuleType):
            if is_of_users(value.__name__):
                self.reached.variable(vars(value), key)
                return vars(value)
            return None
        if isinstance(value, FunctionType):
            return vars(value) if is_target or key in vars(value) else None
        if isinstance(value, (Tensor, np.ndarray, MethodType)):
            return None
        is_class = isinstance(value, type)
        kind = value if is_class else type(value)
        defines = next((k for k in kind.__mro__ if key in vars(k)), None)
        # One view of a class for all: `vars` makes another one at every call.
        of_class = None if defines is None else self._view(defines)
        if not is_class:
            if of_class is not None and hasattr(type(of_class[key]), "__set__"):
                # A property of a user's class has a frame of its own.
                is_slot = type(of_class[key]).__name__ == "member_descriptor"
                known = is_slot or (defines and declared_of(defines) == "optim")
                return Owner(value) if known else None
            own = getattr(value, "__dict__", {})
            if id(own) not in self._owners and hasattr(value, "__weakref__"):
                self._owners[id(own)] = ref(value)
            if key in own or is_target:
                return own
            if of_class is not None and is_plain(of_class[key]):  # one of its own may come later
                self._note(own, key, MISSING, told)
        return of_class

    def _view(self, kind: type) -> Any:
        if kind not in self._classes:
            self._classes[kind] = vars(kind)
            self._class_of[id(self._classes[kind])] = kind
        return self._classes[kind]

    def _read(self, holder: Any, key: Any, told: str, is_target: bool = False) -> Any:
        """The value, which is noted where it may be another one at a later call."""
        value = holder.get(key, MISSING)
        if is_target:
            if value is MISSING or is_plain(value):
                reading = Reading(holder, key, value, told)
                self._stores.setdefault(reading.place, reading)
        elif isinstance(value, (FunctionType, MethodType, partial)):
            self._know(value)
            if type(holder) is dict or type(holder) is Cell:  # not a method
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
            known = self._functions.setdefault(function.__code__, [])
            if function not in known:
                known.append(function)


_UNNOTED = (
    *(ModuleType, type, np.ndarray, list, dict, set),
    *(BuiltinFunctionType, MethodDescriptorType, classmethod, property),
)
