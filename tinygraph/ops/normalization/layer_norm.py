"""Layer normalization: each sample brought to mean 0 and variance 1, then scaled and shifted.

    F...       the features, the last axes of x; D of them in all; means run over them
    x (..., F...), weight and bias (F...)

    m  = mean of x        v = mean of (x - m)^2        s = sqrt(v + eps)
    y  = weight * (x - m) / s + bias

    h  = gy * weight
    gx = (h - mean of h - (x - m) / s^2 * mean of h * (x - m)) / s
    gw = sum of gy * (x - m) / s        gb = sum of gy        over all axes but the features

Source: Ba, Kiros, Hinton, "Layer normalization", arXiv:1607.06450.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, ShapeError, frozen, number
from tinygraph.cuda import blocks, op_kernel
from tinygraph.engine import Array, Memory, Operand, Shape, Spec, Tensor, reduced_shape
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.ops.common import MOST_BLOCKS, THREADS, documented, sum_over
from tinygraph.ops.normalization.normalization import (
    Scaled,
    inverse_deviation,
    moments,
    normalized_gradient,
)


@frozen
class LayerNorm(Scaled, Op):
    normalized_shape: Shape
    eps: float
    has_weight: bool
    has_bias: bool

    def infer(self, x: Spec, *rest: Spec) -> Spec:
        if x.shape[-len(self.normalized_shape) :] != self.normalized_shape:
            expected = f"the last axes {self.normalized_shape}, as in normalized_shape"
            way_out = "normalized_shape is the shape of one sample's features"
            raise ShapeError(self.name, "x", expected, f"x.shape {x.shape}", way_out)
        self.require_parameters(x, rest, self.normalized_shape, "that of normalized_shape")
        return x

    def forward(self, mem: Memory, x: Array, *rest: Array) -> tuple[Array, Any]:
        difference, _, variance = moments(mem, x, self._features(x.ndim))
        inv = inverse_deviation(mem, variance, self.eps)  # (..., 1...)
        y = np.multiply(difference, inv, out=mem.empty(x.shape, x.dtype))
        weight = rest[0] if self.has_weight else None
        if weight is not None:
            y *= weight
        if self.has_bias:
            y += rest[-1]
        return y, (difference, inv, weight) if any(mem.needs) else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        difference, inv, weight = saved
        features = self._features(gy.ndim)
        samples = tuple(range(gy.ndim - len(self.normalized_shape)))
        gx = gw = gb = None
        wants_weight, wants_bias = self.wanted(needs)
        of_parameters = reduced_shape(gy.shape, samples, keepdims=True)  # (1..., F...)
        of_samples = reduced_shape(gy.shape, features, keepdims=True)  # (..., 1...)
        if wants_bias:
            gb = sum_over(samples, mem.empty(of_parameters, gy.dtype), gy)
            gb = gb.reshape(self.normalized_shape)
        if needs[0] or wants_weight:
            scratch = mem.empty(gy.shape, gy.dtype)
        if wants_weight:
            np.multiply(difference, inv, out=scratch)
            gw = sum_over(samples, mem.empty(of_parameters, gy.dtype), scratch, gy)
            gw = gw.reshape(self.normalized_shape)
        if needs[0]:
            h = gy
            if weight is not None:
                h = np.multiply(gy, weight, out=mem.empty(gy.shape, gy.dtype))
            count = gy.dtype.type(math.prod(self.normalized_shape))
            mean = sum_over(features, mem.empty(of_samples, gy.dtype), h)
            product = sum_over(features, mem.empty(of_samples, gy.dtype), h, difference)
            mean /= count
            product /= count
            gx = scratch
            normalized_gradient(gx, h, difference, inv, mean, product)
        return self.gradients(gx, gw, gb)

    def forward_kernel(self, mem: Memory, x: Array, *rest: Array) -> tuple[Array, Any]:
        absent = mem.empty((0,), x.dtype)  # a null pointer
        weight = rest[0] if self.has_weight else absent
        bias = rest[-1] if self.has_bias else absent
        rows, features = self._rows(x)
        y = mem.empty(x.shape, x.dtype)
        statistics = mem.empty((3, rows if any(mem.needs) else 0), x.dtype)
        self._launch_rows(
            "layer_norm_forward", x, weight, bias, y, statistics, rows, features, self.eps
        )
        return y, (x, statistics, weight) if any(mem.needs) else None

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x, statistics, weight = saved
        rows, features = self._rows(x)
        wants_weight, wants_bias = self.wanted(needs)
        gx = mem.empty(x.shape if needs[0] else (0,), x.dtype)
        if needs[0]:
            self._launch_rows("layer_norm_backward", gy, x, statistics, weight, gx, rows, features)
        shape = self.normalized_shape
        gw = mem.zeros(shape if wants_weight else (0,), x.dtype)
        gb = mem.zeros(shape if wants_bias else (0,), x.dtype)
        if rows and (wants_weight or wants_bias):
            groups = blocks(features, 32)
            # Eight rows for each of the eight warps, unless the GPU is full with fewer blocks.
            slices = max(1, min(blocks(rows, 64), MOST_BLOCKS // groups))
            partials = mem.empty((2, features, slices), x.dtype)
            wanted = x if wants_weight else mem.empty((0,), x.dtype)
            op_kernel("layer_norm", "parameter_sums", x.dtype, ROW_THREADS=32)(
                (groups, slices), THREADS, gy, wanted, statistics, partials, rows, features
            )
            op_kernel("layer_norm", "parameter_gradients", x.dtype, ROW_THREADS=32)(
                blocks(features, THREADS // 32), THREADS, partials, gw, gb, features, slices
            )
        return self.gradients(
            gx if needs[0] else None, gw if wants_weight else None, gb if wants_bias else None
        )

    def _rows(self, x: Array) -> tuple[int, int]:
        """x as the kernels see it: the number of rows, and of features in each."""
        return math.prod(x.shape[: -len(self.normalized_shape)]), math.prod(self.normalized_shape)

    def _launch_rows(self, function: str, x: Array, *arguments: Any) -> None:
        """A warp for each row, or a block where rows are long; nothing for none."""
        rows, features = self._rows(x)
        threads = 32 if features <= 1024 else THREADS
        if rows:
            kernel = op_kernel("layer_norm", function, x.dtype, ROW_THREADS=threads)
            kernel(blocks(rows, THREADS // threads), THREADS, x, *arguments)

    def _features(self, ndim: int) -> Shape:
        """The axes of the features."""
        return tuple(range(ndim - len(self.normalized_shape), ndim))

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        several = specs[0].ndim > len(self.normalized_shape)  # else axis 0 holds features
        return "map" if several and carries[0] and not any(carries[1:]) else None


@documented()
def layer_norm(
    x: Operand,
    normalized_shape: int | Sequence[int],
    weight: Operand | None = None,
    bias: Operand | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Bring the features of each sample to mean 0 and variance 1, then scale and shift them.

    Parameters
    ----------
    x : Tensor (..., F...)
        float32 or float64.
    normalized_shape : int or sequence of int
        F..., the last axes of `x`, over which mean and variance are taken.
    weight, bias : Tensor (F...), optional
        Scale and shift of each feature; 1 and 0 where they are not given.
    eps : float
        Added to the variance, which is the biased one.

    Returns
    -------
    Tensor
        Same shape and dtype as `x`; the same in training and evaluation.

    Raises
    ------
    ShapeError
        The last axes of `x`, or the shapes of `weight` and `bias`, are not `normalized_shape`.
    DtypeError
        The inputs are not all float32 or all float64.
    ArgumentError
        `normalized_shape` is empty or has a size below 1, or eps is negative.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.layer_norm([[1.0, 3.0], [5.0, 5.0]], 2, bias=[10.0, 20.0], eps=0.01).value.round(2)
    array([[ 9., 21.],
           [10., 20.]], dtype=float32)
    """
    sizes = normalized_shape if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
    try:
        shape = tuple(operator.index(n) for n in sizes)
    except TypeError:
        shape = ()
    if not shape or min(shape) < 1:
        expected, way_out = "an int, or several, of at least 1", "the sizes of the last axes of x"
        got = repr(normalized_shape)
        raise ArgumentError("layer_norm", "normalized_shape", expected, got, way_out)
    op = LayerNorm(shape, number("layer_norm", "eps", eps, 0), weight is not None, bias is not None)
    return op(*[each for each in (x, weight, bias) if each is not None])
