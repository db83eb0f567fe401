"""Problems for the ops that fuse a convolution, ReLU and max-pooling."""

import numpy as np
from hypothesis import strategies as st

from tests.op_contract import Problem
from tests.strategies import numbers, seeds
from tinygraph.shapes import windows


def pooled_sides(image, kernel, stride, padding, dilation, pool):
    """PH and PW."""
    pads = ("same", "same") if padding == "same" else padding
    return [
        windows("test", *side).out // pool
        for side in zip(image, kernel, stride, pads, dilation, strict=True)
    ]


@st.composite
def fused_problems(draw, head=False):
    """Images, filters, biases and, with `head`, a linear layer over the pooled values."""
    pair = st.tuples(st.integers(1, 2), st.integers(1, 2))
    pool, stride, dilation = draw(st.integers(2, 3)), draw(pair), draw(pair)
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    padding = draw(st.one_of(st.just("same"), st.tuples(st.integers(0, 1), st.integers(0, 1))))
    image = [
        (pool - 1) * s + d * (k - 1) + 1 + draw(st.integers(0, 3))
        for s, d, k in zip(stride, dilation, kernel, strict=True)
    ]
    if padding == "same":  # ceil(image / stride) outputs
        image = [max(side, pool * s) for side, s in zip(image, stride, strict=True)]
    n, c, d = draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    x, w = numbers(draw(seeds), (n, c, *image)), numbers(draw(seeds), (d, c, *kernel))
    kwargs = {"stride": stride, "padding": padding, "dilation": dilation, "pool": pool}
    b = numbers(draw(seeds), (d,)) if head or draw(st.booleans()) else None
    if not head:
        return Problem((x, w, b), kwargs, (True, False) if b is None else (True, False, False))
    ph, pw = pooled_sides(image, kernel, stride, padding, dilation, pool)
    outs = draw(st.integers(1, 12))
    linear = numbers(draw(seeds), (outs, d * ph * pw)), numbers(draw(seeds), (outs,))
    return Problem((x, w, b, *linear), kwargs, (True, False, False, False, False))


def large(x_shape, w_shape, outs=None, bias=True, **kwargs):
    """A problem of a given size; with `outs`, for the op with a linear layer."""
    b = numbers(3, (w_shape[0],)) if bias else None
    problem = numbers(1, x_shape), numbers(2, w_shape), b
    if outs:
        settings = {"stride": 1, "padding": (0, 0), "dilation": 1, "pool": 2} | kwargs
        pairs = [
            v if isinstance(v, tuple) or v == "same" else (v, v)
            for v in list(settings.values())[:3]
        ]
        sides = pooled_sides(x_shape[2:], w_shape[2:], *pairs, settings["pool"])
        features = w_shape[0] * sides[0] * sides[1]
        problem += numbers(4, (outs, features)), numbers(5, (outs,))
    return Problem(problem, kwargs)


def extreme_images(seed, shape):
    """Many ties, zeros, NaN and infinities."""
    rng = np.random.default_rng(seed)
    values = [0.0, -0.0, 1.0, -1.0, -np.inf, np.inf, np.nan]
    return rng.choice(values, shape, p=[0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1])
