"""var and std against exact fractions; far from zero, too few elements, several divisors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.conftest import DEVICES
from tests.op_contract import Bad, Convention, OpContract, claims_of
from tests.ops.test_sum import BAD_AXES, LARGE_SETS, X
from tests.strategies import axis_problems, numbers, seeds
from tinygraph.base.errors import ArgumentError, DtypeError


@st.composite
def var_problems(draw):
    """Axes, and a correction that leaves something to divide by."""
    problem = draw(axis_problems())
    correction = draw(st.sampled_from([0, -1, 0.5]))
    return problem._replace(kwargs={**problem.kwargs, "correction": correction})


def sum_of_two(function, x, axis, keepdims, correction):
    mean = reference.mean_over(x, axis, keepdims)
    return function(x, axis, keepdims, correction) + 3 * mean


class TestVar(OpContract):
    function = staticmethod(tg.var)
    reference = staticmethod(reference.var)
    problems = var_problems()
    large_problems = LARGE_SETS
    claims = claims_of(
        np.ones((2, 3, 4)), "axis", (1, "map"), ((-1, 1), "map"), (0, None), (None, None)
    )
    bad_input = [
        *BAD_AXES,
        Bad("integers", (X.astype(int),), {}, DtypeError, "float32 or float64, got int64"),
        Bad("no number", (X,), {"correction": "x"}, ArgumentError, "correction: expected a finite"),
        Bad("infinite", (X,), {"correction": np.inf}, ArgumentError, "a finite number"),
        Bad("ddof", (X,), {"ddof": "x"}, ArgumentError, "ddof: expected a finite"),
        Bad("two", (X,), {"ddof": 0, "unbiased": True}, ArgumentError, "got unbiased and ddof"),
        Bad("a bool as axis", (X, False), {}, DtypeError, "axis: expected an int"),
    ]
    conventions = [Convention("unbiased by default", ([1.0, 2.0, 3.0],), 1.0, ([-1.0, 0.0, 1.0],))]

    @pytest.mark.parametrize("function", [tg.var, tg.std])
    def test_the_correction_under_each_of_its_names(self, function, device):
        x = tg.Tensor([[1.0, 2.0, 6.0]], device=device)
        given = getattr(np, function.__name__)
        for less, names in ((1, [{}, {"unbiased": True}]), (0, [{"unbiased": False}]), (2, [])):
            for kwargs in (*names, {"correction": less}, {"ddof": less}):
                expected = given(x.numpy(), ddof=less)
                np.testing.assert_allclose(function(x, **kwargs).value, expected, rtol=1e-6)
        positional = function(x, 1, False, True)  # as in PyTorch: axis, unbiased, keepdims
        np.testing.assert_allclose(positional.value, given(x.numpy(), 1, keepdims=True), rtol=1e-6)

    @pytest.mark.parametrize("device", DEVICES)
    @given(seed=seeds, axis=st.sampled_from([0, 1, None]))
    def test_float32_far_from_zero(self, device, seed, axis):
        """A mean of 10000 standard deviations: x**2 alone needs more digits than float32 has."""
        x = (numbers(seed, (50, 40)) + 1e4).astype(np.float32)
        node = tg.Tensor(x, requires_grad=True, device=device)
        y = tg.var(node, axis, correction=0)
        exact = reference.var(x.astype(float), axis, correction=0)
        np.testing.assert_allclose(y.value, exact, rtol=1e-5)
        y.backward(np.ones(y.shape))
        wide = x.astype(float)
        centred = wide - wide.mean(axis=axis, keepdims=True)
        count = x.size // y.size
        np.testing.assert_allclose(node.grad, 2 * centred / count, rtol=1e-4, atol=1e-5 / count)

    def test_the_mean_of_a_long_axis_is_rounded_but_centred_again(self, device):
        """Row by row, a float32 sum of 1e5 numbers near 1e4 is off by more than their spread."""
        x = (numbers(7, (100_000, 2), -1, 1) + 1e4).astype(np.float32)
        y = tg.var(tg.Tensor(x, device=device), 0, correction=0)
        np.testing.assert_allclose(y.value, x.astype(float).var(axis=0), rtol=1e-3)

    @pytest.mark.parametrize("length", [30, 900, 20_000])
    def test_equal_elements_have_no_variance(self, length, device):
        """However their mean is rounded."""
        x = tg.Tensor(np.full((2, length), 0.1, np.float32), device=device)
        assert (tg.var(x, 1).value >= 0).all() and (tg.var(x, 1).value < 1e-16).all()

    def test_one_element_or_none(self, device):
        x = tg.Tensor([[3.0]], requires_grad=True, device=device)
        tg.var(x, 1, correction=0).backward([1.0])
        assert x.grad.tolist() == [[0]] and tg.var(x, correction=0).item() == 0
        assert np.isnan(tg.var(x).item())
        two, none = tg.Tensor([1.0, 2.0], device=device), tg.Tensor(X[:0], device=device)
        assert tg.var(two, correction=3).item() == np.inf  # as in numpy: divided by 0
        assert np.isnan(tg.var(none, 0).value).all() and tg.var(none, 1).shape == (0,)
        assert tg.var(none, 0, correction=-1).value.tolist() == [0, 0, 0]


class TestStd(OpContract):
    function = staticmethod(tg.std)
    reference = staticmethod(reference.std)
    problems = var_problems()
    large_problems = LARGE_SETS
    claims = claims_of(np.ones((2, 3)), "axis", (1, "map"), (0, None), (None, None))
    conventions = [
        Convention("unbiased by default", ([1.0, 2.0, 3.0],), 1.0, ([-0.5, 0.0, 0.5],)),
        Convention("all equal", ([2.0, 2.0],), 0.0, ([0.0, 0.0],)),
        Convention("of one", ([2.0],), 0.0, ([0.0],), {"correction": 0}),
        Convention("NaN", ([2.0, np.nan],), np.nan, ([np.nan, np.nan],)),
    ]
    bad_input = [
        *BAD_AXES,
        Bad("integers", (X.astype(int),), {}, DtypeError, "float32 or float64, got int64"),
        Bad("no number", (X,), {"correction": "x"}, ArgumentError, "correction: expected a finite"),
    ]

    @pytest.mark.parametrize("scale", [1e-30, 1e-23, 1e20, 1e37])
    def test_numbers_whose_squares_are_out_of_range(self, scale):
        """A deviation grows with its numbers, and its gradient stays."""
        v = np.array([[1.0, -2.0, 4.0], [3.0, 5.0, 5.0], [7.0, 7.0, 7.0]])
        for correction, axis in ((0, 1), (1, 1), (1, 0)):
            x = (scale * v if axis else scale * v.T).astype(np.float32)
            node = tg.Tensor(x, requires_grad=True)
            y = tg.std(node, axis, correction=correction)
            y.backward(np.full(3, 2, np.float32))
            wide = np.moveaxis(x.astype(np.float64), axis, 1)
            d = wide - wide.mean(1, keepdims=True)
            deviation = np.sqrt((d * d).sum(1) / (3 - correction))
            np.testing.assert_allclose(y.value, deviation, rtol=1e-5)
            assert y.value[2] == 0
            slope = np.divide(2 * d, deviation[:, None], where=[[True], [True], [False]], out=0 * d)
            got = np.moveaxis(node.grad, axis, 1)
            np.testing.assert_allclose(got, slope / (3 - correction), rtol=1e-4, atol=1e-6)
            with tg.no_grad():
                np.testing.assert_array_equal(
                    tg.std(node, axis, correction=correction).value, y.value
                )


class _SpreadOfTwo:
    """A function that gives two tensors: the contract looks at a weighted sum of them."""

    problems = var_problems()
    bad_input = TestStd.bad_input

    def apply(self, problem, nodes):
        spread, mean = self.function(*nodes, **problem.kwargs)
        return spread + 3 * mean


class TestVarMean(_SpreadOfTwo, OpContract):
    function = staticmethod(tg.var_mean)
    reference = staticmethod(lambda x, **kwargs: sum_of_two(reference.var, x, **kwargs))
    conventions = [Convention("one", ([2.0],), np.nan, ([np.nan],))]

    def test_they_are_two_tensors(self):
        spread, mean = tg.var_mean(X, 1, keepdims=True)
        assert spread.shape == mean.shape == (2, 1)


class TestStdMean(_SpreadOfTwo, OpContract):
    function = staticmethod(tg.std_mean)
    reference = staticmethod(lambda x, **kwargs: sum_of_two(reference.std, x, **kwargs))
    conventions = [Convention("all equal", ([2.0, 2.0],), 6.0, ([1.5, 1.5],))]
