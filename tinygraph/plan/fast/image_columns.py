"""im2col and col2im as ops of their own, compiled: image by image, with the loops of columns.py.

Source: ops/im2col.py has the definition, and the same in numpy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.im2col import Col2im, Im2col, Windows2d
from tinygraph.plan.fast import columns
from tinygraph.plan.fast.body import CompiledBody
from tinygraph.plan.fast.jit import plain
from tinygraph.shapes import Array, Shape, Spec


def _steps(at: Windows2d) -> tuple[int, ...]:
    rows, across = at
    return rows.stride, across.stride, rows.dilation, across.dilation


def _rooms(mem: Memory, channels: int, at: Windows2d, dtype: Any) -> tuple[Array, Shape]:
    """Room for what the windows of one image see, (1, C, PR, PC), and the shape of its columns."""
    seen = [(axis.out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1 for axis in at]
    cols = channels, at[0].kernel, at[1].kernel, 1, at[0].out, at[1].out
    return mem.empty((1, channels, *seen), dtype), cols


def unfold_images(mem: Memory, x: Array, at: Windows2d) -> Array:
    """cols (N, C * KH * KW, OH * OW) of x (N, C, H, W)."""
    x, run = plain(x), columns.kernels(x.dtype)
    seen, shape = _rooms(mem, x.shape[1], at, x.dtype)
    taps, positions = int(np.prod(shape[:3])), shape[4] * shape[5]
    cols = mem.empty((len(x), taps, positions), x.dtype)
    for n in range(len(x)):
        run.pad(x[n : n + 1], at[0].before, at[1].before, seen)
        run.unfold(seen, *_steps(at), cols[n].reshape(shape))
    return cols


def fold_images(mem: Memory, cols: Array, size: Shape, at: Windows2d) -> Array:
    """images (N, C, H, W), the sums of cols (N, C * KH * KW, OH * OW) that cover each pixel."""
    cols, run = plain(cols), columns.kernels(cols.dtype)
    images = mem.zeros(size, cols.dtype)
    seen, shape = _rooms(mem, size[1], at, cols.dtype)
    for n in range(len(cols)):
        run.fold(cols[n].reshape(shape), *_steps(at), seen)
        run.crop(seen, at[0].before, at[1].before, images[n : n + 1])
    return images


class CompiledIm2col(CompiledBody, Im2col):
    """`Im2col` with compiled bodies."""

    name = Im2col.name

    def prepare(self, dtype: Any) -> None:
        columns.kernels(dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return unfold_images(mem, x, self._windows(x.shape)), x.shape

    def backward(self, mem: Memory, gy: Array, shape: Shape, needs: tuple[bool, ...]) -> Gradients:
        return (fold_images(mem, gy, shape, self._windows(shape)),)


class CompiledCol2im(CompiledBody, Col2im):
    """`Col2im` with compiled bodies."""

    name = Col2im.name

    def prepare(self, dtype: Any) -> None:
        columns.kernels(dtype)

    def forward(self, mem: Memory, cols: Array) -> tuple[Array, Any]:
        size = self.infer(Spec(cols.shape, cols.dtype)).shape
        return fold_images(mem, cols, size, self._windows()), cols.shape

    def backward(self, mem: Memory, gy: Array, shape: Shape, needs: tuple[bool, ...]) -> Gradients:
        return (unfold_images(mem, gy, self._windows()),)


def image_columns(op: Op, specs: tuple[Spec, ...]) -> CompiledBody | None:
    """The op with compiled bodies; None for empty images."""
    if 0 in specs[0].shape:
        return None
    if type(op) is Im2col:
        return CompiledIm2col(op.kernel_size, op.stride, op.padding, op.dilation)
    if type(op) is Col2im:
        return CompiledCol2im(op.output_size, op.kernel_size, op.stride, op.padding, op.dilation)
    return None
