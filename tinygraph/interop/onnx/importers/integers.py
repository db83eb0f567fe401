"""What has no gradient: bits, positions, counts, casts; numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygraph import ops
from tinygraph.base import OnnxError
from tinygraph.engine import Array, Tensor
from tinygraph.interop.onnx.library import onnx
from tinygraph.interop.onnx.nodes import (
    Node,
    Value,
    array,
    axis_of,
    cast,
    importer,
    ints,
    is_float,
    is_plain,
    take_memory,
    wanted_by_gradients,
)
from tinygraph.interop.onnx.reading import dtype_of

_BITWISE = {
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "BitwiseNot": np.bitwise_not,
}


def _bits(kind: str, function: Any) -> None:
    @importer(kind, raw=True)
    def apply(node: Node, *values: Value) -> Value:
        return function(*[array(v) for v in values])


for _kind, _function in _BITWISE.items():
    _bits(_kind, _function)


@importer("BitShift", raw=True)
def bit_shift(node: Node, x: Value, y: Value) -> Value:
    """Bits that leave are lost; where more are asked for than there are, or fewer than none, ..."""
    numbers, count = array(x), array(y)
    width = 8 * numbers.dtype.itemsize
    inside = (count >= 0) & (count < width)
    by = np.where(inside, count, 0).astype(numbers.dtype)
    if node["direction"] == "LEFT":
        return np.where(inside, np.left_shift(numbers, by), 0).astype(numbers.dtype)
    outside = np.where(numbers < 0, -1, 0) if numbers.dtype.kind == "i" else 0
    return np.where(inside, np.right_shift(numbers, by), outside).astype(numbers.dtype)


# ---- dtypes ----------------------------------------------------------------------------------


@importer("Cast", raw=True)
def cast_to(node: Node, x: Value) -> Value:
    return converted(node, x, node["to"])


@importer("CastLike", raw=True)
def cast_like(node: Node, x: Value, like: Value) -> Value:
    return converted(node, x, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(like.dtype)))


def converted(node: Node, x: Value, code: Any) -> Value:
    """The value in another dtype; narrow floats as the standard rounds them."""
    if isinstance(code, str):  # up to opset 5 the name
        code = onnx.TensorProto.DataType.Value(code)
    dtype = dtype_of(code, "to")
    both_plain = all(is_plain(d) and d != np.float16 for d in (x.dtype, dtype))
    if isinstance(x, Tensor) and both_plain and (dtype.kind == "f" or x.dtype.kind != "f"):
        return ops.astype(x, dtype)
    if both_plain:
        return cast(x, dtype)
    if is_float(dtype) and wanted_by_gradients([x]):
        got, way_out = f"{dtype}, through which none flows", "with tg.no_grad(): ..."
        raise node.refuse("to", "float32 or float64 where a gradient is wanted", got, way_out)
    return as_the_standard(node, array(x), code)


def as_the_standard(node: Node, x: Array, code: int) -> Array:
    """A cast by onnx's reference implementation: rounding and saturation of narrow floats."""
    given = onnx.helper.make_tensor_value_info(
        "x", onnx.helper.np_dtype_to_tensor_dtype(x.dtype), list(x.shape)
    )
    options = {name: node[name] for name in ("saturate", "round_mode") if node[name] is not None}
    made = onnx.helper.make_node("Cast", ["x"], ["y"], to=code, **options)
    out = onnx.helper.make_tensor_value_info("y", code, list(x.shape))
    graph = onnx.helper.make_graph([made], "cast", [given], [out])
    opsets = [onnx.helper.make_opsetid("", max(node.version, 19))]
    model = onnx.helper.make_model(graph, opset_imports=opsets)
    from onnx.reference import ReferenceEvaluator

    (y,) = ReferenceEvaluator(model).run(None, {"x": x})
    return np.asarray(y)


# ---- arrays from nothing ---------------------------------------------------------------------


@importer("Constant", raw=True)
def constant(node: Node) -> Value:
    found: dict[str, Any] = {k: v for k, v in node.attributes.items() if v is not None}
    if len(found) != 1:
        raise node.refuse("attributes", "one value", sorted(found))
    ((name, value),) = found.items()
    kinds = {"value": None, "value_float": "f4", "value_floats": "f4"}
    kinds |= {"value_int": "i8", "value_ints": "i8"}
    if name not in kinds:
        raise node.refuse("value", "numbers", name)
    return np.asarray(value, kinds[name])


@importer("ConstantOfShape", raw=True)
def constant_of_shape(node: Node, shape: Value) -> Value:
    value = np.zeros(1, np.float32) if node["value"] is None else node["value"]
    if value.size != 1:
        raise node.refuse("value", "one element", value.shape)
    return np.full(take_memory(ints(shape)), value.reshape(()), value.dtype)


@importer("Range", raw=True)
def number_range(node: Node, start: Value, limit: Value, delta: Value) -> Value:
    first, end, step = (array(v).reshape(()) for v in (start, limit, delta))
    if step == 0:
        raise node.refuse("delta", "a number other than 0", 0)
    count = max(math.ceil((float(end) - float(first)) / float(step)), 0)
    if first.dtype.kind in "iu":
        count = max(-((int(first) - int(end)) // int(step)), 0)
    (count,) = take_memory([count])
    if first.dtype.kind in "iu":
        return (int(first) + int(step) * np.arange(count)).astype(first.dtype)
    wide: Any = np.float64 if first.dtype == np.float64 else np.float32
    return (wide(first) + np.arange(count, dtype=wide) * wide(step)).astype(first.dtype)


@importer("EyeLike", raw=True)
def eye_like(node: Node, x: Value) -> Value:
    dtype = x.dtype if node["dtype"] is None else dtype_of(node["dtype"], "dtype")
    rows, columns = take_memory(x.shape)
    return np.eye(rows, columns, node["k"] or 0, dtype=dtype)


@importer("OneHot", raw=True)
def one_hot(node: Node, indices: Value, depth: Value, values: Value) -> Value:
    """Indices out of range have a row of the off value."""
    found, (count,) = array(indices), ints(array(depth).reshape(-1).astype(np.int64))
    off, on = array(values)
    axis = axis_of(node["axis"], found.ndim + 1)
    take_memory([*found.shape, count])
    whole = found.astype(np.int64)
    whole = np.expand_dims(np.where(whole < 0, whole + count, whole), axis)
    places = np.arange(count).reshape(-1, *[1] * (found.ndim - axis))
    return np.where(whole == places, on, off)


# ---- shapes ----------------------------------------------------------------------------------


@importer("Shape", raw=True)
def shape_of(node: Node, x: Value) -> Value:
    return np.array(x.shape, np.int64)[node["start"] : node["end"]]


@importer("Size", raw=True)
def size_of(node: Node, x: Value) -> Value:
    return np.array(math.prod(x.shape), np.int64)


# ---- positions -------------------------------------------------------------------------------


def _best(kind: str, function: Any) -> None:
    @importer(kind, raw=True)
    def apply(node: Node, x: Value) -> Value:
        found = array(x)
        axis = axis_of(node["axis"], found.ndim)
        if node["select_last_index"]:
            place = found.shape[axis] - 1 - function(np.flip(found, axis), axis)
        else:
            place = function(found, axis)
        return np.expand_dims(place, axis) if node["keepdims"] else place


_best("ArgMax", np.argmax)
_best("ArgMin", np.argmin)


@importer("NonZero", raw=True)
def non_zero(node: Node, x: Value) -> Value:
    found = array(x)
    if found.ndim == 0:
        return np.zeros((0, int(bool(found))), np.int64)
    return np.array(np.nonzero(found), np.int64)


@importer("Unique", raw=True)
def unique(node: Node, x: Value) -> Any:
    found, axis = array(x), node["axis"]
    values, first, inverse, counts = np.unique(found, True, True, True, axis=axis)
    if not node["sorted"]:
        order = np.argsort(first)
        values = np.take(values, order, 0 if axis is None else axis)
        first, counts = first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    return values, *[a.reshape(-1).astype(np.int64) for a in (first, inverse, counts)]


@importer("Hardmax", raw=True)
def hardmax(node: Node, x: Value) -> Value:
    """1 at the first maximum, 0 elsewhere; up to opset 12 of all axes from one on."""
    found = array(x)
    axis = axis_of(node["axis"], found.ndim)
    if node.version < 13:
        flat = found.reshape(math.prod(found.shape[:axis]), -1)
        return _first_maximum(flat, 1).reshape(found.shape)
    return _first_maximum(found, axis)


def _first_maximum(x: Array, axis: int) -> Array:
    y = np.zeros_like(x)
    np.put_along_axis(y, np.expand_dims(np.argmax(x, axis), axis), 1, axis)
    return y


def require_integers(x: Array) -> Array:
    """Indices, or OnnxError."""
    if x.dtype.kind not in "iu":
        raise OnnxError("", "indices", "integers", x.dtype)
    return x
