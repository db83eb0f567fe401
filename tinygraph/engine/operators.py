"""The ops that a Tensor has as operators and methods: each is the function of that name.

The functions lie in ops/, on a higher floor.  They are reached through `above`, which is told where
(ops/__init__.py); in the same way the engine reaches the few other things above itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import copy
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from tinygraph.base import DtypeError, GraphError, ShapeError, above
from tinygraph.engine.assigned import Assigned
from tinygraph.engine.hooks import register_hook
from tinygraph.engine.running import here
from tinygraph.engine.spec import Array, Shape, normalize_axes

Node = TypeVar("Node")  # Tensor, which is built on this file


class _op:
    """A method: the function of the same name, with the tensor first.  An operator names its own.

    It stands in its place until it is first asked for, and puts the function itself there.
    """

    kind: Any = None

    def __init__(
        self,
        function: str = "",
        *,
        reflected: bool = False,
        in_place: bool = False,
        given: Any = (),
    ) -> None:
        self.function, self.given = function, given
        self.reflected, self.in_place = reflected, in_place

    def __set_name__(self, kind: type, name: str) -> None:
        if self.kind is not None:  # declared together with others
            self = copy(self)
            setattr(kind, name, self)
        self.kind, self.name = kind, name

    if TYPE_CHECKING:

        def __get__(self, node: Operators[Node], kind: object) -> Callable[..., Node]: ...

    else:

        def __get__(self, node: Any, kind: Any) -> Any:
            setattr(self.kind, self.name, self._found())
            return getattr(kind if node is None else node, self.name)

    def _found(self) -> Callable[..., Any]:
        """The function.  A method knows other words for its arguments; an operator needs none."""
        name, given = self.name, self.given
        function = getattr(above, self.function or name)
        if self.reflected:
            return lambda x, y: function(y, x)
        if self.in_place:
            return lambda x, y: _changed(x, function, y)
        if given:
            return _with(function, name, f"As `x.{self.function}({given[0]!r})`.", given)
        return function if name[:2] == "__" else above.spelled(function)


def _with(function: Any, name: str, about: str, given: Any) -> Callable[..., Any]:
    """A method that is a function with its other arguments given."""

    def method(self: Any) -> Any:
        return function(self, *given)

    method.__name__, method.__doc__ = name, about
    return method


class Count(int):
    """A number of elements, as numpy's `x.size`; called, it is the shape, as PyTorch's `x.size()`.

    >>> n = Count.of((2, 3))
    >>> n, n(), n(-1)
    (6, (2, 3), 3)
    """

    shape: Shape

    @classmethod
    def of(cls, shape: Shape) -> Count:
        made = cls(math.prod(shape))
        made.shape = shape
        return made

    def __call__(self, dim: int | None = None) -> Any:
        if dim is None:
            return self.shape
        return self.shape[normalize_axes("size", dim, len(self.shape))[0]]


def _new(make: str) -> Any:
    """The method new_MAKE: a leaf as tg.MAKE makes it, of the tensor's dtype and device."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        given = {name: value for name, value in options.items() if value is not None}
        return getattr(above, make)(*args, **{"dtype": self.dtype, "device": self.device, **given})

    method.__name__ = f"new_{make}"
    method.__doc__ = f"As `tg.{make}`, of this tensor's dtype and device where none are given."
    return method


class Absent:
    """Methods of PyTorch's that are not here; interop/torch_names.py fills it.

    A `__getattr__` in their place would make every access to an attribute of a node slow.
    """

    __slots__ = ()

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in vars(Absent)]


class Conversions(Generic[Node]):
    """Number types and devices as methods, as PyTorch has them: `x.double()`, `x.new_zeros(2)`."""

    __slots__ = ()

    half, float = _op("astype", given=("float16",)), _op("astype", given=("float32",))
    double, bool = _op("astype", given=("float64",)), _op("astype", given=("bool",))
    byte, char = _op("astype", given=("uint8",)), _op("astype", given=("int8",))
    short, int = _op("astype", given=("int16",)), _op("astype", given=("int32",))
    long = _op("astype", given=("int64",))
    cpu = _op("to", given=("cpu",))

    def cuda(self, device: Any = "cuda", non_blocking: Any = False) -> Node:
        """The tensor on a GPU; `non_blocking` changes nothing here."""
        return above.to(self, "cuda" if device is None else device)

    def type_as(self, other: Any) -> Node:
        """The same numbers in the dtype of another tensor."""
        return above.astype(self, other.dtype)

    new_tensor, new_zeros, new_ones = _new("tensor"), _new("zeros"), _new("ones")
    new_full, new_empty = _new("full"), _new("empty")


class Operators(Conversions[Node], Absent, Assigned):
    """What a Tensor can do beside being a node."""

    if TYPE_CHECKING:  # a Tensor has them
        op: Any
        numpy: Callable[[], Array]
        item: Callable[[], Any]
        detach: Callable[[], Any]

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return above.call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return above.call_numpy(function, args, options)

    @property
    def _data(self) -> Any:
        """What numpy.ma asks an operand for before it asks for an array."""
        expected, got = "no masked array beside a Tensor, which has no mask", "one"
        way_out = "masked.filled(0.0) beside the Tensor, or x.numpy() beside the masked array"
        raise DtypeError("numpy.ma", "an operand", expected, got, way_out)

    def __copy__(self) -> Any:
        return above.shallow(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return above.deep(self, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return above.reduced(self, protocol)

    def __setstate__(self, state: Any) -> None:
        above.restore(self, state)

    def __dlpack__(self, **asked: Any) -> Any:
        return above.to_dlpack(self, **asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.value.__dlpack_device__()

    _array_in = "value"  # says those who take arrays, and know no Tensor, where its own is

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return above.cuda_array_interface(self)

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

    def __format__(self, form: str) -> str:
        return format(self.item() if form or not self.value.ndim else str(self), form)

    def _repr_svg_(self) -> str | None:
        """What a notebook shows: the graph below, where it has a picture of some size."""
        return above.small_picture(self) if self.op is not None else None

    # ---- numbers and arrays -----------------------------------------------------------------

    def numel(self) -> int:
        """The number of elements."""
        return self.value.size

    def dim(self) -> int:
        """The number of axes."""
        return self.value.ndim

    nelement, ndimension = numel, dim

    def tolist(self) -> Any:
        """The numbers as lists in lists; of a 0-d tensor the number."""
        return self.numpy().tolist()

    register_hook = register_hook

    # ---- shapes -----------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.value.ndim

    @property
    def size(self) -> Count:
        """The number of elements, as in numpy; called, `x.size()`, the shape, as in PyTorch."""
        return Count.of(self.value.shape)

    def reshape(self, *shape: Any) -> Node:
        """The same elements in another shape, as ints or one tuple: see `tg.reshape`."""
        return above.reshape(self, shape[0] if len(shape) == 1 else shape)

    view = reshape

    def expand(self, *shape: Any) -> Node:
        """Repeated along axes of size 1, to sizes as ints or one tuple: see `tg.expand`."""
        return above.expand(self, shape[0] if len(shape) == 1 else shape)

    def view_as(self, other: Any) -> Node:
        """The same elements in the shape of another tensor."""
        return above.reshape(self, other.shape)

    reshape_as = view_as

    def expand_as(self, other: Any) -> Node:
        """This tensor repeated along axes of size 1, to the shape of another."""
        return above.expand(self, other.shape)

    def contiguous(self) -> Operators[Node]:
        """The tensor itself: ops take arrays in any layout."""
        return self

    @property
    def T(self) -> Node:
        """All axes in the other order; of a matrix, the transposed one."""
        return above.transpose(self)

    @property
    def mT(self) -> Node:
        """Matrices transposed, that is, the last two axes swapped."""
        return above.transpose(self, -2, -1)

    # ---- ops under their own names ----------------------------------------------------------

    def where(self, condition: Any, other: Any) -> Node:
        """This tensor where a condition holds, elsewhere the other: see `tg.where`."""
        return above.where(condition, self, other)

    def bernoulli(self, *given: Any, **options: Any) -> Node:
        """See `tg.bernoulli`."""
        return above.bernoulli(self, *given, **options)

    def multinomial(self, *given: Any, **options: Any) -> Node:
        """See `tg.multinomial`."""
        return above.multinomial(self, *given, **options)

    clone = to = astype = flatten = squeeze = unsqueeze = unflatten = gather = _op()
    matmul = dot = mv = mm = bmm = outer = _op()
    masked_fill = tril = triu = isnan = isinf = isfinite = _op()
    sum = mean = var = cumsum = logsumexp = softmax = log_softmax = _op()
    amax = amin = argmax = argmin = argsort = std = prod = any = all = count_nonzero = norm = _op()
    abs = absolute = neg = negative = exp = log = sqrt = relu = sigmoid = tanh = heaviside = _op()
    prelu = square = rsqrt = reciprocal = expm1 = log1p = log2 = sin = cos = erf = _op()
    sign = floor = ceil = trunc = round = _op()
    add = sub = subtract = mul = multiply = div = divide = true_divide = pow = _op()
    maximum = minimum = clip = clamp = _op()
    gt = greater = ge = greater_equal = lt = less = le = less_equal = _op()
    floor_divide = remainder = _op()
    bitwise_and = bitwise_or = bitwise_xor = bitwise_not = _op()
    logical_and = logical_or = logical_xor = logical_not = _op()
    eq = equal = ne = not_equal = _op()
    transpose = swapaxes = swapdims = permute = movedim = moveaxis = _op()
    tile = roll = flip = repeat_interleave = _op()
    repeat = _op("tile")  # as in PyTorch; numpy's is repeat_interleave
    split: Any = _op()  # several nodes
    tensor_split = chunk = unbind = max = min = sort = topk = split

    __getitem__, __neg__, __abs__ = _op("getitem"), _op("neg"), _op("abs")
    __add__, __radd__ = _op("add"), _op("add", reflected=True)
    __sub__, __rsub__ = _op("sub"), _op("sub", reflected=True)
    __mul__, __rmul__ = _op("mul"), _op("mul", reflected=True)
    __truediv__, __rtruediv__ = _op("div"), _op("div", reflected=True)
    __pow__, __rpow__ = _op("pow"), _op("pow", reflected=True)
    __matmul__, __rmatmul__ = _op("matmul"), _op("matmul", reflected=True)
    __lt__, __le__ = _op("less"), _op("less_equal")
    __gt__, __ge__ = _op("greater"), _op("greater_equal")

    __floordiv__, __rfloordiv__ = _op("floor_divide"), _op("floor_divide", reflected=True)
    __mod__, __rmod__ = _op("remainder"), _op("remainder", reflected=True)
    __and__, __rand__ = _op("bitwise_and"), _op("bitwise_and", reflected=True)
    __or__, __ror__ = _op("bitwise_or"), _op("bitwise_or", reflected=True)
    __xor__, __rxor__ = _op("bitwise_xor"), _op("bitwise_xor", reflected=True)
    __invert__ = _op("bitwise_not")

    def __eq__(self, other: Any) -> Any:  # element by element, as in numpy
        return False if other is None else above.eq(self, other)

    def __ne__(self, other: Any) -> Any:
        return True if other is None else above.ne(self, other)

    __hash__ = object.__hash__  # a node is a key by identity, though == compares elements

    __iadd__, __isub__ = _op("add", in_place=True), _op("sub", in_place=True)
    __imul__, __itruediv__ = _op("mul", in_place=True), _op("div", in_place=True)
    __ifloordiv__ = _op("floor_divide", in_place=True)
    __imod__ = _op("remainder", in_place=True)
    __iand__, __ior__ = _op("bitwise_and", in_place=True), _op("bitwise_or", in_place=True)
    __ixor__ = _op("bitwise_xor", in_place=True)
    __ipow__, __imatmul__ = _op("pow", in_place=True), _op("matmul", in_place=True)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise GraphError(
            "Tensor: elements of a node cannot be assigned, for later nodes and saved values "
            "depend on them. Way out: tg.where(...) or tg.concatenate(...) instead of a[i] = b, "
            "and a leaf takes other numbers whole: leaf.value = array"
        )


def _changed(x: Any, function: Callable[[Any, Any], Any], other: Any) -> Any:
    """`x += other`: a new node, to which Python binds the name; a parameter is written instead.

    What is written belongs to a model or requires a gradient: others hold it, under other names.
    """
    if x.op is not None or not (x.requires_grad or type(x) is not above.Tensor):
        return function(x, other)
    if here.top.remembers:
        raise GraphError(
            f"{x.name or 'Tensor'}: a leaf that requires a gradient or belongs to a model cannot "
            "be changed in place here. Way out: with tg.no_grad(): w -= lr * w.grad"
        )
    here.top.write(x, above.fitting("in place", x, function(x, other)))
    return x
