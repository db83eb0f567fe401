"""What every leaf can be told, `Options`, described once; and how a leaf is made of them.

`@created`, `@sized` and `@like` stand above the functions of creation.py and sampling.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, TypeVar, cast

from tinygraph.base import whole
from tinygraph.base.dtypes import Dtype, as_dtype, differentiable
from tinygraph.engine import Array, Operand, Shape, Tensor, as_tensor, here, leaf
from tinygraph.engine.device import Device, get_device
from tinygraph.ops.common import documented
from tinygraph.ops.common.spelling import spelled

Function = TypeVar("Function", bound=Callable[..., Any])
Make = Callable[[Device, Dtype], Array]


class Options(TypedDict, total=False):
    """The keywords of whatever makes a leaf."""

    dtype: Any
    device: str | int | Device | None
    requires_grad: bool
    name: str | None
    pin_memory: bool


_OPTIONS = """
    Parameters
    ----------{x}
    dtype : dtype, optional
        {dtype}
    device : str, optional
        {device}
    requires_grad : bool
        Whether `backward` shall leave a gradient in `.grad`.  Only for float dtypes.
    name : str, optional
        Shown in pictures and errors.
    pin_memory : bool
        Changes nothing: copies to a GPU pin what they need.

    Returns
    -------
    Tensor
        A leaf.

    Raises
    ------
    ArgumentError
        There is no such device.
    DtypeError
        There is no such dtype, or an integer tensor shall require a gradient.
    """
_CPU = '"cpu" (the default), "emulator" or "cuda".'
_created = documented(_OPTIONS.format(x="", dtype="By default float32.", device=_CPU))
_X = """
    x : Tensor
        Whose shape is taken."""
_OF_X = "By default that of `x`."
_like = documented(_OPTIONS.format(x=_X, dtype=_OF_X, device=_OF_X))
_sized = documented(
    """
    Parameters
    ----------
    size : int or tuple of int
        The shape; ints one after the other mean the same as a tuple.

    Raises
    ------
    ArgumentError
        ... A size is no int of 0 or more.
    """
)


def new_leaf(
    op: str,
    make: Make,
    default: Any,
    dtype: Any = None,
    device: str | int | Device | None = None,
    requires_grad: bool = False,
    name: str | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """A leaf with the array of `make(device, dtype)`; what comes after `default` are `Options`."""
    place = get_device(device)
    kind = as_dtype(op, default if dtype is None else dtype)
    made = leaf(make(place, kind), place, name)
    made._requires_grad = differentiable(op, requires_grad, kind)
    if op != "tensor":
        here.top.created(made)
    return made


def shape_of(op: str, sizes: tuple[Any, ...], size: Any = None) -> Shape:
    """The shape that `zeros(2, 3)`, `zeros((2, 3))` and `zeros(size=(2, 3))` mean."""
    given = sizes if size is None else (size,)
    listed = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    return tuple([whole(op, "size", n, least=0) for n in listed])


def created(function: Function) -> Function:
    """What makes a leaf: described, and told its arguments by other words too."""
    return cast(Function, spelled(_created(function)))


def sized(function: Function) -> Function:
    """The same of a leaf of a given shape."""
    return created(_sized(function))


def like(function: Function) -> Function:
    """The same of a leaf of the shape of another tensor."""
    return cast(Function, spelled(_like(function)))


def like_options(x: Operand, options: Options) -> dict[str, Any]:
    """The keywords of a leaf like x: its shape, and unless others are given dtype and device."""
    node = as_tensor(x)
    asked = {key: value for key, value in options.items() if value is not None}
    return {"size": node.shape, "dtype": node.dtype, "device": node.device, **asked}
