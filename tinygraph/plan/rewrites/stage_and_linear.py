"""A convolutional stage and the linear layer that reads it as one op, where kernels run.

    N images, D filters, P windows of an image, K outputs

    linear(flatten(conv2d_relu_max_pool2d(x, w, b)), v, c)
                            ->   conv2d_relu_max_pool2d_linear(x, w, b, v, c)

    g   = gy @ v                      (N, D * P), never written
    gw, gb = those of the stage for g     gv = gy^T @ pooled     gc = sum of gy over N

The pooled values are the largest array of such a step.  Op by op, backward reads them for gv,
writes g of the same size and reads it again; in one kernel it reads them once.  For the stages that
single_channel_stage.cu knows, few outputs, and images without a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tinygraph.engine import Array, Gradients, Memory, Op, Spec
from tinygraph.ops.products.linear import Linear
from tinygraph.ops.shaping.reshape import Flatten, Reshape
from tinygraph.ops.windows.conv2d_relu_max_pool2d import Conv2dReluMaxPool2d, gradient_parts
from tinygraph.ops.windows.single_channel_stage import sum_parts
from tinygraph.plan.code import Code

MOST_OUTPUTS = 10  # of the linear layer: a thread holds two rows of so many weights, and their sums


@dataclass(frozen=True)
class StageAndLinear(Op):
    """`linear(flatten(stage(x, w, b)), v, c)`, with or without b and c.

    >>> import tinygraph as tg
    >>> x, w, v = tg.ones((1, 1, 4, 4)), tg.ones((2, 1, 3, 3)), tg.ones((3, 2))
    >>> stage = Conv2dReluMaxPool2d((1, 1), (0, 0), (1, 1), 1, 2)
    >>> StageAndLinear(stage, False)(x, w, v).value
    array([[18., 18., 18.]], dtype=float32)
    """

    stage: Conv2dReluMaxPool2d
    has_bias: bool  # the stage

    @property
    def name(self) -> str:  # type: ignore[override]
        """Of both."""
        return f"{self.stage.name}_linear"

    @property
    def _inputs(self) -> int:
        """Of the stage."""
        return 3 if self.has_bias else 2

    def infer(self, *specs: Spec) -> Spec:
        pooled = self.stage.infer(*specs[: self._inputs])
        flat = Spec((pooled.shape[0], math.prod(pooled.shape[1:])), pooled.dtype)
        return Linear().infer(flat, *specs[self._inputs :])

    def forward(self, mem: Memory, *arrays: Array) -> tuple[Array, Any]:
        pooled, of_stage = self.stage.forward(mem, *arrays[: self._inputs])
        y, of_linear = Linear().forward(mem, _flat(pooled), *arrays[self._inputs :])
        return y, (of_stage, of_linear, pooled.shape)

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        of_stage, of_linear, shape = saved
        of_head: Any = (True, *needs[self._inputs :])
        g, *rest = Linear().backward(mem, gy, of_linear, of_head)
        first: Any = needs[: self._inputs]
        return (*self.stage.backward(mem, g.reshape(shape), of_stage, first), *rest)  # type: ignore

    def forward_kernel(self, mem: Memory, *arrays: Any) -> tuple[Array, Any]:
        pooled, of_stage = self.stage.forward_kernel(mem, *arrays[: self._inputs])
        y, (_, v) = Linear().forward_kernel(mem, _flat(pooled), *arrays[self._inputs :])
        return y, (of_stage, pooled, v)

    def backward_kernel(
        self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        (argmax, x, w), pooled, v = saved
        sizes: Any = self.stage.single_channel_stage(x.shape, w.shape)
        per_chunk, chunks = sizes.chunks(x.dtype)
        shapes = [x.shape, w.shape, w.shape[:1], v.shape, v.shape[:1]]
        wanted = [False, needs[1], self.has_bias and needs[2], *needs[self._inputs :], False][:5]
        pairs = [
            gradient_parts(mem, shape, chunks, x.dtype, needed)
            for shape, needed in zip(shapes[1:], wanted[1:], strict=True)
        ]
        arrays = gy, v, x, pooled, argmax, *[parts for _, parts in pairs]
        sizes.linear_backward(len(v), arrays, per_chunk, x.dtype)
        sum_parts(mem, *[(parts, total) for total, parts in pairs])
        gw, gb, gv, gc = [total for total, _ in pairs]
        of_stage = (None, gw, gb) if self.has_bias else (None, gw)
        return (*of_stage, gv, gc)[: len(needs)]


def _flat(pooled: Array) -> Array:
    return pooled.reshape(len(pooled), math.prod(pooled.shape[1:]))


# ---- the rewrite --------------------------------------------------------------------------------


def find_stages_and_linears(code: Code) -> Iterator[tuple[Sequence[int], Op, Sequence[int]]]:
    """Every such chain, on a device that runs kernels."""
    users = code.only_users()
    for at, made in enumerate(code.instructions if code.device.runs_kernels else ()):
        if type(made.op) is not Conv2dReluMaxPool2d or made.needs[0]:
            continue
        flat = users[at]
        last = None if flat is None else users[flat]
        if flat is None or last is None or not _flattens(code, at, flat):
            continue
        linear = code.instructions[last]
        if type(linear.op) is not Linear or linear.inputs[0] != flat or flat in linear.inputs[1:]:
            continue
        x, w = (code.instructions[i].spec.shape for i in made.inputs[:2])
        if linear.spec.shape[-1] <= MOST_OUTPUTS and made.op.single_channel_stage(x, w):
            op = StageAndLinear(made.op, len(made.inputs) == 3)
            yield (at, flat, last), op, (*made.inputs, *linear.inputs[1:])


def _flattens(code: Code, at: int, flat: int) -> bool:
    """Whether the one is (N, D, PH, PW) and the other (N, D * PH * PW)."""
    (n, *rest), made = code.instructions[at].spec.shape, code.instructions[flat]
    return type(made.op) in (Flatten, Reshape) and made.spec.shape == (n, math.prod(rest))
