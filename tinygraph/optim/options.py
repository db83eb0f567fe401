"""PyTorch's options of optimisers beside the hyper-parameters, and what they are here.

maximize         the step goes up: as with the gradient -g
foreach, fused   taken: a launch updates many parameters anyway, and the numbers are the same
capturable       taken: every optimiser's step can be part of a CUDA graph
differentiable   refused: a step is no node of a graph
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, TypedDict

import numpy as np

from tinygraph.base import ArgumentError, nearest
from tinygraph.engine import Array, Device, eager_memory
from tinygraph.ops.elementwise.elementwise import Neg


class Options(TypedDict, total=False):
    """Arguments by name that every optimiser takes."""

    maximize: bool
    foreach: bool | None
    fused: bool | None
    capturable: bool
    differentiable: bool


def hyper_parameters(kind: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of an optimiser's options that are hyper-parameters here: `maximize`, if it is set.

    Raises
    ------
    ArgumentError
        An unknown option, one that is neither True nor False, or `differentiable`.

    >>> hyper_parameters(dict, {"maximize": True, "foreach": False})
    {'maximize': True}
    """
    op = kind.__name__
    for name, value in options.items():
        if name not in Options.__annotations__:
            own = [p.name for p in signature(kind).parameters.values() if p.kind != p.VAR_KEYWORD]
            known = [*own, *Options.__annotations__]
            hint = nearest(name, known)
            raise ArgumentError(op, "arguments", f"only {', '.join(known)}", repr(name), hint)
        if value not in (True, False) and not (value is None and name in ("foreach", "fused")):
            raise ArgumentError(op, name, "True or False", repr(value))
    if options.get("differentiable"):
        way_out = "write the step as ops of the graph: w - lr * g, of leaves w and g"
        raise ArgumentError(op, "differentiable", "False: a step is no node", True, way_out)
    return {"maximize": True} if options.get("maximize") else {}


def negated(grad: Array, device: Device) -> Array:
    """-g, a new array: what a step follows that goes up."""
    if not device.runs_kernels:
        return np.negative(grad)
    memory = eager_memory((False,), device)
    return Neg().forward_kernel(memory, device.contiguous(grad))[0]
