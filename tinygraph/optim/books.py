"""The books of an optimiser: groups with their hyper-parameters, and state by parameter name.

groups   [{"params": [Parameter, ...], "lr": 0.1, ...}, ...]    what a user reads and changes
state    {name: {"momentum_buffer": array, ...}, ...}           what is saved
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import ArgumentError, CheckpointError, nearest, number, unmasked
from tinygraph.engine import Array, Parameter
from tinygraph.optim.members import Group, plain, read_groups


class Books:
    """What an optimiser holds, without what it does: read, checked, saved and loaded."""

    arrays: ClassVar[tuple[str, ...]] = ()  # state: arrays of the parameter's shape and dtype
    numbers: ClassVar[tuple[str, ...]] = ()  # state: numbers, such as a count of steps
    nonnegative: ClassVar[tuple[str, ...]] = ("lr",)  # hyper-parameters: numbers of at least 0
    fractions: ClassVar[tuple[str, ...]] = ()  # hyper-parameters: from 0 to below 1, what is kept
    pairs: ClassVar[tuple[str, ...]] = ()  # of these, the ones that are two numbers

    def __init__(self, params: Iterable[Any], defaults: Mapping[str, Any]) -> None:
        self.op = type(self).__name__
        self.defaults = dict(defaults)
        self.groups: list[Group] = []
        self.parameters: dict[str, Parameter] = {}
        self.state: dict[str, dict[str, Any]] = {}
        self._take(*read_groups(self.op, params, defaults))
        self._base_rates: list[float] = []

    def _take(self, groups: list[Group], names: list[str]) -> None:
        """Enter groups and the names of their parameters, which have been read."""
        for group in groups:
            self.check(settings_of(group))
        self.groups += groups
        members = [p for group in groups for p in group["params"]]
        self.parameters |= zip(names, members, strict=True)
        self.state |= {name: {} for name in names}

    @property
    def param_groups(self) -> list[Group]:
        """`groups`, under PyTorch's name."""
        return self.groups

    def base_rates(self) -> list[float]:
        """The learning rates that groups had when this was first asked for, by a schedule.

        A group's "initial_lr", where it has one, as PyTorch writes it for a run that goes on.
        """
        for group in self.groups[len(self._base_rates) :]:
            first = group["initial_lr"] if "initial_lr" in group else group["lr"]
            self._base_rates.append(float(first))
        return [*self._base_rates]

    def knows_base_rates(self) -> bool:
        """Whether the learning rates may have changed since without harm to `base_rates`."""
        return all("initial_lr" in group for group in self.groups[len(self._base_rates) :])

    def check(self, group: Group) -> None:
        """Raise ArgumentError for hyper-parameters that cannot be."""
        for name in (*self.nonnegative, "initial_lr"):
            if name in group:
                number(self.op, name, group[name], 0)
        for name in self.pairs:
            if not isinstance(group[name], tuple) or len(group[name]) != 2:
                raise ArgumentError(self.op, name, "two numbers", repr(group[name]))
        for name in self.fractions:
            several = group[name] if name in self.pairs else (group[name],)
            for value in several:
                number(self.op, name, value, 0, below=1)

    def named_groups(self) -> list[Group]:
        """The groups with names in the place of the parameters, as they are saved."""
        names = iter(self.parameters)
        return [{**g, "params": [next(names) for _ in g["params"]]} for g in self.groups]

    def state_dict(self) -> dict[str, Any]:
        """State and hyper-parameters as a plain dict: copies of arrays (numpy), numbers, names."""
        state = {
            name: {key: _saved(self.parameters[name], value) for key, value in own.items()}
            for name, own in self.state.items()
            if own
        }
        return {"optimizer": self.op, "groups": self.named_groups(), "state": state}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken: the same class, groups and parameters.

        Raises
        ------
        CheckpointError
            Something does not fit.  The message lists all of it, and nothing was changed.
        """
        faults = self._faults(saved)
        if faults:
            lines = "\n".join(f"  {fault}" for fault in faults)
            raise CheckpointError(
                f"load_state_dict: the state does not fit this {self.op}:\n{lines}\nNothing was "
                "changed. Way out: build model and optimiser as they were when it was saved"
            )
        for group, from_file in zip(self.groups, saved["groups"], strict=True):
            group.update(settings_of(from_file))
        for name, state in self.state.items():
            state.clear()
            for key, value in saved["state"].get(name, {}).items():
                is_array = key in self.arrays
                state[key] = _loaded(self.parameters[name], value) if is_array else plain(value)

    def __repr__(self) -> str:
        lines = []
        for group in self.groups:
            settings = ", ".join(f"{key}={value!r}" for key, value in settings_of(group).items())
            lines.append(f"{len(group['params'])} parameters: {settings}")
        return f"{self.op}({lines[0]})" if len(lines) == 1 else f"{self.op}({lines})"

    def _faults(self, saved: Any) -> list[str]:
        """What keeps this optimiser from going on with what another's `state_dict()` returned."""
        if not isinstance(saved, Mapping) or not {"optimizer", "groups", "state"} <= set(saved):
            return ["not what state_dict() returns: 'optimizer', 'groups' and 'state' are needed"]
        if saved["optimizer"] != self.op:
            return [f"it was saved by {saved['optimizer']}"]
        groups = self.named_groups()
        if not isinstance(saved["groups"], (list, tuple)):
            return [f"expected a list of groups, got {saved['groups']!r:.40}"]
        if not isinstance(saved["state"], Mapping):
            return [f"expected state by parameter, got {saved['state']!r:.40}"]
        if len(saved["groups"]) != len(groups):
            return [f"expected {len(groups)} groups, got {len(saved['groups'])}"]
        faults = []
        for i, (group, from_file) in enumerate(zip(groups, saved["groups"], strict=True)):
            faults += [f"group {i}: {fault}" for fault in self._group_faults(group, from_file)]
        for name, state in saved["state"].items():
            if name not in self.parameters:
                faults.append(f"unexpected  {name}  {nearest(name, self.parameters)}".rstrip())
                continue
            if not isinstance(state, Mapping):
                faults.append(f"wrong       {name}: expected arrays by name, got {state!r:.40}")
                continue
            for key, value in state.items():
                fault = self._value_fault(self.parameters[name], key, value)
                if fault:
                    faults.append(f"wrong       {name}: {key}: {fault}")
        return faults

    def _group_faults(self, group: Group, saved: Any) -> list[str]:
        if not isinstance(saved, Mapping) or not isinstance(saved.get("params"), (list, tuple)):
            return [f"expected settings with a list of 'params', got {saved!r:.40}"]
        if set(saved) != set(group):
            return [f"expected {', '.join(group)}, got {', '.join(map(str, saved))}"]
        faults = []
        names = list(saved["params"])
        if names != group["params"]:
            faults.append(f"expected the parameters {group['params']}, got {names}")
        try:
            self.check({key: plain(value) for key, value in saved.items() if key != "params"})
        except ArgumentError as error:
            faults.append(str(error))
        return faults

    def _value_fault(self, parameter: Parameter, key: str, value: Any) -> str:
        if key in self.numbers:
            found = plain(value)
            is_number = isinstance(found, Real) and not isinstance(found, bool)
            if not is_number:
                return f"expected a number, got {value!r:.40}"
            if key == "step" and not found >= 0:
                return f"expected a number of at least 0, got {value!r:.40}"
            return "" if math.isfinite(found) else f"expected a finite number, got {value!r:.40}"
        if key not in self.arrays:
            return f"unknown {nearest(key, [*self.arrays, *self.numbers])}".rstrip()
        unmasked("load_state_dict", key, value)
        if not isinstance(value, np.ndarray):
            return f"expected an array, got {type(value).__name__}"
        if value.shape != parameter.whole_shape or value.dtype != parameter.dtype:
            expected = f"{parameter.dtype} {parameter.whole_shape}"
            return f"expected {expected}, got {value.dtype} {value.shape}"
        return ""


def settings_of(group: Mapping[str, Any]) -> dict[str, Any]:
    """The hyper-parameters of a group as Python numbers."""
    return {key: plain(value) for key, value in group.items() if key != "params"}


def _saved(parameter: Parameter, value: Any) -> Any:
    """A copy of a piece of state on the host."""
    if isinstance(value, Real):
        return value
    return np.array(parameter.whole_of(parameter.device.to_numpy(value)), order="C")


def _loaded(parameter: Parameter, value: Array) -> Array:
    """A copy of a saved array on the parameter's device."""
    return parameter.device.from_numpy(np.array(parameter.part_of(value), order="C"))
