"""Optimizer: parameters in groups, hyper-parameters for each group, state for each parameter.

    group    {"params": [Parameter, ...], "lr": 0.1, ...}     what a user reads and changes
    state    {name: {"momentum_buffer": array, ...}, ...}     what is saved, by parameter name

A new optimiser is one class: its hyper-parameters, the names of its state, and `update`, which
changes one parameter in place (and `prepare`, where casting a number every time takes too long;
`update_kernel`, to do the same on a device that runs kernels, or `update_kernels`, for several
parameters in one launch; `operations`, how many an element takes, for `tinygraph profile`):

>>> import numpy as np, tinygraph as tg
>>> class SignDescent(tg.optim.Optimizer):
...     def __init__(self, params, lr):
...         super().__init__(params, lr=lr)
...     def update(self, value, grad, state, scratch, hyper):
...         step = np.sign(grad, out=scratch[0])
...         step *= hyper["lr"]
...         np.subtract(value, step, out=value)
...     def operations(self, group, first):
...         return 2
>>> w = tg.Parameter([1.0, 2.0])
>>> w.grad = np.array([5.0, -5.0], np.float32)
>>> SignDescent([w], lr=0.5).step()
>>> w.value
array([0.5, 2.5], dtype=float32)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tinygraph.cuda.capture import varying
from tinygraph.device import Device
from tinygraph.errors import ArgumentError, CheckpointError, DeviceError, ShapeError
from tinygraph.optim.members import Group, plain, read_groups
from tinygraph.optim.parts import Part, by_eights
from tinygraph.optim.restore import list_faults
from tinygraph.shapes import Array
from tinygraph.stopwatch import mode as watching
from tinygraph.tensor import Parameter, grad_mode


class _Work(NamedTuple):
    """A parameter with everything that its update needs."""

    name: str
    parameter: Parameter
    device: Device  # where the parameter was when the optimiser was made
    state: dict[str, Any]
    scratch: list[Array]
    hyper: Any
    alike: Any  # equal for parameters that one launch may update


class Optimizer:
    """The base of all optimisers: it keeps the books; a subclass writes `update`.

    `step` uses the gradients as they stand and leaves them.  To accumulate over several batches,
    call `backward` for each, with the loss divided by their number if it is a mean, then `step` and
    `zero_grad` once: gradients add up in the parameters.

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
        self.groups, names = read_groups(self.op, params, defaults)
        for group in self.groups:
            self.check(_settings(group))
        members = [p for group in self.groups for p in group["params"]]
        self.parameters: dict[str, Parameter] = dict(zip(names, members, strict=True))
        self.state: dict[str, dict[str, Any]] = {name: {} for name in names}
        self._devices = {name: p.device for name, p in self.parameters.items()}
        self._scratch = _Scratch(members, self.scratch_arrays)
        self._work: list[_Work] = []
        # One dict for each group, the same at every step: a captured step reads it again.
        self._live: list[Group] = [{} for _ in self.groups]
        self._seen: list[tuple[Any, ...]] = []  # the hyper-parameters that `_work` was made from

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

    def operations(self, group: Group, first: bool) -> int | None:
        """Floating-point operations that `update` does for one element, None where none are stated.

        They are counted as those of kernels are, see reading/operation_counts.py: additions,
        multiplications, divisions and roots are one each, maxima and copies none.  `group` holds
        the hyper-parameters; `first` says whether the parameter has no state yet.
        """
        return None

    def update_kernel(
        self, device: Device, value: Array, grad: Array, state: dict[str, Any], group: Group
    ) -> None:
        """`update` as a CUDA kernel, for parameters on a device that runs kernels.

        `value` and `grad` are contiguous.  State is made with `device.empty(...)`; a kernel needs
        no scratch memory.  `group` holds the hyper-parameters as Python numbers.
        """
        raise DeviceError(
            f"{self.op}: no kernel for parameters on {device}. Way out: define update_kernel(...) "
            "in the class, or model.to('cpu') before the optimiser is made"
        )

    def update_kernels(self, device: Device, parts: Sequence[Part]) -> None:
        """`update_kernel` for one to eight parameters of a dtype, whose groups differ in lr alone.

        The default launches for one parameter after the other; `parts.launch` takes all at once.
        """
        for value, grad, state, group in parts:
            self.update_kernel(device, value, grad, state, group)

    def rates(
        self, device: Device, value: Array, numbers: Callable[[], tuple[float, ...]]
    ) -> Array:
        """Numbers that change from step to step, in device memory, of the dtype of `value`.

        `numbers` is called once for each step, also for one that replays a captured graph: what it
        changes in the state, such as a count of steps, belongs to that step.
        """
        return varying(device, value.dtype, numbers, self)

    def fixed(self) -> tuple[list[Array], list[Any]]:
        """What a captured step has taken over: arrays by their place, settings but the learning
        rate."""
        values = [p.value for p in self.parameters.values()]
        states = [self.state[name].get(key) for name in self.parameters for key in self.arrays]
        settings = [{**_settings(group), "lr": None} for group in self.groups]
        return [a for a in [*values, *states] if a is not None], settings

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
            raise ArgumentError(self.op, name, f"a number {limits}", repr(value))

    def require_fraction(self, name: str, value: Any) -> None:
        """Raise unless a hyper-parameter is a number from 0 to below 1: how much is kept."""
        self.require(name, value, 0.0, 1.0)
        if value == 1:
            raise ArgumentError(self.op, name, "a number from 0 to below 1", value)

    @staticmethod
    def scalar(number: float, parameter: Parameter) -> Array:
        """A number as a 0-d array like the parameter: for a ufunc, faster than a Python float."""
        return parameter.device.from_numpy(np.array(number, parameter.dtype))

    def scalar_or_none(self, number: float, parameter: Parameter) -> Array | None:
        """The same, and None for 0, where an update can leave out a whole term."""
        return self.scalar(number, parameter) if number else None

    @staticmethod
    def penalized(value: Array, grad: Array, decay: Array | None, out: Array) -> Array:
        """The gradient with that of an L2 penalty, in `out`; `grad` itself where decay is None."""
        if decay is None:
            return grad
        np.multiply(value, decay, out=out)
        return np.add(out, grad, out=out)

    # ---- what users call --------------------------------------------------------------------

    @np.errstate(all="ignore")  # inf and nan are results, not accidents
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        if grad_mode.trace is not None:
            grad_mode.trace.deed(self.step, "step")
            return
        watch = watching.watch
        if watch is None:
            self._update_all()
        else:
            held = [
                [p.value, p.grad, self.state[name]]
                for name, p in self.parameters.items()
                if p.grad is not None
            ]
            key = "update", self.op
            watch.timed(self._update_all, key, held, self._operations_of_step())()

    def _update_all(self) -> None:
        self.refresh()
        launches: dict[Any, list[Part]] = {}
        for name, parameter, device, state, scratch, hyper, alike in self._work:
            value, grad = parameter.value, parameter.grad
            if grad is None:
                continue
            if grad.shape != value.shape:  # only a gradient that was set by hand
                raise ShapeError(self.op, f"grad of {name}", f"{value.shape}", grad.shape)
            if parameter.device is not device:
                raise DeviceError(
                    self.op,
                    name,
                    f"a parameter on {device}, where its state was made",
                    f"one on {parameter.device}",
                    "make the optimiser after model.to(...)",
                )
            if device.runs_kernels:
                part = Part(value, device.contiguous(grad), state, hyper)
                launches.setdefault((device, alike), []).append(part)
            else:
                self.update(value, grad, state, scratch, hyper)
        for (device, _), parts in launches.items():
            for some in by_eights(parts):
                self.update_kernels(device, some)

    def _operations_of_step(self) -> int | None:
        """Those of all parameters that have a gradient; None where the class states none."""
        names, total = iter(self.parameters), 0
        for group in self.groups:
            for p in group["params"]:
                state = self.state[next(names)]
                each = self.operations(group, not state) if p.grad is not None else 0
                if each is None:
                    return None
                total += each * p.size
        return total

    def refresh(self) -> None:
        """Take up hyper-parameters that have changed since the last step."""
        if [tuple(group.values()) for group in self.groups] != self._seen:
            self._prepare()

    def zero_grad(self) -> None:
        """Forget all gradients."""
        if grad_mode.trace is not None:
            grad_mode.trace.deed(self.zero_grad, "zero_grad")
            return
        for parameter in self.parameters.values():
            parameter.grad = None

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
        faults = list_faults(self, saved)
        if faults:
            lines = "\n".join(f"  {fault}" for fault in faults)
            raise CheckpointError(
                f"load_state_dict: the state does not fit this {self.op}:\n{lines}\nNothing was "
                "changed. Way out: build model and optimiser as they were when it was saved"
            )
        for group, from_file in zip(self.groups, saved["groups"], strict=True):
            group.update(_settings(from_file))
        for name, state in self.state.items():
            state.clear()
            for key, value in saved["state"].get(name, {}).items():
                is_array = key in self.arrays
                state[key] = _loaded(self.parameters[name], value) if is_array else plain(value)

    def __repr__(self) -> str:
        lines = []
        for group in self.groups:
            settings = ", ".join(f"{key}={value!r}" for key, value in _settings(group).items())
            lines.append(f"{len(group['params'])} parameters: {settings}")
        return f"{self.op}({lines[0]})" if len(lines) == 1 else f"{self.op}({lines})"

    def _prepare(self) -> None:
        """Check the hyper-parameters, which users may change between steps, and cast them."""
        names, work = iter(self.parameters), []
        kinds: list[Group] = []  # settings but the learning rate
        for group, live in zip(self.groups, self._live, strict=True):
            settings = _settings(group)
            self.check(settings)
            live.update(settings)
            kind = {**settings, "lr": None}
            if kind not in kinds:
                kinds.append(kind)
            for p in group["params"]:
                name = next(names)
                kernels = self._devices[name].runs_kernels
                hyper = live if kernels else self.prepare(settings, p)
                device, scratch = self._devices[name], self._scratch.like(p)
                alike = p.dtype, kinds.index(kind)
                work.append(_Work(name, p, device, self.state[name], scratch, hyper, alike))
        self._work = work
        self._seen = [tuple(group.values()) for group in self.groups]


class _Scratch:
    """Scratch arrays for all parameters: views of one buffer for each dtype, device and number.

    Parameters are updated one after the other, so that the largest one sets the size.
    """

    def __init__(self, parameters: list[Parameter], count: int) -> None:
        self.flat: dict[Any, list[Array]] = {}
        sizes: dict[Any, int] = {}
        for p in parameters:
            if p.device.runs_kernels:  # they keep what they need in registers
                continue
            key = (p.device, p.dtype)
            sizes[key] = max(sizes.get(key, 0), p.size)
        for (device, dtype), size in sizes.items():
            self.flat[device, dtype] = [device.empty((size,), dtype) for _ in range(count)]

    def like(self, p: Parameter) -> list[Array]:
        flats = self.flat.get((p.device, p.dtype), [])
        return [flat[: p.size].reshape(p.shape) for flat in flats]


def _settings(group: Mapping[str, Any]) -> dict[str, Any]:
    """The hyper-parameters of a group as Python numbers."""
    return {key: plain(value) for key, value in group.items() if key != "params"}


def _saved(parameter: Parameter, value: Any) -> Any:
    """A copy of a piece of state on the host."""
    is_number = isinstance(value, Real)
    return value if is_number else np.array(parameter.device.to_numpy(value), order="C")


def _loaded(parameter: Parameter, value: Array) -> Array:
    """A copy of a saved array on the parameter's device."""
    return parameter.device.from_numpy(np.array(value, order="C"))
