"""The backward of max_pool2d, compiled: one pass over the windows.

    gx[n, c, argmax[n, c, u, v]] += gy[n, c, u, v]

numpy visits all images once for each place in a window.  Forward stays numpy, whose passes over
whole arrays are as quick as one loop with a comparison for each pixel.

Source: ops/max_pool2d.py has the definition, and the same in numpy.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.max_pool2d import MaxPool2d
from tinygraph.plan.fast.body import CompiledBody
from tinygraph.plan.fast.jit import Argument, Kernel, compiled, plain
from tinygraph.shapes import Array, Spec


def backward(gy: Array, argmax: Array, gx: Array) -> None:
    """gx (M, H * W): each gy (M, T) goes to the pixel that has won.

    >>> gx = np.empty((1, 3))
    >>> backward(np.array([[1.0, 5.0]]), np.array([[2, 2]]), gx)
    >>> gx
    array([[0., 0., 6.]])
    """
    gx[:] = 0
    for m in range(len(gy)):
        for t in range(gy.shape[1]):
            gx[m, argmax[m, t]] += gy[m, t]


class Kernels(NamedTuple):
    backward: Kernel


@cache
def kernels(dtype: Any) -> Kernels:
    """Compiled for float32 or float64."""
    read, places = Argument(dtype, 2), Argument(np.int32, 2)
    return Kernels(compiled(backward, (read, places, Argument(dtype, 2, written=True))))


class CompiledMaxPool2d(CompiledBody, MaxPool2d):
    """`MaxPool2d` with a compiled backward."""

    name = MaxPool2d.name

    def prepare(self, dtype: Any) -> None:
        kernels(dtype)

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        argmax, shape = saved
        gx = mem.empty(shape, gy.dtype)
        images = shape[0] * shape[1]
        kernels(gy.dtype).backward(
            plain(gy).reshape(images, -1), argmax.reshape(images, -1), gx.reshape(images, -1)
        )
        return (gx,)


def max_pooling(op: Op, specs: tuple[Spec, ...]) -> CompiledMaxPool2d | None:
    """The op with compiled bodies; None for empty images."""
    if type(op) is not MaxPool2d or 0 in specs[0].shape:
        return None
    return CompiledMaxPool2d(op.kernel_size, op.stride, op.padding, op.ceil_mode)
