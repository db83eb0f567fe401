"""A product and the activation after it as one op, which writes over the product.

    relu(linear(x, w, b))   ->   linear_relu(x, w, b)     and so for conv2d, matmul; tanh, sigmoid

The derivative of these activations can be read off their output y, so that the product itself is
not needed any more.  Backward is the upstream gradient times that derivative, in one kept buffer,
and then the backward of the product:

    relu     delta = gy where y != 0, else 0
    tanh     delta = gy * (1 - y^2)
    sigmoid  delta = gy * y * (1 - y)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.conv2d import Conv2d
from tinygraph.ops.linear import Linear
from tinygraph.ops.matmul import Matmul
from tinygraph.ops.relu import Relu
from tinygraph.ops.sigmoid import Sigmoid
from tinygraph.ops.tanh import Tanh
from tinygraph.plan.code import Code
from tinygraph.plan.rewrites.folded_batch_norm import FoldedBatchNorm
from tinygraph.shapes import Array, Spec

PRODUCTS = (Linear, Conv2d, Matmul, FoldedBatchNorm)  # none of them reads its output again
BLOCK = 32768  # elements: 128 KiB of float32, which a core's cache holds between two passes

InPlace = Callable[[Array, Any], None]


@dataclass(frozen=True)
class Activated(Op):
    """`activation(product(...))`; the product is overwritten.

    Attributes
    ----------
    product : Op
        One that saves its inputs alone, not its output.
    activation : Op
        One of `IN_PLACE`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> from tinygraph.ops.linear import Linear
    >>> from tinygraph.ops.relu import Relu
    >>> Activated(Linear(), Relu())([1.0, 2.0], [[1.0, 1.0], [0.0, -3.0]]).value
    array([3., 0.], dtype=float32)
    """

    product: Op
    activation: Op

    @property
    def name(self) -> str:  # type: ignore[override]
        """Of both: "linear_relu"."""
        return f"{self.product.name}_{self.activation.name}"

    def infer(self, *specs: Spec) -> Spec:
        return self.activation.infer(self.product.infer(*specs))

    def forward(self, mem: Memory, *arrays: Array) -> tuple[Array, Any]:
        y, saved = self.product.forward(mem, *arrays)
        apply = IN_PLACE[type(self.activation)]
        if y.size <= BLOCK:
            apply(y, 0)
            return y, (saved, y)
        zeros, flat = mem.zeros((BLOCK,), y.dtype), y.reshape(-1)  # a view, for y is fresh
        for start in range(0, flat.size, BLOCK):
            block = flat[start : start + BLOCK]
            # An array of zeros: with a number np.maximum takes twice as long.
            apply(block, zeros[: block.size])
        return y, (saved, y)

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        of_product, y = saved
        (delta,) = self.activation.backward(mem, gy, y, (True,))
        return self.product.backward(mem, delta, of_product, needs)  # type: ignore[arg-type]

    def forward_kernel(self, mem: Memory, *arrays: Any) -> tuple[Array, Any]:
        product, saved = self.product.forward_kernel(mem, *arrays)
        y, _ = self.activation.forward_kernel(mem, product)
        return y, (saved, y)

    def backward_kernel(
        self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        of_product, y = saved
        (delta,) = self.activation.backward_kernel(mem, gy, y, (True,))
        return self.product.backward_kernel(mem, delta, of_product, needs)  # type: ignore[arg-type]

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return self.product.batch(specs, carries)


# ---- activations that write over their input; `zero` is a number or an array -------------------


def _relu(y: Array, zero: Any) -> None:
    np.maximum(y, zero, out=y)
    y += 0  # -0 becomes 0


def _tanh(y: Array, zero: Any) -> None:
    np.tanh(y, out=y)


def _sigmoid(y: Array, zero: Any) -> None:
    np.negative(y, out=y)
    np.exp(y, out=y)
    y += 1
    np.reciprocal(y, out=y)


IN_PLACE: dict[type[Op], InPlace] = {Relu: _relu, Tanh: _tanh, Sigmoid: _sigmoid}


# ---- the rewrite --------------------------------------------------------------------------------


def fuse_activations(code: Code) -> Code:
    """Every such pair whose product nobody else uses."""
    users = code.users()
    for at, made in enumerate(code.instructions):
        if type(made.op) not in IN_PLACE:
            continue
        (product,) = made.inputs
        before = code.instructions[product]
        alone = users[product] == [at] and product not in (*code.outputs, code.root)
        if alone and isinstance(before.op, PRODUCTS):
            op = Activated(before.op, made.op)  # type: ignore[arg-type]
            return fuse_activations(code.replaced((product, at), op, before.inputs))
    return code
