"""What may be assigned to a node: its value, its gradient, and whether it requires one.

    x.value = array            a leaf alone: the value of another node is what its op computed
    x.grad = array             of the leaf's shape, dtype and device; None removes it
    x.requires_grad = True     of a leaf; of another node it follows from the inputs
    p.data = array             writes the memory of the value, whoever else has it

Python's numbers in lists become an array of the leaf's dtype.  All else that does not fit is
refused here, where it is assigned, and not in a later step.  The engine, which knows what it
writes, goes past the checks: it writes `_value`, `_grad` and `_requires_grad`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from tinygraph.base.dtypes import differentiable
from tinygraph.base.errors import DeviceError, DtypeError, GraphError, ShapeError
from tinygraph.base.incoming import Array, as_numbers, unmasked
from tinygraph.engine.running import here


def taken(op: str, x: Any, new: Any) -> Any:
    """What is given to a leaf as an array on its device, not yet of its shape and dtype."""
    if isinstance(new, Assigned):
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


def _set_value(x: Any, new: Any) -> None:
    _refuse_node("value", x)
    array = taken("value", x, new)
    differentiable("value", x._requires_grad, array.dtype)
    x._value = array


def _set_grad(x: Any, new: Any) -> None:
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


def _set_requires_grad(x: Any, new: Any) -> None:
    wanted = differentiable("requires_grad", new, x._value.dtype)
    if x.op is not None and wanted != x._requires_grad:
        way_out = "x.detach() is a leaf of that value, which requires no gradient"
        if wanted:
            way_out = "x.detach().requires_grad_() is a leaf of that value, which requires one"
        got = f"what {x.op.name} made"
        raise GraphError("requires_grad", x.name or "self", "a leaf", got, way_out)
    x._requires_grad = wanted


class Assigned:
    """The attributes of a Tensor that are checked where they are assigned."""

    if TYPE_CHECKING:  # slots of a Tensor
        __slots__ = ("grad", "requires_grad", "value")
        op: Any
        device: Any
        value: Array
        grad: Array | None
        requires_grad: bool
        _value: Array
        _grad: Array | None
        _requires_grad: bool
    else:  # attrgetter is written in C: a function of Python would take longer
        __slots__ = ()
        value = property(attrgetter("_value"), _set_value)
        grad = property(attrgetter("_grad"), _set_grad)
        requires_grad = property(attrgetter("_requires_grad"), _set_requires_grad)

    @property
    def data(self) -> Any:
        """A leaf on the same memory that requires no gradient; to assign it writes that memory."""
        return self.detach()  # type: ignore[attr-defined]

    @data.setter
    def data(self, numbers: Any) -> None:
        _refuse_node("data", self)
        here.top.write(self, fitting("data", self, numbers))

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set whether `backward` shall leave a gradient in `.grad`; the leaf itself is returned."""
        self.requires_grad = requires_grad
        return self
