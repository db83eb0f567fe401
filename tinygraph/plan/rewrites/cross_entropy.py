"""log-softmax and negative log-likelihood as one op.

    nll_loss(log_softmax(x, 1), t)   ->   softmax_cross_entropy(x, t)

The fused backward is p - onehot(t), without the sum over classes that undoes log-softmax.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tinygraph.engine import Op
from tinygraph.ops.losses.nll_loss import NllLoss
from tinygraph.ops.losses.softmax_cross_entropy import SoftmaxCrossEntropy
from tinygraph.ops.reductions.softmax import LogSoftmax
from tinygraph.plan.code import Code


def find_cross_entropies(code: Code) -> Iterator[tuple[Sequence[int], Op, Sequence[int]]]:
    """Every such pair."""
    users = code.only_users()
    for at, made in enumerate(code.instructions):
        if isinstance(made.op, NllLoss):
            logs, labels = made.inputs
            before = code.instructions[logs]
            over_classes = type(before.op) is LogSoftmax and before.op.axis % before.spec.ndim == 1
            if over_classes and users[logs] == at:
                op = SoftmaxCrossEntropy(made.op.reduction, made.op.ignore_index)
                yield (logs, at), op, (*before.inputs, labels)
