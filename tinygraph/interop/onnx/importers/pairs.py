"""Functions of two numbers or more, broadcast: arithmetic, comparisons, logic."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from tinygraph import ops
from tinygraph.engine import Array, Tensor
from tinygraph.interop.onnx.nodes import (
    Node,
    Value,
    array,
    axis_of,
    importer,
    is_float,
    is_half,
    tensor,
)

ANY = "fiub"


def _divide(x: Array, y: Array) -> Array:
    """Integers are divided towards zero."""
    if x.dtype.kind not in "iu":
        return np.divide(x, y)
    if not np.all(y):
        raise ZeroDivisionError("an integer is divided by 0")
    quotient = np.floor_divide(x, y)
    quotient += ((np.remainder(x, y) != 0) & ((x < 0) != (y < 0))).astype(x.dtype)
    return quotient


_ARITHMETIC: dict[str, tuple[Callable[..., Tensor], Callable[..., Array], str]] = {
    "Add": (ops.add, np.add, "fiu"),
    "Sub": (ops.sub, np.subtract, "fiu"),
    "Mul": (ops.mul, np.multiply, "fiu"),
    "Div": (ops.div, _divide, "f"),
    "Greater": (ops.greater, np.greater, ANY),
    "GreaterOrEqual": (ops.greater_equal, np.greater_equal, ANY),
    "Less": (ops.less, np.less, ANY),
    "LessOrEqual": (ops.less_equal, np.less_equal, ANY),
    "Equal": (ops.equal, np.equal, ANY),
    "And": (ops.logical_and, np.logical_and, ANY),
    "Or": (ops.logical_or, np.logical_or, ANY),
    "Xor": (ops.logical_xor, np.logical_xor, ANY),
}


def _pair(kind: str, function: Callable[..., Tensor], in_numpy: Any, tensors: str) -> None:
    @importer(kind, raw=True)
    def apply(node: Node, x: Value, y: Value) -> Value:
        if x.dtype != y.dtype:
            raise node.refuse("inputs", "one dtype for both", f"{x.dtype} and {y.dtype}")
        x, y = _aligned(node, x, y)
        known = [v for v in (x, y) if isinstance(v, Tensor)]
        if known and x.dtype.kind in tensors and x.dtype != np.float16:
            return function(x, y)
        return in_numpy(array(x), array(y))


def _aligned(node: Node, x: Value, y: Value) -> tuple[Value, Value]:
    """Up to opset 6 shapes differ only with broadcast=1; y may begin at an axis of x."""
    if node["broadcast"] == 0 and x.shape != y.shape:
        raise node.refuse("broadcast", f"1 for the shapes {x.shape} and {y.shape}", 0)
    if node["broadcast"] and y.ndim and (axis := node["axis"]) is not None:
        behind = x.ndim - axis_of(axis, x.ndim) - y.ndim
        shape = (*y.shape, *[1] * max(behind, 0))
        y = ops.reshape(y, shape) if isinstance(y, Tensor) else y.reshape(shape)
    return x, y


for _kind, _entry in _ARITHMETIC.items():
    _pair(_kind, *_entry)


@importer("Not", numpy=np.logical_not, tensors="b")
def logical_not(node: Node, x: Value) -> Tensor:
    return ops.logical_not(x)


@importer("Pow", raw=True)
def power(node: Node, x: Value, y: Value) -> Value:
    """Of the dtype of x, whatever that of y is."""
    x, y = _aligned(node, x, y)
    if x.dtype in (np.float32, np.float64):
        if isinstance(y, Tensor) and y.dtype == x.dtype and y.requires_grad:
            return ops.pow(tensor(x), y)
        exponent = array(y)
        return ops.pow(tensor(x), exponent.astype(x.dtype) if exponent.ndim else float(exponent))
    base, exponent = array(x), array(y)
    if exponent.dtype.kind in "iu" and np.any(exponent < 0) and base.dtype.kind in "iu":
        raise node.refuse("exponent", "0 or more for integers", exponent.min())
    return np.power(base, exponent).astype(base.dtype)


@importer("Mod", raw=True)
def modulo(node: Node, x: Value, y: Value) -> Value:
    """The sign is that of y; with fmod=1 that of x."""
    if x.dtype.kind in "iu" and not np.all(array(y)):
        raise ZeroDivisionError("an integer is divided by 0")
    if isinstance(x, Tensor) and x.dtype.kind == "f" and x.requires_grad:
        quotient = ops.div(x, y)
        whole = ops.trunc(quotient) if node["fmod"] else ops.floor(quotient)
        value = (np.fmod if node["fmod"] else np.mod)(array(x), array(y))
        slope = ops.sub(x, ops.mul(y, whole.detach()))  # its gradient is that of the remainder
        return ops.add(ops.sub(slope, slope.detach()), value)
    return (np.fmod if node["fmod"] else np.mod)(array(x), array(y))


# ---- of any number of inputs -----------------------------------------------------------------


def _many(kind: str, function: Callable[..., Tensor], in_numpy: Callable[..., Array]) -> None:
    @importer(kind, raw=True)
    def apply(node: Node, *values: Value) -> Value:
        if any(isinstance(v, Tensor) and v.dtype.kind == "f" for v in values):
            return reduce(function, [tensor(v) for v in values])
        return reduce(in_numpy, [array(v) for v in values])


_many("Max", ops.maximum, np.maximum)
_many("Min", ops.minimum, np.minimum)
_many("Sum", ops.add, np.add)


@importer("Mean")
def mean(node: Node, *values: Value) -> Tensor:
    return ops.div(reduce(ops.add, values), len(values))


@importer("Where", raw=True)
def where(node: Node, condition: Value, x: Value, y: Value) -> Value:
    if any(isinstance(v, Tensor) for v in (condition, x, y)) and x.dtype.kind in ANY:
        if x.dtype == np.float16:
            return np.where(array(condition), array(x), array(y))
        return ops.where(condition, x, y)
    return np.where(array(condition), array(x), array(y))


@importer("PRelu", raw=True)
def prelu(node: Node, x: Value, slope: Value) -> Value:
    if not is_float(x.dtype):
        found, factor = array(x), array(slope)
        return np.where(found < 0, found * factor, found).astype(found.dtype)
    if x.dtype not in (np.float32, np.float64):
        found = array(x)
        return np.where(found < 0, found * array(slope), found).astype(found.dtype)
    if node.version < 7 and slope.ndim == 1 and x.ndim > 1:
        slope = ops.reshape(slope, (-1, *[1] * (x.ndim - 2)))
    if x.ndim >= 2 and _of_channels(slope.shape, x.shape):
        return ops.prelu(tensor(x), ops.reshape(slope, (-1,)))
    return ops.where(ops.less(tensor(x), 0.0), ops.mul(x, slope), x)


def _of_channels(slope: tuple[int, ...], x: tuple[int, ...]) -> bool:
    """Whether a slope is one number, or one for each channel, as tg.prelu takes it."""
    if all(n == 1 for n in slope):
        return True
    full = (1,) * (len(x) - len(slope)) + slope
    return full == (1, x[1], *[1] * (len(x) - 2))


# ---- products --------------------------------------------------------------------------------


@importer("MatMul")
def matmul(node: Node, x: Value, y: Value) -> Value:
    if x.dtype.kind != "f":
        return np.matmul(array(x), array(y))
    return ops.matmul(x, y)


@importer("Gemm", raw=True)
def gemm(node: Node, a: Value, b: Value, c: Value = None) -> Value:
    """alpha * a' @ b' + beta * c; tg.linear where it is one."""
    alpha, beta = node["alpha"], node["beta"]
    if a.dtype not in (np.float32, np.float64):
        left, right = (array(m).T if t else array(m) for m, t in _factors(node, a, b))
        y = left @ right if alpha == 1 else alpha * (left @ right)
        return (y if c is None else y + (array(c) if beta == 1 else beta * array(c))).astype(
            a.dtype
        )
    bias = c is not None and c.ndim == 1 and c.shape == (b.shape[0 if node["transB"] else 1],)
    scaled = c if c is None or beta == 1 else ops.mul(c, beta)
    if node["transB"] and not node["transA"] and alpha == 1 and (c is None or bias):
        return ops.linear(a, b, scaled)
    left, right = (ops.transpose(m, 0, 1) if t else m for m, t in _factors(node, a, b))
    y = ops.matmul(left, right)
    y = y if alpha == 1 else ops.mul(y, alpha)
    return y if scaled is None else ops.add(y, scaled)


def _factors(node: Node, a: Value, b: Value) -> list[tuple[Value, Any]]:
    return [(a, node["transA"]), (b, node["transB"])]


@importer("Einsum", raw=True)
def einsum(node: Node, *values: Value) -> Value:
    equation = node["equation"].replace(" ", "")
    if any(isinstance(v, Tensor) and v.dtype.kind == "f" for v in values):
        return ops.einsum(equation, *[tensor(v) for v in values])
    arrays = [array(v) for v in values]
    if not is_half(arrays[0]):
        return np.einsum(equation, *arrays)
    wide = np.einsum(equation, *[a.astype(np.float32) for a in arrays])
    return np.asarray(wide).astype(arrays[0].dtype)
