"""What users give to nodes: operands of ops, and a leaf's value, gradient and `requires_grad`.

    x.value = array            a leaf alone: the value of another node is what its op computed
    x.grad = array             of the leaf's shape, dtype and device; None removes it
    x.requires_grad = True     of a leaf; of another node it follows from the inputs
    p.data = array             writes the memory of the value, whoever else has it
    tg.relu([1.0, 2.0])        an operand that is no node yet: an array, a number, a list

Python's numbers in lists become an array of the leaf's dtype.  All else that does not fit is
refused here, where it is given, and not in a later step.  The engine, which knows what it writes,
goes past these checks: it writes `_value`, `_grad` and `_requires_grad`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import DeviceError, DtypeError, GraphError, ShapeError, unmasked
from tinygraph.base.dtypes import OF_NUMBERS, differentiable
from tinygraph.base.incoming import Array, as_numbers, is_list, lists
from tinygraph.engine import Tensor, here


def operand(data: Any, dtype: Any) -> Array:
    """An operand of an op as numbers; GraphError where a gradient would end there in silence."""
    if is_list(data) and here.top.remembers:
        for inside in lists(data):
            kinds = set(map(type, inside))
            if kinds <= OF_NUMBERS.keys():
                continue
            if any(getattr(x, "requires_grad", False) is True for x in inside):
                got = "a list of tensors that have one, where the graph would end"
                way_out = "tg.stack([...]) makes a node of them, x.detach() has no gradient"
                raise GraphError("Tensor", "an operand", "one node for a gradient", got, way_out)
    return as_numbers(data, dtype, None)


def taken(op: str, x: Any, new: Any) -> Any:
    """What is given to a leaf as an array on its device, not yet of its shape and dtype."""
    if isinstance(new, Tensor):
        if new.device is not x.device:
            way_out = f"x.to({str(x.device)!r})"
            raise DeviceError(op, x.name or "self", f"a tensor on {x.device}", new.device, way_out)
        return new.value
    if x.device.owns(unmasked(op, x.name or "self", new)) and new.dtype.kind in "fiub":
        return new
    return x.device.from_numpy(as_numbers(new, None if hasattr(new, "dtype") else x.dtype, None))


def fitting(op: str, x: Any, numbers: Any) -> Array:
    """The array of a node, or of other numbers, as it can be written into a leaf."""
    array: Array = taken(op, x, numbers)
    if array.shape != x.shape:
        raise ShapeError(op, x.name or "self", f"an array of shape {x.shape}", array.shape)
    if not np.can_cast(array.dtype, x.dtype, "same_kind"):
        raise DtypeError(op, x.name or "self", f"{x.dtype}, as the leaf has", array.dtype)
    return array


def _refuse_node(op: str, x: Any) -> None:
    """Raise for what an op made: later nodes, and what ops saved, depend on its value."""
    if x.op is not None:
        expected, got = "a leaf", f"what {x.op.name} made"
        way_out = "tg.where(...) makes a node of other numbers, x.detach() a leaf"
        raise GraphError(op, x.name or "self", expected, got, way_out)


def set_value(x: Any, new: Any) -> None:
    """`x.value = new`."""
    _refuse_node("value", x)
    array = taken("value", x, new)
    differentiable("value", x._requires_grad, array.dtype)
    x._value = array


def set_grad(x: Any, new: Any) -> None:
    """`x.grad = new`."""
    if new is None:
        x._grad = None
        return
    array, value, name = taken("grad", x, new), x._value, x.name or "self"
    if array.shape != value.shape:
        expected = f"an array of shape {value.shape}, that of the value"
        raise ShapeError("grad", name, expected, array.shape)
    if array.dtype != value.dtype:
        expected, way_out = f"an array of {value.dtype}", f"g.astype('{value.dtype}')"
        raise DtypeError("grad", name, expected, array.dtype, way_out)
    x._grad = array


def set_requires_grad(x: Any, new: Any) -> None:
    """`x.requires_grad = new`."""
    wanted = differentiable("requires_grad", new, x._value.dtype)
    if x.op is not None and wanted != x._requires_grad:
        way_out = "x.detach() is a leaf of that value, which requires no gradient"
        if wanted:
            way_out = "x.detach().requires_grad_() is a leaf of that value, which requires one"
        got = f"what {x.op.name} made"
        raise GraphError("requires_grad", x.name or "self", "a leaf", got, way_out)
    x._requires_grad = wanted


def set_data(x: Any, numbers: Any) -> None:
    """`x.data = numbers`."""
    _refuse_node("data", x)
    here.top.write(x, fitting("data", x, numbers))


def kept(x: Any, new: Any) -> Any:
    """What is given to a parameter or a buffer as its value, of the same shape and dtype."""
    here.top.read(x)  # a trace would lose the assignment
    kind, name = type(x).__name__, x.name or "value"
    array = taken(kind, x, new)
    way_out = "make a new one: layer.weight = nn.Parameter(array)"
    if array.shape != x.shape:
        raise ShapeError(kind, name, f"an array of shape {x.shape}", array.shape, way_out)
    if array.dtype != x.dtype:
        raise DtypeError(kind, name, f"an array of {x.dtype}", array.dtype, way_out)
    return x.device.copy(array)
