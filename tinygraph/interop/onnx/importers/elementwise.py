"""Functions of one number, element by element."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tinygraph import ops
from tinygraph.engine import Array, Tensor, as_tensor, leaf
from tinygraph.interop.onnx.nodes import Node, Value, array, importer, tensor, wanted_by_gradients
from tinygraph.interop.onnx.reading import dtype_of

# What numpy has of it, for any dtype, and the attributes that are arguments of the op.
_SAME: dict[str, tuple[Any, ...]] = {
    "Abs": (ops.abs, np.abs),
    "Neg": (ops.neg, np.negative),
    "Exp": (ops.exp, None),
    "Log": (ops.log, None),
    "Sqrt": (ops.sqrt, np.sqrt),
    "Reciprocal": (ops.reciprocal, None),
    "Sin": (ops.sin, None),
    "Cos": (ops.cos, None),
    "Tanh": (ops.tanh, None),
    "Sigmoid": (ops.sigmoid, None),
    "Erf": (ops.erf, None),
    "Floor": (ops.floor, np.floor),
    "Ceil": (ops.ceil, np.ceil),
    "Round": (ops.round, np.rint),
    "Sign": (ops.sign, np.sign),
    "Relu": (ops.relu, None),
    "HardSwish": (ops.hardswish, None),
    "Softsign": (ops.softsign, None),
    "Mish": (ops.mish, None),
    "Elu": (ops.elu, None, "alpha"),
    "Celu": (ops.celu, None, "alpha"),
    "LeakyRelu": (ops.leaky_relu, None, "alpha"),
    "Gelu": (ops.gelu, None, "approximate"),
}


def _register(kind: str, function: Callable[..., Tensor], in_numpy: Any, *attributes: str) -> None:
    @importer(kind, numpy=in_numpy)
    def same(node: Node, x: Value) -> Tensor:
        return function(x, *[node[name] for name in attributes])


for _kind, _entry in _SAME.items():
    _register(_kind, *_entry)


def _relu_of_integers(x: Array) -> Array:
    return np.maximum(x, x.dtype.type(0))


@importer("Relu", raw=True)
def relu(node: Node, x: Value) -> Value:
    if x.dtype.kind in "iu":
        return _relu_of_integers(array(x))
    return ops.relu(tensor(x)) if x.dtype in (np.float32, np.float64) else _relu_of_integers(x)


@importer("Selu")
def selu(node: Node, x: Value) -> Tensor:
    if abs(node["alpha"] - 1.67326319) < 1e-7 and abs(node["gamma"] - 1.05070102) < 1e-7:
        return ops.selu(x)
    return ops.mul(ops.elu(x, node["alpha"]), node["gamma"])


@importer("ThresholdedRelu")
def thresholded_relu(node: Node, x: Value) -> Tensor:
    return ops.where(ops.greater(x, node["alpha"]), x, 0.0)


@importer("HardSigmoid")
def hard_sigmoid(node: Node, x: Value) -> Tensor:
    if abs(6 * node["alpha"] - 1) < 1e-6 and node["beta"] == 0.5:
        return ops.hardsigmoid(x)
    return ops.clip(ops.add(ops.mul(x, node["alpha"]), node["beta"]), 0.0, 1.0)


@importer("Softplus")
def softplus(node: Node, x: Value) -> Tensor:
    return ops.softplus(x, 1.0, 1e30)  # without the bend that PyTorch puts at 20


@importer("Swish")
def swish(node: Node, x: Value) -> Tensor:
    if node["alpha"] == 1:
        return ops.silu(x)
    return ops.mul(x, ops.sigmoid(ops.mul(x, node["alpha"])))


@importer("Shrink", numpy=None)
def shrink(node: Node, x: Value) -> Value:
    bias, limit = node["bias"], node["lambd"]
    if x.dtype.kind != "f":
        found = array(x)
        zero = np.where(found > limit, found - bias, np.where(found < -limit, found + bias, 0))
        return zero.astype(found.dtype)
    above = ops.where(ops.greater(x, limit), ops.sub(x, bias), 0.0)
    return ops.where(ops.less(x, -limit), ops.add(x, bias), above)


@importer("Clip", raw=True)
def clip(node: Node, x: Value, low: Value = None, high: Value = None) -> Value:
    """The bounds are attributes up to opset 6, then inputs; the upper one wins."""
    bounds: list[Any] = [node["min"], node["max"]]
    for i, bound in enumerate((low, high)):
        bounds[i] = array(bound) if bound is not None else bounds[i]
    if x.dtype not in (np.float32, np.float64):
        found, kind = array(x), array(x).dtype.type
        if bounds[0] is not None:
            found = np.maximum(found, kind(bounds[0]))
        return found if bounds[1] is None else np.minimum(found, kind(bounds[1]))
    if wanted_by_gradients([low, high]):
        y = tensor(x) if low is None else ops.maximum(x, low)
        return y if high is None else ops.minimum(y, high)
    lower, upper = (None if b is None else float(b) for b in bounds)
    if lower is not None and upper is not None and lower > upper:
        return ops.minimum(ops.maximum(tensor(x), lower), upper)
    if lower is None and upper is None:
        return x
    return ops.clip(tensor(x), lower, upper)


# ---- with gradients by their formulas --------------------------------------------------------


@importer("Tan")
def tan(node: Node, x: Value) -> Tensor:
    return ops.div(ops.sin(x), ops.cos(x))


_KNOWN: dict[str, tuple[Any, Any]] = {  # a function of numpy, and its derivative
    "Sinh": (np.sinh, np.cosh),
    "Cosh": (np.cosh, np.sinh),
    "Asin": (np.arcsin, lambda v: 1 / np.sqrt(1 - v * v)),
    "Acos": (np.arccos, lambda v: -1 / np.sqrt(1 - v * v)),
    "Atan": (np.arctan, lambda v: 1 / (1 + v * v)),
    "Asinh": (np.arcsinh, lambda v: 1 / np.sqrt(1 + v * v)),
    "Acosh": (np.arccosh, lambda v: 1 / np.sqrt(v * v - 1)),
    "Atanh": (np.arctanh, lambda v: 1 / (1 - v * v)),
}


def _known(x: Value, function: Callable[..., Array], derivative: Callable[..., Array]) -> Tensor:
    """A function of numpy with its derivative, where there is no op: y0 + (x - x0) * dy/dx(x0).

    x0 and y0 are the numbers that x and y have now, so that the second term is 0, but for its
    gradient.
    """
    node = as_tensor(x)
    x0 = node.numpy()
    y0 = np.asarray(function(x0), x0.dtype)
    if not node.requires_grad:
        return leaf(node.device.from_numpy(y0), node.device)
    slope = np.asarray(derivative(x0), x0.dtype)
    moved = ops.mul(ops.where(np.isfinite(x0), ops.sub(node, x0), 0.0), _finite(slope))
    return ops.add(ops.where(np.isfinite(y0), moved, 0.0), y0)


for _kind, (_function, _derivative) in _KNOWN.items():
    _register(_kind, partial(_known, function=_function, derivative=_derivative), None)


def _finite(slope: Array) -> Array:
    return np.where(np.isfinite(slope), slope, np.sign(slope) * np.finfo(slope.dtype).max)


# ---- dtypes ----------------------------------------------------------------------------------


@importer("Identity", raw=True)
def identity(node: Node, x: Value) -> Value:
    return x


@importer("IsNaN", raw=True)
def is_nan(node: Node, x: Value) -> Value:
    return ops.isnan(x) if isinstance(x, Tensor) and x.dtype.kind == "f" else np.isnan(array(x))


@importer("IsInf", raw=True)
def is_inf(node: Node, x: Value) -> Value:
    found = array(x)
    positive, negative = node["detect_positive"], node["detect_negative"]
    if positive and negative:
        return np.isinf(found)
    inf = np.inf if positive else -np.inf
    return found == inf if positive or negative else np.zeros(found.shape, bool)


@importer("BitCast", raw=True)
def bit_cast(node: Node, x: Value) -> Value:
    dtype = dtype_of(node["to"], "to")
    if dtype.itemsize != x.dtype.itemsize:
        raise node.refuse("to", f"a dtype of {x.dtype.itemsize} bytes, as {x.dtype}", dtype)
    return np.ascontiguousarray(array(x)).reshape(array(x).shape).view(dtype)
