"""What ops on several operands share: one dtype for all, broadcasting, and the way back from it.

Kernels are written for one element type, so an op takes operands of one dtype only.  The public
functions bring them there first, by the rule in dtypes.py, with a `Cast` node where one is needed:

    float32 tensor * float64 tensor   the first is cast to float64
    float32 tensor * int64 tensor     the second is cast to float32
    float32 tensor * 2.5              2.5 becomes a float32 leaf
    int64 tensor * 2.5                the tensor is cast to float32
    float32 tensor * np.float64(2.5)  as 2.5: numpy's numbers are Python's, as in PyTorch

Broadcasting repeats an operand along an axis, so its gradient is the sum over that axis.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinygraph.base import ArgumentError, DtypeError
from tinygraph.base.dtypes import OF_NUMBERS, common_dtype, float32
from tinygraph.engine import CPU, Device, Memory, Operand, Tensor, as_tensor, leaf
from tinygraph.engine.spec import Array, Shape, Spec, broadcast_axes, broadcast_shapes
from tinygraph.ops.common.cast import Cast
from tinygraph.ops.common.totals import total

FLOATS = "fd"  # dtype characters: float32, float64
NUMBERS = FLOATS + "bhilqBHILQ"  # and integers
ALL = NUMBERS + "?"  # and bool


# ---- one dtype ------------------------------------------------------------------------------


def is_number(x: Any) -> bool:
    """Whether x is a Python number, which takes its dtype from the other operands."""
    kind = type(x)
    return kind is float or kind is int or kind is bool


_OF_KINDS: dict[str, type] = {"f": float, "i": int, "u": int, "b": bool}


def plain(x: Any) -> Any:
    """A number of numpy as Python's, which PyTorch takes it for; anything else as it is."""
    return _OF_KINDS.get(x.dtype.kind, type(x))(x) if isinstance(x, np.generic) else x


def _plain_beside_arrays(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """The operands, numbers of numpy as Python's; where no array is beside them they stay."""
    if not any(isinstance(x, np.generic) for x in operands):
        return operands
    alone = all(is_number(x) or isinstance(x, np.generic) for x in operands)
    return operands if alone else tuple([plain(x) for x in operands])


def device_of(*operands: Operand | None) -> Device:
    """The device of the first tensor, where arrays and numbers go too; without one, the cpu."""
    return next((x.device for x in operands if isinstance(x, Tensor)), CPU)


def promote(
    op: str, *operands: Operand, to_float: bool = False, device: Device | None = None
) -> tuple[Tensor, ...]:
    """The operands as tensors of one dtype, the one that `result_type` gives.

    With `to_float`, what would be integers or bools becomes float32.  Arrays and numbers go to
    `device`, by default to that of the first tensor.
    """
    if len(operands) == 2:  # most calls need no search, and tiny graphs feel each microsecond
        x, y = operands
        if isinstance(x, Tensor):
            dtype = x._value.dtype
            if isinstance(y, Tensor):
                if dtype == y._value.dtype and not (to_float and dtype.kind != "f"):
                    return x, y
            elif dtype.kind == "f":
                if is_number(y):
                    return x, _number(op, y, dtype, x.device)
                if isinstance(y, np.ndarray) and y.dtype == dtype:
                    return x, as_tensor(y, device=x.device)
        elif isinstance(y, Tensor) and (dtype := y._value.dtype).kind == "f":
            if is_number(x):
                return _number(op, x, dtype, y.device), y
            if isinstance(x, np.ndarray) and x.dtype == dtype:
                return as_tensor(x, device=y.device), y
    if device is None:
        device = device_of(*operands)
    operands = _plain_beside_arrays(operands)
    known = [x if is_number(x) else _operand(op, x, device) for x in operands]
    dtype = result_type(*known)
    if to_float and dtype.kind != "f":
        dtype = float32
    return tuple(
        [_converted(op, x, data, dtype, device) for x, data in zip(known, operands, strict=True)]
    )


def _operand(op: str, x: Any, device: Device) -> Tensor:
    if x is None or isinstance(x, str):
        expected, way_out = "a Tensor, an array or a number", "look where it comes from"
        raise DtypeError(op, "an operand", expected, repr(x), way_out)
    return as_tensor(x, device=device)


def result_type(*operands: Operand) -> np.dtype[Any]:
    """The dtype in which operands are computed together, as PyTorch has it.

    Parameters
    ----------
    *operands : Tensor, array_like or number

    Returns
    -------
    dtype
        Of the highest kind, bool < integer < float, and as wide as the arrays of that kind need.
        Tensors without axes count where no array is of that kind, and Python numbers, which are
        int64, float32 or bool, where no tensor is.  A number of numpy beside a tensor or an array
        counts as a Python number.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.result_type(tg.zeros(2), tg.arange(2)), tg.result_type(tg.arange(2), 2.5)
    (dtype('float32'), dtype('float32'))
    """
    arrays: list[np.dtype[Any]] = []
    singles: list[np.dtype[Any]] = []
    numbers = []
    for x in _plain_beside_arrays(operands):
        if is_number(x):
            numbers.append(OF_NUMBERS[type(x)])
        else:
            value = as_tensor(x).value
            (arrays if value.ndim else singles).append(value.dtype)
    return common_dtype(tuple(arrays), tuple(singles), tuple(numbers))


def _converted(op: str, x: Any, data: Any, dtype: np.dtype[Any], device: Device) -> Tensor:
    """One operand in the common dtype: only what was a tensor before needs a node for it."""
    if not isinstance(x, Tensor):
        return _number(op, x, dtype, device)
    if x.dtype == dtype:
        return x
    if x is data:
        return Cast(dtype)(x)
    with np.errstate(all="ignore"):  # a single number may be beyond the range of a float
        return as_tensor(data, dtype, device)


def _number(op: str, number: Any, dtype: np.dtype[Any], device: Device) -> Tensor:
    """A Python number as a 0-d leaf.

    The same number is the same array: a GPU is given it once, not for each use.
    """
    try:
        if -1e30 < number < 1e30:
            array = np.array(number, dtype)
        else:
            with np.errstate(all="ignore"):  # beyond the range of a float lies infinity
                array = np.array(number, dtype)
        return leaf(device.constant(array), device)
    except OverflowError:
        expected = f"one that {dtype} can hold"
        way_out = "convert the tensor first, for example with .astype('float64')"
        raise ArgumentError(op, "a Python number", expected, number, way_out) from None


def require_one_dtype(op: str, allowed: str, **specs: Spec) -> None:
    """Raise DtypeError unless all inputs have one dtype, and `allowed` holds its character."""
    first_name, first = next(iter(specs.items()))
    for name, spec in specs.items():
        if spec.dtype.char not in allowed:
            kinds = ["float32", "float64"]
            kinds += ["an integer"] if allowed != FLOATS else []
            kinds += ["bool"] if allowed == ALL else []
            expected = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
            way_out = "convert it, for example with .astype('float32')"
            raise DtypeError(op, name, expected, spec.dtype, way_out)
        if spec.dtype != first.dtype:
            expected = f"{first.dtype}, the dtype of {first_name}"
            way_out = f"use tg.{op}, which promotes, or convert with .astype('{first.dtype}')"
            raise DtypeError(op, name, expected, spec.dtype, way_out)


# ---- broadcasting ---------------------------------------------------------------------------


def joint_shape(op: str, x: Shape, y: Shape) -> Shape:
    """The shape of x and y broadcast together; equal shapes and single numbers take no search."""
    if x == y or not y:
        return x
    return broadcast_shapes(op, x, y) if x else y


def unbroadcast(mem: Memory, g: Array, shape: Shape) -> Array:
    """The sum of a gradient over the axes along which an operand of `shape` was repeated."""
    if g.shape == shape:
        return g
    out = mem.empty(shape, g.dtype)
    kept = out.reshape((1,) * (g.ndim - len(shape)) + shape)  # a view with the axes of g
    total(g, broadcast_axes(shape, g.shape), kept)
    return out


_BITS = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}


def as_bits(x: Array) -> Array:
    """The same memory as integers of the same width: what is selected bit by bit stays exact."""
    return x.view(_BITS[x.dtype.itemsize])


def choose(condition: Array, a: Array, b: Array, y: Array) -> None:
    """Write a where the condition holds, else b, into y, by bits as well; y is neither."""
    bits, b_bits = as_bits(y), as_bits(b)
    np.bitwise_xor(as_bits(a), b_bits, out=bits)  # b ^ (a ^ b) is a, b ^ 0 is b
    bits *= as_bits(condition)
    bits ^= b_bits


def select(mem: Memory, g: Array, condition: Array, out: Array | None = None) -> Array:
    """g where the condition holds, else 0; in `out`, or a new array.

    The bits are multiplied, as integers: a product of floats would let NaN and infinity through,
    and a masked copy is about ten times as slow, for it branches at each element.
    """
    chosen = mem.empty(g.shape, g.dtype) if out is None else out
    np.multiply(as_bits(g), as_bits(condition), out=as_bits(chosen))
    return chosen


def broadcast_claim(shapes: tuple[Shape, ...], out: Shape, carries: tuple[bool, ...]) -> Any:
    """The claim `Op.batch` of an op on broadcast operands: "map" where axis 0 of the output is that
    of every input with samples, and no other input varies along it.
    """
    if not out or not any(carries):
        return None
    for shape, carried in zip(shapes, carries, strict=True):
        varies = len(shape) == len(out) and shape[0] == out[0]
        if carried and not varies:
            return None
        if not carried and varies and shape[0] != 1:
            return None
    return "map"


class Broadcasting:
    """Mixed into ops on two operands of one dtype: shapes, dtypes and the claim about samples."""

    name: ClassVar[str]
    takes: ClassVar[str] = ALL

    def infer(self, x: Spec, y: Spec) -> Spec:
        if x.dtype != y.dtype or x.dtype.char not in self.takes:
            require_one_dtype(self.name, self.takes, x=x, y=y)
        if x.shape == y.shape or not y.shape:
            return x
        return Spec(joint_shape(self.name, x.shape, y.shape), x.dtype)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        shapes = tuple([spec.shape for spec in specs])
        return broadcast_claim(shapes, broadcast_shapes(self.name, *shapes), carries)
