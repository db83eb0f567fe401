"""What a module is given as tensors: an array goes to the device on which the module lies."""

from __future__ import annotations

from typing import Any

from tinygraph.engine import CPU, Buffer, Device, Operand, Parameter, Tensor, as_tensor


def as_inputs(module: Any, *given: Operand) -> list[Tensor]:
    """Operands as tensors.  Tensors stay where they are; arrays and numbers go to the first
    tensor's device, or to that of the module's first parameter or buffer."""
    tensors = [x for x in given if isinstance(x, Tensor)]
    if len(tensors) == len(given):
        return tensors
    device = tensors[0].device if tensors else device_of_leaves(module)
    made = {id(x): as_tensor(x, device=device) for x in given}  # one that comes twice is one
    return [made[id(x)] for x in given]


def as_input(module: Any, x: Operand) -> Tensor:
    """One operand as a tensor."""
    return x if isinstance(x, Tensor) else as_inputs(module, x)[0]


def device_of_leaves(module: Any) -> Device:
    """Where the first parameter or buffer of a module lies; the cpu without any."""
    first = next(module._named_leaves(Parameter, Buffer), None)
    return CPU if first is None else first[1].device
