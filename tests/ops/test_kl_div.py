"""kl_div against a loop over elements, and where a probability is 0."""

import math

import numpy as np
from hypothesis import strategies as st

import tinygraph as tg
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.reference.activations import pairwise
from tests.strategies import LARGE_PAIRS, numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError


def kl_div(x, y, reduction="mean", log_target=False):
    def one(log_q, p):
        if log_target:
            return math.exp(p) * (p - log_q)
        return p * (math.log(p) - log_q) if p else 0.0

    if reduction == "batchmean":
        return pairwise(one, x, y, "sum") / len(x)
    return pairwise(one, x, y, reduction)


@st.composite
def problems(draw):
    shape, log_target = draw(shapes(min_dims=1)), draw(st.booleans())
    reduction = draw(st.sampled_from(["mean", "batchmean", "sum", "none"]))
    x = numbers(draw(seeds), shape, -3, 0)
    y = numbers(draw(seeds), shape, -3, 0) if log_target else numbers(draw(seeds), shape, 0.1, 1)
    return Problem((x, y), {"reduction": reduction, "log_target": log_target})


class TestKlDiv(OpContract):
    function = staticmethod(tg.kl_div)
    reference = staticmethod(kl_div)
    problems = problems()
    large_problems = LARGE_PAIRS
    conventions = [
        Convention("no probability", ([[-1.0]], [[0.0]]), 0.0, ([[-0.0]], [[1.0]])),
        Convention("nothing", ([], []), float("nan")),
    ]
    bad_input = [
        Bad("column and row", (np.ones((3, 1)), np.ones(3)), {}, ShapeError, "the shape of x"),
        Bad("no axis", (-1.0, 0.5), {"reduction": "batchmean"}, ShapeError, "at least one axis"),
        Bad("integers", ([1], [1]), {}, DtypeError, "kl_div: x: expected float32 or float64"),
        Bad("reduction", ([1.0], [1.0], "batch"), {}, ArgumentError, "'batchmean'"),
    ]

    def test_a_negative_target_is_nan(self):
        assert np.isnan(tg.kl_div([-1.0], [-0.5]).item())
