"""norm against loops: each p, zeros, lengths of 0, overflow of none."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, claims_of
from tests.ops.test_sum import LARGE_SETS, X
from tests.strategies import axis_problems
from tinygraph.errors import ArgumentError, DtypeError, ShapeError

ORDERS = [2, 1, 3.0, 0.5, -1, -2.5, math.inf, -math.inf]


@st.composite
def norm_problems(draw):
    problem = draw(axis_problems())
    return problem._replace(kwargs={**problem.kwargs, "p": draw(st.sampled_from(ORDERS))})


def of_order(problem, p):
    return problem._replace(kwargs={**problem.kwargs, "p": p})


class TestNorm(OpContract):
    function = staticmethod(tg.norm)
    reference = staticmethod(reference.norm)
    problems = norm_problems()
    large_problems = (*LARGE_SETS, *(of_order(problem, 3) for problem in LARGE_SETS))
    claims = claims_of(X, "axis", (1, "map"), (0, None), (None, None))
    conventions = [
        Convention("0", ([0.0, -0.0],), 0.0, ([0.0, 0.0],)),
        Convention("0, p = 1", ([0.0, -2.0],), 2.0, ([0.0, -1.0],), {"p": 1}),
        Convention("0, p = 3", ([0.0, 0.0],), 0.0, ([0.0, 0.0],), {"p": 3}),
        Convention("0, p = 1/2", ([0.0, 4.0],), 4.0, ([0.0, 1.0],), {"p": 0.5}),
        Convention("0, p = inf", ([0.0, 0.0],), 0.0, ([0.0, 0.0],), {"p": np.inf}),
        Convention("equals", ([-2.0, 2.0, 1.0],), 2.0, ([-0.5, 0.5, 0.0],), {"p": np.inf}),
        Convention("equals, least", ([-2.0, 2.0, 3.0],), 2.0, ([-0.5, 0.5, 0.0],), {"p": -np.inf}),
        Convention("NaN", ([np.nan, 0.0],), np.nan, ([np.nan, 0.0],)),
        Convention("nothing", ([],), 0.0, ([],)),
    ]
    bad_input = [
        Bad("axis 2", (X, 2, 2), {}, ShapeError, "axis: expected an axis from -2 to 1, got 2"),
        Bad("axis twice", (X, 2, (0, -2)), {}, ShapeError, "each axis once"),
        Bad("axis 0.5", (X, 2, 0.5), {}, DtypeError, "an int, a tuple of ints or None"),
        Bad("float16", (X.astype("f2"),), {}, DtypeError, "float32 or float64, got float16"),
        Bad("integers", ([1, 2],), {}, DtypeError, "norm: x: expected float32 or float64"),
        Bad("nuclear", (X, "nuc"), {}, ArgumentError, "p: expected a number, inf, -inf or 'fro'"),
        Bad("NaN as p", (X, math.nan), {}, ArgumentError, "norm: p: expected a finite number"),
        Bad("largest of none", (X[:0], math.inf), {}, ShapeError, "at least one element"),
    ]

    def test_the_order_of_arguments_is_that_of_pytorch(self, device):
        x = tg.Tensor([[3.0, 4.0], [0.0, -2.0]], device=device)
        assert tg.norm(x, 1, 1).value.tolist() == [7, 2]
        assert tg.norm(x, "fro", (0, 1)).item() == tg.norm(x, None).item() == x.norm().item()
        assert x.norm(dim=0, keepdim=True).shape == (1, 2)

    def test_of_order_0_it_counts(self, device):
        x = tg.Tensor([[0.0, -2.0], [3.0, 4.0]], requires_grad=True, device=device)
        y = tg.norm(x, 0, 1)
        assert y.dtype == np.float32 and y.value.tolist() == [1, 2] and not y.requires_grad

    @pytest.mark.parametrize("p", [2, 3, 1])
    def test_a_length_of_0_has_the_gradient_0(self, p, device):
        x = tg.Tensor([[0.0, 0.0], [1.0, 0.0]], requires_grad=True, device=device)
        tg.norm(x, p, 1).sum().backward()
        assert x.device.to_numpy(x.grad).tolist() == [[0, 0], [1, 0]]
