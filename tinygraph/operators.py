"""The ops that a Tensor has as operators and methods: each is the function of that name.

The functions lie in ops/, on a higher floor.  They are reached through `above`, which is filled
once (ops/methods.py); in the same way the engine reaches the few other things above itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from tinygraph.errors import GraphError, ShapeError
from tinygraph.shapes import Array

Node = TypeVar("Node")  # Tensor, which is built on this file

above: Any = SimpleNamespace()  # functions of the floors above


class _op:
    """A method or an operator: the function of that name, with the tensor first, or `reflected`.

    It stands in its place until `settle` puts the function itself there.
    """

    def __init__(self, function: str, reflected: bool = False) -> None:
        self.function, self.reflected = function, reflected

    if TYPE_CHECKING:

        def __get__(self, node: Operators[Node], kind: object) -> Callable[..., Node]: ...


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

    def reshape(self, *shape: Any) -> Node:
        return above.reshape(self, shape[0] if len(shape) == 1 else shape)

    @property
    def T(self) -> Node:
        return above.transpose(self)

    def expand(self, *shape: Any) -> Node:
        return above.expand(self, shape[0] if len(shape) == 1 else shape)

    to, astype, flatten = _op("to"), _op("astype"), _op("flatten")
    sum, mean, max, min = _op("sum"), _op("mean"), _op("max"), _op("min")
    var, clip, cumsum = _op("var"), _op("clip"), _op("cumsum")
    squeeze, unsqueeze = _op("squeeze"), _op("unsqueeze")
    exp, log, sqrt = _op("exp"), _op("log"), _op("sqrt")
    transpose = _op("transpose")
    split: Any = _op("split")  # several nodes

    __getitem__, __neg__, __abs__ = _op("getitem"), _op("neg"), _op("abs")
    __add__, __radd__ = _op("add"), _op("add", reflected=True)
    __sub__, __rsub__ = _op("sub"), _op("sub", reflected=True)
    __mul__, __rmul__ = _op("mul"), _op("mul", reflected=True)
    __truediv__, __rtruediv__ = _op("div"), _op("div", reflected=True)
    __pow__, __rpow__ = _op("pow"), _op("pow", reflected=True)
    __matmul__, __rmatmul__ = _op("matmul"), _op("matmul", reflected=True)
    __lt__, __le__ = _op("less"), _op("less_equal")
    __gt__, __ge__ = _op("greater"), _op("greater_equal")
    __eq__ = _op("equal")  # type: ignore[assignment]  # elementwise, as in numpy
    __ne__ = _op("not_equal")  # type: ignore[assignment]
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
        if isinstance(declared, _op):
            function = getattr(above, declared.function)
            setattr(Operators, name, _swapped(function) if declared.reflected else function)


def _swapped(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: function(y, x)
