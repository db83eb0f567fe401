"""Rewrites: small, named changes of a code that keep its results, to rounding.

Each is a file with one function, which finds chains of instructions that one op can replace.  They
are applied in the order below until none of them finds anything more.  On a device that runs
kernels a chain is left as it is where that op has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tinygraph.engine import Op
from tinygraph.plan.code import Code
from tinygraph.plan.rewrites.activation import find_activations
from tinygraph.plan.rewrites.convolution_stage import find_convolution_stages
from tinygraph.plan.rewrites.cross_entropy import find_cross_entropies
from tinygraph.plan.rewrites.elementwise_chains import find_elementwise_chains
from tinygraph.plan.rewrites.folded_batch_norm import find_folded_batch_norms
from tinygraph.plan.rewrites.pooled_relu import find_pooled_relus
from tinygraph.plan.rewrites.residual import find_residuals
from tinygraph.plan.rewrites.stage_and_linear import find_stages_and_linears

# A chain, whose inner values are used nowhere else; the op in its place, and what that takes.
Found = tuple[Sequence[int], Op, Sequence[int]]

REWRITES: dict[str, Callable[[Code], Iterator[Found]]] = {
    "batch norm in eval mode": find_folded_batch_norms,
    "conv + ReLU + max-pool": find_convolution_stages,
    "conv stage + linear": find_stages_and_linears,
    "ReLU + max-pool": find_pooled_relus,
    "log-softmax + NLL": find_cross_entropies,
    "product + residual": find_residuals,
    "product + activation": find_activations,
    "elementwise chain": find_elementwise_chains,
}


def rewrite(code: Code) -> Code:
    """All rewrites, again and again while the code gets shorter."""
    before = -1
    while before != len(code.instructions):
        before = len(code.instructions)
        for chains in REWRITES.values():
            code = rewritten(code, chains)
    return code


def rewritten(code: Code, chains: Callable[[Code], Iterator[Found]]) -> Code:
    """One rewrite, wherever it finds a chain."""
    while True:
        found = next((x for x in chains(code) if _runs(x[1], code)), None)
        if found is None:
            return code
        code = code.replaced(*found)


def _runs(op: Op, code: Code) -> bool:
    """Whether an op has a kernel, forward and backward, where it needs one."""
    return not code.device.runs_kernels or (
        type(op).forward_kernel is not Op.forward_kernel
        and type(op).backward_kernel is not Op.backward_kernel
    )
