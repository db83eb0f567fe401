"""The strategies that the tests of ops draw from: those of the package, and arrays for kernels."""

from __future__ import annotations

import numpy as np

from tinygraph.testing.problem import Convention, Problem
from tinygraph.testing.strategies import (
    as_pair,
    axis_problems,
    broadcastable_problems,
    class_label_problems,
    class_problems,
    conv_problems,
    elementwise_problems,
    linear_problems,
    numbers,
    pool_problems,
    reductions,
    same_shape_problems,
    seeds,
    shapes,
    window_problems,
)

__all__ = [
    "LARGE_PAIRS",
    "as_pair",
    "axis_problems",
    "broadcastable_problems",
    "class_label_problems",
    "class_problems",
    "conv_problems",
    "elementwise_problems",
    "linear_problems",
    "numbers",
    "pool_problems",
    "reductions",
    "same_shape_problems",
    "seeds",
    "shapes",
    "window_problems",
]

# Two arrays for a loss that take more than one block; probabilities, so that every loss takes them.
LARGE_PAIRS = tuple(
    Problem((np.linspace(0.05, 0.95, n), np.linspace(1, 0, n)), {"reduction": reduction})
    for n, reduction in ((257, "mean"), (1000, "none"))
)

# Of no element the mean is NaN, without a warning, and the sum 0.
NOTHING = [
    Convention(f"the {name} of nothing", ([], []), value, kwargs={"reduction": name})
    for name, value in (("mean", float("nan")), ("sum", 0.0))
]
