"""Exporters of ops on two operands, of products of matrices, and of choices between operands.

tinygraph's operands have one dtype when they reach the op: where they differed, a Cast stands
before it, as ONNX wants it.  Operators that ONNX lacks for a dtype are computed in another one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.engine import Tensor
from tinygraph.interop.onnx.table import exporter
from tinygraph.interop.onnx.writer import Writer
from tinygraph.ops.elementwise.arithmetic import Add, Div, Maximum, Minimum, Mul, Pow, Sub
from tinygraph.ops.elementwise.comparison import (
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
)
from tinygraph.ops.elementwise.floor_divide import FloorDivide, Remainder
from tinygraph.ops.elementwise.logic import BitwiseAnd, BitwiseOr, BitwiseXor
from tinygraph.ops.elementwise.where import Where
from tinygraph.ops.products.linear import Linear
from tinygraph.ops.products.matmul import Matmul

# The operator for numbers, and for bools: numpy adds them by "or", and multiplies by "and".
JOINED: dict[Any, tuple[str, str]] = {
    Add: ("Add", "Or"),
    Sub: ("Sub", ""),
    Mul: ("Mul", "And"),
    Div: ("Div", ""),
    Maximum: ("Max", "Or"),
    Minimum: ("Min", "And"),
    BitwiseAnd: ("BitwiseAnd", "And"),
    BitwiseOr: ("BitwiseOr", "Or"),
    BitwiseXor: ("BitwiseXor", "Xor"),
}
COMPARED: dict[Any, str] = {
    Less: "Less",
    LessEqual: "LessOrEqual",
    Greater: "Greater",
    GreaterEqual: "GreaterOrEqual",
}


@exporter(*JOINED)
def joined(w: Writer, node: Tensor, x: str, y: str) -> str:
    return w.node(JOINED[type(node.op)][node.dtype.kind == "b"], x, y)


@exporter(Pow)
def power(w: Writer, node: Tensor, x: str, y: str) -> str:
    """Of integers ONNX raises int32 and int64; numpy's smaller ones wrap around, as a Cast does."""
    if node.dtype.kind == "f" or node.dtype in (np.int32, np.int64):
        return w.node("Pow", x, y)
    return w.cast(w.node("Pow", w.cast(x, np.int64), w.cast(y, np.int64)), node.dtype)


@exporter(*COMPARED)
def ordered(w: Writer, node: Tensor, x: str, y: str) -> str:
    if node.inputs[0].dtype.kind == "b":
        x, y = w.cast(x, np.int32), w.cast(y, np.int32)
    return w.node(COMPARED[type(node.op)], x, y)


@exporter(Equal)
def equal(w: Writer, node: Tensor, x: str, y: str) -> str:
    return w.node("Equal", x, y)


@exporter(NotEqual)
def not_equal(w: Writer, node: Tensor, x: str, y: str) -> str:
    return w.node("Not", w.node("Equal", x, y))


def _rest(w: Writer, node: Tensor, x: str, y: str) -> tuple[str, str]:
    """Of floats: fmod(x, y), and whether it has another sign than y and is not 0."""
    zero = w.constant(0, node.dtype)
    rest = w.node("Mod", x, y, fmod=1)
    signs = w.node("Xor", w.node("Less", rest, zero), w.node("Less", y, zero))
    return rest, w.node("And", signs, w.node("Not", w.node("Equal", rest, zero)))


@exporter(Remainder)
def remainder(w: Writer, node: Tensor, x: str, y: str) -> str:
    if node.dtype.kind != "f":
        return w.node("Mod", x, y)
    rest, other_sign = _rest(w, node, x, y)
    return w.node("Where", other_sign, w.node("Add", rest, y), rest)


@exporter(FloorDivide)
def floor_divide(w: Writer, node: Tensor, x: str, y: str) -> str:
    """x - rest is a multiple of y, so that the quotient is whole but for its rounding."""
    if node.dtype.kind != "f":
        return w.node("Div", w.node("Sub", x, w.node("Mod", x, y)), y)
    rest, other_sign = _rest(w, node, x, y)
    whole = w.node("Round", w.node("Div", w.node("Sub", x, rest), y))
    one_less = w.node("Sub", whole, w.cast(other_sign, node.dtype))
    by_zero = w.node("Equal", y, w.constant(0, node.dtype))
    return w.node("Where", by_zero, w.node("Div", x, y), one_less)


@exporter(Where)
def where(w: Writer, node: Tensor, condition: str, a: str, b: str) -> str:
    return w.node("Where", condition, a, b)


@exporter(Matmul)
def matmul(w: Writer, node: Tensor, x: str, y: str) -> str:
    """Of bools, and of integers that ONNX does not multiply, in int64."""
    known = node.dtype.kind == "f" or (node.dtype.kind in "iu" and node.dtype.itemsize >= 4)
    if known:
        return w.node("MatMul", x, y)
    return w.cast(w.node("MatMul", w.cast(x, np.int64), w.cast(y, np.int64)), node.dtype)


@exporter(Linear)
def linear(w: Writer, node: Tensor, x: str, weight: str, bias: str = "") -> str:
    """Gemm of a matrix; MatMul and Add of an array with more axes, or one."""
    if node.ndim == 2:
        return w.node("Gemm", *[x, weight, bias][: 3 if bias else 2], transB=1)
    y = w.node("MatMul", x, w.node("Transpose", weight, perm=[1, 0]))
    return w.node("Add", y, bias) if bias else y
