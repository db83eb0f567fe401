"""A product, or a batch norm, and what is added to it as one op, which writes over its result.

    batch_norm(x, ...) + z   ->   batch_norm_add(x, ..., z)
    and so for conv2d and linear; z on either side, of the same shape

Where a residual connection ends.  An activation after it becomes part of it too: activation.py.

Source: He, Zhang, Ren, Sun, "Deep residual learning for image recognition", CVPR 2016.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.engine import Array, Gradients, Memory, Needs, Op, Spec
from tinygraph.ops.elementwise.arithmetic import Add
from tinygraph.ops.normalization.batch_norm import BatchNorm
from tinygraph.ops.products.linear import Linear
from tinygraph.ops.windows.conv2d import Conv2d
from tinygraph.plan.code import Code
from tinygraph.plan.rewrites.folded_batch_norm import FoldedBatchNorm

# None of them reads its output again, or minds that `mem.needs` is longer than its inputs.
WITH_SUM = (Linear, Conv2d, BatchNorm, FoldedBatchNorm)


@dataclass(frozen=True)
class Residual(Op):
    """`product(...) + z`; the product is overwritten.

    >>> import tinygraph as tg
    >>> from tinygraph.ops.products.linear import Linear
    >>> Residual(Linear())([1.0, 2.0], [[1.0, 1.0], [0.0, -3.0]], [0.5, 0.5]).value
    array([ 3.5, -5.5], dtype=float32)
    """

    product: Op  # one of WITH_SUM; its inputs come first

    @property
    def name(self) -> str:  # type: ignore[override]
        """Of both: "linear_add"."""
        return f"{self.product.name}_add"

    @property
    def updates(self) -> tuple[int, ...]:
        return self.product.updates

    def infer(self, *specs: Spec) -> Spec:
        return self.product.infer(*specs[:-1])

    def forward(self, mem: Memory, *arrays: Array) -> tuple[Array, Any]:
        y, saved = self.product.forward(mem, *arrays[:-1])
        return np.add(y, arrays[-1], out=y), saved

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        *of_product, of_other = needs
        found: Any = (None,) * len(of_product)
        if any(of_product):
            found = self.product.backward(mem, gy, saved, tuple(of_product))
        return *found, gy if of_other else None

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        found = self.product.batch(specs[:-1], carries[:-1])
        return found if found == "map" and carries[-1] else None


def find_residuals(code: Code) -> Iterator[tuple[Sequence[int], Op, Sequence[int]]]:
    """Every such sum; of two products the one that is made last has the sum written over it."""
    users = code.only_users()
    for at, made in enumerate(code.instructions):
        if not isinstance(made.op, Add):
            continue
        for other, product in (sorted(made.inputs), sorted(made.inputs, reverse=True)):
            before, beside = code.instructions[product], code.instructions[other]
            fits = users[product] == at and product != other and isinstance(before.op, WITH_SUM)
            if fits and before.spec == beside.spec == made.spec:
                yield (product, at), Residual(before.op), (*before.inputs, other)  # type: ignore[arg-type]
                break
