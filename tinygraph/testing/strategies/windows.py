"""Calls of ops that slide windows over images: convolution and pooling.

Odd sizes, images that are not square, strides, paddings and dilations that differ by axis, batches
of one image, images of one channel.  They shrink to a 1 x 1 kernel over an image of one pixel.

    x   N C H W        w   O C/groups KH KW        b   O
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tinygraph.testing.problem import Problem
from tinygraph.testing.strategies.arrays import numbers, seeds


def _either(low: int, high: int) -> st.SearchStrategy[int | tuple[int, int]]:
    """An int, or a pair of ints that may differ."""
    one = st.integers(low, high)
    return st.one_of(one, st.tuples(one, one))


def as_pair(value: Any) -> tuple[Any, Any]:
    """A pair as it is, a single value twice.

    >>> as_pair(3), as_pair((1, 2))
    ((3, 3), (1, 2))
    """
    return value if isinstance(value, tuple) else (value, value)


@st.composite
def window_problems(draw: st.DrawFn, dilation: bool = True) -> Problem:
    """An image and windows over it: odd sizes, stride and padding that differ by axis, 'same'."""
    kwargs: dict[str, Any] = {"kernel_size": draw(_either(1, 3)), "stride": draw(_either(1, 3))}
    if dilation:
        kwargs["dilation"] = draw(_either(1, 2))
    kwargs["padding"] = draw(st.one_of(_either(0, 2), st.just("same")))
    gaps = as_pair(kwargs.get("dilation", 1))
    spans = [d * (k - 1) + 1 for k, d in zip(as_pair(kwargs["kernel_size"]), gaps, strict=True)]
    pad = (0, 0) if kwargs["padding"] == "same" else as_pair(kwargs["padding"])
    sides = [draw(st.integers(max(1, s - 2 * p), s + 4)) for s, p in zip(spans, pad, strict=True)]
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 2)), *sides)  # (N, C, H, W)
    return Problem((numbers(draw(seeds), shape),), kwargs, (True,))


@st.composite
def conv_problems(draw: st.DrawFn) -> Problem:
    """Images, filters and perhaps a bias, for any function with conv2d's arguments.

    Keywords: stride, padding, dilation, and groups that divide both channel counts.

    >>> from hypothesis import find
    >>> x, w, b = find(conv_problems(), lambda problem: problem.kwargs["stride"] != 1).args
    >>> x.shape, w.shape, b
    ((1, 1, 1, 1), (1, 1, 1, 1), None)
    """
    image = draw(window_problems())
    (x,), kwargs = image.args, dict(image.kwargs)
    groups = draw(st.integers(1, 2))
    kernel = as_pair(kwargs.pop("kernel_size"))
    out_channels = groups * draw(st.integers(1, 2))
    x = np.concatenate([x + i for i in range(groups)], axis=1)  # (N, groups * C, H, W)
    w = numbers(draw(seeds), (out_channels, x.shape[1] // groups, *kernel))
    b = numbers(draw(seeds), (out_channels,)) if draw(st.booleans()) else None
    carries = (True, False) if b is None else (True, False, False)
    return Problem((x, w, b), {**kwargs, "groups": groups}, carries)


@st.composite
def pool_problems(draw: st.DrawFn) -> Problem:
    """An image and pooling windows: padding of at most half the kernel, overlaps, ceil_mode.

    Keywords: kernel_size, padding, ceil_mode, and perhaps stride.

    >>> from hypothesis import find
    >>> problem = find(pool_problems(), lambda problem: problem.kwargs["kernel_size"] != 1)
    >>> problem.args[0].shape, problem.kwargs["kernel_size"]
    ((1, 1, 2, 2), 2)
    """
    kernel = draw(_either(1, 3))
    most = [k // 2 for k in as_pair(kernel)]
    differing = st.tuples(st.integers(0, most[0]), st.integers(0, most[1]))
    padding = draw(st.one_of(differing, st.just("same")))
    kwargs = {"kernel_size": kernel, "padding": padding, "ceil_mode": draw(st.booleans())}
    if draw(st.booleans()):
        kwargs["stride"] = draw(_either(1, 3))
    sides = [draw(st.integers(k, k + 5)) for k in as_pair(kernel)]
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 2)), *sides)  # (N, C, H, W)
    return Problem((numbers(draw(seeds), shape),), kwargs, (True,))
