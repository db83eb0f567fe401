"""Exporters of functions of one number, and of activations.

Most are one operator of the same name.  log1p and expm1 are written as log(1 + x) and exp(x) - 1,
as by PyTorch: near 0 they have fewer digits.
"""

from __future__ import annotations

import math

import numpy as np

from tinygraph.engine import Op, Tensor
from tinygraph.interop.onnx.table import EXPORTERS, Exporter, exporter
from tinygraph.interop.onnx.writer import Writer
from tinygraph.ops.common import Cast
from tinygraph.ops.common.to import To
from tinygraph.ops.elementwise.clip import Clip
from tinygraph.ops.elementwise.elementwise import (
    Abs,
    Cos,
    Exp,
    Expm1,
    Log,
    Log1p,
    Log2,
    Neg,
    Reciprocal,
    Rsqrt,
    Sin,
    Sqrt,
    Square,
)
from tinygraph.ops.elementwise.elu import Celu, Elu, Selu
from tinygraph.ops.elementwise.erf import Erf
from tinygraph.ops.elementwise.gelu import Gelu
from tinygraph.ops.elementwise.hard_activations import Hardsigmoid, Hardswish, Hardtanh, Relu6
from tinygraph.ops.elementwise.heaviside import Heaviside
from tinygraph.ops.elementwise.leaky_relu import LeakyRelu
from tinygraph.ops.elementwise.prelu import Prelu
from tinygraph.ops.elementwise.relu import Relu
from tinygraph.ops.elementwise.rounding import Ceil, Floor, Round, Sign, Trunc
from tinygraph.ops.elementwise.sigmoid import Sigmoid
from tinygraph.ops.elementwise.smooth_activations import Logsigmoid, Mish, Silu, Softsign
from tinygraph.ops.elementwise.softplus import Softplus
from tinygraph.ops.elementwise.tanh import Tanh

# Ops that are one operator.
SAME: dict[type[Op], str] = {
    Ceil: "Ceil",
    Cos: "Cos",
    Erf: "Erf",
    Exp: "Exp",
    Floor: "Floor",
    Gelu: "Gelu",
    Hardswish: "HardSwish",
    LeakyRelu: "LeakyRelu",
    Log: "Log",
    Mish: "Mish",
    Neg: "Neg",
    Reciprocal: "Reciprocal",
    Round: "Round",
    Selu: "Selu",
    Sigmoid: "Sigmoid",
    Sign: "Sign",
    Sin: "Sin",
    Softsign: "Softsign",
    Sqrt: "Sqrt",
    Tanh: "Tanh",
    To: "Identity",
}


# Their settings, each with the op's name for it.
SETTINGS: dict[type[Op], dict[str, str]] = {
    Gelu: {"approximate": "approximate"},
    LeakyRelu: {"alpha": "negative_slope"},
    Selu: {"alpha": "alpha", "gamma": "scale"},
}


def _one_operator(kind: str, settings: dict[str, str]) -> Exporter:
    return lambda w, node, x: w.node(
        kind, x, **{theirs: getattr(node.op, ours) for theirs, ours in settings.items()}
    )


EXPORTERS.update({op: _one_operator(kind, SETTINGS.get(op, {})) for op, kind in SAME.items()})


@exporter(Abs)
def absolute(w: Writer, node: Tensor, x: str) -> str:
    return w.node("Identity" if node.dtype.kind == "b" else "Abs", x)


@exporter(Square)
def square(w: Writer, node: Tensor, x: str) -> str:
    return w.node("Mul", x, x)


@exporter(Rsqrt)
def rsqrt(w: Writer, node: Tensor, x: str) -> str:
    return w.node("Reciprocal", w.node("Sqrt", x))


@exporter(Expm1)
def expm1(w: Writer, node: Tensor, x: str) -> str:
    return w.node("Sub", w.node("Exp", x), w.constant(1, node.dtype))


@exporter(Log1p)
def log1p(w: Writer, node: Tensor, x: str) -> str:
    return w.node("Log", w.node("Add", x, w.constant(1, node.dtype)))


@exporter(Log2)
def log2(w: Writer, node: Tensor, x: str) -> str:
    return w.node("Div", w.node("Log", x), w.constant(math.log(2), node.dtype))


@exporter(Trunc)
def trunc(w: Writer, node: Tensor, x: str) -> str:
    return w.node("Mul", w.node("Sign", x), w.node("Floor", w.node("Abs", x)))


@exporter(Cast)
def cast(w: Writer, node: Tensor, x: str) -> str:
    same = node.inputs[0].dtype == node.dtype  # a copy, which `clone` makes
    return w.node("Identity", x) if same else w.cast(x, node.dtype)


@exporter(Relu)
def relu(w: Writer, node: Tensor, x: str) -> str:
    return w.node("Identity" if node.dtype.kind == "u" else "Relu", x)


@exporter(Prelu)
def prelu(w: Writer, node: Tensor, x: str, slope: str) -> str:
    """The slopes in a shape that broadcasts to x: (C, 1, ...), or () for one of all."""
    size, behind = node.inputs[1].value.size, max(node.ndim - 2, 0)
    shape = (size, *(1,) * behind) if size > 1 else ()
    if shape != node.inputs[1].shape:
        slope = w.node("Reshape", slope, w.ints(*shape))
    return w.node("PRelu", x, slope)


@exporter(Elu)
def elu(w: Writer, node: Tensor, x: str) -> str:
    y = w.node("Elu", x, alpha=node.op.alpha)
    return y if node.op.scale == 1 else w.node("Mul", y, w.constant(node.op.scale, node.dtype))


@exporter(Celu)
def celu(w: Writer, node: Tensor, x: str) -> str:
    """ONNX has the operator for float32 alone."""
    if node.dtype == np.float32:
        return w.node("Celu", x, alpha=node.op.alpha)
    alpha = w.constant(node.op.alpha, node.dtype)
    return w.node("Mul", w.node("Elu", w.node("Div", x, alpha)), alpha)


@exporter(Silu)
def silu(w: Writer, node: Tensor, x: str) -> str:
    return w.node("Mul", x, w.node("Sigmoid", x))


@exporter(Logsigmoid)
def logsigmoid(w: Writer, node: Tensor, x: str) -> str:
    return w.node("Neg", w.node("Softplus", w.node("Neg", x)))


@exporter(Softplus)
def softplus(w: Writer, node: Tensor, x: str) -> str:
    """From 20 on the logarithm that the threshold leaves out is below rounding in float32."""
    op, y = node.op, x
    if op.beta != 1:
        beta = w.constant(op.beta, node.dtype)
        y = w.node("Mul", x, beta)
        made = w.node("Div", w.node("Softplus", y), beta)
    else:
        made = w.node("Softplus", y)
    if op.threshold >= 20:
        return made
    beyond = w.node("Greater", y, w.constant(op.threshold, node.dtype))
    return w.node("Where", beyond, w.node("Relu", x), made)


@exporter(Hardsigmoid)
def hardsigmoid(w: Writer, node: Tensor, x: str) -> str:
    return w.node("HardSigmoid", x, alpha=1 / 6, beta=0.5)


@exporter(Hardtanh, Relu6)
def hardtanh(w: Writer, node: Tensor, x: str) -> str:
    low, high = node.op.numbers(node.dtype)
    return w.node("Clip", x, w.constant(low, node.dtype), w.constant(high, node.dtype))


@exporter(Clip)
def clip(w: Writer, node: Tensor, x: str) -> str:
    bounds = (node.op.min, node.op.max)
    low, high = ("" if b is None else w.constant(b, node.dtype) for b in bounds)
    return w.node("Clip", x, low, high)


@exporter(Heaviside)
def heaviside(w: Writer, node: Tensor, x: str) -> str:
    """(sign(x) + 1) / 2, which is right but at 0."""
    half = w.constant(0.5, node.dtype)
    step = w.node("Add", w.node("Mul", w.node("Sign", x), half), half)
    at_zero = w.node("Equal", x, w.constant(0, node.dtype))
    return w.node("Where", at_zero, w.constant(node.op.value, node.dtype), step)
