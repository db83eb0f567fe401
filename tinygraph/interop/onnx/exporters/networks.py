"""Exporters of normalization and attention."""

from __future__ import annotations

import math

import numpy as np

from tinygraph.engine import Tensor
from tinygraph.interop.onnx.table import EVAL, exporter, refused
from tinygraph.interop.onnx.writer import Writer
from tinygraph.ops.normalization.batch_norm import BatchNorm
from tinygraph.ops.normalization.layer_norm import LayerNorm
from tinygraph.ops.products.attention import Attention


@exporter(BatchNorm)
def batch_norm(w: Writer, node: Tensor, x: str, *rest: str) -> str:
    """With the running statistics; a weight or bias that is not there is 1 or 0."""
    op, channels = node.op, node.shape[1]
    if op.training:
        raise refused(op, "it uses the statistics of the batch, as in training", EVAL)
    named = dict(zip(op.names, rest, strict=True))
    weight = named.get("weight") or w.constant(np.ones(channels), node.dtype)
    bias = named.get("bias") or w.constant(np.zeros(channels), node.dtype)
    statistics = named["running_mean"], named["running_var"]
    return w.node("BatchNormalization", x, weight, bias, *statistics, epsilon=op.eps)


@exporter(LayerNorm)
def layer_norm(w: Writer, node: Tensor, x: str, *rest: str) -> str:
    """ONNX computes the statistics in float32 whatever x is: of float64 they are written out."""
    op = node.op
    axes, named = op._features(node.ndim), dict(zip(op.names, rest, strict=True))
    if node.dtype == np.float32:
        ones = "" if op.has_weight else w.constant(np.ones(op.normalized_shape), node.dtype)
        given = [named.get("weight", ones), *([named["bias"]] if op.has_bias else [])]
        return w.node("LayerNormalization", x, *given, axis=-len(axes), epsilon=op.eps)
    over = w.ints(*axes)
    rest_of_x = w.node("Sub", x, w.node("ReduceMean", x, over))
    variance = w.node("ReduceMean", w.node("Mul", rest_of_x, rest_of_x), over)
    deviation = w.node("Sqrt", w.node("Add", variance, w.constant(op.eps, node.dtype)))
    y = w.node("Div", rest_of_x, deviation)
    y = w.node("Mul", y, named["weight"]) if op.has_weight else y
    return w.node("Add", y, named["bias"]) if op.has_bias else y


@exporter(Attention)
def attention(w: Writer, node: Tensor, q: str, k: str, v: str, mask: str = "") -> str:
    """Two products around a softmax; a row without any key gives 0, not NaN."""
    op = node.op
    if op.share:
        raise refused(op, f"it drops a share of {op.share} of its weights, as in training", EVAL)
    (queries, keys), ndim = (node.inputs[0].shape[-2], node.inputs[1].shape[-2]), node.ndim
    turned = w.node("Transpose", k, perm=[*range(ndim - 2), ndim - 1, ndim - 2])
    s = w.node("Mul", w.node("MatMul", q, turned), w.constant(op.scale, node.dtype))
    if mask:
        s = w.node("Add", s, mask)
    if op.causal:
        later = np.where(np.tri(queries, keys, dtype=bool), 0, -math.inf)
        s = w.node("Add", s, w.constant(later, node.dtype))
    p = w.node("Softmax", s, axis=-1)
    if mask:
        largest = w.node("ReduceMax", s, w.ints(-1), keepdims=1)
        nothing = w.node("Equal", largest, w.constant(-math.inf, node.dtype))
        p = w.node("Where", nothing, w.constant(0, node.dtype), p)
    return w.node("MatMul", p, v)
