"""Batch norm in training, and the sum and ReLU after it, compiled: a channel stays in the cache.

    N C L      images, channels, numbers of a channel in one image       M      N * L
    z          what is added, where a residual connection ends

    m = sum of x / M            v = sum of (x - m)^2 / M - (sum of (x - m) / M)^2
    y = max(0, (x - m) / s * weight + bias + z)                 s = sqrt(v + eps)

    g  = gy where y is not 0, else 0, and the gradient of z
    gx = weight / s * (g - sum of g / M - (x - m) / s^2 * sum of g * (x - m) / M)

Three passes over a channel forward and two backward, where numpy has one for each operation, over
all channels.  Neither x - m nor what comes before the ReLU is kept.  Threads share the channels
of large images.  A piece of an image is added up in the dtype of x, in vectors; the pieces, which
may be many, in float64.

Source: ops/normalization/batch_norm.py has the derivation, and the same in numpy; the corrected
variance is that of Chan, Golub, LeVeque, "Algorithms for computing the sample variance", The
American Statistician 37, 1983.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tinygraph.engine import Array, Gradients, Memory, Needs, Op, Spec
from tinygraph.ops.common.blocks import Blocks
from tinygraph.ops.elementwise.relu import Relu
from tinygraph.ops.normalization.batch_norm import BatchNorm
from tinygraph.plan.fast.jit import PIECE, CompiledBody, Loop, loop, plain
from tinygraph.plan.rewrites.activation import Activated
from tinygraph.plan.rewrites.residual import Residual

SHORTEST = 16  # numbers of a channel in one image: of shorter ones a loop is mostly its beginning


@cache
def normalizing(adds: bool, clips: bool) -> Loop:
    """The loop of forward, with z and without, with ReLU and without."""

    @loop("x3 x1 x1 x3 x i i =x2 =x3", reorder=True)
    def normalize(
        x: Array,
        weight: Array,
        bias: Array,
        z: Array,
        eps: float,
        first: int,
        stop: int,
        found: Array,
        y: Array,
    ) -> None:
        """y (N, C, L) of channels first to stop; found (3, C) gets m, v and 1 / s."""
        kind = x.dtype.type
        zero, one, count = kind(0), kind(1), x.shape[0] * x.shape[2]
        for c in range(first, stop):
            total = 0.0
            for n in range(len(x)):
                for begin in range(0, x.shape[2], PIECE):
                    row, part = x[n, c, begin : begin + PIECE], zero
                    for p in range(len(row)):
                        part += row[p]
                    total += part
            mean = kind(total / count)
            rests, squares = 0.0, 0.0
            for n in range(len(x)):
                for begin in range(0, x.shape[2], PIECE):
                    row, part, square = x[n, c, begin : begin + PIECE], zero, zero
                    for p in range(len(row)):
                        difference = row[p] - mean
                        part += difference
                        square += difference * difference
                    rests += part
                    squares += square
            rest = kind(rests / count)  # what the rounding of the mean left over
            mean += rest
            variance = kind(squares / count) - rest * rest
            inverse = one / np.sqrt(variance + eps)
            factor, shift = weight[c] * inverse, bias[c]
            for n in range(len(x)):
                row, added, target = x[n, c], z[n, c], y[n, c]
                for p in range(len(row)):
                    value = (row[p] - mean) * factor + shift
                    if adds:
                        value += added[p]
                    if clips:
                        value = zero if value <= zero else value
                    target[p] = value
            found[0, c], found[1, c], found[2, c] = mean, variance, inverse

    return normalize


@cache
def differentiating(adds: bool, clips: bool) -> Loop:
    """The loop of backward."""

    @loop("x3 x3 x3 x1 x2 i i =x2 =x3 =x3", reorder=True)
    def differentiate(
        gy: Array,
        x: Array,
        y: Array,
        weight: Array,
        found: Array,
        first: int,
        stop: int,
        sums: Array,
        gx: Array,
        gz: Array,
    ) -> None:
        """gx, and gz where it is not gy; sums (2, C) gets the gradients of bias and weight."""
        kind = x.dtype.type
        zero, count = kind(0), kind(x.shape[0] * x.shape[2])
        for c in range(first, stop):
            mean, inverse = found[0, c], found[2, c]
            totals, products = 0.0, 0.0
            for n in range(len(x)):
                for begin in range(0, x.shape[2], PIECE):
                    stop = begin + PIECE
                    upstream, row, seen = (
                        gy[n, c, begin:stop],
                        x[n, c, begin:stop],
                        y[n, c, begin:stop],
                    )
                    part, of_both = zero, zero
                    for p in range(len(row)):
                        g = upstream[p]
                        if clips:
                            g = g if seen[p] != zero else zero
                        part += g
                        of_both += g * (row[p] - mean)
                    totals += part
                    products += of_both
            total, product = kind(totals), kind(products)
            factor, level = weight[c] * inverse, total / count
            slope = product * inverse * inverse / count
            for n in range(len(x)):
                upstream, row, seen = gy[n, c], x[n, c], y[n, c]
                target, of_z = gx[n, c], gz[n, c]
                for p in range(len(row)):
                    g = upstream[p]
                    if clips:
                        g = g if seen[p] != zero else zero
                        if adds:
                            of_z[p] = g
                    target[p] = factor * (g - level - (row[p] - mean) * slope)
            sums[0, c], sums[1, c] = total, product * inverse

    return differentiate


@dataclass(frozen=True)
class CompiledNorm(CompiledBody):
    """`whole`, in numpy, with a compiled body."""

    whole: Op  # the batch norm, or it with what follows
    norm: BatchNorm
    adds: bool  # whether the last input is added
    clips: bool  # whether a ReLU comes last

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.whole.name

    @property
    def updates(self) -> tuple[int, ...]:
        return self.whole.updates

    def infer(self, *specs: Spec) -> Spec:
        return self.whole.infer(*specs)

    def loops(self) -> Sequence[Loop]:
        return normalizing(self.adds, self.clips), differentiating(self.adds, self.clips)

    def forward(self, mem: Memory, x: Array, *rest: Array) -> tuple[Array, Any]:
        of_norm = rest[:-1] if self.adds else rest
        named, number = self.norm.named(of_norm), x.shape[1]
        rows = plain(x).reshape(*x.shape[:2], -1)
        y, found = mem.empty(x.shape, x.dtype), mem.empty((3, number), x.dtype)
        weight, bias = mem.empty((number,), x.dtype), mem.zeros((number,), x.dtype)
        weight[...] = named.get("weight", 1)
        bias[...] = named.get("bias", 0)
        z = plain(rest[-1]).reshape(rows.shape) if self.adds else rows
        run, eps, into = normalizing(self.adds, self.clips), self.norm.eps, y.reshape(rows.shape)

        def work(_: int, channels: slice) -> None:
            run(rows, weight, bias, z, eps, channels.start, channels.stop, found, into)

        Blocks(mem, number, x.nbytes // number).run(work)
        self.norm.move(named, found[0], found[1], rows.shape[0] * rows.shape[2])
        return y, (rows, weight, found, into) if any(mem.needs) else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        rows, weight, found, y = saved
        upstream = plain(gy).reshape(rows.shape)
        gx, sums = mem.empty(gy.shape, gy.dtype), mem.empty((2, gy.shape[1]), gy.dtype)
        masked = self.adds and self.clips
        gz = mem.empty(gy.shape, gy.dtype) if masked else gy
        run = differentiating(self.adds, self.clips)
        into = sums, gx.reshape(rows.shape), (gz if masked else gx).reshape(rows.shape)

        def work(_: int, channels: slice) -> None:
            run(upstream, rows, y, weight, found, channels.start, channels.stop, *into)

        Blocks(mem, gy.shape[1], gy.nbytes // gy.shape[1]).run(work)
        of_norm = self.norm.gradients(gx, sums[1], sums[0])
        return tuple(
            [g if needed else None for g, needed in zip((*of_norm, gz), needs, strict=False)]
        )


def compiled_norm(op: Op, specs: tuple[Spec, ...]) -> CompiledNorm | None:
    """The op with a compiled body: batch norm in training, a sum after it or not, ReLU or not."""
    inner, clips, adds = op, False, False
    if isinstance(inner, Activated) and isinstance(inner.activation, Relu):
        inner, clips = inner.product, True
    if isinstance(inner, Residual):
        inner, adds = inner.product, True
    if type(inner) is not BatchNorm or not inner.training:
        return None
    shape = specs[0].shape
    if 0 in shape or math.prod(shape[2:]) < SHORTEST:
        return None
    return CompiledNorm(op, inner, adds, clips)
