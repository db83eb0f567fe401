"""Hypothesis strategies: tensors, calls of ops, random graphs, and calls that are wrong.

    from hypothesis import given
    from tinygraph.testing import strategies as ts

    @given(x=ts.tensors(values="ties"))
    def test_of_my_op(x): ...

Sizes and hyper-parameters are drawn one by one, so that they shrink; numbers come from a drawn
seed, so that a failing example stays small on the page: a shape, a seed, and settings.  Nothing
here knows a single op: conv_problems() serves any function with the arguments of a convolution.

They need Hypothesis, which the extra `test` installs.
"""

from tinygraph.errors import explain, install

try:
    import hypothesis as _hypothesis  # noqa: F401
except ImportError as error:
    raise ImportError(
        explain(
            "tg.testing.strategies",
            "hypothesis",
            "the library",
            "no such library",
            install("test"),
        )
    ) from error

from tinygraph.testing.problem import Bad, Problem
from tinygraph.testing.strategies.arrays import (
    arrays,
    broadcastable,
    numbers,
    seeds,
    shapes,
    tensors,
)
from tinygraph.testing.strategies.bad_arguments import error_problems
from tinygraph.testing.strategies.calls import (
    axis_problems,
    broadcastable_problems,
    class_problems,
    elementwise_problems,
    linear_problems,
)
from tinygraph.testing.strategies.graphs import GraphProblem, Step, graphs
from tinygraph.testing.strategies.losses import (
    class_label_problems,
    loss_problems,
    reductions,
    same_shape_problems,
)
from tinygraph.testing.strategies.windows import (
    as_pair,
    conv_problems,
    pool_problems,
    window_problems,
)

__all__ = [
    "Bad",
    "GraphProblem",
    "Problem",
    "Step",
    "arrays",
    "as_pair",
    "axis_problems",
    "broadcastable",
    "broadcastable_problems",
    "class_label_problems",
    "class_problems",
    "conv_problems",
    "elementwise_problems",
    "error_problems",
    "graphs",
    "linear_problems",
    "loss_problems",
    "numbers",
    "pool_problems",
    "reductions",
    "same_shape_problems",
    "seeds",
    "shapes",
    "tensors",
    "window_problems",
]
