"""Convolution, ReLU, max-pooling and a linear layer over all pooled values, as one op.

    N C H W    batch, channels, height, width        D       filters
    PH PW      pooled height and width               O       outputs        F = D * PH * PW

    p          = conv2d_relu_max_pool2d(x, w, b)                  (N, D, PH, PW), as rows (N, F)
    y          = p @ head^T + head_b                              (N, O)
    ghead      = gy^T @ p            ghead_b = sum of gy over N
    gp         = gy @ head           gx, gw, gb = the gradients of conv2d_relu_max_pool2d for gp

On a GPU such a small network is bound by memory, and p is nearly all that it moves.  The kernels
write p once, in forward, and read it once, in backward, which gives all gradients of weights.  gp
is as large as p and is never written: each element is O multiplications away from gy.

Source: LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition",
Proceedings of the IEEE, 1998, for networks of this form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.cuda import Out, blocks, op_kernel
from tinygraph.errors import ShapeError
from tinygraph.memory import Memory
from tinygraph.op import Gradients
from tinygraph.ops.conv2d_relu_max_pool2d import (
    BLOCK_FILTERS,
    MOST_BLOCKS,
    TAPS,
    Conv2dReluMaxPool2d,
    add_parts,
    convolution,
    gradient_parts,
)
from tinygraph.ops.shared.gemm import column_sums
from tinygraph.ops.shared.launch import THREADS, for_each
from tinygraph.shapes import Array, Pair, Spec, require_float, require_ndim
from tinygraph.tensor import Operand, Tensor

STEM = "conv2d_relu_max_pool2d_linear"

# The same numbers stand in conv2d_relu_max_pool2d_linear.cu.
OUTS = 10
IMAGES = 4


@dataclass(frozen=True)
class Conv2dReluMaxPool2dLinear(Conv2dReluMaxPool2d):
    def infer(self, x: Spec, w: Spec, b: Spec, head: Spec, head_b: Spec) -> Spec:  # type: ignore[override]
        require_float(self.name, x=x, w=w, b=b, head=head, head_b=head_b)
        pooled = super().infer(x, w, b).shape
        require_ndim(self.name, "head", head, 2, "(O, D * PH * PW)")
        features = pooled[1] * pooled[2] * pooled[3]
        if head.shape[1] != features:
            raise ShapeError(
                self.name,
                "head",
                f"{features} features, one for each of the pooled {pooled[1:]}",
                f"head.shape {head.shape}",
                "weights are (out, in)",
            )
        if head_b.shape != head.shape[:1]:
            raise ShapeError(
                self.name,
                "head_b",
                f"shape ({head.shape[0]},)",
                head_b.shape,
                "one bias for each row of head",
            )
        return Spec((x.shape[0], head.shape[0]), x.dtype)

    def forward(self, mem: Memory, *arrays: Array) -> tuple[Array, Any]:  # type: ignore[override]
        x, w, b, head, head_b = arrays
        pooled, saved = super().forward(mem, x, w, b)
        rows = pooled.reshape(len(x), head.shape[1])  # (N, F)
        y = np.matmul(rows, head.T, out=mem.empty((len(x), len(head)), x.dtype))
        y += head_b
        return y, (saved, rows, pooled.shape, head) if any(mem.needs) else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        inner, rows, shape, head = saved
        gx = gw = gb = ghead = ghead_b = None
        if any(needs[:3]):
            gp = np.matmul(gy, head, out=mem.empty(rows.shape, rows.dtype))
            gx, gw, gb = super().backward(mem, gp.reshape(shape), inner, needs[:3])
        if needs[3]:
            ghead = np.matmul(gy.T, rows, out=mem.empty(head.shape, head.dtype))
        if needs[4]:
            ghead_b = np.sum(gy, axis=0, out=mem.empty((len(head),), gy.dtype))
        return gx, gw, gb, ghead, ghead_b

    def forward_kernel(  # type: ignore[override]
        self, mem: Memory, *arrays: Array
    ) -> tuple[Array, Any]:
        x, w, b, head, head_b = arrays
        keep = any(mem.needs)
        pooled = mem.empty(self._pooled(x.shape, w.shape), x.dtype)
        argmax = mem.empty(pooled.shape if keep else (0,), np.uint8)
        chunks, o = blocks(len(w), BLOCK_FILTERS), len(head)
        partial = mem.empty((chunks, len(x), o), x.dtype)
        if pooled.size:
            grid = chunks, min(blocks(len(x), IMAGES), MOST_BLOCKS)
            kernel = self._kernel(STEM, "forward", x.dtype)
            kernel(
                grid,
                THREADS,
                x,
                w,
                b,
                head,
                Out(pooled),
                argmax,
                Out(partial),
                *self._geometry(x.shape, w.shape),
                o,
            )
        y = mem.empty((len(x), o), x.dtype)
        sums = op_kernel(STEM, "sum_of_chunks", x.dtype, POOL=2)
        for_each(sums, y.size, partial, head_b, Out(y), y.size, o, chunks)
        return y, (pooled, argmax, x, w, head) if keep else None

    def backward_kernel(
        self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        pooled, argmax, x, w, head = saved
        geometry, o = self._geometry(x.shape, w.shape), len(head)
        gx = gw = gb = ghead = ghead_b = None
        if needs[0]:
            gx = mem.empty(x.shape, x.dtype)
            kernel = self._kernel(STEM, "input_gradient", x.dtype)
            self._launch_input_gradient(kernel, gx, gy, head, argmax, w, gx, *geometry, o)
        if any(needs[1:4]):
            turns = max(
                blocks(w[0].size, TAPS) if needs[1] else 1, blocks(o, OUTS) if needs[3] else 1, 1
            )
            per_chunk, chunks = self._chunks(len(x), len(w) * turns, math.prod(pooled.shape[2:]))
            gw, gw_parts = gradient_parts(mem, w.shape, chunks, x.dtype, needs[1])
            gb, gb_parts = gradient_parts(mem, w.shape[:1], chunks, x.dtype, needs[2])
            ghead, ghead_parts = gradient_parts(mem, head.shape, chunks, x.dtype, needs[3])
            kernel = self._kernel(STEM, "backward", x.dtype)
            kernel(
                (len(w), chunks, turns),
                THREADS,
                gy,
                head,
                x,
                pooled,
                argmax,
                gw_parts,
                gb_parts,
                ghead_parts,
                *geometry,
                o,
                per_chunk,
            )
            for parts, total in ((gw_parts, gw), (gb_parts, gb), (ghead_parts, ghead)):
                add_parts(mem, parts, total)
        if needs[4]:
            ghead_b = mem.empty((o,), gy.dtype)
            column_sums(mem, gy, ghead_b)
        return gx, gw, gb, ghead, ghead_b


def conv2d_relu_max_pool2d_linear(
    x: Operand,
    w: Operand,
    b: Operand,
    head: Operand,
    head_b: Operand,
    stride: int | Pair = 1,
    padding: int | Pair | str = 0,
    dilation: int | Pair = 1,
    *,
    pool: int = 2,
) -> Tensor:
    """A small network in one: convolution, ReLU, max-pooling, flattened, and a linear layer.

    Equal to `linear(flatten(max_pool2d(relu(conv2d(x, w, b)), pool), 1), head, head_b)`.

    Parameters
    ----------
    x : Tensor (N, C, H, W)
        Images; float32 or float64.
    w : Tensor (D, C, KH, KW)
        Filters, of the dtype of `x`; at least one.
    b : Tensor (D,)
        Bias of the convolution.
    head : Tensor (O, D * PH * PW)
        Weights of the linear layer, out x in.
    head_b : Tensor (O,)
        Bias of the linear layer.
    stride, padding, dilation
        Of the convolution, as for `conv2d`; there are no groups.
    pool : 2 or 3
        Size and stride of the pooling windows.  Rows and columns that fill no window are left out.

    Returns
    -------
    Tensor (N, O)

    Raises
    ------
    ShapeError
        The shapes do not fit together, or an image is too small for one window.
    DtypeError
        The inputs are not all float32 or all float64.
    ArgumentError
        Another `pool`; a stride, padding or dilation that `conv2d` refuses.

    Notes
    -----
    Made for few input channels and few outputs: with more than ten outputs, or more than nine
    numbers in a filter, backward reads the pooled values several times.

    References
    ----------
    LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition",
    Proceedings of the IEEE, 1998.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.arange(-8.0, 8.0).reshape(1, 1, 4, 4)
    >>> ones = tg.ones((1, 1, 1, 1))
    >>> tg.conv2d_relu_max_pool2d_linear(x, ones, [0.0], tg.ones((1, 4)), [0.5]).value
    array([[12.5]], dtype=float32)
    """
    settings = convolution(STEM, stride, padding, dilation, pool)
    return Conv2dReluMaxPool2dLinear(*settings, pool=pool)(x, w, b, head, head_b)
