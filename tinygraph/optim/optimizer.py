"""Optimizer: parameters in groups, hyper-parameters for each group, state for each parameter.

A new optimiser is one class: its hyper-parameters, `update`, which changes one parameter in place,
and, where it remembers something, the names of its state and what it starts with.  `prepare` casts
numbers where casting them every time takes too long.  Its kernel is stated by its name and its
arguments:

    kernel            the stem of a .cu file, whose function is <stem>_update
    start             what the state begins with
    changing          numbers that are others at every step, such as the learning rate
    kernel_arguments  the numbers of a launch

The launches (for 32 parameters of a dtype at a time) and the state are made from these here, once.

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

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tinygraph.base import ArgumentError, DeviceError
from tinygraph.engine import Array, Device, Parameter, Writes, here
from tinygraph.ops.leaves.copies import writable
from tinygraph.optim.books import Books, settings_of
from tinygraph.optim.members import Group, read_groups
from tinygraph.optim.options import negated
from tinygraph.optim.parts import Part, by_launches, launch
from tinygraph.optim.scratch import Scratch


class _Work(NamedTuple):
    """A parameter with everything that its update needs."""

    name: str
    parameter: Parameter
    device: Device  # where the parameter was when the optimiser was made
    state: dict[str, Any]
    scratch: list[Array]
    start: dict[str, float]
    hyper: Any
    alike: Any  # equal for parameters that one launch may update
    maximize: bool  # whether the step goes up


class Optimizer(Books):
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
        The hyper-parameters of every group that does not name its own.  With `maximize=True` among
        them, `update` gets the gradient -g.

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

    kernel: ClassVar[str] = ""  # the stem of its .cu file
    scratch_arrays: ClassVar[int] = 1  # how many arrays of its shape an update writes on the way

    def __init__(self, params: Iterable[Any], **defaults: Any) -> None:
        super().__init__(params, defaults)
        self._work: list[_Work] = []
        # One dict for each group, the same at every step: a captured step reads it again.
        self._live: list[Group] = []
        self._make_room()

    def _make_room(self) -> None:
        """For the parameters, as many as they are now."""
        self._devices = {name: p.device for name, p in self.parameters.items()}
        self._scratch = Scratch(list(self.parameters.values()), self.scratch_arrays)
        self._live += [{} for _ in self.groups[len(self._live) :]]
        self._seen: list[tuple[Any, ...]] = []  # the hyper-parameters that `_work` was made from

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Be what pickle has read: maybe from memory that cannot be written to, as joblib's."""
        self.__dict__.update(state)
        for each in self.state.values():
            each.update({key: writable(value) for key, value in each.items()})
        self._work = []
        self._make_room()

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

    def start(self, group: Group) -> dict[str, float]:
        """What the state of a parameter begins with: an array is filled with its number.

        What is missing here is not used with these hyper-parameters, or made by `update`.
        """
        return {}

    def changing(self, group: Group, state: dict[str, Any]) -> tuple[float, ...]:
        """The numbers of a parameter's next step; called once for each, it may count in `state`."""
        return (group["lr"],)

    def kernel_arguments(self, group: Group, changing: Array) -> tuple[Any, ...]:
        """What the kernel takes after the arrays; `changing` has the numbers of all its parts."""
        return (changing,)

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
        """`update_kernel` for one to 32 parameters of a dtype, whose groups differ in lr alone.

        Where `kernel` names a file they are one launch, else one after the other.
        """
        if not self.kernel:
            for value, grad, state, group in parts:
                self.update_kernel(device, value, grad, state, group)
            return
        group = parts[0].group
        used = self.start(group)
        keys = [key if key in used else "" for key in self.arrays]
        arguments = self.kernel_arguments(group, self.changing_of(device, parts))
        self.launch(device, parts, f"{self.kernel}_update", keys, *arguments)

    def launch(
        self, device: Device, parts: Sequence[Part], function: str, keys: list[str], *rest: Any
    ) -> None:
        """One launch of a function of the .cu file; `keys` are state, "" for a null pointer."""
        dtype = parts[0].value.dtype
        absent = [device.empty((0,), dtype)] * len(parts)
        state = [[p.state[key] for p in parts] if key else absent for key in keys]
        arrays = [p.value for p in parts], [p.grad for p in parts], *state
        launch(self.kernel, function, device, arrays, *rest)

    def changing_of(self, device: Device, parts: Sequence[Part]) -> Array:
        """`changing` of all parts, in device memory."""

        def numbers() -> tuple[float, ...]:
            return tuple([x for p in parts for x in self.changing(p.group, p.state)])

        return self.rates(device, parts[0].value, numbers)

    def rates(
        self, device: Device, value: Array, numbers: Callable[[], tuple[float, ...]]
    ) -> Array:
        """Numbers that change from step to step, in device memory, of the dtype of `value`.

        `numbers` is called once for each step, also for one that replays a captured graph: what it
        changes in the state, such as a count of steps, belongs to that step.
        """
        found: Array = here.top.varying(device, value.dtype, numbers, self)
        return found

    def fixed(self, varying: bool = True) -> tuple[list[Array], list[Any]]:
        """What a captured step has taken over: arrays by their place, and settings.

        All but the learning rate where that varies in device memory (`rates`); else the learning
        rate and the numbers of the state too, which are arguments of launches.
        """
        values = [p.value for p in self.parameters.values()]
        states = [self.state[name].get(key) for name in self.parameters for key in self.arrays]
        settings: list[Any] = [settings_of(group) for group in self.groups]
        if varying:
            settings = [{**group, "lr": None} for group in settings]
        else:
            settings += [
                self.state[name].get(key) for name in self.parameters for key in self.numbers
            ]
        return [a for a in [*values, *states] if a is not None], settings

    def prepare(self, group: Group, parameter: Parameter) -> Any:
        """What `update` gets as `hyper`, made when a hyper-parameter has changed.

        The default is the group with Python numbers.  A number that a ufunc meets at every step is
        faster as `self.scalar(...)`.
        """
        return group

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

    def add_param_group(self, param_group: Group) -> None:
        """Take one more group: a dict with parameters as "params", and settings of its own.

        Raises
        ------
        ArgumentError
            As for the constructor; nothing was changed.

        Examples
        --------
        >>> import tinygraph as tg
        >>> sgd = tg.optim.SGD([tg.Parameter([1.0])], lr=0.5)
        >>> sgd.add_param_group({"params": [tg.Parameter([2.0])], "lr": 0.1})
        >>> [group["lr"] for group in sgd.param_groups]
        [0.5, 0.1]
        """
        taken: list[Any] = [
            list(zip(named["params"], group["params"], strict=True))
            for named, group in zip(self.named_groups(), self.groups, strict=True)
        ]
        self._take(*read_groups(self.op, [param_group], self.defaults, taken))
        self._make_room()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        A `closure` is called first: it computes the loss and its gradients.  What it returns is
        returned.
        """
        loss = None if closure is None else closure()
        here.top.update(self)
        Writes.note(*self.parameters.values())
        return loss

    @np.errstate(all="ignore")  # inf and nan are results, not accidents
    def update_all(self) -> None:
        """What `step` does, unless somebody notes it for later."""
        self.refresh()
        launches: dict[Any, list[Part]] = {}
        for name, parameter, device, state, scratch, start, hyper, alike, maximize in self._work:
            value, grad = parameter.value, parameter.grad
            if grad is None:
                continue
            if parameter.device is not device:
                raise DeviceError(
                    self.op,
                    name,
                    f"a parameter on {device}, where its state was made",
                    f"one on {parameter.device}",
                    "make the optimiser after model.to(...)",
                )
            if not start.keys() <= state.keys():
                self._begin(state, start, value, device)
            if maximize:
                grad = negated(grad, device)
            if device.runs_kernels:
                part = Part(value, device.contiguous(grad), state, hyper)
                launches.setdefault((device, alike), []).append(part)
            else:
                self.update(value, grad, state, scratch, hyper)
        for (device, _), parts in launches.items():
            for some in by_launches(parts):
                self.update_kernels(device, some)

    def _begin(
        self, state: dict[str, Any], start: dict[str, float], value: Array, device: Device
    ) -> None:
        """Make what is missing in a parameter's state."""
        for key, number in start.items():
            if key not in state and key in self.arrays:
                state[key] = device.full(value.shape, value.dtype, number)
            state.setdefault(key, number)

    def refresh(self) -> None:
        """Take up hyper-parameters that have changed since the last step."""
        if [tuple(group.values()) for group in self.groups] != self._seen:
            self._prepare()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients.  `set_to_none` is taken, and changes nothing: they are None."""
        here.top.do(self._forget_gradients, "zero_grad")

    def _forget_gradients(self) -> None:
        for parameter in self.parameters.values():
            parameter.grad = None

    def _prepare(self) -> None:
        """Check the hyper-parameters, which users may change between steps, and cast them."""
        names, work = iter(self.parameters), []
        kinds: list[Group] = []  # settings but the learning rate
        for group, live in zip(self.groups, self._live, strict=True):
            settings = settings_of(group)
            self.check(settings)
            live.update(settings)
            start = self.start(settings)
            kind = {**settings, "lr": None}
            if kind not in kinds:
                kinds.append(kind)
            for p in group["params"]:
                name = next(names)
                kernels = self._devices[name].runs_kernels
                hyper = live if kernels else self.prepare(settings, p)
                device, scratch = self._devices[name], self._scratch.like(p)
                alike = p.dtype, kinds.index(kind)
                state = self.state[name]
                up = bool(settings.get("maximize"))
                work.append(_Work(name, p, device, state, scratch, start, hyper, alike, up))
        self._work = work
        self._seen = [tuple(group.values()) for group in self.groups]
