"""group_norm and instance_norm against loops over groups."""

import math

import numpy as np
from hypothesis import strategies as st

import tinygraph as tg
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.reference.normalization import mean, variance
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.arange(24.0).reshape(2, 4, 3)
ARRAYS = ("x", "weight", "bias")


def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    size, y = x.shape[1] // num_groups, np.empty(x.shape)
    for n in range(x.shape[0]):
        for first in range(0, x.shape[1], size):
            group = x[n, first : first + size].ravel().tolist()
            m, s = mean(group), math.sqrt(variance(group) + eps)
            for c in range(first, first + size):
                scale = 1.0 if weight is None else weight[c]
                y[n, c] = (x[n, c] - m) / s * scale + (0.0 if bias is None else bias[c])
    return y


def instance_norm(x, weight=None, bias=None, eps=1e-5):
    return group_norm(x, x.shape[1], weight, bias, eps)


@st.composite
def channel_problems(draw, groups=True):
    """Groups of at least two numbers, so that there is a variance."""
    count, each = draw(st.integers(1, 3)), draw(st.integers(1, 2)) if groups else 1
    shape = (draw(st.integers(1, 3)), count * each, *draw(shapes(0, 1, max_side=2)))
    shape += (draw(st.integers(2, 4)),)
    x = 2 * numbers(draw(seeds), shape) + 3
    weight, bias = [
        numbers(draw(seeds), shape[1:2]) if draw(st.booleans()) else None for _ in range(2)
    ]
    kwargs = {"eps": draw(st.sampled_from([1e-2, 0.1]))}
    kwargs |= {"num_groups": count} if groups else {}
    carries = tuple(i == 0 for i, a in enumerate((x, weight, bias)) if a is not None)
    return Problem((x, weight, bias), kwargs, carries if len(carries) == 1 else None, ARRAYS)


class TestGroupNorm(OpContract):
    function = staticmethod(tg.group_norm)
    reference = staticmethod(group_norm)
    problems = channel_problems()
    tolerance = 20.0  # a small variance makes large quotients
    conventions = [
        Convention("all alike", ([[2.0, 2.0]],), [[0, 0]], ([[0, 0]],), {"num_groups": 1}),
    ]
    bad_input = [
        Bad(
            "groups", (X, 3), {}, ArgumentError, "num_groups: expected a divisor of the 4 channels"
        ),
        Bad("no group", (X, 0), {}, ArgumentError, "num_groups: expected an int of at least 1"),
        Bad("no channels", (X[0, 0], 1), {}, ShapeError, "(N, C) or (N, C, D...)"),
        Bad("nothing", (X[:, :, :0], 2), {}, ShapeError, "at least one number in each group"),
        Bad("weight", (X, 2, np.ones(2)), {}, ShapeError, "weight: expected shape (4,)"),
        Bad("bias", (X, 2, None, np.ones(3)), {}, ShapeError, "bias: expected shape (4,)"),
        Bad("eps", (X, 2), {"eps": -1}, ArgumentError, "eps: expected a number of at least 0"),
        Bad("integers", (X.astype(int), 2), {}, DtypeError, "x: expected float32 or float64"),
    ]


class TestInstanceNorm(OpContract):
    function = staticmethod(tg.instance_norm)
    reference = staticmethod(instance_norm)
    problems = channel_problems(groups=False)
    tolerance = 20.0
    conventions = [Convention("one number", ([[[7.0]]],), [[[0.0]]], ([[[0.0]]],))]
    bad_input = [
        Bad("no positions", (X[0],), {}, ShapeError, "(N, C, D...) with at least one channel"),
        Bad("weight", (X, np.ones(2)), {}, ShapeError, "weight: expected shape (4,)"),
        Bad("integers", (X.astype(int),), {}, DtypeError, "x: expected float32 or float64"),
    ]
