"""Batch norm with running statistics, folded into the convolution or linear layer before it.

    s  = weight / sqrt(running_var + eps)                      one number for each output channel
    batch_norm(conv2d(x, w, b))  =  conv2d(x, w * s, (b - running_mean) * s + bias)

Only where nobody differentiates it.  w and b are folded at each run, for they may have changed
since the last one; they are small beside the images.

Source: Jacob et al., "Quantization and training of neural networks for efficient integer-arithmetic
-only inference", CVPR 2018, section 3.2, equation 14.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.engine import Array, Memory, Op, Spec
from tinygraph.ops.normalization.batch_norm import BatchNorm
from tinygraph.ops.normalization.normalization import inverse_deviation
from tinygraph.ops.products.linear import Linear
from tinygraph.ops.windows.conv2d import ALGORITHMS
from tinygraph.plan.code import Code


@dataclass(frozen=True)
class FoldedBatchNorm(Op):
    """`norm(product(x, w, b), weight, bias, running_mean, running_var)`; not differentiable.

    >>> import tinygraph as tg
    >>> from tinygraph.ops.normalization.batch_norm import BatchNorm
    >>> from tinygraph.ops.products.linear import Linear
    >>> norm = BatchNorm(False, 0.1, 0.0, has_weight=False, has_bias=False, has_running=True)
    >>> FoldedBatchNorm(Linear(), norm, has_bias=False)([[3.0]], [[2.0]], [1.0], [4.0]).value
    array([[2.5]], dtype=float32)
    """

    product: Op  # conv2d, linear, or one that only picks and clips what they make
    norm: BatchNorm  # with running statistics
    has_bias: bool  # whether the product has b

    @property
    def name(self) -> str:  # type: ignore[override]
        """Of both: "conv2d_batch_norm"."""
        return f"{self.product.name}_{self.norm.name}"

    @property
    def _inputs(self) -> int:
        """How many of the inputs are the product's."""
        return 2 + self.has_bias

    def infer(self, *specs: Spec) -> Spec:
        return self.norm.infer(self.product.infer(*specs[: self._inputs]), *specs[self._inputs :])

    def forward(self, mem: Memory, *arrays: Array) -> tuple[Array, Any]:
        x, w, *b = arrays[: self._inputs]
        *affine, mean, variance = arrays[self._inputs :]
        scale = inverse_deviation(mem, variance, self.norm.eps)  # (O,)
        if self.norm.has_weight:
            scale *= affine[0]
        shift = mem.empty(scale.shape, scale.dtype)
        np.subtract(b[0] if b else 0, mean, out=shift)
        shift *= scale
        if self.norm.has_bias:
            shift += affine[-1]
        folded = mem.empty(w.shape, w.dtype)
        np.multiply(w, scale.reshape(-1, *(1,) * (w.ndim - 1)), out=folded)
        y, _ = self.product.forward(mem, x, folded, shift)
        return y, None

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        if any(carries[self._inputs :]):
            return None
        return self.product.batch(specs[: self._inputs], carries[: self._inputs])


def find_folded_batch_norms(code: Code) -> Iterator[tuple[Sequence[int], Op, Sequence[int]]]:
    """Every batch norm in eval mode, after its product, that nobody differentiates."""
    users, wanted = code.only_users(), code.differentiated()
    for at, made in enumerate(code.instructions):
        norm = made.op
        if not isinstance(norm, BatchNorm) or norm.training or wanted[at]:
            continue
        first, *rest = made.inputs
        before = code.instructions[first]
        if users[first] == at and first not in rest and _can_fold(before.op, before.spec):
            op = FoldedBatchNorm(before.op, norm, len(before.inputs) == 3)  # type: ignore[arg-type]
            yield (first, at), op, (*before.inputs, *rest)


def _can_fold(op: Op | None, spec: Spec) -> bool:
    """Whether the rows of w are the channels, which lie on axis 1."""
    return type(op) in ALGORITHMS.values() or (type(op) is Linear and spec.ndim == 2)
