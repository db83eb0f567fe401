"""Leaves of random numbers, from the generator that `manual_seed` seeds or one of your own.

They are drawn on the host, so that every device has the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from tinygraph.base import ArgumentError, DtypeError, ShapeError, number, whole
from tinygraph.base.dtypes import Dtype, float32, float64, int64
from tinygraph.engine import Array, Device, Operand, Tensor, as_tensor, here, integer, leaf
from tinygraph.engine.random import Generator, default_generator
from tinygraph.ops.common import documented
from tinygraph.ops.common.spelling import spelled
from tinygraph.ops.leaves.options import (
    Options,
    created,
    like,
    like_options,
    new_leaf,
    shape_of,
    sized,
)

__all__ = [
    "bernoulli",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
]

Draw = Callable[[Any, Dtype], Array]  # of a numpy.random.Generator, which takes long to load


def _drawn(
    op: str, draw: Draw, default: Dtype, generator: Generator | None, options: Options
) -> Tensor:
    """A leaf with the numbers of `draw(generator, dtype)`; only integers are drawn as integers."""
    ours = default_generator if generator is None else generator

    def make(place: Device, dtype: Dtype) -> Array:
        if default.kind == "f" and dtype.char not in "fd":
            raise DtypeError(op, "dtype", "float32 or float64", dtype, "tg.randint draws integers")
        numbers = draw(here.top.do(ours.numpy, op), dtype)
        return place.from_numpy(numbers.astype(dtype, copy=False))

    return new_leaf(op, make, default, **options)


_generator = documented(
    """
    Parameters
    ----------
    generator : Generator, optional
        By default the one that `tg.manual_seed` seeds.
    """
)


@sized
@_generator
def rand(
    *sizes: Any, size: Any = None, generator: Generator | None = None, **options: Unpack[Options]
) -> Tensor:
    """A leaf of uniform numbers in [0, 1).

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.rand(100)
    >>> x.shape, bool((x.value < 1).all())
    ((100,), True)
    """
    shape = shape_of("rand", sizes, size)

    def draw(numbers: Any, dtype: Dtype) -> Array:
        return numbers.random(shape, np.float64 if dtype == float64 else np.float32)

    return _drawn("rand", draw, float32, generator, options)


@sized
@_generator
def randn(
    *sizes: Any, size: Any = None, generator: Generator | None = None, **options: Unpack[Options]
) -> Tensor:
    """A leaf of standard normal numbers.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.randn(2, 3).shape
    (2, 3)
    """
    shape = shape_of("randn", sizes, size)

    def draw(numbers: Any, dtype: Dtype) -> Array:
        return numbers.standard_normal(shape)

    return _drawn("randn", draw, float32, generator, options)


@sized
@_generator
def normal(
    mean: float = 0.0,
    std: float = 1.0,
    size: Any = (),
    generator: Generator | None = None,
    **options: Unpack[Options],
) -> Tensor:
    """A leaf of normal numbers of a given mean and standard deviation.

    Parameters
    ----------
    mean, std : float
        Numbers; of tensors, write `mean + std * tg.randn(size)`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.normal(0, 0.01, (2, 3)).shape
    (2, 3)
    """
    middle, scale = number("normal", "mean", mean), number("normal", "std", std, least=0)
    shape = shape_of("normal", (), size)
    return _drawn(
        "normal",
        lambda numbers, _: numbers.normal(middle, scale, shape),
        float32,
        generator,
        options,
    )


@sized
@_generator
def randint(
    low: int = 0,
    high: int | None = None,
    size: Any = None,
    generator: Generator | None = None,
    **options: Unpack[Options],
) -> Tensor:
    """A leaf of integers from `low` to, without, `high`; `randint(high, size)` counts from 0.

    Parameters
    ----------
    low, high : int
        The least integer, and the one after the largest.
    dtype : dtype, optional
        By default int64.

    Raises
    ------
    ArgumentError
        ... `high` is not above `low`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> dice = tg.randint(1, 7, (100,)).value
    >>> dice.dtype, bool((dice >= 1).all() and (dice <= 6).all())
    (dtype('int64'), True)
    """
    if size is None:  # randint(high, size)
        low, high, size = 0, low, high
    elif high is None:  # randint(high, size=size)
        low, high = 0, low
    first, end = integer("randint", "low", low), integer("randint", "high", high)
    if first >= end:
        raise ArgumentError("randint", "high", f"an int above low, {first}", end)
    shape = shape_of("randint", (), size)

    def draw(numbers: Any, dtype: Dtype) -> Array:
        return numbers.integers(first, end, shape)

    return _drawn("randint", draw, int64, generator, options)


@created
@_generator
def randperm(n: int, *, generator: Generator | None = None, **options: Unpack[Options]) -> Tensor:
    """The integers from 0 to n - 1 in a random order.

    Parameters
    ----------
    n : int
        How many there are.
    dtype : dtype, optional
        By default int64.

    Examples
    --------
    >>> import tinygraph as tg
    >>> sorted(tg.randperm(4).value.tolist())
    [0, 1, 2, 3]
    """
    count = whole("randperm", "n", n, least=0)

    def draw(numbers: Any, dtype: Dtype) -> Array:
        return numbers.permutation(count)

    return _drawn("randperm", draw, int64, generator, options)


@like
def rand_like(x: Operand, **options: Unpack[Options]) -> Tensor:
    """Uniform numbers in [0, 1) in the shape of x, which is of a float dtype or another is given.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.rand_like(tg.zeros(2, 3)).shape
    (2, 3)
    """
    return rand(**like_options(x, options))


@like
def randn_like(x: Operand, **options: Unpack[Options]) -> Tensor:
    """Standard normal numbers in the shape of x, which is of a float dtype or another is given.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.randn_like(tg.zeros(2, 3)).shape
    (2, 3)
    """
    return randn(**like_options(x, options))


@spelled
@_generator
def bernoulli(x: Operand, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that stands in each element, and else 0.

    Parameters
    ----------
    x : Tensor
        Any shape; float32 or float64, from 0 to 1.  With `p`, of numbers that are not looked at.
    p : float, optional
        One probability for all elements.

    Returns
    -------
    Tensor
        A leaf like `x`, without a gradient.

    Raises
    ------
    DtypeError
        `x` is not of a float dtype, and there is no `p`.
    ArgumentError
        A probability is below 0, above 1 or NaN.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.bernoulli([[0.0, 1.0], [1.0, 0.0]]).value
    array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    node = as_tensor(x)
    if p is None and node.dtype.kind != "f":
        raise DtypeError("bernoulli", "x", "float32 or float64", node.dtype, "give p, or x.float()")
    chance = node.numpy() if p is None else np.asarray(number("bernoulli", "p", p, 0, 1))
    if not ((chance >= 0) & (chance <= 1)).all():
        raise ArgumentError("bernoulli", "x", "probabilities from 0 to 1", "others, or NaN")
    uniform = _uniform("bernoulli", node.shape, generator)
    made = node.device.from_numpy((uniform < chance).astype(node.dtype))
    return leaf(made, node.device)


@spelled
@_generator
def multinomial(
    x: Operand,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Places that are drawn with given weights, from one row of weights or from each of several.

    Without replacement each place goes to the smallest of e / weight, with e drawn from the
    exponential distribution: the first is drawn by the weights, the second by those of the rest,
    and so on.

    Parameters
    ----------
    x : Tensor
        Weights (K,) or (N, K), of a float dtype: finite, not below 0, and not all 0 in a row.
    num_samples : int
        M, how many places are drawn from each row.
    replacement : bool
        Whether a place may be drawn again.

    Returns
    -------
    Tensor
        int64 (M,) or (N, M): a leaf.  A place of weight 0 is never drawn.

    Raises
    ------
    ShapeError
        `x` has neither one axis nor two.
    DtypeError
        `x` is not of a float dtype.
    ArgumentError
        Bad weights; or without replacement more samples than there are weights above 0.

    References
    ----------
    Efraimidis, Spirakis, "Weighted random sampling with a reservoir", Information Processing
    Letters 97, 2006.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.multinomial([0.0, 3.0, 0.0], 4, replacement=True).value
    array([1, 1, 1, 1])
    >>> sorted(tg.multinomial([1.0, 2.0, 0.0], 2).tolist())
    [0, 1]
    """
    op, node = "multinomial", as_tensor(x)
    if node.ndim not in (1, 2) or not node.size:
        raise ShapeError(op, "x", "weights (K,) or (N, K)", node.shape)
    if node.dtype.kind != "f":
        raise DtypeError(op, "x", "float32 or float64", node.dtype, "x.float()")
    weights = np.atleast_2d(node.numpy()).astype(np.float64)  # (N, K)
    if not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any(axis=1).all():
        expected = "finite weights of 0 or more, not all 0 in a row"
        raise ArgumentError(op, "x", expected, "others, or NaN")
    samples = whole(op, "num_samples", num_samples)
    least = int(np.count_nonzero(weights, axis=1).min())
    if not replacement and samples > least:
        way_out = "replacement=True"
        raise ArgumentError(op, "num_samples", f"at most {least}", samples, way_out)
    rows = len(weights)
    if replacement:
        ends = np.cumsum(weights, axis=1)
        ends /= ends[:, -1:]
        uniform = _uniform(op, (rows, samples), generator)
        pairs = zip(ends, uniform, strict=True)
        places = np.stack([np.searchsorted(end, u, side="right") for end, u in pairs])
    else:
        waits = -np.log1p(-_uniform(op, weights.shape, generator))
        with np.errstate(divide="ignore", invalid="ignore"):
            waits = np.where(weights > 0, waits / weights, np.inf)
        places = np.argsort(waits, axis=1, kind="stable")[:, :samples]
    made = places.astype(np.int64).reshape(places.shape if node.ndim == 2 else -1)
    return leaf(node.device.from_numpy(made), node.device)


def _uniform(op: str, shape: Any, generator: Generator | None) -> Array:
    """Uniform numbers in [0, 1), float64."""
    ours = default_generator if generator is None else generator
    return here.top.do(ours.numpy, op).random(shape)
