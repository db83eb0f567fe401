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
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

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

    # A norm grows with its vector, and its gradient stays: the oracle is that of ordinary numbers.
    @pytest.mark.parametrize("p", [2, 1, 3, 4, 30, 1.5, 0.5, -1, -2, -30, math.inf, -math.inf])
    @pytest.mark.parametrize(
        ("dtype", "scales"),
        [
            ("float32", [1e-36, 1e-23, 1e-14, 1e15, 1e20, 5e36]),
            ("float64", [1e-300, 1e-200, 1e-80, 1e80, 1e200, 1e300]),
        ],
    )
    def test_vectors_whose_powers_are_out_of_range(self, p, dtype, scales, device):
        v = np.array([[3.0, -4.0, 1.0], [1.0, 1.0, 2.0], [0.0, 0.0, 0.0]]) + np.zeros((1, 1))
        for scale in scales:
            many = np.stack([v, v * scale]).astype(dtype)  # (2, 3, 3), ordinary ones beside them
            for axis, x in ((2, many), (1, many.swapaxes(1, 2))):
                node = tg.Tensor(np.ascontiguousarray(x), requires_grad=True, device=device)
                y = tg.norm(node, p, axis)
                y.backward(np.full(y.shape, 2, dtype))
                norms = [reference.norm(row, p) for row in v[:2]]
                tolerance = {"rtol": 1e-5 if dtype == "float32" else 1e-12}
                np.testing.assert_allclose(y.value[0, :2], norms, **tolerance)
                np.testing.assert_allclose(y.value[1, :2] / scale, norms, **tolerance)
                np.testing.assert_array_equal(y.value[:, 2], 0)
                g = node.grad if axis == 2 else node.grad.swapaxes(1, 2)
                np.testing.assert_allclose(g[1], g[0], **tolerance)
                np.testing.assert_array_equal(g[:, 2], 0)

    @pytest.mark.parametrize("p", [2, 4, -1])
    def test_a_large_array_of_small_numbers(self, p, device):
        """Of all elements, in several blocks of a kernel."""
        x = np.full((3, 9000), 1e-23, np.float32)
        node = tg.Tensor(x, requires_grad=True, device=device)
        y = tg.norm(node, p)
        y.backward(np.ones((), np.float32))
        assert y.item() == pytest.approx(1e-23 * 27000 ** (1 / p), rel=1e-5)
        np.testing.assert_allclose(node.grad, 27000 ** (1 / p - 1), rtol=1e-4)

    def test_the_two_examples(self, device):
        for x, p, norm, slope in (
            ([1e-23] * 2, 2, 2**0.5 * 1e-23, 0.5**0.5),
            ([1e-14] * 2, 4, 2**0.25 * 1e-14, 0.5**0.75),
        ):
            node = tg.Tensor(x, requires_grad=True, device=device)
            y = tg.norm(node, p)
            y.backward()
            assert y.item() == pytest.approx(norm, rel=1e-6)
            np.testing.assert_allclose(node.grad, slope, rtol=1e-6)

    @pytest.mark.parametrize("p", [0.5, 1.1])
    def test_numbers_of_which_one_is_far_smaller(self, p, device):
        """Their ratio is 0 in float32, its power is not."""
        x = tg.Tensor(np.array([1e-38, 1e10], np.float32), requires_grad=True, device=device)
        tg.norm(x, p).backward()
        small = np.float64(x.value[0])
        np.testing.assert_allclose(x.grad, [(small / 1e10) ** (p - 1), 1], rtol=1e-5)

    @pytest.mark.parametrize("p", [2, 3, 0.5, -1])
    def test_what_is_not_finite_shows(self, p, device):
        x = [[np.nan, 1e-30], [np.inf, 1e30], [np.nan, np.inf], [1e-30, 1e-30]]
        y = tg.norm(tg.Tensor(np.array(x, np.float32), device=device), p, 1).value
        assert np.isnan(y[[0, 2]]).all()
        assert y[1] == (np.inf if p > 0 else np.float32(1e30))
        assert y[3] == pytest.approx(1e-30 * 2 ** (1 / p), rel=1e-6)

    def test_ordinary_rows_keep_their_bits_beside_small_ones(self):
        x = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float32)
        both = np.concatenate([x, x * np.float32(1e-30)])
        for p in (2, 3, 0.7):
            alone = tg.norm(tg.Tensor(x), p, 1).value
            np.testing.assert_array_equal(tg.norm(tg.Tensor(both), p, 1).value[:50], alone)
