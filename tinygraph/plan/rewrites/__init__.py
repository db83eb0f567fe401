"""Rewrites: small, named changes of a code that keep its results, to rounding.

Each is a file with one function from a code to a code.  They are applied in the order below until
none of them finds anything more.  On a device that runs kernels a rewrite is left out where it
makes an op that has none.
"""

from __future__ import annotations

from collections.abc import Callable

from tinygraph.op import Op
from tinygraph.plan.code import Code
from tinygraph.plan.rewrites.activation import fuse_activations
from tinygraph.plan.rewrites.convolution_stage import fuse_convolution_stages
from tinygraph.plan.rewrites.cross_entropy import fuse_cross_entropy
from tinygraph.plan.rewrites.elementwise_chains import fuse_elementwise_chains
from tinygraph.plan.rewrites.folded_batch_norm import fold_batch_norms

REWRITES: dict[str, Callable[[Code], Code]] = {
    "batch norm in eval mode": fold_batch_norms,
    "conv + ReLU + max-pool": fuse_convolution_stages,
    "log-softmax + NLL": fuse_cross_entropy,
    "product + activation": fuse_activations,
    "elementwise chain": fuse_elementwise_chains,
}


def rewrite(code: Code) -> Code:
    """All rewrites, again and again while the code gets shorter."""
    before = -1
    while before != len(code.instructions):
        before = len(code.instructions)
        for one in REWRITES.values():
            changed = one(code)
            if not code.device.runs_kernels or _has_kernels(changed, code):
                code = changed
    return code


def _has_kernels(changed: Code, before: Code) -> bool:
    """Whether every op that is new has a kernel, forward and backward."""
    there = {id(made.op) for made in before.instructions}
    new = [made.op for made in changed.instructions if made.op and id(made.op) not in there]
    return all(
        type(op).forward_kernel is not Op.forward_kernel
        and type(op).backward_kernel is not Op.backward_kernel
        for op in new
    )
