"""conv + ReLU + max-pool as one op, which writes the pooled values only.

    max_pool2d(relu(conv2d(x, w, b)), k)   ->   conv2d_relu_max_pool2d(x, w, b, pool=k)
    relu(max_pool2d(conv2d(x, w, b), k))   ->   the same: ReLU and the maximum commute

for windows of 2x2 or 3x3 that neither overlap nor reach beyond the image.  A batch norm that was
folded into conv2d before stays so: it shifts w and b alone.

The fused op is made for few input channels, see its notes: other convolutions stay as they are, so
that a plan does not do worse than the graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tinygraph.op import Op
from tinygraph.ops.conv2d import Conv2d
from tinygraph.ops.conv2d_relu_max_pool2d import CHANNELS, POOLS, TAPS, Conv2dReluMaxPool2d
from tinygraph.ops.max_pool2d import MaxPool2d
from tinygraph.ops.relu import Relu
from tinygraph.plan.code import Code, Instruction
from tinygraph.plan.rewrites.folded_batch_norm import FoldedBatchNorm


def find_convolution_stages(code: Code) -> Iterator[tuple[Sequence[int], Op, Sequence[int]]]:
    """Every such chain."""
    users = code.only_users()
    for at, made in enumerate(code.instructions):
        if type(made.op) is not Conv2d and not isinstance(made.op, FoldedBatchNorm):
            continue
        middle = users[at]
        last = None if middle is None else users[middle]
        if middle is None or last is None or not _has_few_taps(code, made):
            continue
        by_type = {type(x): x for x in (code.instructions[i].op for i in (middle, last))}
        if by_type.keys() == {Relu, MaxPool2d} and (op := _fused(made.op, by_type[MaxPool2d])):
            yield (at, middle, last), op, made.inputs


def _has_few_taps(code: Code, conv: Instruction) -> bool:
    """Whether a filter is small enough: four channels of 3x3."""
    return math.prod(code.instructions[conv.inputs[1]].spec.shape[1:]) <= CHANNELS * TAPS


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
