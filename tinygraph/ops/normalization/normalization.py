"""What ops share that bring numbers to mean 0 and variance 1; the host's side of normalization.cuh.

The variance is taken from x - mean, never as the mean of x^2 minus mean^2, which loses all digits
where the mean is large; and x - mean is centred once more, for the mean itself is rounded.

Source: Chan, Golub, LeVeque, "Algorithms for computing the sample variance", The American
Statistician 37, 1983 (the corrected two-pass algorithm).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import ShapeError
from tinygraph.engine import Array, Gradients, Needs, Shape, Spec, reduced_shape, require_float
from tinygraph.engine.memory import Memory
from tinygraph.ops.common import sum_over


class Scaled:
    """Mixed into ops whose inputs after x are a weight and a bias, where they are given."""

    name: ClassVar[str]
    has_weight: bool
    has_bias: bool

    @property
    def names(self) -> list[str]:
        """The inputs after x."""
        return ["weight"] * self.has_weight + ["bias"] * self.has_bias

    def named(self, rest: tuple[Any, ...]) -> dict[str, Any]:
        """The inputs after x by name; those that are absent are left out."""
        return dict(zip(self.names, rest, strict=True))

    def require_parameters(self, x: Spec, rest: tuple[Spec, ...], shape: Shape, whose: str) -> None:
        """Raise unless all are floats like x, and those after x have this shape."""
        named = self.named(rest)
        require_float(self.name, x=x, **named)
        for name, spec in named.items():
            if spec.shape != shape:
                got = f"{spec.shape}, x.shape {x.shape}"
                raise ShapeError(self.name, name, f"shape {shape}, {whose}", got)

    def wanted(self, needs: Needs) -> tuple[bool, bool]:
        """Whether weight and bias want gradients."""
        return self.has_weight and needs[1], self.has_bias and needs[1 + self.has_weight]

    def gradients(self, gx: Array | None, gw: Array | None, gb: Array | None) -> Gradients:
        """One for each input that there is."""
        return gx, *([gw] * self.has_weight), *([gb] * self.has_bias)


def centred(mem: Memory, x: Array, axes: Shape) -> tuple[Array, Array, Array]:
    """x - mean, the mean over `axes`, which stay with size 1, and a scratch array like the mean."""
    kept = reduced_shape(x.shape, axes, keepdims=True)
    count = x.dtype.type(math.prod([x.shape[a] for a in axes]))
    mean, lost = mem.empty(kept, x.dtype), mem.empty(kept, x.dtype)
    sum_over(axes, mean, x)
    mean /= count  # np.mean would warn of an empty sum
    rest = np.subtract(x, mean, out=mem.empty(x.shape, x.dtype))
    sum_over(axes, lost, rest)
    lost /= count
    rest -= lost  # what the rounding of the mean left over
    mean += lost
    return rest, mean, lost


def moments(mem: Memory, x: Array, axes: Shape) -> tuple[Array, Array, Array]:
    """x - mean, the mean and the biased variance over `axes`, which stay with size 1."""
    rest, mean, variance = centred(mem, x, axes)
    sum_over(axes, variance, rest, rest)
    variance /= x.dtype.type(math.prod([x.shape[a] for a in axes]))
    return rest, mean, variance


def inverse_deviation(mem: Memory, variance: Array, eps: float) -> Array:
    """1 / sqrt(variance + eps)."""
    inv = np.add(variance, eps, out=mem.empty(variance.shape, variance.dtype))
    np.sqrt(inv, out=inv)
    return np.reciprocal(inv, out=inv)


def normalized_gradient(
    gx: Array,
    g: Array,
    rest: Array,
    inv: Array,
    mean_g: Array,
    mean_g_rest: Array,
    weight: Array | None = None,
) -> None:
    """Write into gx the gradient of x, for an upstream gradient g of (x - mean) / s.

    `rest` is x - mean, `inv` is 1 / s, and the means of g and of g * rest keep their axes; the last
    is overwritten.  Where g is that of weight * (x - mean) / s, `weight` is the same along them.
    """
    mean_g_rest *= inv
    mean_g_rest *= inv
    np.multiply(rest, mean_g_rest, out=gx)
    np.subtract(g, gx, out=gx)
    gx -= mean_g
    gx *= inv if weight is None else inv * weight
