"""What a training is made of, as arrays by name: pack and unpack.

    parameters/NAME       parameters and buffers of the model
    optimizer/NAME/KEY    arrays of the optimiser's state, by parameter name
    order                 the order of the samples in the epoch under way
    document              everything that is no array, as JSON: the optimiser's settings and
                          numbers, the schedule, the random generator, the loader's position,
                          the epoch's means so far, steps, epochs, seconds, the best epoch; and
                          the names of all arrays, so that none can be missing

JSON keeps Python's floats to the last bit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from types import NoneType
from typing import Any

import numpy as np

from tinygraph.errors import CheckpointError
from tinygraph.nn import Module
from tinygraph.optim import Optimizer, ReduceLROnPlateau, Schedule
from tinygraph.shapes import Array

_PARAMETERS, _OPTIMIZER = "parameters/", "optimizer/"

# What a document must hold, and of which kind.
_DOCUMENT: Mapping[str, Any] = {
    "epoch": int,
    "steps": int,
    "seconds": (int, float),
    "epoch_seconds": (int, float),
    "best": (dict, NoneType),
    "schedule": (dict, NoneType),
    "loader": dict,
    "generator": {"seed": int, "stream": int},
    "optimizer": dict,
    "arrays": list,
    "means": {"samples": int, "labels": int, "hits": int, "loss": (int, float)},
}
_OPTIMIZER_STATE: Mapping[str, Any] = {"optimizer": str, "groups": list, "state": dict}


def pack(
    document: Mapping[str, Any],
    parameters: Mapping[str, Array],
    optimizer: Mapping[str, Any],
    order: Array,
) -> dict[str, Array]:
    """One mapping of arrays; `parameters` and `optimizer` are state_dicts."""
    arrays: dict[str, Array] = {"order": np.asarray(order, np.int64)}
    arrays |= {f"{_PARAMETERS}{name}": value for name, value in parameters.items()}
    numbers: dict[str, dict[str, Any]] = {}
    for name, own in optimizer["state"].items():
        for key, value in own.items():
            if isinstance(value, np.ndarray):
                arrays[f"{_OPTIMIZER}{name}/{key}"] = value
            else:
                numbers.setdefault(name, {})[key] = value
    whole = {**document, "optimizer": {**optimizer, "state": numbers}, "arrays": sorted(arrays)}
    text = json.dumps(whole, default=_plain)
    arrays["document"] = np.frombuffer(text.encode(), np.uint8)
    return arrays


def unpack(
    arrays: Mapping[str, Array],
) -> tuple[dict[str, Any], dict[str, Array], dict[str, Any], Array]:
    """Document, parameters, the optimiser's state_dict and the order, as they were packed."""
    try:
        document = json.loads(arrays["document"].tobytes())
        _require(document, _DOCUMENT)
        if document["best"] is not None:
            _require_best(document["best"])
        if document.pop("arrays") != sorted(set(arrays) - {"document"}):
            raise KeyError("an array")
        optimizer = document.pop("optimizer")
        _require(optimizer, _OPTIMIZER_STATE)
        state: dict[str, dict[str, Any]] = optimizer["state"]
        order = arrays["order"]
        if order.dtype != np.int64 or order.ndim != 1:
            raise TypeError(f"order is {order.dtype}{list(order.shape)}")
        parameters: dict[str, Array] = {}
        for name, array in arrays.items():
            if name.startswith(_PARAMETERS):
                parameters[name.removeprefix(_PARAMETERS)] = array
            elif name.startswith(_OPTIMIZER):
                parameter, key = name.removeprefix(_OPTIMIZER).rsplit("/", 1)
                state.setdefault(parameter, {})[key] = array
        optimizer["groups"] = [
            {
                key: tuple(value) if isinstance(value, list) and key != "params" else value
                for key, value in group.items()
            }
            for group in optimizer["groups"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise no_state(error) from None
    return document, parameters, optimizer, order


def restore(
    found: Mapping[str, Array],
    model: Module,
    optimizer: Optimizer,
    schedule: Schedule | ReduceLROnPlateau | None,
) -> tuple[dict[str, Any], Array]:
    """Load a checkpoint; what is left is the document, and the order of the samples.

    Where it is that of another model, optimiser or schedule, nothing has changed.
    """
    document, parameters, optimizers, order = unpack(found)
    if (schedule is None) != (document["schedule"] is None):
        raise CheckpointError(
            "resume",
            "schedule",
            "the one of the run",
            "none" if schedule is None else "a schedule, where the run had none",
            "make the Trainer as it was",
        )
    before = model.state_dict(), optimizer.state_dict()
    rates = None if schedule is None else schedule.state_dict()
    try:
        model.load_state_dict(parameters)
        optimizer.load_state_dict(optimizers)
        for name, own in optimizers["state"].items():
            if own and (missing := set(optimizer.numbers) - set(own)):
                raise KeyError(f"{min(missing)} of {name}")  # it makes them with its arrays
        if schedule is not None:
            schedule.load_state_dict(document["schedule"])
    except Exception as error:
        model.load_state_dict(before[0])
        optimizer.load_state_dict(before[1])
        if schedule is not None and rates is not None:
            schedule.load_state_dict(rates)
        if isinstance(error, CheckpointError):
            raise
        raise no_state(error) from None  # a file may hold anything under the right names
    return document, order


def no_state(error: Exception) -> CheckpointError:
    """The error for a file that is whole and holds something else than a training's state."""
    return CheckpointError(
        "resume",
        "checkpoint",
        "the state of a training",
        repr(error),
        "resume a run of this version of tinygraph",
    )


def _require(found: Any, fields: Mapping[str, Any]) -> None:
    """Raise TypeError, KeyError or ValueError unless the fields are there, each of its kind.

    A field's kind is a type, a tuple of them, or, for a dict, the kinds of its own fields.
    """
    if not isinstance(found, dict):
        raise TypeError(f"{type(found).__name__} instead of named values")
    for name, kind in fields.items():
        value = found[name]
        if isinstance(kind, Mapping):
            _require(value, kind)
            if set(value) - set(kind):
                raise ValueError(f"{name} has entries of another version")
            continue
        if isinstance(value, bool) or not isinstance(value, kind):
            raise TypeError(f"{name} is {value!r:.40}")
        if isinstance(value, (int, float)) and not 0 <= value < math.inf and name != "loss":
            raise ValueError(f"{name} is {value}")


def _require_best(best: Any) -> None:
    """An epoch and one metric of it."""
    _require(best, {"epoch": int})
    metrics = [name for name in ("validation_accuracy", "validation_loss") if name in best]
    if len(metrics) != 1 or len(best) != 2:
        raise ValueError(f"best is {best!r:.60}")
    _require(best, {metrics[0]: (int, float)})


def _plain(value: Any) -> Any:
    """numpy's numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be saved")
