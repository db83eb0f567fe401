"""Global average pooling: one number for each channel, the mean over the whole image.

    N C H W    batch, channels, height, width

    y[n, c, 0, 0]  = sum over (h, w) of x[n, c, h, w] / (H * W)
    gx[n, c, h, w] = gy[n, c, 0, 0] / (H * W)

Source: Lin, Chen, Yan, "Network in network", arXiv:1312.4400, section 3.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import frozen
from tinygraph.cuda import Kernel, blocks, op_kernel
from tinygraph.engine import Array, Gradients, Memory, Needs, Op, Operand, Shape, Spec, Tensor
from tinygraph.ops.common import THREADS, documented, for_each, require_images, total

WARP_PIXELS = 1024  # of a plane: from more on, a block adds them up


@frozen
class GlobalAvgPool2d(Op):
    def infer(self, x: Spec) -> Spec:
        require_images(self.name, x, empty=False)
        return Spec((*x.shape[:2], 1, 1), x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty((*x.shape[:2], 1, 1), x.dtype)
        total(x, (2, 3), y)
        y /= x.shape[2] * x.shape[3]
        return y, x.shape

    def backward(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        gx = mem.empty(shape, gy.dtype)
        np.divide(gy, shape[2] * shape[3], out=gx)  # (N, C, 1, 1) -> (N, C, H, W)
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        n, c, h, w = x.shape
        y = mem.empty((n, c, 1, 1), x.dtype)
        if y.size:
            group = 32 if h * w <= WARP_PIXELS else THREADS  # threads that own a plane
            kernel = self._kernel("forward", x.dtype, group)
            kernel(blocks(n * c, THREADS // group), THREADS, x, y, n * c, h * w)
        return y, x.shape

    def backward_kernel(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        gx = mem.empty(shape, gy.dtype)
        kernel = self._kernel("backward", gy.dtype, 32)
        for_each(kernel, gx.size, gy, gx, gx.size, shape[2] * shape[3])
        return (gx,)

    def _kernel(self, direction: str, dtype: Any, threads: int) -> Kernel:
        name = f"global_avg_pool2d_{direction}"
        return op_kernel("global_avg_pool2d", name, dtype, PLANE_THREADS=threads)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


@documented()
def global_avg_pool2d(x: Operand) -> Tensor:
    """The mean over each image, channel by channel.

    Parameters
    ----------
    x : Tensor (N, C, H, W)
        float32 or float64; images of any size.

    Returns
    -------
    Tensor (N, C, 1, 1)
        As `adaptive_avg_pool2d(x, 1)` of PyTorch; `tg.flatten(y, 1)` makes it (N, C).

    Raises
    ------
    ShapeError
        `x` has not four axes, or its images have no pixel.
    DtypeError
        `x` is not of a float dtype.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.global_avg_pool2d(tg.arange(8.0).reshape(1, 2, 2, 2)).value.reshape(2)
    array([1.5, 5.5], dtype=float32)
    """
    return GlobalAvgPool2d()(x)
