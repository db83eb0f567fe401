"""Leaves of random numbers, from the generator that `manual_seed` seeds or one of your own.

They are drawn on the host, so that every device has the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from tinygraph.checks import number, whole
from tinygraph.device import Device
from tinygraph.dtypes import Dtype, float32, float64, int64
from tinygraph.errors import ArgumentError, DtypeError
from tinygraph.leaf_options import (
    Options,
    created,
    like,
    like_options,
    new_leaf,
    shape_of,
    sized,
)
from tinygraph.ops.shared.docstrings import documented
from tinygraph.random import Generator, default_generator
from tinygraph.running import here
from tinygraph.shapes import Array, integer
from tinygraph.tensor import Operand, Tensor

__all__ = ["normal", "rand", "rand_like", "randint", "randn", "randn_like", "randperm"]

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
