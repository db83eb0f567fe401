"""Problems for the ops that fuse a convolution, ReLU and max-pooling."""

import numpy as np
from hypothesis import strategies as st

from tests.op_contract import Problem
from tests.strategies import numbers, seeds


@st.composite
def fused_problems(draw):
    """Images, filters and, mostly, biases."""
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
    b = numbers(draw(seeds), (d,)) if draw(st.booleans()) else None
    return Problem((x, w, b), kwargs, (True, False) if b is None else (True, False, False))


def large(x_shape, w_shape, bias=True, **kwargs):
    """A problem of a given size."""
    b = numbers(3, (w_shape[0],)) if bias else None
    return Problem((numbers(1, x_shape), numbers(2, w_shape), b), kwargs)


def extreme_images(seed, shape):
    """Many ties, zeros, NaN and infinities."""
    rng = np.random.default_rng(seed)
    values = [0.0, -0.0, 1.0, -1.0, -np.inf, np.inf, np.nan]
    return rng.choice(values, shape, p=[0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1])
