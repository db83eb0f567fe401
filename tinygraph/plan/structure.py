"""The arguments and results of a compiled function: arrays in tuples, lists and dicts.

Everything else in the arguments belongs to the key under which a plan is found again.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.plan.tracing import Deed, Refused, Trace, Unread
from tinygraph.tensor import Tensor


@dataclass(frozen=True)
class Slot:
    """The place of an output of the plan in a result, or of a tensor that `fn` has not made, or of
    the result of a deed: the norm that clipping returns."""

    output: int | None = None
    tensor: Tensor | None = None
    deed: Deed | None = None


def take_apart(thing: Any, given: list[Any]) -> Hashable:
    """A key of everything but values; arrays and tensors are appended to `given`, in order."""
    if isinstance(thing, np.ndarray):
        given.append(thing)
        return "array", thing.shape, thing.dtype
    if isinstance(thing, Tensor):
        given.append(thing)
        return "tensor", thing.shape, thing.dtype, thing.requires_grad, thing.device.name
    if isinstance(thing, (tuple, list)):
        return type(thing), tuple([take_apart(part, given) for part in thing])
    if isinstance(thing, dict):
        return "dict", tuple([(k, take_apart(part, given)) for k, part in thing.items()])
    try:
        hash(thing)
    except TypeError:
        return "object", id(thing)
    return type(thing), thing


def put_together(thing: Any, parts: Any) -> Any:
    """The same structure with the next of `parts` for each array and tensor."""
    if isinstance(thing, (Tensor, np.ndarray)):
        return next(parts)
    if isinstance(thing, (tuple, list)):
        made = [put_together(part, parts) for part in thing]
        if hasattr(thing, "_fields"):
            return type(thing)(*made)
        return type(thing)(made)
    if isinstance(thing, dict):
        return {k: put_together(part, parts) for k, part in thing.items()}
    return thing


def slots_of(thing: Any, outputs: list[Tensor], trace: Trace) -> Any:
    """A result with slots; what the plan has to compute is appended to `outputs`."""
    if isinstance(thing, Tensor):
        if not trace.knows(thing):
            return Slot(tensor=thing)
        if not any(thing is other for other in outputs):
            outputs.append(thing)
        return Slot(output=next(i for i, other in enumerate(outputs) if other is thing))
    if isinstance(thing, (tuple, list)):
        made = [slots_of(part, outputs, trace) for part in thing]
        return type(thing)(*made) if hasattr(thing, "_fields") else type(thing)(made)
    if isinstance(thing, dict):
        return {k: slots_of(part, outputs, trace) for k, part in thing.items()}
    if thing is None:
        return None
    if isinstance(thing, Unread) and thing.deed is not None:
        return Slot(deed=thing.deed)
    raise Refused(f"it returns a {type(thing).__name__}; a plan returns Tensors")


def fill(result: Any, tensors: Sequence[Tensor], done: Mapping[int, Any]) -> Any:
    """The result of a call; `done` holds what each deed has returned, by its id."""
    if isinstance(result, Slot):
        if result.deed is not None:
            return done[id(result.deed)]
        return result.tensor if result.output is None else tensors[result.output]
    if isinstance(result, (tuple, list)):
        made = [fill(part, tensors, done) for part in result]
        return type(result)(*made) if hasattr(result, "_fields") else type(result)(made)
    if isinstance(result, dict):
        return {k: fill(part, tensors, done) for k, part in result.items()}
    return result
