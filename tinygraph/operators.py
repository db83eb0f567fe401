"""The ops that a Tensor has as operators and methods: each is the function of that name.

The functions lie in ops/, on a higher floor.  They are reached through `above`, which is filled
once (ops/methods.py); in the same way the engine reaches the few other things above itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from tinygraph.device import Device
from tinygraph.errors import GraphError, ShapeError
from tinygraph.shapes import Array, Axis

Node = TypeVar("Node")  # Tensor, which is built on this file

above: Any = SimpleNamespace()  # functions of the floors above


class _Declared(NamedTuple):
    """Stands for a function of `above`, until `settle` puts the function itself in its place."""

    function: str
    reflected: bool


def _method(function: str) -> Callable[..., Any]:
    """A method or operator that is the function of that name, with the tensor as its first x."""
    declared: Any = _Declared(function, reflected=False)
    return declared


def _binary(function: str) -> Callable[[Operators[Node], Any], Node]:
    """An operator with the tensor on the left."""
    declared: Any = _Declared(function, reflected=False)
    return declared


def _reflected(function: str) -> Callable[[Operators[Node], Any], Node]:
    """An operator with the tensor on the right."""
    declared: Any = _Declared(function, reflected=True)
    return declared


class Operators(Generic[Node]):
    """What a Tensor can do beside being a node."""

    if TYPE_CHECKING:  # a Tensor has them
        value: Array
        numpy: Callable[[], Array]
        item: Callable[[], Any]

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __len__(self) -> int:
        if not self.value.ndim:
            raise ShapeError("len", "self", "at least one axis", "a 0-d tensor")
        return len(self.value)

    def __iter__(self) -> Iterator[Node]:
        return (self[i] for i in range(len(self)))

    def to(self, device: str | Device) -> Node:
        """This node on another device; itself where it is there already."""
        return above.to(self, device)

    def astype(self, dtype: Any) -> Node:
        return above.astype(self, dtype)

    def reshape(self, *shape: Any) -> Node:
        return above.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Node:
        return above.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    @property
    def T(self) -> Node:
        return above.transpose(self, None)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Node:
        return above.flatten(self, start_dim, end_dim)

    def sum(self, axis: Axis = None, keepdims: bool = False) -> Node:
        return above.sum(self, axis, keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Node:
        return above.mean(self, axis, keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Node:
        return above.max(self, axis, keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> Node:
        return above.min(self, axis, keepdims)

    def expand(self, *shape: Any) -> Node:
        return above.expand(self, shape[0] if len(shape) == 1 else shape)

    var, clip, cumsum, split = _method("var"), _method("clip"), _method("cumsum"), _method("split")
    squeeze, unsqueeze = _method("squeeze"), _method("unsqueeze")

    exp, log, sqrt = _method("exp"), _method("log"), _method("sqrt")

    def __getitem__(self, index: Any) -> Node:
        return above.getitem(self, index)

    __neg__, __abs__ = _method("neg"), _method("abs")
    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("sub"), _reflected("sub")
    __mul__, __rmul__ = _binary("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _binary("div"), _reflected("div")
    __pow__, __rpow__ = _binary("pow"), _reflected("pow")
    __matmul__, __rmatmul__ = _binary("matmul"), _reflected("matmul")
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    __eq__ = _binary("equal")  # type: ignore[assignment]  # elementwise, as in numpy
    __ne__ = _binary("not_equal")  # type: ignore[assignment]
    __hash__ = object.__hash__  # a node is a key by identity, though == compares elements

    def _refuse_in_place(self, *_: Any) -> Any:
        raise GraphError(
            "Tensor: a node cannot be changed in place, for later nodes and saved values depend on "
            "it. Way out: write a = a + b instead of a += b, tg.where(...) or tg.concatenate(...) "
            "instead of a[i] = b, and change a leaf through its array: leaf.value[...] = array"
        )

    __setitem__ = __iadd__ = __isub__ = __imul__ = __itruediv__ = _refuse_in_place
    __ipow__ = __imatmul__ = _refuse_in_place


def settle() -> None:
    """Put functions in the place of what is declared, when `above` has them."""
    for name, declared in list(vars(Operators).items()):
        if isinstance(declared, _Declared):
            function = getattr(above, declared.function)
            setattr(Operators, name, _swapped(function) if declared.reflected else function)


def _swapped(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: function(y, x)
