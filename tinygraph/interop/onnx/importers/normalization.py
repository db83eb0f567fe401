"""Normalisations and dropout.

In evaluation mode a network computes what its file says.  In training mode BatchNormalization
takes the statistics of the batch and changes the running ones, and Dropout drops.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygraph import ops
from tinygraph.engine import Tensor
from tinygraph.interop.onnx.nodes import (
    Node,
    Value,
    array,
    axes_of,
    axis_of,
    cast,
    importer,
    tensor,
)


@importer("BatchNormalization", trains=True)
def batch_normalization(
    node: Node, x: Value, scale: Value, b: Value, mean: Value, var: Value, training: bool = False
) -> Any:
    """`momentum` weights the old value; in tinygraph as in PyTorch the new one."""
    eps, momentum = node["epsilon"], node["momentum"]
    if node["spatial"] == 0:
        raise node.refuse("spatial", "1, statistics of channels", 0)
    dtype = x.dtype
    scale, b, mean, var = (v if v.dtype == dtype else cast(v, dtype) for v in (scale, b, mean, var))
    if training:
        if not all(map(_is_constant, (mean, var))):
            expected = "statistics that are initialisers of the file: training rewrites them"
            raise node.refuse("input_mean", expected, "what the file computes", "network.eval()")
        y = ops.batch_norm(x, scale, b, mean, var, True, 1 - momentum, eps)
        return y, mean, var
    if not _by_batch(node):
        if not all(map(_is_constant, (mean, var))):  # computed by the file, or a parameter as well
            return _normalized(x, scale, b, mean, var, eps)
        return ops.batch_norm(x, scale, b, mean, var, False, 1 - momentum, eps)
    others = (0, *range(2, x.ndim))
    of_batch = ops.mean(x, others), ops.var(x, others, False)
    y = _normalized(x, scale, b, *of_batch, eps)
    running = [
        ops.add(ops.mul(old, momentum), ops.mul(new, 1 - momentum))
        for old, new in zip((mean, var), of_batch, strict=True)
    ]
    return y, *running, *of_batch  # the last two up to opset 13


def _is_constant(value: Value) -> bool:
    return not isinstance(value, Tensor) or (value.is_leaf and not value.requires_grad)


def _normalized(x: Value, scale: Value, b: Value, mean: Value, var: Value, eps: float) -> Any:
    """(x - mean) scale / sqrt(var + eps) + b, channel by channel."""
    shape = (-1, *[1] * (x.ndim - 2))
    centred = ops.sub(x, ops.reshape(mean, shape))
    slope = ops.mul(scale, ops.rsqrt(ops.add(var, eps)))
    return ops.add(ops.mul(centred, ops.reshape(slope, shape)), ops.reshape(b, shape))


def _by_batch(node: Node) -> bool:
    """Whether the file itself asks for the statistics of the batch."""
    if node.version >= 14:
        return bool(node["training_mode"])
    return node["is_test"] == 0 if node.version < 7 else node.wants(1)


@importer("InstanceNormalization")
def instance_normalization(node: Node, x: Value, scale: Value, b: Value) -> Tensor:
    return ops.instance_norm(x, scale, b, node["epsilon"])


@importer("GroupNormalization")
def group_normalization(node: Node, x: Value, scale: Value, b: Value) -> Tensor:
    """Up to opset 20 the scales are those of groups, then those of channels."""
    groups, channels = node["num_groups"], x.shape[1]
    if scale.shape == (groups,) and groups != channels:
        repeats = channels // groups
        scale, b = (
            ops.reshape(ops.expand(ops.unsqueeze(v, 1), (groups, repeats)), (-1,))
            for v in (scale, b)
        )
    return ops.group_norm(x, groups, scale, b, node["epsilon"])


@importer("LayerNormalization")
def layer_normalization(node: Node, x: Value, scale: Value, b: Value = None) -> Any:
    axis = axis_of(node["axis"], x.ndim)
    shape = x.shape[axis:]
    if scale.shape == shape and (b is None or b.shape == shape):
        y = ops.layer_norm(x, shape, scale, b, node["epsilon"])
    else:
        y = ops.mul(ops.layer_norm(x, shape, None, None, node["epsilon"]), scale)
        y = y if b is None else ops.add(y, b)
    if not (node.wants(1) or node.wants(2)):
        return y
    over = tuple(range(axis, x.ndim))
    var = ops.var(x, over, False, True)
    return y, ops.mean(x, over, True), ops.rsqrt(ops.add(var, node["epsilon"]))


@importer("RMSNormalization")
def rms_normalization(node: Node, x: Value, scale: Value) -> Tensor:
    shape = x.shape[axis_of(node["axis"], x.ndim) :]
    if scale.shape == shape:
        return ops.rms_norm(x, shape, scale, node["epsilon"])
    return ops.mul(ops.rms_norm(x, shape, None, node["epsilon"]), scale)


@importer("LpNormalization")
def lp_normalization(node: Node, x: Value) -> Tensor:
    """x / its norm along an axis; 0 where the norm is."""
    axis = axis_of(-1 if node["axis"] is None else node["axis"], x.ndim)
    norm = ops.norm(x, float(node["p"]), axis, True)
    return ops.div(x, ops.where(ops.equal(norm, 0.0), 1.0, norm))


@importer("MeanVarianceNormalization")
def mean_variance_normalization(node: Node, x: Value) -> Tensor:
    axes = tuple(axes_of(node["axes"] or (0, 2, 3), x.ndim))
    mean = ops.mean(x, axes, True)
    deviation = ops.sqrt(ops.sub(ops.mean(ops.square(x), axes, True), ops.square(mean)))
    return ops.div(ops.sub(x, mean), ops.add(deviation, 1e-9))


@importer("Dropout", trains=True, raw=True)
def dropout(
    node: Node, x: Value, ratio: Value = None, asked: Value = None, training: bool = False
) -> Any:
    """In evaluation mode nothing is dropped; a file that asks for it there is refused."""
    share = float(array(ratio).reshape(())) if ratio is not None else node["ratio"]
    share = 0.5 if share is None else share
    if not 0 <= share <= 1 or not math.isfinite(share):
        raise node.refuse("ratio", "a number from 0 to 1", share)
    inside = bool(array(asked).reshape(())) if asked is not None else False
    if node.version < 7:
        inside = not node["is_test"]
    if training and share:
        if node.wants(1):
            mask = ops.dropout(tensor(np.ones(x.shape, np.float32)), share)
            kept = array(mask) != 0
            return ops.mul(x, array(mask).astype(x.dtype)), kept
        return ops.dropout(tensor(x), share)
    if inside and share:
        expected, got = "False in evaluation mode", "True: a result that is drawn"
        raise node.refuse("training_mode", expected, got, "model.train(), or export in eval mode")
    return x, np.ones(x.shape, bool if node.version >= 10 else x.dtype)
