"""Losses on labels."""

from __future__ import annotations

from typing import Any

from tinygraph import ops
from tinygraph.engine import Tensor
from tinygraph.interop.onnx.nodes import Node, Value, array, importer


def _labels(labels: Value) -> Value:
    return labels if isinstance(labels, Tensor) else array(labels).astype("int64")


@importer("NegativeLogLikelihoodLoss")
def nll_loss(node: Node, x: Value, labels: Value, weight: Value = None) -> Tensor:
    return ops.nll_loss(x, _labels(labels), weight, node["ignore_index"], node["reduction"])


@importer("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(node: Node, x: Value, labels: Value, weight: Value = None) -> Any:
    reduction, ignored, found = node["reduction"], node["ignore_index"], _labels(labels)
    if weight is None:
        loss = ops.softmax_cross_entropy(x, found, reduction, ignored)
    else:
        loss = ops.nll_loss(ops.log_softmax(x, 1), found, weight, ignored, reduction)
    return (loss, ops.log_softmax(x, 1)) if node.wants(1) else loss
