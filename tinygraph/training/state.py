"""What a training is made of, as arrays by name (saving.py): pack and unpack.

    parameters            parameters and buffers of the model, by name
    optimizer             its state_dict: settings, and arrays and numbers by parameter name
    order                 the order of the samples in the epoch under way; a long one as four words,
                          its SHA-256
    schedule, generator, loader, means, best, epoch, steps, seconds, epoch_seconds
                          plain values

JSON keeps Python's floats to the last bit.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from types import NoneType
from typing import Any

import numpy as np

from tinygraph.base import CheckpointError
from tinygraph.engine import Array
from tinygraph.files.saving import BAD_DOCUMENT, packed, unpacked
from tinygraph.nn import Module
from tinygraph.optim import Optimizer, ReduceLROnPlateau, Schedule

LONGEST_ORDER = 1_000_000  # samples: one of 100 million is 800 MB

# What a state must hold, and of which kind.
_STATE: Mapping[str, Any] = {
    "epoch": int,
    "steps": int,
    "seconds": (int, float),
    "epoch_seconds": (int, float),
    "best": (dict, NoneType),
    "schedule": (dict, NoneType),
    "loader": dict,
    "generator": {"seed": int, "stream": int},
    "means": {"samples": int, "labels": int, "hits": int, "loss": (int, float)},
    "parameters": dict,
    "optimizer": {"optimizer": str, "groups": list, "state": dict},
    "order": np.ndarray,
}


def pack(
    document: Mapping[str, Any],
    parameters: Mapping[str, Array],
    optimizer: Mapping[str, Any],
    order: Array,
) -> dict[str, Array]:
    """One mapping of arrays; `parameters` and `optimizer` are state_dicts."""
    kept = kept_order(order)
    return packed({**document, "parameters": parameters, "optimizer": optimizer, "order": kept})


def kept_order(order: Array) -> Array:
    """What a checkpoint holds of an order (N,): int64, itself or its SHA-256."""
    kept = np.asarray(order, np.int64)
    if len(kept) <= LONGEST_ORDER:
        return kept
    digest = hashlib.sha256(np.ascontiguousarray(kept, "<i8").data).digest()  # of any machine
    return np.frombuffer(digest, "<i8").astype(np.int64)


def require_order(kept: Array, order: Array) -> None:
    """CheckpointError unless a checkpoint is of this order; old ones hold a long one itself."""
    if np.array_equal(kept, order) or np.array_equal(kept, kept_order(order)):
        return
    raise CheckpointError(
        "resume",
        "train_loader",
        "the order of samples of the run",
        "another one",
        "give the loader the dataset and the seed of the run",
    )


def unpack(
    arrays: Mapping[str, Array],
) -> tuple[dict[str, Any], dict[str, Array], dict[str, Any], Array]:
    """Document, parameters, the optimiser's state_dict and the order, as they were packed."""
    try:
        document = unpacked(arrays)
        _require(document, _STATE)
        if document["best"] is not None:
            _require_best(document["best"])
        parameters, optimizer = document.pop("parameters"), document.pop("optimizer")
        _require(parameters, dict.fromkeys(parameters, np.ndarray))
        _require(optimizer["state"], dict.fromkeys(optimizer["state"], dict))
        order = document.pop("order")
        if order.dtype != np.int64 or order.ndim != 1:
            raise TypeError(f"order is {order.dtype}{list(order.shape)}")
    except (*BAD_DOCUMENT, AttributeError) as error:
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
