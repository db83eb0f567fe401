"""What a training is made of beside the parameters, as arrays by name: pack and unpack.

    optimizer/NAME/KEY    arrays of the optimiser's state, by parameter name
    order                 the order of the samples in the epoch under way
    document              everything that is no array, as JSON: the optimiser's settings and
                          numbers, the schedule, the random generator, the loader's position,
                          the epoch's means so far, steps, epochs, seconds, the best epoch

JSON keeps Python's floats to the last bit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from tinygraph.errors import CheckpointError, explain
from tinygraph.shapes import Array

_OPTIMIZER = "optimizer/"


def pack(
    document: Mapping[str, Any], optimizer: Mapping[str, Any], order: Array
) -> dict[str, Array]:
    """One mapping of arrays; `optimizer` is the optimiser's state_dict."""
    arrays: dict[str, Array] = {"order": np.asarray(order, np.int64)}
    numbers: dict[str, dict[str, Any]] = {}
    for name, own in optimizer["state"].items():
        for key, value in own.items():
            if isinstance(value, np.ndarray):
                arrays[f"{_OPTIMIZER}{name}/{key}"] = value
            else:
                numbers.setdefault(name, {})[key] = value
    whole = {**document, "optimizer": {**optimizer, "state": numbers}}
    text = json.dumps(whole, default=_plain)
    arrays["document"] = np.frombuffer(text.encode(), np.uint8)
    return arrays


def unpack(arrays: Mapping[str, Array]) -> tuple[dict[str, Any], dict[str, Any], Array]:
    """The document, the optimiser's state_dict and the order, as they were packed.

    Raises
    ------
    CheckpointError
        The arrays are not those of a training.
    """
    try:
        document = json.loads(arrays["document"].tobytes())
        optimizer = document.pop("optimizer")
        state: dict[str, dict[str, Any]] = optimizer["state"]
        order = arrays["order"]
        for name, array in arrays.items():
            if name.startswith(_OPTIMIZER):
                parameter, key = name.removeprefix(_OPTIMIZER).rsplit("/", 1)
                state.setdefault(parameter, {})[key] = array
        optimizer["groups"] = [
            {key: tuple(value) if isinstance(value, list) and key != "params" else value
             for key, value in group.items()}
            for group in optimizer["groups"]
        ]  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            explain("resume", "state.safetensors", "the state of a training", f"{error!r} missing",
                    "resume a run of this version of tinygraph")
        ) from None  # fmt: skip
    return document, optimizer, order


def _plain(value: Any) -> Any:
    """numpy's numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be saved")
