"""What an op promises of the things that its forward and backward return, held against them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.errors import GraphError
from tinygraph.shapes import Array, Spec


def keep_forward(op: Any, spec: Spec, returned: Any, on_host: bool) -> tuple[Array, Any]:
    """The value and what was saved, where they are what `forward` and `infer` have promised."""
    if type(returned) is not tuple or len(returned) != 2:
        raise GraphError(
            op.name,
            "forward",
            "the output and what backward needs: `return y, saved`",
            f"a {type(returned).__name__}",
            "return (y, None) where backward needs nothing",
        )
    value, saved = returned
    if on_host and type(value) is not np.ndarray:
        value = np.asarray(value)
    if value.shape != spec.shape or value.dtype != spec.dtype:
        raise GraphError(
            op.name,
            "forward",
            f"what infer promised, {spec.dtype}{list(spec.shape)}",
            f"{value.dtype}{list(value.shape)}",
            "make infer and forward agree",
        )
    return value, saved


def keep_backward(node: Any, returned: Any) -> list[tuple[Any, Array]]:
    """The inputs that a gradient reaches, each with its own, where `backward` has kept its word."""
    name, needs = node.op.name, node.needs
    if not isinstance(returned, (tuple, list)):
        raise GraphError(
            name,
            "backward",
            "a tuple with one gradient for each input",
            f"a {type(returned).__name__}",
            "return (gx,)",
        )
    if len(returned) != len(needs):
        raise GraphError(
            name,
            "backward",
            f"{len(needs)} gradients, one for each input",
            len(returned),
            "return None for an input that needs none",
        )
    reached = []
    for x, needed, g in zip(node.inputs, needs, returned, strict=True):
        if needed and g is not None:
            if g.shape != x.value.shape or g.dtype != x.value.dtype:
                raise GraphError(
                    name,
                    "backward",
                    f"a gradient like its input, {x.dtype}{list(x.shape)}",
                    f"{g.dtype}{list(g.shape)}",
                    "sum over broadcast axes, keep the dtype",
                )
            reached.append((x, g))
    return reached
