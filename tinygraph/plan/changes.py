"""Changes: whether a function does at a later call what it did when it was traced first.

A plan repeats the first call.  What the function finds in a way that readings.py does not see, an
element of a list or a number that it draws, may differ at another call.  So calls 2, 4, 8, 16, ...
trace it once more: only a function that has done the same runs through its plan on.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tinygraph.engine import Op, Tensor
from tinygraph.plan.tracing import Backward, Deed, Trace

WAY_OUT = "Way out: pass what it depends on as an argument, numbers as arrays"


class Account:
    """What a trace has noted, to be compared with that of a later call."""

    def __init__(self, trace: Trace) -> None:
        self.nodes = trace.nodes
        self.settings = [_settings(node.op) for node in trace.nodes]  # before any of them ran
        # Where a tensor comes from, and for each that `detach` made whose value it shares.
        self.places: dict[Tensor, Any] = {x: ("argument", i) for i, x in enumerate(trace.arguments)}
        self.places.update({node: ("op", i) for i, node in enumerate(trace.nodes)})
        self.sources: dict[Tensor, Tensor] = {}
        for alias, node in trace.aliases.items():  # in order: an alias of an alias comes later
            self.sources[alias] = self.sources.get(node, node)
        self.deeds = [event for event in trace.events if _tells(event)]


def difference(first: Account, second: Account) -> str:
    """What the second call did otherwise than the first, as a reason; "" for nothing."""
    if len(first.nodes) != len(second.nodes):
        return (
            f"it applied {len(first.nodes)} ops at one call and {len(second.nodes)} at the "
            f"next. {WAY_OUT}"
        )
    pairs = zip(first.nodes, second.nodes, first.settings, second.settings, strict=True)
    for a, b, mine, theirs in pairs:
        # An op that is applied again is the plan's own, whatever it has kept since.
        if a.op is not b.op and not (type(a.op) is type(b.op) and _equal(mine, theirs)):
            return (
                f"it applied {_told(a.op, mine)} at one call and {_told(b.op, theirs)} at the "
                f"next. {WAY_OUT}"
            )
        for x, y in zip(a.inputs, b.inputs, strict=True):
            if not _same_source(x, y, first, second):
                return (
                    f"{a.op.name} took {_value(x)} at one call and {_value(y)} at the next, "
                    f"which the function makes or finds itself. {WAY_OUT}"
                )
    return _other_deeds(first, second)


def _same_source(x: Tensor, y: Tensor, first: Account, second: Account) -> bool:
    """The same leaf, argument or result; or numbers made anew that are equal."""
    x, y = first.sources.get(x, x), second.sources.get(y, y)
    if x is y:
        return True
    if x in first.places or y in second.places:
        return bool(first.places.get(x) == second.places.get(y))
    if x.requires_grad or y.requires_grad or x.spec != y.spec:
        return False
    return _equal(x.device.to_numpy(x.value), y.device.to_numpy(y.value))


def _settings(op: Op) -> dict[str, Any]:
    slots = [name for kind in type(op).__mro__ for name in getattr(kind, "__slots__", ())]
    held = {name: getattr(op, name) for name in slots if hasattr(op, name)}
    return {**held, **getattr(op, "__dict__", {})}


def _equal(a: Any, b: Any) -> bool:
    """Whether two settings are equal; of objects that only know themselves it is assumed."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return _bits(a) == _bits(b)
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(a[name], b[name]) for name in a)
    if isinstance(a, (bool, int, float, complex, str, bytes, np.generic)):
        return bool(a == b) or (a != a and b != b)
    return True


def _bits(x: Any) -> tuple[Any, ...]:
    array = np.asarray(x)
    return array.shape, array.dtype, array.tobytes()


def _other_deeds(first: Account, second: Account) -> str:
    """A reason where backward, steps and the like differ."""
    mine, theirs = ([_deed(event) for event in account.deeds] for account in (first, second))
    if mine != theirs:
        return (
            f"it did {', '.join(mine) or 'nothing'} at one call and "
            f"{', '.join(theirs) or 'nothing'} at the next. {WAY_OUT}"
        )
    for name, a, b in zip(mine, first.deeds, second.deeds, strict=True):
        if isinstance(a, Backward) and isinstance(b, Backward):
            same = _same_source(a.root, b.root, first, second)
        else:
            owners = [getattr(getattr(x, "call", None), "__self__", None) for x in (a, b)]
            same = owners[0] is owners[1]
        if not same:
            return f"it did {name} at one call and {name}, of another, at the next. {WAY_OUT}"
    return ""


def _tells(event: Any) -> bool:
    """Not of nodes, and not of gradients that were removed by hand: whether one was there to be
    removed depends on the call before."""
    return not isinstance(event, Tensor) and not isinstance(getattr(event, "call", None), partial)


def _deed(event: Any) -> str:
    return event.name if isinstance(event, Deed) else "backward"


def _told(op: Op, settings: dict[str, Any]) -> str:
    """An op with its settings, where they are short."""
    text = ", ".join([f"{name}={value!r}" for name, value in settings.items()])
    return f"{op.name}({text})" if len(text) < 60 else op.name


def _value(x: Tensor) -> str:
    """A number as it is; of anything else the shape."""
    if x.op is None and x.size == 1:
        return str(x.value)
    return f"{x.dtype}{list(x.shape)}"
