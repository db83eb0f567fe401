"""The arguments and results of a compiled function: arrays in tuples, dicts, dataclasses, ...

Everything else in the arguments belongs to the key under which a plan is found again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, SimpleNamespace
from typing import Any

import numpy as np

from tinygraph.base import unmasked
from tinygraph.engine import Tensor
from tinygraph.plan.declared import declared_of
from tinygraph.plan.tracing import Deed, Refused, Trace, Unread


@dataclass(frozen=True)
class Place:
    """What stands at a place of a result: one of these."""

    output: int | None = None  # of the plan
    tensor: Tensor | None = None  # that `fn` has not made
    deed: Deed | None = None  # whose result it is, as the norm that clipping returns


class Itself:
    """An object in a key: equal to itself alone, and held, so that no other one takes its place."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)


def take_apart(thing: Any, given: list[Any]) -> Hashable:
    """A key of everything but values; arrays and tensors are appended to `given`, in order.

    Models, optimisers and functions are known by which object they are: the key holds it.  Refused
    where there is something else in it, which may change unseen.
    """
    if isinstance(thing, np.ndarray):
        given.append(unmasked("compile", "an argument", thing))
        return "array", thing.shape, thing.dtype
    if isinstance(thing, Tensor):
        given.append(thing)
        return "tensor", thing.shape, thing.dtype, thing.requires_grad, thing.device.name
    kind = type(thing)
    if isinstance(thing, (float, complex, np.generic)):
        return kind, repr(thing)  # NaN as itself, 0 apart from -0
    if thing is None or isinstance(thing, _SIMPLE):
        return kind, thing
    if isinstance(thing, slice):
        return slice, take_apart((thing.start, thing.stop, thing.step), given)
    if isinstance(thing, (tuple, list)):
        return kind, tuple([take_apart(part, given) for part in thing])
    parts = _parts(thing)
    if parts is not None:
        return kind, tuple([(name, take_apart(part, given)) for name, part in parts])
    if isinstance(thing, (type, FunctionType, BuiltinFunctionType, MethodType)) or _is_ours(thing):
        return Itself(thing)
    raise Refused(
        f"its arguments hold a {kind.__name__}. Way out: pass arrays, Tensors, numbers, strings, "
        "and tuples, lists, dicts, dataclasses and namespaces of them"
    )


_SIMPLE = (bool, int, str, bytes, np.dtype, range, Enum)


def _parts(thing: Any) -> Iterable[tuple[Any, Any]] | None:
    """The parts of a structure with their names or places; None where it is none."""
    if isinstance(thing, (tuple, list)):
        return enumerate(thing)
    if isinstance(thing, dict):
        return thing.items()
    if isinstance(thing, SimpleNamespace):
        return vars(thing).items()
    if is_dataclass(thing) and not callable(thing):  # modules and ops stay whole
        return [(field.name, getattr(thing, field.name)) for field in fields(thing)]
    return None


def _is_ours(thing: Any) -> bool:
    """A module, an optimiser, a device and the like, also where users have made the class."""
    return any(map(declared_of, type(thing).__mro__))


def put_together(thing: Any, parts: Any) -> Any:
    """The same structure with the next of `parts` for each array and tensor."""
    if isinstance(thing, (Tensor, np.ndarray)):
        return next(parts)
    return _rebuilt(thing, lambda part: put_together(part, parts))


def _rebuilt(thing: Any, change: Callable[[Any], Any]) -> Any:
    """A structure with its parts changed; anything else as it is."""
    found = _parts(thing)
    if found is None:
        return thing
    made = {name: change(part) for name, part in found}
    if isinstance(thing, (tuple, list)):
        of_fields = hasattr(thing, "_fields")
        return type(thing)(*made.values()) if of_fields else type(thing)(made.values())
    if isinstance(thing, dict):
        return made
    new = copy(thing)
    for name, part in made.items():
        object.__setattr__(new, name, part)  # also where a dataclass is frozen
    return new


def places_of(thing: Any, outputs: list[Tensor], trace: Trace) -> Any:
    """A result with slots; what the plan has to compute is appended to `outputs`."""
    if isinstance(thing, Tensor):
        if not trace.knows(thing):
            return Place(tensor=thing)
        if not any(thing is other for other in outputs):
            outputs.append(thing)
        return Place(output=next(i for i, other in enumerate(outputs) if other is thing))
    if thing is None:
        return None
    if _parts(thing) is not None:
        return _rebuilt(thing, lambda part: places_of(part, outputs, trace))
    if isinstance(thing, Unread) and thing.deed is not None:
        return Place(deed=thing.deed)
    raise Refused(f"it returns a {type(thing).__name__}; a plan returns Tensors")


def fill(result: Any, tensors: Sequence[Tensor], done: Mapping[int, Any]) -> Any:
    """The result of a call; `done` holds what each deed has returned, by its id."""
    if isinstance(result, Place):
        if result.deed is not None:
            return done[id(result.deed)]
        return result.tensor if result.output is None else tensors[result.output]
    return _rebuilt(result, lambda part: fill(part, tensors, done))
