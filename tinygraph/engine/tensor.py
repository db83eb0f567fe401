"""Tensor: one node of the computational graph.  Read this file first, then op.py, then graph.py.

    x ----.
           (matmul) ---> h ---> (relu) ---> y          an arrow is a data dependency
    w ----'

A node without inputs is a leaf: data, or a parameter.  Every other node is one op applied to its
input nodes, and is evaluated when it is made.  A node remembers its value, the op and the inputs;
that is the whole graph.  What the op saved for its backward lies in the node too.
The mathematics lives in ops/, on a higher floor, and the walks over the graph in graph.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tinygraph.base import ShapeError, above
from tinygraph.base.incoming import of_class
from tinygraph.engine.device import CPU, Device, get_device
from tinygraph.engine.operators import Operators
from tinygraph.engine.running import here
from tinygraph.engine.spec import Array, Shape, Spec
from tinygraph.engine.writes import Writes

Operand: TypeAlias = "Tensor | Array | float | int | bool | Sequence[Any]"


class Tensor(Operators["Tensor"]):
    """A node: a value, how it came about, and the gradient of a later result by it.

    Parameters
    ----------
    data : array_like
        Numbers; copied.  Without `dtype`, those of Python in lists become float32, as in PyTorch's
        class (`tg.tensor([7, 2])` is int64); arrays and numpy's numbers keep their dtype.
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
    op : Op or None
        What made this node; None for a leaf.
    inputs : tuple of Tensor
        What the op was applied to; () for a leaf.

    Raises
    ------
    DtypeError
        `data` is not made of numbers, or an integer tensor shall require a gradient.
    ArgumentError
        `data` is an int, which PyTorch's class takes for a size.

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
        "_grad",
        "_requires_grad",
        "_value",
        "device",
        "hooks",
        "inputs",
        "keeps_grad",
        "made_at",
        "name",
        "needs",
        "op",
        "saved",
        "written",
    )

    op: Any  # the Op that made this node, or None; typed Any because Op lives on a higher floor
    inputs: tuple[Tensor, ...]
    needs: tuple[bool, ...]  # for each input, whether its gradient was wanted at evaluation
    saved: Any  # what op.forward saved for op.backward
    hooks: tuple[Any, ...]  # functions that its gradient goes through (hooks.py)
    made_at: str | None  # the user's source line, under detect_anomaly
    written: int  # what `Writes.count` was when the value came about

    def __init__(
        self,
        data: Any,
        requires_grad: bool = False,
        dtype: Any = None,
        device: str | Device | None = None,
        name: str | None = None,
    ) -> None:
        array = of_class(type(self).__name__, data, dtype, (requires_grad, dtype, device))
        place = get_device(device)
        self._begin(place.from_numpy(array), place, name)
        self.requires_grad = requires_grad

    def _begin(self, value: Any, device: Device, name: str | None) -> None:
        """Fill the slots as those of a leaf that requires no gradient."""
        self._value, self.device, self.name = value, device, name
        self._grad = self.op = self.saved = self.made_at = None
        self.inputs, self.needs, self.hooks, self.written = (), (), (), Writes.count
        self._requires_grad = self.keeps_grad = False

    # ---- what a node is ---------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """The sizes of the axes, a tuple of ints."""
        return self._value.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type as a numpy dtype, which `tg.float32` is too."""
        return self._value.dtype

    @property
    def spec(self) -> Spec:
        """Shape and dtype together."""
        return Spec(self._value.shape, self._value.dtype)

    @property
    def is_leaf(self) -> bool:
        """Whether no op made it, as of data and parameters."""
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

    def __repr__(self) -> str:
        numbers = np.array2string(self.numpy(), separator=", ", prefix="Tensor(", threshold=20)
        name = f", name={self.name!r}" if self.name else ""
        made = f", op={self.op.name}" if self.op is not None else ""
        wants = ", requires_grad=True" if self.requires_grad and self.op is None else ""
        return f"{type(self).__name__}({numbers}, dtype={self.dtype}{name}{made}{wants})"

    # ---- walks over the graph (graph.py) ----------------------------------------------------

    def backward(
        self, gradient: Any = None, retain_graph: bool = False, create_graph: bool = False
    ) -> None:
        """Add the gradient of this node to `.grad` of every leaf below that requires one.

        Parameters
        ----------
        gradient : array_like, optional
            The upstream gradient, of this node's shape.  Only a single element can do without: 1.
        retain_graph : bool
            Keep what the ops saved, so that backward can be called again.
        create_graph : bool
            False: there are no second derivatives.

        Raises
        ------
        GraphError
            Nothing here requires a gradient, or the saved values were freed by an earlier backward.
        ShapeError
            `gradient` is missing though there are several elements, or has another shape.
        """
        above.run_backward([self], [gradient], retain_graph, create_graph)

    def detach(self) -> Tensor:
        """A leaf with the same value (shared, not copied) that requires no gradient."""
        made = leaf(self.value, self.device, self.name)
        here.top.share(made, self)
        return made

    def retain_grad(self) -> Tensor:
        """Ask `backward` to store the gradient of this node too, though it is not a leaf."""
        self.keeps_grad = True
        return self


def leaf(array: Any, device: Device = CPU, name: str | None = None) -> Tensor:
    """A leaf around an array that is on `device` already: nothing is checked or copied."""
    made = Tensor.__new__(Tensor)
    made._begin(array, device, name)
    return made


def as_tensor(data: Operand, dtype: Any = None, device: Device = CPU) -> Tensor:
    """`data` as a node: itself if it is one, else a leaf that shares the memory of an array."""
    if isinstance(data, Tensor):
        return data
    return leaf(device.from_numpy(above.operand(data, dtype)), device)
