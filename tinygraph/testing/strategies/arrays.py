"""Arrays and tensors of small shapes, in any memory layout, with numbers of a family.

A shape is drawn side by side and shrinks to a scalar or a single element; the numbers come from one
drawn seed, which shrinks to 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tinygraph.base import ArgumentError
from tinygraph.engine import Array, Shape, Tensor, leaf
from tinygraph.testing.problem import LAYOUTS, laid_out

seeds = st.integers(0, 2**32 - 1)

TENSOR_LAYOUTS = (*LAYOUTS, "broadcast", "0-d", "empty")


def numbers(seed: int, shape: Shape, low: float | None = None, high: float | None = None) -> Array:
    """Normal numbers, or uniform ones where bounds are given; float64.

    >>> numbers(0, (2, 3), 0.0, 1.0).shape
    (2, 3)
    """
    rng = np.random.default_rng(seed)
    if low is None or high is None:
        return np.asarray(rng.standard_normal(shape))
    return np.asarray(rng.uniform(low, high, shape))


def shapes(
    min_dims: int = 0, max_dims: int = 4, min_side: int = 1, max_side: int = 4
) -> st.SearchStrategy[Shape]:
    """Shapes as tuples; they shrink to fewer axes, and to sides of `min_side`."""
    sides = st.integers(min_side, max_side)
    return st.lists(sides, min_size=min_dims, max_size=max_dims).map(tuple)


# ---- families of values ---------------------------------------------------------------------

Values = Callable[[np.random.Generator, Shape, np.dtype[Any]], Array]


def _smooth(rng: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Normal numbers: no two are equal, and none is a whole number."""
    return np.asarray(rng.standard_normal(shape))


def _ties(rng: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Few different numbers, none of them 0: maxima that are there more than once."""
    return rng.choice([-1.5, 0.5, 2.5], shape)


def _kinks(rng: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Whole numbers around 0, with both zeros, where piecewise functions change their piece."""
    return rng.choice([-2.0, -1.0, -0.0, 0.0, 1.0, 2.0], shape)


def _extreme(rng: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Finite numbers of any magnitude: the largest, the smallest normal, subnormals."""
    info = np.finfo(dtype)
    least, most = np.log10(float(info.smallest_subnormal)), np.log10(float(info.max))
    spread = 10.0 ** rng.uniform(least + 1, most - 1, shape)
    ends = np.array([info.max, info.tiny, info.smallest_subnormal, info.eps, 1], np.float64)
    size = np.where(rng.random(shape) < 0.5, spread, rng.choice(ends, shape))
    return np.asarray(size * rng.choice([-1.0, 1.0], shape))


def _nan_inf(rng: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Numbers among which at least one is no finite number."""
    special = rng.choice([np.nan, np.inf, -np.inf], shape)
    array = np.where(rng.random(shape) < 0.3, special, rng.standard_normal(shape))
    if array.size and np.isfinite(array).all():
        array[tuple(int(rng.integers(n)) for n in shape)] = rng.choice([np.nan, np.inf, -np.inf])
    return np.asarray(array)


VALUES: dict[str, Values] = {
    "smooth": _smooth,
    "ties": _ties,
    "kinks": _kinks,
    "extreme": _extreme,
    "nan_inf": _nan_inf,
}


# ---- arrays and tensors ---------------------------------------------------------------------


def _one_of(argument: str, value: str | None, known: tuple[str, ...]) -> st.SearchStrategy[str]:
    """The name that was asked for, or any of them."""
    if value is not None and value not in known:
        raise ArgumentError("strategies", argument, f"one of {known}", repr(value))
    return st.sampled_from(known) if value is None else st.just(value)


def _drawn(argument: Any, default: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An argument that may be a strategy, a fixed value, or None for the default."""
    if argument is None:
        return default
    return argument if isinstance(argument, st.SearchStrategy) else st.just(argument)


def tensors(
    dtype: Any = None,
    shape: Any = None,
    layout: str | None = "contiguous",
    values: str | None = "smooth",
    requires_grad: bool = True,
) -> st.SearchStrategy[Tensor]:
    """Leaf tensors on the cpu.

    Parameters
    ----------
    dtype : dtype or strategy of dtypes, optional
        float32 or float64; by default either.
    shape : tuple of int or strategy of shapes, optional
        By default up to four axes of 1 to 4 elements.
    layout : str or None
        "contiguous", "sliced" (every second element of a larger array), "transposed"
        (column-major), "negative stride", "broadcast" (repeated along an axis, with stride 0),
        "0-d" (the shape is ()) or "empty" (one axis has size 0); None for any of them.
    values : str or None
        "smooth" (normal), "ties" (few different numbers), "kinks" (small whole numbers with both
        zeros), "extreme" (finite, of any magnitude) or "nan_inf"; None for any of them.
    requires_grad : bool
        As for `tg.Tensor`.

    Returns
    -------
    strategy of Tensor
        Shrinks to few axes and small sides, then to seed 0.

    Raises
    ------
    ArgumentError
        A layout or a family of values that is not there.

    Examples
    --------
    >>> from hypothesis import find
    >>> x = find(tensors("float32", layout="transposed"), lambda x: x.ndim == 2 and x.size > 1)
    >>> x.shape, x.dtype.name
    ((1, 2), 'float32')
    """
    return _tensors(
        _drawn(dtype, st.sampled_from([np.dtype(np.float32), np.dtype(np.float64)])),
        _drawn(shape, shapes()),
        _one_of("layout", layout, TENSOR_LAYOUTS),
        _one_of("values", values, tuple(VALUES)),
        requires_grad,
    )


@st.composite
def _tensors(
    draw: st.DrawFn, dtypes: Any, shape: Any, layouts: Any, values: Any, requires_grad: bool
) -> Tensor:
    size, dtype, layout = tuple(draw(shape)), np.dtype(draw(dtypes)), draw(layouts)
    if layout == "0-d":
        size = ()
    elif layout == "empty":
        axis = draw(st.integers(0, max(len(size) - 1, 0)))
        size = (*size[:axis], 0, *size[axis + 1 :])
    rng = np.random.default_rng(draw(seeds))
    family = VALUES[draw(values)]
    if layout == "broadcast" and size:
        axis = draw(st.integers(0, len(size) - 1))
        one = family(rng, (*size[:axis], min(1, size[axis]), *size[axis + 1 :]), dtype)
        array = np.broadcast_to(one.astype(dtype), size)
    else:
        strided = layout if layout in LAYOUTS else "contiguous"
        array = laid_out(family(rng, size, dtype).astype(dtype), strided)
    node = leaf(array)
    node.requires_grad = requires_grad
    return node


def arrays(
    shape: Any = None, low: float | None = None, high: float | None = None
) -> st.SearchStrategy[Array]:
    """float64 arrays of normal numbers, or of uniform ones between `low` and `high`.

    >>> from hypothesis import find
    >>> find(arrays(low=1.0, high=2.0), lambda a: a.ndim == 1).shape
    (1,)
    """
    sizes = _drawn(shape, shapes())
    return st.builds(lambda size, seed: numbers(seed, size, low, high), sizes, seeds)


@st.composite
def _broadcastable(draw: st.DrawFn, n: int, max_dims: int) -> tuple[Shape, ...]:
    # An axis is drawn in one piece, with the shapes that have 1 there, so that it can be dropped.
    one = st.sampled_from([False, False, False, True])
    axes = st.tuples(st.integers(1, 4), st.tuples(*[one] * n))
    full = draw(st.lists(axes, max_size=max_dims))
    missing = st.sampled_from([0] * (2 * max_dims) + [*range(1, max_dims + 1)])
    found = []
    for i, dropped in enumerate(draw(st.tuples(*[missing] * n))):
        own = tuple(1 if is_one[i] else side for side, is_one in full)
        found.append(own[min(dropped, len(own)) :])
    return tuple(found)


def broadcastable(n: int, max_dims: int = 3) -> st.SearchStrategy[tuple[Shape, ...]]:
    """`n` shapes that broadcast together: axes of some are 1, or missing on the left.

    Raises
    ------
    ArgumentError
        `n` is below 1.

    Examples
    --------
    >>> from hypothesis import find
    >>> first, second = find(broadcastable(2), lambda pair: pair[0] != pair[1])
    >>> np.broadcast_shapes(first, second) in (first, second)
    True
    """
    if n < 1:
        raise ArgumentError("broadcastable", "n", "at least 1 shape", n)
    return _broadcastable(n, max_dims)
