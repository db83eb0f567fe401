"""Whether a saved state belongs to an optimiser: everything that does not fit, one line each."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Protocol

import numpy as np

from tinygraph.errors import ArgumentError, nearest
from tinygraph.optim.members import Group, plain
from tinygraph.tensor import Parameter


class Optimizer(Protocol):
    """What is looked at of an optimiser (optimizer.py stands above this file and calls it)."""

    op: str
    numbers: ClassVar[tuple[str, ...]]
    arrays: ClassVar[tuple[str, ...]]

    @property
    def parameters(self) -> Mapping[str, Parameter]: ...

    def named_groups(self) -> list[Group]: ...

    def check(self, group: Group) -> None: ...


def list_faults(optimizer: Optimizer, saved: Any) -> list[str]:
    """What keeps `optimizer` from going on with what another's `state_dict()` returned."""
    if not isinstance(saved, Mapping) or not {"optimizer", "groups", "state"} <= set(saved):
        return ["not what state_dict() returns: 'optimizer', 'groups' and 'state' are needed"]
    if saved["optimizer"] != optimizer.op:
        return [f"it was saved by {saved['optimizer']}"]
    groups = optimizer.named_groups()
    if len(saved["groups"]) != len(groups):
        return [f"expected {len(groups)} groups, got {len(saved['groups'])}"]
    faults = []
    for i, (group, from_file) in enumerate(zip(groups, saved["groups"], strict=True)):
        faults += [f"group {i}: {fault}" for fault in _group_faults(optimizer, group, from_file)]
    for name, state in saved["state"].items():
        if name not in optimizer.parameters:
            faults.append(f"unexpected  {name}  {nearest(name, optimizer.parameters)}".rstrip())
            continue
        for key, value in state.items():
            fault = _value_fault(optimizer, optimizer.parameters[name], key, value)
            if fault:
                faults.append(f"wrong       {name}: {key}: {fault}")
    return faults


def _group_faults(optimizer: Optimizer, group: Group, saved: Mapping[str, Any]) -> list[str]:
    if set(saved) != set(group):
        return [f"expected {', '.join(group)}, got {', '.join(map(str, saved))}"]
    faults = []
    names = list(saved["params"])
    if names != group["params"]:
        faults.append(f"expected the parameters {group['params']}, got {names}")
    try:
        optimizer.check({key: plain(value) for key, value in saved.items() if key != "params"})
    except ArgumentError as error:
        faults.append(str(error))
    return faults


def _value_fault(optimizer: Optimizer, parameter: Parameter, key: str, value: Any) -> str:
    if key in optimizer.numbers:
        number = isinstance(plain(value), Real)
        return "" if number else f"expected a number, got {value!r:.40}"
    if key not in optimizer.arrays:
        return f"unknown {nearest(key, [*optimizer.arrays, *optimizer.numbers])}".rstrip()
    if not isinstance(value, np.ndarray):
        return f"expected an array, got {type(value).__name__}"
    if value.shape != parameter.shape or value.dtype != parameter.dtype:
        expected = f"{parameter.dtype} {parameter.shape}"
        return f"expected {expected}, got {value.dtype} {value.shape}"
    return ""
