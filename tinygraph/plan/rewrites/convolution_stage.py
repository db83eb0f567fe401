"""conv + ReLU + max-pool as one op, which writes the pooled values only.

    max_pool2d(relu(conv2d(x, w, b)), k)   ->   conv2d_relu_max_pool2d(x, w, b, pool=k)
    relu(max_pool2d(conv2d(x, w, b), k))   ->   the same: ReLU and the maximum commute

for windows of 2x2 or 3x3 that neither overlap nor reach beyond the image.  A batch norm that was
folded into conv2d before stays so: it shifts w and b alone.

In numpy the fused op is made for few input channels, see its notes: other convolutions stay as they
are, so that a plan does not do worse than the graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tinygraph.engine import Op
from tinygraph.ops.elementwise.relu import Relu
from tinygraph.ops.windows.conv2d import Conv2d
from tinygraph.ops.windows.conv2d_relu_max_pool2d import CHANNELS, POOLS, TAPS, Conv2dReluMaxPool2d
from tinygraph.ops.windows.max_pool2d import MaxPool2d
from tinygraph.plan.code import Code, Instruction
from tinygraph.plan.rewrites.activation import Activated
from tinygraph.plan.rewrites.folded_batch_norm import FoldedBatchNorm


def find_convolution_stages(
    code: Code, most_taps: float = CHANNELS * TAPS
) -> Iterator[tuple[Sequence[int], Op, Sequence[int]]]:
    """Every such chain whose filters have few numbers: in numpy, of four channels of 3x3."""
    users = code.only_users()
    for at, made in enumerate(code.instructions):
        if type(made.op) is not Conv2d and not isinstance(made.op, FoldedBatchNorm):
            continue
        middle = users[at]
        if middle is None or _taps(code, made) > most_taps:
            continue
        rest, pool = _pool_and_relu(code, users, middle)
        if pool is not None and (op := _fused(made.op, pool)):
            yield (at, *rest), op, made.inputs


def _taps(code: Code, conv: Instruction) -> int:
    """Numbers of a filter."""
    return math.prod(code.instructions[conv.inputs[1]].spec.shape[1:])


def _pool_and_relu(
    code: Code, users: Sequence[int | None], first: int
) -> tuple[Sequence[int], MaxPool2d | None]:
    """What stands at `first` and after it, and the pooling, if these are ReLU and max-pooling."""
    op, last = code.instructions[first].op, users[first]
    if isinstance(op, Activated):
        alone = isinstance(op.activation, Relu) and isinstance(op.product, MaxPool2d)
        return (first,), op.product if alone else None  # type: ignore[return-value]
    if last is None:
        return (first,), None
    by_type: dict[Any, Any] = {type(x): x for x in (op, code.instructions[last].op)}
    both = by_type.keys() == {Relu, MaxPool2d}
    return (first, last), by_type[MaxPool2d] if both else None


def _fused(conv: Op | None, pool: Any) -> Op | None:
    """The fused op; None where its windows or groups are others."""
    if isinstance(conv, FoldedBatchNorm):
        stage = _fused(conv.product, pool)
        return None if stage is None else replace(conv, product=stage)
    if not isinstance(conv, Conv2d) or conv.groups != 1:
        return None
    size = pool.kernel_size[0]
    apart = pool.kernel_size == pool.stride == (size, size) and size in POOLS
    if not apart or (pool.padding, pool.dilation) != ((0, 0), (1, 1)) or pool.ceil_mode:
        return None
    return Conv2dReluMaxPool2d(conv.stride, conv.padding, conv.dilation, conv.groups, size)
