"""Optimizer: parameters in groups, hyper-parameters for each group, state for each parameter.

    group    {"params": [Parameter, ...], "lr": 0.1, ...}     what a user reads and changes
    state    {name: {"momentum_buffer": array, ...}, ...}     what is saved, by parameter name

A new optimiser is one class: its hyper-parameters, the names of its state, and `update`, which
changes one parameter in place (and `prepare`, where casting a number every time takes too long):

>>> import numpy as np, tinygraph as tg
>>> class SignDescent(tg.optim.Optimizer):
...     def __init__(self, params, lr):
...         super().__init__(params, lr=lr)
...     def update(self, value, grad, state, scratch, hyper):
...         step = np.sign(grad, out=scratch[0])
...         step *= hyper["lr"]
...         np.subtract(value, step, out=value)
>>> w = tg.Parameter([1.0, 2.0])
>>> w.grad = np.array([5.0, -5.0], np.float32)
>>> SignDescent([w], lr=0.5).step()
>>> w.value
array([0.5, 2.5], dtype=float32)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tinygraph.errors import ArgumentError, CheckpointError, ShapeError, explain, nearest
from tinygraph.shapes import Array
from tinygraph.tensor import Parameter, Tensor

Group = dict[str, Any]


class _Entry(NamedTuple):
    """A parameter with everything that its update needs."""

    name: str
    parameter: Parameter
    state: dict[str, Any]
    scratch: list[Array]
    group: Group


class Optimizer:
    """The base of all optimisers: it keeps the books; a subclass writes `update`.

    Parameters
    ----------
    params : iterable
        Parameters, or pairs (name, Parameter) as `module.named_parameters()` gives them, or groups:
        dicts with such an iterable as "params" and hyper-parameters that differ from the defaults.
    **defaults
        The hyper-parameters of every group that does not name its own.

    Attributes
    ----------
    groups : list of dict
        "params" and the hyper-parameters; assign to `groups[0]["lr"]` to change the learning rate.
    state : dict of dict
        Arrays and numbers by parameter name.  A parameter without a name, or with one that another
        has too, goes by "group.index".

    Raises
    ------
    ArgumentError
        No parameter, one that comes twice, something else than a Parameter, an unknown or
        impossible hyper-parameter.
    """

    arrays: ClassVar[tuple[str, ...]] = ()  # state: arrays of the parameter's shape and dtype
    numbers: ClassVar[tuple[str, ...]] = ()  # state: numbers, such as a count of steps
    scratch_arrays: ClassVar[int] = 1  # how many arrays of its shape an update writes on the way

    def __init__(self, params: Iterable[Any], **defaults: Any) -> None:
        self.op = type(self).__name__
        named = [
            (group, _named(self.op, members)) for group, members in self._groups(params, defaults)
        ]
        self.groups: list[Group] = [group for group, _ in named]
        names = _unique_names(self.op, [pairs for _, pairs in named])
        self.state: dict[str, dict[str, Any]] = {name: {} for group in names for name in group}
        scratch = _Scratch([p for _, pairs in named for _, p in pairs], self.scratch_arrays)
        self._entries: list[_Entry] = []
        self._work: list[tuple[_Entry, Any]] = []  # each entry with what `prepare` made for it
        self._seen: list[tuple[Any, ...]] = []  # the hyper-parameters that `_work` was made from
        for (group, pairs), group_names in zip(named, names, strict=True):
            group["params"] = [p for _, p in pairs]
            for name, p in zip(group_names, group["params"], strict=True):
                self._entries.append(_Entry(name, p, self.state[name], scratch.like(p), group))

    # ---- what a subclass writes -------------------------------------------------------------

    def update(
        self, value: Array, grad: Array, state: dict[str, Any], scratch: list[Array], hyper: Any
    ) -> None:
        """Change `value` in place.

        `grad` is left as it is.  `state` is empty at first; what is put there stays and is saved,
        under the names in `arrays` and `numbers`.  `scratch` holds `scratch_arrays` arrays of the
        shape and dtype of `value`, whose contents mean nothing.  `hyper` is what `prepare` made.
        """
        raise ArgumentError(f"{self.op}: no update. Way out: define update(...) in the class")

    def prepare(self, group: Group, parameter: Parameter) -> Any:
        """What `update` gets as `hyper`, made when a hyper-parameter has changed.

        The default is the group with Python numbers.  A number that a ufunc meets at every step is
        faster as `self.scalar(...)`.
        """
        return group

    def check(self, group: Group) -> None:
        """Raise ArgumentError for hyper-parameters that cannot be.  Default: lr is at least 0."""
        if "lr" in group:
            self.require("lr", group["lr"])

    def require(self, name: str, value: Any, low: float = 0.0, high: float = math.inf) -> None:
        """Raise unless a hyper-parameter is a finite number from `low` to `high`."""
        number = value if isinstance(value, (int, float)) else math.nan
        if isinstance(value, bool) or not math.isfinite(number) or not low <= number <= high:
            limits = f"at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
            raise ArgumentError(explain(self.op, name, f"a number {limits}", repr(value)))

    @staticmethod
    def scalar(number: float, parameter: Parameter) -> Array:
        """A number as a 0-d array like the parameter: for a ufunc, faster than a Python float."""
        return parameter.device.from_numpy(np.array(number, parameter.dtype))

    # ---- what users call --------------------------------------------------------------------

    def step(self) -> None:
        """Update every parameter that has a gradient."""
        if [tuple(group.values()) for group in self.groups] != self._seen:
            self._prepare()
        update = self.update
        for (name, parameter, state, scratch, _), hyper in self._work:
            value, grad = parameter.value, parameter.grad
            if grad is None:
                continue
            if grad.shape != value.shape:  # only a gradient that was set by hand
                raise ShapeError(explain(self.op, f"grad of {name}", f"{value.shape}", grad.shape))
            update(value, grad, state, scratch, hyper)

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for entry in self._entries:
            entry.parameter.grad = None

    def state_dict(self) -> dict[str, Any]:
        """State and hyper-parameters as a plain dict: copies of arrays (numpy), numbers, names."""
        groups = []
        for group in self.groups:
            members = [e.name for e in self._entries if e.group is group]
            groups.append({**group, "params": members})
        state = {
            e.name: {k: _saved(e.parameter, v) for k, v in e.state.items()}
            for e in self._entries
            if e.state
        }
        return {"optimizer": self.op, "groups": groups, "state": state}

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
            group.update({k: _plain(v) for k, v in from_file.items() if k != "params"})
        for entry in self._entries:
            entry.state.clear()
            for key, value in saved["state"].get(entry.name, {}).items():
                is_array = key in self.arrays
                entry.state[key] = _loaded(entry.parameter, value) if is_array else _plain(value)

    def __repr__(self) -> str:
        lines = []
        for group in self.groups:
            settings = ", ".join(f"{k}={v!r}" for k, v in group.items() if k != "params")
            lines.append(f"{len(group['params'])} parameters: {settings}")
        return f"{self.op}({lines[0]})" if len(lines) == 1 else f"{self.op}({lines})"

    def _prepare(self) -> None:
        """Check the hyper-parameters, which users may change between steps, and cast them."""
        prepared = []
        for group in self.groups:
            settings = {key: _plain(value) for key, value in group.items() if key != "params"}
            self.check(settings)
            entries = [e for e in self._entries if e.group is group]
            prepared += [(e, self.prepare(settings, e.parameter)) for e in entries]
        self._work = prepared
        self._seen = [tuple(group.values()) for group in self.groups]

    # ---- reading arguments and files --------------------------------------------------------

    def _groups(self, params: Any, defaults: Mapping[str, Any]) -> list[tuple[Group, Any]]:
        """For each group its hyper-parameters, checked, and what was given as its parameters."""
        members = _listed(self.op, params)
        as_groups = [isinstance(m, Mapping) for m in members]
        if any(as_groups) and not all(as_groups):
            raise ArgumentError(
                explain(self.op, "params", "either groups or parameters", "both",
                        "put the parameters into a group: {'params': [...]}")
            )  # fmt: skip
        given: list[Any] = members if any(as_groups) else [{"params": members}]
        groups = []
        for group in given:
            for key in group:
                if key != "params" and key not in defaults:
                    raise ArgumentError(
                        explain(self.op, "group", f"only {', '.join(['params', *defaults])}",
                                repr(key), nearest(str(key), ["params", *defaults]))
                    )  # fmt: skip
            if "params" not in group:
                raise ArgumentError(explain(self.op, "group", "a key 'params'", list(group)))
            settings = {key: _plain(group.get(key, value)) for key, value in defaults.items()}
            self.check(settings)
            groups.append(({"params": [], **settings}, group["params"]))
        return groups

    def _faults(self, saved: Any) -> list[str]:
        """Everything in a saved state that does not fit, one line each."""
        if not isinstance(saved, Mapping) or not {"optimizer", "groups", "state"} <= set(saved):
            return ["not what state_dict() returns: 'optimizer', 'groups' and 'state' are needed"]
        if saved["optimizer"] != self.op:
            return [f"it was saved by {saved['optimizer']}"]
        if len(saved["groups"]) != len(self.groups):
            return [f"expected {len(self.groups)} groups, got {len(saved['groups'])}"]
        faults = []
        for i, (group, from_file) in enumerate(zip(self.groups, saved["groups"], strict=True)):
            faults += self._group_faults(f"group {i}", group, from_file)
        known = {e.name: e.parameter for e in self._entries}
        for name, state in saved["state"].items():
            if name not in known:
                faults.append(f"unexpected  {name}  {nearest(name, known)}".rstrip())
                continue
            for key, value in state.items():
                fault = self._value_fault(known[name], key, value)
                if fault:
                    faults.append(f"wrong       {name}: {key}: {fault}")
        return faults

    def _group_faults(self, where: str, group: Group, saved: Mapping[str, Any]) -> list[str]:
        if set(saved) != set(group):
            return [f"{where}: expected {', '.join(group)}, got {', '.join(map(str, saved))}"]
        faults = []
        names = [e.name for e in self._entries if e.group is group]
        if list(saved["params"]) != names:
            faults.append(f"{where}: expected the parameters {names}, got {list(saved['params'])}")
        try:
            self.check({k: _plain(v) for k, v in saved.items() if k != "params"})
        except ArgumentError as error:
            faults.append(f"{where}: {error}")
        return faults

    def _value_fault(self, parameter: Parameter, key: str, value: Any) -> str:
        if key in self.numbers:
            number = isinstance(_plain(value), Real)
            return "" if number else f"expected a number, got {value!r:.40}"
        if key not in self.arrays:
            return f"unknown {nearest(key, [*self.arrays, *self.numbers])}".rstrip()
        if not isinstance(value, np.ndarray):
            return f"expected an array, got {type(value).__name__}"
        if value.shape != parameter.shape or value.dtype != parameter.dtype:
            expected = f"{parameter.dtype} {parameter.shape}"
            return f"expected {expected}, got {value.dtype} {value.shape}"
        return ""


class _Scratch:
    """Scratch arrays for all parameters: views of one buffer for each dtype, device and number.

    Parameters are updated one after the other, so that the largest one sets the size.
    """

    def __init__(self, parameters: list[Parameter], count: int) -> None:
        self.flat: dict[Any, list[Array]] = {}
        sizes: dict[Any, int] = {}
        for p in parameters:
            key = (p.device, p.dtype)
            sizes[key] = max(sizes.get(key, 0), p.size)
        for (device, dtype), size in sizes.items():
            self.flat[device, dtype] = [device.empty((size,), dtype) for _ in range(count)]

    def like(self, p: Parameter) -> list[Array]:
        return [flat[: p.size].reshape(p.shape) for flat in self.flat[p.device, p.dtype]]


def _listed(op: str, params: Any) -> list[Any]:
    """`params` as a list that is not empty."""
    way_out = ""
    if hasattr(params, "named_parameters"):
        way_out = "pass model.parameters()"
    elif isinstance(params, Tensor):
        way_out = "pass a list: [parameter]"
    elif isinstance(params, Mapping):
        way_out = "pass a list of groups: [group]"
    if way_out or not isinstance(params, Iterable):
        raise ArgumentError(
            explain(op, "params", "an iterable of Parameters", type(params).__name__, way_out)
        )
    members = list(params)
    if not members:
        raise ArgumentError(
            explain(op, "params", "at least one Parameter", "none",
                    "an iterator such as model.parameters() can be used only once")
        )  # fmt: skip
    return members


def _named(op: str, params: Any) -> list[tuple[str | None, Parameter]]:
    """The members of one group as pairs of a name that was given, if it was, and a Parameter."""
    pairs = []
    for member in _listed(op, params):
        is_pair = isinstance(member, (tuple, list)) and len(member) == 2
        name, p = member if is_pair else (None, member)
        if not isinstance(p, Parameter) or not (name is None or isinstance(name, str)):
            raise ArgumentError(
                explain(op, "params", "Parameters, or pairs (name, Parameter)",
                        f"a {type(p).__name__}", "make it with tg.Parameter(...)")
            )  # fmt: skip
        pairs.append((name, p))
    return pairs


def _unique_names(op: str, groups: list[list[tuple[str | None, Parameter]]]) -> list[list[str]]:
    """What each parameter's state goes by: the name given, its own if unique, or "group.index"."""
    everything = [pair for pairs in groups for pair in pairs]
    if len({p for _, p in everything}) < len(everything):
        times = Counter(p for _, p in everything)
        twice = [p.name or f"one of shape {p.shape}" for p, n in times.items() if n > 1]
        raise ArgumentError(
            explain(op, "params", "each Parameter once", f"{', '.join(twice)} more than once")
        )
    found = Counter(name or p.name for name, p in everything)
    names = [
        [
            wanted if (wanted := name or p.name) and found[wanted] == 1 else f"{i}.{j}"
            for j, (name, p) in enumerate(pairs)
        ]
        for i, pairs in enumerate(groups)
    ]
    clashes = [name for name, n in Counter(n for group in names for n in group).items() if n > 1]
    if clashes:
        raise ArgumentError(explain(op, "params", "names that differ", f"{clashes} more than once"))
    return names


def _plain(value: Any) -> Any:
    """numpy numbers, also in a tuple, as Python numbers: these do not promote float32."""
    if isinstance(value, (tuple, list)):
        return tuple(_plain(v) for v in value)
    is_number = isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0
    return value.item() if is_number else value


def _saved(parameter: Parameter, value: Any) -> Any:
    """A copy of a piece of state on the host."""
    is_number = isinstance(value, Real)
    return value if is_number else np.array(parameter.device.to_numpy(value), order="C")


def _loaded(parameter: Parameter, value: Array) -> Array:
    """A copy of a saved array on the parameter's device."""
    return parameter.device.from_numpy(np.array(value, order="C"))
