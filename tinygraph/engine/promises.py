"""What an op promises of the things that its forward and backward return, held against them.

The usual mistakes of a first op are told in a sentence of their own (testing/broken_op.py).
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np

from tinygraph.base import GraphError, above
from tinygraph.engine.spec import Array, Spec


class BrokenOpError(GraphError):
    """An op whose forward or backward returns what the contract does not allow.

    `stage` is "signature", "shapes" or "dtype".
    """

    def __init__(self, sentence: str, stage: str = "shapes") -> None:
        super().__init__(sentence)
        self.stage = stage


def keep_forward(op: Any, spec: Spec, returned: Any, on_host: bool) -> tuple[Array, Any]:
    """The value and what was saved, where they are what `forward` and `infer` have promised."""
    if type(returned) is not tuple or len(returned) != 2:
        raise above.broken_forward(op, returned)
    value, saved = returned
    if on_host and type(value) is not np.ndarray:
        value = np.asarray(value)
    if value.shape != spec.shape or value.dtype != spec.dtype:
        expected = f"what infer promised, {spec.dtype}{list(spec.shape)}"
        got = f"{value.dtype}{list(value.shape)}"
        raise GraphError(op.name, "forward", expected, got, "make infer and forward agree")
    return value, saved


def keep_backward(node: Any, returned: Any) -> list[tuple[Any, Array]]:
    """The inputs that a gradient reaches, each with its own, where `backward` has kept its word."""
    if type(returned) is tuple and len(returned) == len(node.needs):  # the usual, in one pass
        reached = []
        for x, needed, g in zip(node.inputs, node.needs, returned, strict=True):
            if needed and g is not None:
                value = x._value
                if type(g) is not type(value) or g.shape != value.shape or g.dtype != value.dtype:
                    break
                reached.append((x, g))
        else:
            return reached
    if mistake := above.broken_gradients(node, returned):
        raise mistake
    given = zip(node.inputs, node.needs, returned, strict=True)
    return [(x, g) for x, needed, g in given if needed and g is not None]


def let_go(gradients: dict[Any, Array], node: Any) -> bool:
    """Whether only `gradients` has the array of a node, which then may be kept without a copy.

    An op may return its upstream gradient, a view, one array for two inputs, or one that it has
    saved or keeps: all of these have another owner, or a base.  PyTorch decides so, too (Source:
    torch/csrc/autograd/functions/accumulate_grad.h, "stealable").  Where the interpreter counts
    some reference more, the engine copies.
    """
    if getrefcount(gradients[node]) != _ALONE or gradients[node].base is not None:
        return False
    flags = gradients[node].flags
    return bool(flags.carray if node.device.on_host else flags.c_contiguous)


_kept_alone = {0: np.empty(1)}
_ALONE = getrefcount(_kept_alone[0])


def forward_mistake(op: Any, error: Exception) -> BrokenOpError | None:
    """Why forward could not be called; None where its body raised the error."""
    return above.wrong_parameters(op, "forward", error) if _raised_by_the_call(error) else None


def backward_mistake(node: Any, grad: Any, error: Exception) -> BrokenOpError | None:
    """Why calling backward has failed: its parameters, or a product of shapes that do not fit."""
    called = not _raised_by_the_call(error)
    mistake = None if called else above.wrong_parameters(node.op, "backward", error)
    return mistake or above.wrong_product(node, grad, error)


def _raised_by_the_call(error: Exception) -> bool:
    """Whether an error comes from the call of an op, not from within its body.

    Who asks has called it, and so stands first in the traceback: where nobody stands behind him,
    the body was not begun.
    """
    return error.__traceback__ is not None and error.__traceback__.tb_next is None
