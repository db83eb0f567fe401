"""Trace: what a function does with tensors, found out without computing anything.

While a trace is on in a thread, applying an op infers the output's shape and dtype, and notes the
op.  `backward`, `zero_grad`, `step` and gradient clipping are noted too, in their order.  Values
that are not there cannot be read: a function that reads one is refused, and so runs as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np

from tinygraph.engine import CPU, Array, Device, Op, Runner, Spec, Tensor, here, leaf
from tinygraph.engine.op import as_tensors


class Refused(Exception):
    """The function does something that a plan cannot repeat; the text says what."""


class Elsewhere(Refused):
    """A tensor lies on another device than the trace: perhaps all the others do, too."""

    def __init__(self, device: Device, here: Device) -> None:
        super().__init__(f"it computes on {here} and on {device}; a plan stays on one device")
        self.device = device


class Unread:
    """Stands for a number or an array that only a run will know; using it refuses the trace."""

    __array_ufunc__ = None

    def __init__(self, what: str, deed: Deed | None = None) -> None:
        self.what, self.deed = what, deed  # the deed whose result it is

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise Refused(
            f"it uses {self.what}, which a plan knows only when it runs. Way out: do that outside, "
            "and pass what it gives as an argument"
        )

    __getattr__ = __bool__ = __float__ = __int__ = __index__ = __array__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __neg__ = __iter__ = __len__ = __getitem__ = _refuse
    __hash__ = object.__hash__


@dataclass(frozen=True)
class Backward:
    """The call of backward."""

    root: Tensor


@dataclass(frozen=True)
class Deed:
    """A call on the host that belongs to the step: an optimiser's, or clipping."""

    call: Callable[[], Any]
    name: str
    anywhere: bool = False  # it has nothing to do with what is computed

    @property
    def zeroes(self) -> list[Tensor]:
        """The parameters whose gradients it removes."""
        owner = getattr(self.call, "__self__", None) if self.name == "zero_grad" else None
        return list(owner.parameters.values()) if owner is not None else []


class Trace(Runner):
    """What was done while it was on, with arguments that are arrays on one device.

    The gradients of `watched` leaves are known to be there.  Others that had none when they were
    first used are `unsure`: whether the function itself had removed it cannot be told.
    """

    plans = False  # a compiled function within a compiled one is a part of it

    def __init__(self, watched: Sequence[Tensor] = (), device: Device = CPU) -> None:
        self.device = device
        self.nodes: list[Tensor] = []  # what ops made, in order
        self.events: list[Tensor | Backward | Deed] = []  # all of it, in order
        self.modules: list[tuple[Any, bool]] = []  # those called, and the mode they were in
        self.aliases: dict[Tensor, Tensor] = {}  # by `detach`: the node whose value each shares
        self.arguments: list[Tensor] = []  # the leaves that stand for them, in order
        self._arrays: set[Tensor] = set()  # those of arrays, which go where they are needed
        self._known: set[Tensor] = set()  # nodes, arguments and aliases
        self.unsure: set[Tensor] = set()
        self._watched = watched
        self._gradients: dict[Tensor, Any] = {}  # of leaves, as they were
        self._marks: dict[Tensor, Any] = {}  # what stands there meanwhile

    def __enter__(self) -> Trace:
        super().__enter__()
        for node in self._watched:
            self._watch(node)
        return self

    def __exit__(self, *exception: object) -> None:
        super().__exit__()
        try:
            if exception[0] is None:
                self._note_removed()
        finally:
            for node, gradient in self._gradients.items():
                node._grad = gradient
            self._gradients.clear()  # a trace may be kept for long
            self._marks.clear()

    def argument(
        self, spec: Spec, requires_grad: bool = False, device: Device | None = None
    ) -> Tensor:
        """A leaf without a value, for an argument of the function; an array has no device yet."""
        if device is not None and device is not self.device:
            raise Elsewhere(device, self.device)
        node = leaf(_nothing(spec), self.device)
        node._requires_grad = requires_grad
        self.arguments.append(node)
        if device is None:
            self._arrays.add(node)
        self._known.add(node)
        return node

    @property
    def deeds(self) -> list[Deed]:
        """What is done on the host, in order."""
        return [event for event in self.events if isinstance(event, Deed)]

    # ---- what the rooms below and above tell -------------------------------------------------

    def apply(self, op: Op, operands: tuple[Any, ...]) -> Tensor:
        """`op(*operands)`, without its value."""
        inputs = as_tensors(operands)
        for x in inputs:
            if x.device is not self.device:
                raise Elsewhere(x.device, self.device)
            if x.op is None and x.requires_grad:
                self._watch(x)
        spec = op.infer(*[Spec(x.shape, x.dtype) for x in inputs])
        if (target := op.output_device(self.device)) is not self.device:
            if inputs[0] in self._arrays:
                raise Elsewhere(target, self.device)
            raise Refused(
                "it moves a tensor to another device; a plan stays on one. Way out: move "
                "arguments before the call, results after it"
            )
        differentiable = here.top.remembers and spec.dtype.kind == "f"
        node = leaf(_nothing(spec), self.device)
        node.op, node.inputs = op, inputs
        node.needs = tuple([differentiable and x.requires_grad for x in inputs])
        node._requires_grad = True in node.needs
        self._known.add(node)
        self.nodes.append(node)
        self.events.append(node)
        return node

    def share(self, made: Tensor, node: Tensor) -> None:
        """A leaf that shares the value of a node, and requires no gradient: see `Tensor.detach`."""
        self.aliases[made] = node
        if node.op is None and node in self._known:  # of an argument
            self._known.add(made)

    def walk_back(
        self, walk: Callable[[], None], outputs: Sequence[Tensor], gradients: Sequence[Any]
    ) -> None:
        if len(outputs) != 1:
            raise Refused("it calls backward on several outputs at once")
        if any(isinstance(event, Backward) for event in self.events):
            raise Refused("it calls backward more than once")
        if gradients[0] is not None:
            raise Refused("it gives backward a gradient of its own")
        if outputs[0].op is None:
            self._watch(outputs[0])
        self._note_removed()
        self.events.append(Backward(outputs[0]))

    def call(self, module: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        self.modules.append((module, module.training))
        return self.below.call(module, inputs, options)

    def update(self, optimizer: Any) -> None:
        self.do(optimizer.step, "step")

    def do(self, call: Callable[[], Any], name: str, anywhere: bool = False) -> Any:
        """Something on the host that a run does at this place; its result is not known yet."""
        deed = Deed(call, name, anywhere)
        self.events.append(deed)
        return Unread(f"the result of {name}", deed)

    def read(self, node: Tensor) -> None:
        """Somebody reads the value of a node, or of a leaf that training changes."""
        if self.knows(node):
            raise Refused(
                "it reads a value (item, numpy, float, bool or print of a tensor), which a plan "
                "knows only when it runs. Way out: return the tensor and read it outside"
            )
        if node.requires_grad or type(node) is not Tensor:  # a Parameter, a buffer
            raise Refused(
                f"it reads the value of {node.name or 'a parameter'} (numpy, item, state_dict), "
                "which is another one at every call. Way out: read it outside"
            )

    def aside(self, what: str) -> None:
        raise Refused(f"it {what}, which a plan does not repeat. Way out: do that without a plan")

    def write(self, node: Tensor, array: Any) -> None:
        raise Refused(
            f"it changes {node.name or 'a leaf'} in place, which a plan does not repeat. Way out: "
            "an optimiser of tg.optim, or do it outside"
        )

    def knows(self, node: Tensor) -> bool:
        """Whether the value of a node is known only when a plan runs."""
        return node in self._known or node in self.aliases

    def _watch(self, node: Tensor) -> None:
        """Put a mark in the place of a leaf's gradient, which is not known before the run."""
        if node in self._gradients or node in self._known:
            return
        if node.grad is None and node not in self._watched:
            self.unsure.add(node)
        self._gradients[node] = node.grad
        node._grad = self._marks[node] = Unread("a gradient")  # type: ignore[assignment]

    def _note_removed(self) -> None:
        """`leaf.grad = None` in the function: a run does it too."""
        for node, mark in self._marks.items():
            if node.grad is mark:
                continue
            if node.grad is not None:
                raise Refused("it assigns a gradient")
            self.events.append(Deed(partial(_remove_gradient, node), "zero_grad"))
            node._grad = mark


def _remove_gradient(node: Tensor) -> None:
    node.grad = None


def _nothing(spec: Spec) -> Array:
    """An array of a shape and dtype that takes no memory, and cannot be written."""
    return np.broadcast_to(np.zeros((), spec.dtype), spec.shape)
