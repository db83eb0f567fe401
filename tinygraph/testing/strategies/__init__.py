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

from tinygraph.base import explain, install

try:
    import hypothesis as _hypothesis  # noqa: F401
except ImportError as error:
    raise ImportError(
        explain(
            "tg.testing.strategies", "hypothesis", "the library", "no such library", install("test")
        )
    ) from error

from tinygraph.testing.problem import Bad as Bad
from tinygraph.testing.problem import Problem as Problem
from tinygraph.testing.strategies.arrays import arrays as arrays
from tinygraph.testing.strategies.arrays import broadcastable as broadcastable
from tinygraph.testing.strategies.arrays import numbers as numbers
from tinygraph.testing.strategies.arrays import seeds as seeds
from tinygraph.testing.strategies.arrays import shapes as shapes
from tinygraph.testing.strategies.arrays import tensors as tensors
from tinygraph.testing.strategies.bad_arguments import error_problems as error_problems
from tinygraph.testing.strategies.calls import axis_problems as axis_problems
from tinygraph.testing.strategies.calls import broadcastable_problems as broadcastable_problems
from tinygraph.testing.strategies.calls import class_problems as class_problems
from tinygraph.testing.strategies.calls import elementwise_problems as elementwise_problems
from tinygraph.testing.strategies.calls import linear_problems as linear_problems
from tinygraph.testing.strategies.graphs import GraphProblem as GraphProblem
from tinygraph.testing.strategies.graphs import Step as Step
from tinygraph.testing.strategies.graphs import graphs as graphs
from tinygraph.testing.strategies.losses import class_label_problems as class_label_problems
from tinygraph.testing.strategies.losses import loss_problems as loss_problems
from tinygraph.testing.strategies.losses import reductions as reductions
from tinygraph.testing.strategies.losses import same_shape_problems as same_shape_problems
from tinygraph.testing.strategies.windows import as_pair as as_pair
from tinygraph.testing.strategies.windows import conv_problems as conv_problems
from tinygraph.testing.strategies.windows import pool_problems as pool_problems
from tinygraph.testing.strategies.windows import window_problems as window_problems
