"""log-softmax and negative log-likelihood as one op.

    nll_loss(log_softmax(x, 1), t)   ->   softmax_cross_entropy(x, t)

The fused backward is p - onehot(t), without the sum over classes that undoes log-softmax.
"""

from __future__ import annotations

from tinygraph.ops.nll_loss import NllLoss
from tinygraph.ops.softmax import LogSoftmax
from tinygraph.ops.softmax_cross_entropy import SoftmaxCrossEntropy
from tinygraph.plan.code import Code


def fuse_cross_entropy(code: Code) -> Code:
    """Every such pair whose log-probabilities nobody else uses."""
    users = code.users()
    for at, made in enumerate(code.instructions):
        if not isinstance(made.op, NllLoss):
            continue
        logs, labels = made.inputs
        before = code.instructions[logs]
        over_classes = type(before.op) is LogSoftmax and before.op.axis % before.spec.ndim == 1
        if over_classes and users[logs] == [at] and logs not in (*code.outputs, code.root):
            op = SoftmaxCrossEntropy(made.op.reduction, made.op.ignore_index)
            return fuse_cross_entropy(code.replaced((logs, at), op, (*before.inputs, labels)))
    return code
