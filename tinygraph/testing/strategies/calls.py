"""Calls of ops with one or more arrays: element by element, along axes, rows times weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tinygraph.testing.problem import Problem
from tinygraph.testing.strategies.arrays import broadcastable, numbers, seeds, shapes


@st.composite
def elementwise_problems(
    draw: st.DrawFn, low: float | None = None, high: float | None = None
) -> Problem:
    """One array of any shape; its axis 0, if it has one, is the batch."""
    shape = draw(shapes())
    return Problem((numbers(draw(seeds), shape, low, high),), {}, (True,) if shape else None)


@st.composite
def broadcastable_problems(
    draw: st.DrawFn, low: float | None = None, high: float | None = None, count: int = 2
) -> Problem:
    """`count` arrays whose shapes broadcast; some axes are 1 or missing in some of them."""
    arrays = [numbers(draw(seeds), own, low, high) for own in draw(broadcastable(count))]
    out = np.broadcast_shapes(*(a.shape for a in arrays))
    whole = tuple(a.ndim == len(out) and bool(out) and a.shape[0] == out[0] > 1 for a in arrays)
    return Problem(tuple(arrays), {}, whole if any(whole) else None)


@st.composite
def axis_problems(draw: st.DrawFn, keepdims: bool = True) -> Problem:
    """One array and an axis, several axes, or none."""
    shape = draw(shapes(min_dims=1))
    axes = st.integers(-len(shape), len(shape) - 1)
    several = st.lists(axes, unique_by=lambda a: a % len(shape), min_size=1).map(tuple)
    kwargs: dict[str, Any] = {"axis": draw(st.one_of(st.none(), axes, several))}
    if keepdims:
        kwargs["keepdims"] = draw(st.booleans())
    return Problem((numbers(draw(seeds), shape),), kwargs, (True,))


@st.composite
def class_problems(draw: st.DrawFn) -> Problem:
    """One array with at least one axis, and a single axis of it."""
    shape = draw(shapes(min_dims=1))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    return Problem((3 * numbers(draw(seeds), shape),), {"axis": axis}, (True,))


@st.composite
def linear_problems(draw: st.DrawFn) -> Problem:
    """Rows of features, weights (out x in), and perhaps a bias."""
    features, out = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    x = numbers(draw(seeds), (*draw(shapes(max_dims=3)), features))
    w = numbers(draw(seeds), (out, features))
    b = numbers(draw(seeds), (out,)) if draw(st.booleans()) else None
    return Problem((x, w, b), {}, (True, False) if b is None else (True, False, False))
