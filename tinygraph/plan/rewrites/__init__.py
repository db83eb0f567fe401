"""Rewrites: small, named changes of a code that keep its results, to rounding.

Each is a file with one function from a code to a code.  They are applied in the order below until
none of them finds anything more.
"""

from __future__ import annotations

from collections.abc import Callable

from tinygraph.plan.code import Code
from tinygraph.plan.rewrites.activation import fuse_activations
from tinygraph.plan.rewrites.convolution_stage import fuse_convolution_stages
from tinygraph.plan.rewrites.cross_entropy import fuse_cross_entropy
from tinygraph.plan.rewrites.folded_batch_norm import fold_batch_norms

REWRITES: dict[str, Callable[[Code], Code]] = {
    "batch norm in eval mode": fold_batch_norms,
    "conv + ReLU + max-pool": fuse_convolution_stages,
    "log-softmax + NLL": fuse_cross_entropy,
    "product + activation": fuse_activations,
}


def rewrite(code: Code) -> Code:
    """All rewrites, again and again while the code gets shorter."""
    before = -1
    while before != len(code.instructions):
        before = len(code.instructions)
        for one in REWRITES.values():
            code = one(code)
    return code
