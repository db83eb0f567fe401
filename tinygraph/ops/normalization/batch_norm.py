"""Batch normalization: each channel brought to mean 0 and variance 1, then scaled and shifted.

    N C        batch, channels        x (N, C) or (N, C, D...); weight, bias, statistics (C,)
    M          numbers in one channel, N * D...; sums below run over them

    training   m = sum of x / M        v = sum of (x - m)^2 / M        s = sqrt(v + eps)
    eval       m = running_mean        v = running_var                 s = sqrt(v + eps)
               y  = weight * (x - m) / s + bias

    training   gx = weight / s * (gy - sum of gy / M - (x - m) / s^2 * sum of gy * (x - m) / M)
    eval       gx = weight / s * gy                                    (m and v are constants)
               gw = sum of gy * (x - m) / s        gb = sum of gy

A training evaluation also moves the running statistics, once, in place:

    running_mean <- (1 - momentum) * running_mean + momentum * m
    running_var  <- (1 - momentum) * running_var  + momentum * v * M / (M - 1)

The variance is taken from x - m, never as mean of x^2 minus m^2, which loses all digits where the
mean is large; and x - m is centred once more, for m itself is rounded.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import ArgumentError, ShapeError, frozen, number
from tinygraph.cuda import blocks, op_kernel
from tinygraph.engine import Array, Memory, Operand, Shape, Spec, Tensor, reduced_shape
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.ops.common import MOST_BLOCKS, THREADS, for_each, sum_over
from tinygraph.ops.normalization.normalization import (
    Scaled,
    inverse_deviation,
    moments,
    normalized_gradient,
)


@frozen
class BatchNorm(Scaled, Op):
    training: bool
    momentum: float
    eps: float
    has_weight: bool
    has_bias: bool
    has_running: bool

    @property
    def updates(self) -> tuple[int, ...]:
        """The running statistics, which are the last two inputs where there are any."""
        if not (self.training and self.has_running):
            return ()
        first = 1 + self.has_weight + self.has_bias
        return first, first + 1

    @property
    def names(self) -> list[str]:
        return super().names + ["running_mean", "running_var"] * self.has_running

    def gradients(self, gx: Array | None, gw: Array | None, gb: Array | None) -> Gradients:
        return super().gradients(gx, gw, gb) + (None, None) * self.has_running

    def infer(self, x: Spec, *rest: Spec) -> Spec:
        if x.ndim < 2:
            raise ShapeError(self.name, "x", "(N, C) or (N, C, D...)", f"shape {x.shape}")
        self.require_parameters(x, rest, x.shape[1:2], "one for each channel of x, its axis 1")
        if self.training and _per_channel(x.shape) < 2:
            expected = "at least 2 numbers in each channel, for a variance in training"
            got = f"{_per_channel(x.shape)} with shape {x.shape}"
            way_out = "use a larger batch (the last one may be short), or training=False"
            raise ShapeError(self.name, "x", expected, got, way_out)
        return x

    def forward(self, mem: Memory, x: Array, *rest: Array) -> tuple[Array, Any]:
        named = self.named(rest)
        along = _along_channels(x.ndim)
        y = mem.empty(x.shape, x.dtype)
        if self.training:
            difference, mean, variance = moments(mem, x, _all_but_channels(x.ndim))
            self.move(named, mean.reshape(-1), variance.reshape(-1), _per_channel(x.shape))
        else:
            mean = named["running_mean"].reshape(along)
            variance = named["running_var"].reshape(along)
            wanted = self.has_weight and mem.needs[1]  # only gw needs x - mean
            difference = mem.empty(x.shape, x.dtype) if wanted else y
            np.subtract(x, mean, out=difference)
        inv = inverse_deviation(mem, variance, self.eps)
        weight = named["weight"].reshape(along) if self.has_weight else None
        np.multiply(difference, inv if weight is None else inv * weight, out=y)
        if self.has_bias:
            y += named["bias"].reshape(along)
        if not any(mem.needs):
            return y, None
        return y, (None if difference is y else difference, inv, weight)

    def move(self, named: dict[str, Array], mean: Array, variance: Array, count: int) -> None:
        """Move the running statistics towards those of this batch."""
        if self.has_running:
            unbiased = variance * (count / (count - 1))
            for running, new in ((named["running_mean"], mean), (named["running_var"], unbiased)):
                running *= 1 - self.momentum
                running += self.momentum * new

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        difference, inv, weight = saved
        axes, count = _all_but_channels(gy.ndim), _per_channel(gy.shape)
        wants_weight, wants_bias = self.wanted(needs)
        gx = gw = gb = None
        each = reduced_shape(gy.shape, axes, keepdims=True)  # (1, C, 1...)
        through_statistics = self.training and needs[0]
        if wants_bias or through_statistics:
            total = sum_over(axes, mem.empty(each, gy.dtype), gy)
        if wants_weight or through_statistics:
            product = sum_over(axes, mem.empty(each, gy.dtype), gy, difference)
        if wants_bias:
            gb = total.reshape(-1)
        if wants_weight:
            gw = (product * inv).reshape(-1)
        if needs[0]:
            gx = mem.empty(gy.shape, gy.dtype)
            if self.training:  # x also acts through the statistics
                means = total / count, product / count
                normalized_gradient(gx, gy, difference, inv, *means, weight)
            else:
                np.multiply(gy, inv if weight is None else inv * weight, out=gx)
        return self.gradients(gx, gw, gb)

    def forward_kernel(self, mem: Memory, x: Array, *rest: Array) -> tuple[Array, Any]:
        named, absent = self.named(rest), mem.empty((0,), x.dtype)  # a null pointer
        weight, bias = (named.get(name, absent) for name in ("weight", "bias"))
        running = [named.get(name, absent) for name in ("running_mean", "running_var")]
        channels = _Channels.of(x)
        statistics = mem.empty((3, channels.number), x.dtype)
        if self.training:
            partials = mem.empty((3, channels.number, channels.slices), x.dtype)
            channels.launch_walk("batch_moments", x, partials)
            sizes = channels.number, channels.positions, channels.slices, channels.members
            weights = 1 - self.momentum, self.momentum
            arrays = partials, x, statistics, *running
            channels.launch_warps("batch_statistics", *arrays, *sizes, self.eps, *weights)
        else:
            kernel = op_kernel("batch_norm", "running_statistics", x.dtype, COLUMNS=1)
            for_each(kernel, channels.number, *running, statistics, channels.number, self.eps)
        y = mem.empty(x.shape, x.dtype)
        channels.launch_walk("normalize", x, statistics, weight, bias, y)
        if not any(mem.needs):
            return y, None
        needs_x = self.training or (self.has_weight and mem.needs[1])
        return y, (x if needs_x else absent, statistics, weight)

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x, statistics, weight = saved
        channels, dtype = _Channels.of(gy), gy.dtype
        through_statistics, number = self.training and needs[0], channels.number
        wants_weight, wants_bias = self.wanted(needs)
        gw = mem.zeros((number if wants_weight else 0,), dtype)
        gb = mem.zeros((number if wants_bias else 0,), dtype)
        means = mem.empty((2, number if through_statistics else 0), dtype)
        if through_statistics or wants_weight or wants_bias:
            partials = mem.empty((2, number, channels.slices), dtype)
            channels.launch_walk("gradient_sums", gy, x, statistics, partials)
            sizes = number, channels.slices, channels.members
            channels.launch_warps("gradient_means", partials, statistics, gw, gb, means, *sizes)
        gx = mem.empty(gy.shape if needs[0] else (0,), dtype)
        if needs[0]:
            channels.launch_walk("normalize_backward", gy, x, statistics, means, weight, gx)
        return self.gradients(
            gx if needs[0] else None, gw if wants_weight else None, gb if wants_bias else None
        )

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if not self.training and carries[0] and not any(carries[1:]) else None


def _all_but_channels(ndim: int) -> Shape:
    return (0, *range(2, ndim))


def _along_channels(ndim: int) -> Shape:
    """The shape that lays (C,) along axis 1."""
    return (1, -1, *(1,) * (ndim - 2))


def _per_channel(shape: Shape) -> int:
    """How many numbers there are in each channel."""
    return math.prod((shape[0], *shape[2:]))


class _Channels(NamedTuple):
    """The channels of x (N, C, D...), and the kernels that walk over their members."""

    images: int
    number: int
    positions: int  # the product of the further axes
    dtype: np.dtype[Any]

    @staticmethod
    def of(x: Array) -> _Channels:
        return _Channels(x.shape[0], x.shape[1], math.prod(x.shape[2:]), x.dtype)

    @property
    def members(self) -> int:
        """How many numbers there are in each channel."""
        return self.images * self.positions

    @property
    def columns(self) -> int:
        """How many channels a block owns: neighbours in memory shall be neighbouring threads."""
        return 1 if self.positions > 1 else 32

    @property
    def slices(self) -> int:
        """Into how many blocks the members of a channel are cut: enough to fill a GPU."""
        groups = max(blocks(self.number, self.columns), 1)
        of_eight_each = blocks(self.members, 8 * THREADS // self.columns)
        return max(1, min(of_eight_each, MOST_BLOCKS // groups))

    def launch_walk(self, function: str, *arguments: Any) -> None:
        """A block for each slice of one or more channels; nothing for no element."""
        if self.number and self.members:
            kernel = op_kernel("batch_norm", function, self.dtype, COLUMNS=self.columns)
            grid = blocks(self.number, self.columns), self.slices
            kernel(grid, THREADS, *arguments, self.images, self.number, self.positions)

    def launch_warps(self, function: str, *arguments: Any) -> None:
        """A warp for each channel, which puts its slices together."""
        if self.number and self.members:
            kernel = op_kernel("batch_norm", function, self.dtype, COLUMNS=1)
            kernel(blocks(self.number, THREADS // 32), THREADS, *arguments)


def batch_norm(
    x: Operand,
    weight: Operand | None = None,
    bias: Operand | None = None,
    running_mean: Operand | None = None,
    running_var: Operand | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Bring each channel to mean 0 and variance 1, then scale and shift it.

    Parameters
    ----------
    x : Tensor (N, C) or (N, C, D...)
        float32 or float64.
    weight, bias : Tensor (C,), optional
        Scale and shift of each channel; 1 and 0 where they are not given.
    running_mean, running_var : Tensor (C,), optional
        Both or neither.  Leaves without gradient, or arrays.  In training their values are
        rewritten in place each time that the node is evaluated, under `no_grad` too.
    training : bool
        Use the statistics of this batch; if False, the running ones, which are then constants.
    momentum : float
        Weight of the new value in a running statistic, 0 to 1.
    eps : float
        Added to the variance.

    Returns
    -------
    Tensor
        Same shape and dtype as `x`.  The batch is normalized with the biased variance; the running
        variance is the unbiased one.

    Raises
    ------
    ShapeError
        `x` has fewer than two axes, another input is not (C,), or a channel has fewer than two
        numbers in training.
    DtypeError
        The inputs are not all float32 or all float64.
    ArgumentError
        Running statistics are missing where `training` is False, one stands without the other, one
        requires a gradient or is not a leaf; momentum is not in 0 to 1, or eps is negative.

    References
    ----------
    Ioffe, Szegedy, "Batch normalization: accelerating deep network training by reducing
    internal covariate shift", ICML 2015; Chan, Golub, LeVeque, "Algorithms for computing the
    sample variance", The American Statistician 37, 1983 (the corrected two-pass algorithm).

    Examples
    --------
    >>> import tinygraph as tg
    >>> mean, var = tg.zeros(1), tg.ones(1)
    >>> x = [[1.0], [3.0]]
    >>> tg.batch_norm(x, None, None, mean, var, training=True, eps=0.0).value
    array([[-1.],
           [ 1.]], dtype=float32)
    >>> mean.value, var.value
    (array([0.2], dtype=float32), array([1.1], dtype=float32))
    """
    statistics = {"running_mean": running_mean, "running_var": running_var}
    missing = [name for name, value in statistics.items() if value is None]
    if len(missing) == 1 or (missing and not training):
        expected = "both or neither" if training else "both where training is False"
        expected = f"running_mean and running_var, {expected}"
        way_out = "pass running_mean=tg.zeros(C), running_var=tg.ones(C)"
        raise ArgumentError("batch_norm", missing[0], expected, "None", way_out)
    for name, value in statistics.items():
        if isinstance(value, Tensor) and (value.requires_grad or not value.is_leaf):
            expected = "a leaf that requires no gradient, for it is rewritten"
            raise ArgumentError("batch_norm", name, expected, repr(value), f"{name}.detach()")
    momentum = number("batch_norm", "momentum", momentum, 0, 1)
    eps = number("batch_norm", "eps", eps, 0)
    given = weight is not None, bias is not None, not missing
    inputs = (x, weight, bias, running_mean, running_var)
    op = BatchNorm(bool(training), momentum, eps, *given)
    return op(*[each for each in inputs if each is not None])
