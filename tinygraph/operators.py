"""The ops that a Tensor has as operators and methods: each is the function of that name.

The functions lie in ops/, on a higher floor.  They are reached through `above`, which is filled
once (ops/__init__.py); in the same way the engine reaches the few other things above itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from tinygraph.errors import GraphError, ShapeError
from tinygraph.shapes import Array

Node = TypeVar("Node")  # Tensor, which is built on this file

above: Any = SimpleNamespace()  # functions of the floors above


class _op:
    """A method: the function of the same name, with the tensor first.  An operator names its own.

    It stands in its place until `settle` puts the function itself there.
    """

    def __init__(self, function: str = "", reflected: bool = False) -> None:
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

    to = astype = flatten = squeeze = unsqueeze = gather = matmul = mm = bmm = _op()
    sum = mean = amax = amin = argmax = argmin = var = cumsum = logsumexp = softmax = (
        log_softmax
    ) = _op()
    abs = absolute = neg = negative = exp = log = sqrt = relu = sigmoid = tanh = heaviside = _op()
    add = sub = subtract = mul = multiply = div = divide = true_divide = pow = _op()
    maximum = minimum = clip = clamp = _op()
    gt = greater = ge = greater_equal = lt = less = le = less_equal = _op()
    eq = equal = ne = not_equal = _op()
    transpose = swapaxes = swapdims = permute = movedim = moveaxis = _op()
    split: Any = _op()  # several nodes
    tensor_split = chunk = unbind = max = min = split

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


def settle(functions: Mapping[str, Callable[..., Any]], spelled: Mapping[Any, Any]) -> None:
    """Put functions in the place of what is declared, and give them to `above`.

    A method is the function that knows other words for its arguments, where there is one; an
    operator needs none.
    """
    vars(above).update(functions)
    for name, declared in list(vars(Operators).items()):
        if isinstance(declared, _op):
            function = functions[declared.function or name]
            if declared.reflected:
                function = _swapped(function)
            elif name[:2] != "__":
                function = spelled.get(function, function)
            setattr(Operators, name, function)


def _swapped(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: function(y, x)
