"""conv + ReLU + max-pool as one op, which writes the pooled values only.

    max_pool2d(relu(conv2d(x, w, b)), k)   ->   conv2d_relu_max_pool2d(x, w, b, pool=k)
    relu(max_pool2d(conv2d(x, w, b), k))   ->   the same: ReLU and the maximum commute

for windows of 2x2 or 3x3 that neither overlap nor reach beyond the image.  A batch norm that was
folded into conv2d before stays so: it shifts w and b alone.

The kernels of the fused op are made for few input channels; see its notes.  Where kernels run,
other convolutions stay as they are, so that a plan does not do worse than the graph.
"""

from __future__ import annotations

import math
from dataclasses import replace

from tinygraph.op import Op
from tinygraph.ops.conv2d import Conv2d
from tinygraph.ops.conv2d_relu_max_pool2d import CHANNELS, POOLS, TAPS, Conv2dReluMaxPool2d
from tinygraph.ops.max_pool2d import MaxPool2d
from tinygraph.ops.relu import Relu
from tinygraph.plan.code import Code, Instruction
from tinygraph.plan.rewrites.folded_batch_norm import FoldedBatchNorm


def fuse_convolution_stages(code: Code) -> Code:
    """Every such chain whose inner values nobody else uses."""
    for chain in _chains(code):
        conv, pool = code.instructions[chain[0]], _pool_of(code, chain)
        op = _fused(conv.op, pool)
        if op is not None and _suits_device(code, conv):
            return fuse_convolution_stages(code.replaced(chain, op, conv.inputs))
    return code


def _suits_device(code: Code, conv: Instruction) -> bool:
    """Whether a filter is small enough for the kernels, where they run: four channels of 3x3."""
    taps = math.prod(code.instructions[conv.inputs[1]].spec.shape[1:])
    return not code.device.runs_kernels or taps <= CHANNELS * TAPS


def _chains(code: Code) -> list[tuple[int, int, int]]:
    users = code.users()
    seen_outside = {*code.outputs, code.root}

    def only_user(at: int) -> int | None:
        return users[at][0] if len(users[at]) == 1 and at not in seen_outside else None

    found = []
    for at, made in enumerate(code.instructions):
        if type(made.op) is not Conv2d and not isinstance(made.op, FoldedBatchNorm):
            continue
        middle = only_user(at)
        last = None if middle is None else only_user(middle)
        if middle is None or last is None:
            continue
        kinds = {type(code.instructions[i].op) for i in (middle, last)}
        if kinds == {Relu, MaxPool2d}:
            found.append((at, middle, last))
    return found


def _pool_of(code: Code, chain: tuple[int, int, int]) -> MaxPool2d:
    return next(
        op for op in (code.instructions[at].op for at in chain[1:]) if isinstance(op, MaxPool2d)
    )


def _fused(conv: Op | None, pool: MaxPool2d) -> Op | None:
    """The fused op; None where its windows or groups are others."""
    if isinstance(conv, FoldedBatchNorm):
        stage = _fused(conv.product, pool)
        return None if stage is None else replace(conv, product=stage)
    if not isinstance(conv, Conv2d) or conv.groups != 1:
        return None
    size = pool.kernel_size[0]
    if (
        pool.kernel_size != (size, size)
        or pool.stride != (size, size)
        or size not in POOLS
        or pool.padding != (0, 0)
        or pool.ceil_mode
    ):
        return None
    return Conv2dReluMaxPool2d(conv.stride, conv.padding, conv.dilation, conv.groups, size)
