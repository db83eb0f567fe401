"""A product and the activation after it as one op, which writes over its result.

    relu(linear(x, w, b))   ->   linear_relu(x, w, b)
    and so for conv2d, matmul, batch_norm, max_pool2d, and sums of residual.py; tanh, sigmoid

For all functions of one number whose derivative is read off their output y (`Unary.keeps`), so
that the product itself is not needed any more.  Backward is the activation's own, and then that of
the product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tinygraph.engine import Array, Gradients, Memory, Op, Spec
from tinygraph.ops.elementwise.unary import Unary
from tinygraph.ops.products.matmul import Matmul
from tinygraph.ops.windows.max_pool2d import MaxPool2d
from tinygraph.plan.block_program import BlockProgram, Writer
from tinygraph.plan.code import Code
from tinygraph.plan.elementwise_tape import tape_of
from tinygraph.plan.rewrites.residual import WITH_SUM, Residual

# None of them reads its output again.
WRITTEN_OVER = (*WITH_SUM, Residual, Matmul, MaxPool2d)


@dataclass(frozen=True)
class Activated(Op):
    """`activation(product(...))`; the product is overwritten.

    >>> import tinygraph as tg
    >>> from tinygraph.ops.products.linear import Linear
    >>> from tinygraph.ops.elementwise.relu import Relu
    >>> Activated(Linear(), Relu())([1.0, 2.0], [[1.0, 1.0], [0.0, -3.0]]).value
    array([3., 0.], dtype=float32)
    """

    product: Op  # one that saves its inputs alone, not its output
    activation: Op  # one that `_is_activation`

    @property
    def name(self) -> str:  # type: ignore[override]
        """Of both: "linear_relu"."""
        return f"{self.product.name}_{self.activation.name}"

    @property
    def updates(self) -> tuple[int, ...]:
        return self.product.updates

    def infer(self, *specs: Spec) -> Spec:
        return self.activation.infer(self.product.infer(*specs))

    def forward(self, mem: Memory, *arrays: Array) -> tuple[Array, Any]:
        y, saved = self.product.forward(mem, *arrays)
        flat = y.reshape(-1)  # a view, for y is fresh
        _program(self.activation, y.dtype).run(mem, [flat], [flat])
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


@lru_cache(maxsize=64)
def _program(activation: Op, dtype: Any) -> BlockProgram:
    """The activation block by block; it may write over its input, which it reads first."""
    writer, tape = Writer(1), tape_of(activation, (False,), dtype)
    values: list[Any] = [*writer.inputs, None]
    tape.write(writer, values, tape.forward)  # type: ignore[union-attr]
    return writer.compiled([values[tape.value]])  # type: ignore[union-attr]


def _is_activation(op: Op | None, dtype: Any) -> bool:
    return isinstance(op, Unary) and op.keeps == "y" and tape_of(op, (False,), dtype) is not None


# ---- the rewrite --------------------------------------------------------------------------------


def find_activations(code: Code) -> Iterator[tuple[Sequence[int], Op, Sequence[int]]]:
    """Every such pair."""
    users = code.only_users()
    for at, made in enumerate(code.instructions):
        if _is_activation(made.op, made.spec.dtype):
            (product,) = made.inputs
            before = code.instructions[product]
            if users[product] == at and isinstance(before.op, WRITTEN_OVER):
                yield (product, at), Activated(before.op, made.op), before.inputs  # type: ignore[arg-type]
