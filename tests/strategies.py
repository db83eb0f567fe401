"""Hypothesis strategies for problems: calls of an op with arrays of small, odd shapes.

Sizes are drawn, so that they shrink; the numbers come from a drawn seed.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.op_contract import Problem

seeds = st.integers(0, 2**32 - 1)


def numbers(seed, shape, low=None, high=None):
    """Normal numbers, or uniform ones where bounds are given; float64."""
    rng = np.random.default_rng(seed)
    if low is None:
        return rng.standard_normal(shape)
    return rng.uniform(low, high, shape)


def shapes(min_dims=0, max_dims=4, min_side=1, max_side=4):
    return st.lists(
        st.integers(min_side, max_side), min_size=min_dims, max_size=max_dims
    ).map(tuple)


@st.composite
def elementwise_problems(draw, low=None, high=None):
    """One array of any shape; its axis 0, if it has one, is the batch."""
    shape = draw(shapes())
    return Problem((numbers(draw(seeds), shape, low, high),), {}, (True,) if shape else None)


@st.composite
def broadcastable_problems(draw, low=None, high=None, count=2):
    """`count` arrays whose shapes broadcast; some axes are 1 or missing in some of them."""
    full = draw(shapes(max_dims=3))
    arrays = []
    for _ in range(count):
        own = tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in full)
        own = own[draw(st.integers(0, len(own))) if draw(st.integers(0, 3)) == 0 else 0 :]
        arrays.append(numbers(draw(seeds), own, low, high))
    out = np.broadcast_shapes(*(a.shape for a in arrays))
    whole = tuple(a.ndim == len(out) and bool(out) and a.shape[0] == out[0] > 1 for a in arrays)
    return Problem(tuple(arrays), {}, whole if any(whole) else None)


@st.composite
def axis_problems(draw, keepdims=True):
    """One array and an axis, several axes, or none."""
    shape = draw(shapes(min_dims=1))
    axes = st.integers(-len(shape), len(shape) - 1)
    several = st.lists(axes, unique_by=lambda a: a % len(shape), min_size=1).map(tuple)
    kwargs = {"axis": draw(st.one_of(st.none(), axes, several))}
    if keepdims:
        kwargs["keepdims"] = draw(st.booleans())
    return Problem((numbers(draw(seeds), shape),), kwargs, (True,))


@st.composite
def class_problems(draw):
    """One array with at least one axis, and a single axis of it."""
    shape = draw(shapes(min_dims=1))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    return Problem((3 * numbers(draw(seeds), shape),), {"axis": axis}, (True,))


@st.composite
def _either(draw, low, high):
    """An int, or a pair of ints that may differ."""
    one = st.integers(low, high)
    return draw(st.one_of(one, st.tuples(one, one)))


def as_pair(value):
    return value if isinstance(value, tuple) else (value, value)


@st.composite
def window_problems(draw, dilation=True):
    """An image and windows over it: odd sizes, stride and padding that differ by axis, 'same'."""
    kwargs = {"kernel_size": draw(_either(1, 3)), "stride": draw(_either(1, 3))}
    if dilation:
        kwargs["dilation"] = draw(_either(1, 2))
    pads = st.one_of(st.just("same"), _either(0, 2))
    kwargs["padding"] = draw(pads)
    spans = [
        d * (k - 1) + 1
        for k, d in zip(
            as_pair(kwargs["kernel_size"]), as_pair(kwargs.get("dilation", 1)), strict=True
        )
    ]
    pad = (0, 0) if kwargs["padding"] == "same" else as_pair(kwargs["padding"])
    sides = [
        draw(st.integers(max(1, s - 2 * p), s + 4)) for s, p in zip(spans, pad, strict=True)
    ]
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 2)), *sides)
    return Problem((numbers(draw(seeds), shape),), kwargs, (True,))


@st.composite
def conv_problems(draw):
    """Images, filters and perhaps a bias; groups that divide both channel counts."""
    image = draw(window_problems())
    (x,), kwargs = image.args, dict(image.kwargs)
    groups = draw(st.integers(1, 2))
    kernel = as_pair(kwargs.pop("kernel_size"))
    out_channels = groups * draw(st.integers(1, 2))
    x = np.concatenate([x + i for i in range(groups)], axis=1)
    w = numbers(draw(seeds), (out_channels, x.shape[1] // groups, *kernel))
    b = numbers(draw(seeds), (out_channels,)) if draw(st.booleans()) else None
    carries = (True, False) if b is None else (True, False, False)
    return Problem((x, w, b), {**kwargs, "groups": groups}, carries)


@st.composite
def pool_problems(draw):
    """An image and pooling windows: padding of at most half the kernel, overlaps, ceil_mode."""
    kernel = draw(_either(1, 3))
    most = [k // 2 for k in as_pair(kernel)]
    padding = draw(
        st.one_of(st.just("same"), st.tuples(st.integers(0, most[0]), st.integers(0, most[1])))
    )
    kwargs = {"kernel_size": kernel, "padding": padding, "ceil_mode": draw(st.booleans())}
    if draw(st.booleans()):
        kwargs["stride"] = draw(_either(1, 3))
    sides = [draw(st.integers(k, k + 5)) for k in as_pair(kernel)]
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 2)), *sides)
    return Problem((numbers(draw(seeds), shape),), kwargs, (True,))


@st.composite
def linear_problems(draw):
    """Rows of features, weights, and perhaps a bias."""
    features, out = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    x = numbers(draw(seeds), (*draw(shapes(max_dims=3)), features))
    w = numbers(draw(seeds), (out, features))
    b = numbers(draw(seeds), (out,)) if draw(st.booleans()) else None
    return Problem((x, w, b), {}, (True, False) if b is None else (True, False, False))


reductions = st.sampled_from(["mean", "sum", "none"])


@st.composite
def class_label_problems(draw):
    """Logits with integer labels, some of them perhaps ignored, or with probabilities."""
    n, c = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    rest = draw(shapes(max_dims=2, max_side=3))
    rng = np.random.default_rng(draw(seeds))
    logits = 3 * rng.standard_normal((n, c, *rest))
    kwargs = {"reduction": draw(reductions)}
    if draw(st.booleans()):
        labels = rng.dirichlet(np.ones(c), (n, *rest))
        labels *= rng.uniform(0.5, 2, (n, *rest, 1))  # weights need not have sum 1
        return Problem((logits, np.moveaxis(labels, -1, 1)), kwargs, (True, True))
    labels = rng.integers(0, c, (n, *rest))
    if draw(st.booleans()):
        kwargs["ignore_index"] = -1
        labels[rng.random(labels.shape) < 0.3] = -1
        labels[(0,) * labels.ndim] = 0  # the mean of no label at all is NaN: tested by itself
    return Problem((logits, labels), kwargs, (True, True))


@st.composite
def same_shape_problems(draw):
    """Two arrays of one shape, and a reduction."""
    shape = draw(shapes(min_dims=1))
    arrays = numbers(draw(seeds), shape), numbers(draw(seeds), shape)
    return Problem(arrays, {"reduction": draw(reductions)}, (True, True))


# Two arrays for a loss that take more than one block; probabilities, so that every loss takes them.
LARGE_PAIRS = tuple(
    Problem((np.linspace(0.05, 0.95, n), np.linspace(1, 0, n)), {"reduction": reduction})
    for n, reduction in ((257, "mean"), (1000, "none"))
)
