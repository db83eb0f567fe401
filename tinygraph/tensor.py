"""Tensor: one node of the computational graph.  Read this file first, then op.py, then graph.py.

    x ----.
           (matmul) ---> h ---> (relu) ---> y          an arrow is a data dependency
    w ----'

A node without inputs is a leaf: data, or a parameter.  Every other node is one op applied to its
input nodes, and is evaluated when it is made.  A node remembers its value, the op and the inputs;
that is the whole graph.  What the op saved for its backward lies in the node too.

The mathematics lives in ops/ and the walks over the graph in graph.py, both on higher floors.  The
methods below that lead there go through `above`, which those rooms fill once, when tinygraph is
imported (ops/methods.py and graph.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from tinygraph.device import CPU, Device, get_device
from tinygraph.errors import DtypeError, GraphError, ShapeError
from tinygraph.running import here
from tinygraph.shapes import Array, Shape, Spec

above: Any = SimpleNamespace()  # functions of the floors above that the methods of Tensor call


Operand: TypeAlias = "Tensor | Array | float | int | bool | Sequence[Any]"
Axis: TypeAlias = "int | Sequence[int] | None"


def _method(function: str) -> Callable[..., Any]:
    """A method that is the function of that name in `above`, with the same arguments after x."""
    return lambda self, *args, **kwargs: getattr(above, function)(self, *args, **kwargs)


def _binary(function: str) -> Callable[[Tensor, Operand], Tensor]:
    """An operator with the tensor on the left."""
    return lambda self, other: getattr(above, function)(self, other)


def _reflected(function: str) -> Callable[[Tensor, Operand], Tensor]:
    """An operator with the tensor on the right."""
    return lambda self, other: getattr(above, function)(other, self)


class Tensor:
    """A node: a value, how it came about, and the gradient of a later result by it.

    Parameters
    ----------
    data : array_like
        Numbers; copied.  Without `dtype`, Python floats become float32 and arrays keep their dtype.
    requires_grad : bool
        Whether `backward` shall leave a gradient in `.grad`.  Only for float dtypes.
    dtype : dtype, optional
        The element type: a float, an integer or bool.
    device : str, optional
        "cpu" (the default).
    name : str, optional
        Shown in pictures and errors, and accepted by `Graph.forward` in place of the node.

    Attributes
    ----------
    value : array
        The array itself, on its device.
    grad : array or None
        The gradient of what `backward` was called on, same shape and dtype as `value`.
    op, inputs
        The op that made this node and the nodes it was applied to; None and () for a leaf.

    Raises
    ------
    DtypeError
        `data` is not made of numbers, or an integer tensor shall require a gradient.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([1.0, -2.0, 3.0], requires_grad=True)
    >>> y = (x * x).sum()
    >>> y.item()
    14.0
    >>> y.backward()
    >>> x.grad
    array([ 2., -4.,  6.], dtype=float32)
    """

    __slots__ = (
        "__weakref__",
        "device",
        "grad",
        "inputs",
        "keeps_grad",
        "made_at",
        "name",
        "needs",
        "op",
        "requires_grad",
        "saved",
        "value",
    )

    __array_ufunc__ = None  # numpy_array + tensor asks Tensor.__radd__ instead of looping over it

    value: Array
    grad: Array | None
    op: Any  # the Op that made this node, or None; typed Any because Op lives on a higher floor
    inputs: tuple[Tensor, ...]
    needs: tuple[bool, ...]  # for each input, whether its gradient was wanted at evaluation
    saved: Any  # what op.forward saved for op.backward
    made_at: str | None  # the user's source line, under detect_anomaly

    def __init__(
        self,
        data: Any,
        requires_grad: bool = False,
        dtype: Any = None,
        device: str | Device | None = None,
        name: str | None = None,
    ) -> None:
        self.device = get_device(device)
        self.value = self.device.from_numpy(_as_numbers(data, dtype, copy=True))
        if requires_grad and self.value.dtype.kind != "f":
            raise DtypeError(
                "Tensor",
                "requires_grad",
                "False for a dtype without derivatives",
                f"True with {self.value.dtype}",
                "pass dtype='float32'",
            )
        self.grad = None
        self.requires_grad = requires_grad
        self.keeps_grad = False
        self.name = name
        self.op = None
        self.inputs = ()
        self.needs = ()
        self.saved = None
        self.made_at = None

    # ---- what a node is ---------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        return self.value.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.value.dtype

    @property
    def spec(self) -> Spec:
        return Spec(self.value.shape, self.value.dtype)

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def size(self) -> int:
        return self.value.size

    @property
    def is_leaf(self) -> bool:
        return self.op is None

    def numpy(self) -> Array:
        """The value as a numpy array; on the cpu it is the value itself, not a copy."""
        here.top.read(self)
        return self.device.to_numpy(self.value)

    def item(self) -> Any:
        """The only element, as a Python number.

        On a GPU this waits, and it is where a bad value such as a label out of range shows: kernels
        make NaN of it, and a number that is not finite makes the ops below look at their inputs.
        """
        if self.value.size != 1:
            raise ShapeError("item", "self", "one element", f"shape {self.shape}")
        number = self.numpy().item()
        if not self.device.on_host and not math.isfinite(number):
            above.raise_for_bad_values(self)
        return number

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __len__(self) -> int:
        if not self.ndim:
            raise ShapeError("len", "self", "at least one axis", "a 0-d tensor")
        return len(self.value)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        numbers = np.array2string(self.numpy(), separator=", ", prefix="Tensor(", threshold=20)
        name = f", name={self.name!r}" if self.name else ""
        made = f", op={self.op.name}" if self.op is not None else ""
        wants = ", requires_grad=True" if self.requires_grad and self.op is None else ""
        return f"{type(self).__name__}({numbers}, dtype={self.dtype}{name}{made}{wants})"

    # ---- walks over the graph (graph.py) ----------------------------------------------------

    def backward(self, gradient: Any = None, retain_graph: bool = False) -> None:
        """Add the gradient of this node to `.grad` of every leaf below that requires one.

        Parameters
        ----------
        gradient : array_like, optional
            The upstream gradient, of this node's shape.  Only a single element can do without: 1.
        retain_graph : bool
            Keep what the ops saved, so that backward can be called again.

        Raises
        ------
        GraphError
            Nothing here requires a gradient, or the saved values were freed by an earlier backward.
        ShapeError
            `gradient` is missing though there are several elements, or has another shape.
        """
        above.backward(self, gradient, retain_graph)

    def detach(self) -> Tensor:
        """A leaf with the same value (shared, not copied) that requires no gradient."""
        made = leaf(self.value, self.device, self.name)
        here.top.share(made, self)
        return made

    def retain_grad(self) -> Tensor:
        """Ask `backward` to store the gradient of this node too, though it is not a leaf."""
        self.keeps_grad = True
        return self

    # ---- ops as methods (ops/methods.py): each does what the function of that name does ------

    def to(self, device: str | Device) -> Tensor:
        """This node on another device; itself where it is there already."""
        return above.to(self, device)

    def astype(self, dtype: Any) -> Tensor:
        return above.astype(self, dtype)

    def reshape(self, *shape: Any) -> Tensor:
        return above.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Tensor:
        return above.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    @property
    def T(self) -> Tensor:
        return above.transpose(self, None)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        return above.flatten(self, start_dim, end_dim)

    def sum(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return above.sum(self, axis, keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return above.mean(self, axis, keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return above.max(self, axis, keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return above.min(self, axis, keepdims)

    def expand(self, *shape: Any) -> Tensor:
        return above.expand(self, shape[0] if len(shape) == 1 else shape)

    var, clip, cumsum, split = _method("var"), _method("clip"), _method("cumsum"), _method("split")
    squeeze, unsqueeze = _method("squeeze"), _method("unsqueeze")

    exp, log, sqrt = _method("exp"), _method("log"), _method("sqrt")

    def __getitem__(self, index: Any) -> Tensor:
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

    # ---- refused ----------------------------------------------------------------------------

    def _refuse_in_place(self, *_: Any) -> Any:
        raise GraphError(
            "Tensor: a node cannot be changed in place, for later nodes and saved values depend on "
            "it. Way out: write a = a + b instead of a += b, tg.where(...) or tg.concatenate(...) "
            "instead of a[i] = b, and change a leaf through its array: leaf.value[...] = array"
        )

    __setitem__ = __iadd__ = __isub__ = __imul__ = __itruediv__ = _refuse_in_place
    __ipow__ = __imatmul__ = _refuse_in_place


class Parameter(Tensor):
    """A leaf that an optimiser changes: it requires a gradient unless told otherwise.

    Examples
    --------
    >>> import tinygraph as tg
    >>> w = tg.Parameter([[1.0, 2.0]], name="weight")
    >>> w.requires_grad
    True
    """

    __slots__ = ()

    def __init__(
        self,
        data: Any,
        requires_grad: bool = True,
        dtype: Any = None,
        device: str | Device | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(data, requires_grad, dtype, device, name)


def leaf(array: Any, device: Device = CPU, name: str | None = None) -> Tensor:
    """A leaf around an array that is on `device` already: nothing is checked or copied.

    The slots are filled without the constructor, since this runs once for every node.
    """
    made = Tensor.__new__(Tensor)
    made.value = array
    made.device = device
    made.grad = None
    made.requires_grad = made.keeps_grad = False
    made.name = name
    made.op = None
    made.inputs = made.needs = ()
    made.saved = made.made_at = None
    return made


def as_tensor(data: Operand, dtype: Any = None, device: Device = CPU) -> Tensor:
    """`data` as a node: itself if it is one, else a leaf that shares the memory of an array."""
    if isinstance(data, Tensor):
        return data
    return leaf(device.from_numpy(_as_numbers(data, dtype, copy=None)), device)


def _as_numbers(data: Any, dtype: Any, copy: bool | None) -> Array:
    """A numpy array of floats, integers or bools; Python floats become float32."""
    try:
        array = np.array(data, dtype=dtype, copy=copy)
    except (TypeError, ValueError) as error:
        raise DtypeError(
            "Tensor", "data", "numbers in a rectangular array", f"{data!r:.80} ({error})"
        ) from None
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise DtypeError(
            "Tensor",
            "data",
            "floats up to 64 bits, integers or bools",
            array.dtype,
            "pass dtype='float32', or convert the array with .astype",
        )
    if dtype is None and array.dtype == np.float64 and not hasattr(data, "dtype"):
        array = array.astype(np.float32)
    return array
