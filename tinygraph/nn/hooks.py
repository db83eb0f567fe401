"""Hooks of a module: they see its inputs, its output, and the gradient on its way back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tinygraph.base import GraphError
from tinygraph.engine import Array, here
from tinygraph.engine.hooks import register_hook


def hooked(module: Any) -> bool:
    """Whether a module has hooks."""
    return bool(module._before_forward or module._after_forward or module._after_backward)


def call_with_hooks(module: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a module, with hooks on the inputs before `forward`, on the output after it, and on the
    gradients of both."""
    here.top.aside("calls a hook of a module")
    for (hook,) in module._before_forward:
        given = hook(module, inputs)
        if given is not None:
            inputs = given if isinstance(given, tuple) else (given,)
    passage = _Passage(module) if module._after_backward else None
    if passage:
        inputs = passage.enter(inputs)
    output = here.top.call(module, inputs, options)
    for (hook,) in module._after_forward:
        given = hook(module, inputs, output)
        output = output if given is None else given
    return passage.leave(output) if passage else output


class _Passage:
    """One call of a module with hooks on its gradients: copies of inputs and outputs have them.

    The copies are nodes of this call alone, so that a gradient is that of the call, also where a
    tensor is used elsewhere.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        self.of_inputs: list[Any] = []  # gradients; None until they are there
        self.of_outputs: list[Any] = []
        self.differentiable: list[int] = []  # the inputs that get a gradient

    def enter(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        self.of_inputs = [None] * len(inputs)
        self.differentiable = [i for i, x in enumerate(inputs) if _differentiable(x)]
        return tuple(_watched(x, partial(self.input_has, i)) for i, x in enumerate(inputs))

    def leave(self, output: Any) -> Any:
        several = output if isinstance(output, tuple) else (output,)
        self.of_outputs = [None] * len(several)
        made = tuple(_watched(y, partial(self.output_has, i)) for i, y in enumerate(several))
        return made if isinstance(output, tuple) else made[0]

    def output_has(self, place: int, gradient: Array) -> None:
        self.of_outputs[place] = gradient
        if not self.differentiable and all(g is not None for g in self.of_outputs):
            self.call_hooks()

    def input_has(self, place: int, gradient: Array) -> Any:
        self.of_inputs[place] = gradient
        if any(self.of_inputs[i] is None for i in self.differentiable):
            return None
        changed = self.call_hooks()
        if changed is not None and len(self.differentiable) > 1:
            name = type(self.module).__name__
            expected = f"None, as {name} has several inputs with gradients"
            way_out = "hooks of these tensors: x.register_hook"
            raise GraphError("full_backward_hook", "what it returns", expected, "others", way_out)
        return None if changed is None else changed[place]

    def call_hooks(self) -> Any:
        """What the hooks give for the gradients of the inputs, if anything; then all begin anew."""
        inputs, outputs, changed = tuple(self.of_inputs), tuple(self.of_outputs), None
        self.of_inputs, self.of_outputs = [None] * len(inputs), [None] * len(outputs)
        for (hook,) in self.module._after_backward:
            given = hook(self.module, inputs, outputs)
            if given is not None:
                inputs = changed = given if isinstance(given, tuple) else (given,)
        if changed is not None and len(changed) != len(self.of_inputs):
            expected = f"{len(self.of_inputs)} gradients, one for each input"
            raise GraphError("full_backward_hook", "what it returns", expected, len(changed))
        return changed


def _differentiable(x: Any) -> bool:
    return bool(getattr(x, "requires_grad", False))


def _watched(x: Any, hook: Callable[[Array], Any]) -> Any:
    """A copy of a tensor with a hook; what gets no gradient is left as it is."""
    if not _differentiable(x):
        return x
    copy = x.clone()
    if copy.requires_grad:
        register_hook(copy, hook)
    return copy
