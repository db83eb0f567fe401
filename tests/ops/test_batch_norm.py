"""batch_norm against loops, in training and evaluation, and what it does to running statistics."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import LAYOUTS, Bad, OpContract, Problem, cast, laid_out
from tests.strategies import numbers, seeds, shapes
from tinygraph.errors import ArgumentError, DtypeError, ShapeError

X = np.arange(12.0).reshape(4, 3)
C = np.ones(3)


@st.composite
def normalization_problems(draw, training=None):
    """Any of weight, bias and the running statistics may be absent where that is allowed."""
    shape = draw(shapes(2, 4, max_side=3))
    training = draw(st.booleans()) if training is None else training
    if training and shape[0] * np.prod(shape[2:]) < 4:  # two numbers may be equal up to rounding
        shape = (4, *shape[1:])
    x = 2 * numbers(draw(seeds), shape) + 3
    channels = shape[1:2]
    weight = numbers(draw(seeds), channels) if draw(st.booleans()) else None
    bias = numbers(draw(seeds), channels) if draw(st.booleans()) else None
    mean = var = None
    if not training or draw(st.booleans()):
        mean, var = numbers(draw(seeds), channels), numbers(draw(seeds), channels, 0.5, 2.0)
    kwargs = {"training": training, "eps": draw(st.sampled_from([1e-5, 0.1]))}
    arrays = (x, weight, bias, mean, var)
    carries = tuple(i == 0 for i, a in enumerate(arrays) if a is not None)
    return Problem(arrays, kwargs, carries)


class TestBatchNorm(OpContract):
    function = staticmethod(tg.batch_norm)
    reference = staticmethod(reference.batch_norm)
    problems = normalization_problems()
    constants = (3, 4)
    tolerance = 20.0  # a small variance makes large quotients
    bad_input = [
        Bad("one axis", (X[0], None, None, C, C), {}, ShapeError, "(N, C) or (N, C, D...)"),
        Bad("weight", (X, C[:2], None, C, C), {}, ShapeError, "weight: expected shape (3,)"),
        Bad("bias", (X, C, X, C, C), {}, ShapeError, "bias: expected shape (3,)"),
        Bad("running mean", (X, C, C, C[:1], C), {}, ShapeError, "running_mean: expected shape"),
        Bad("running var", (X, C, C, C, X), {}, ShapeError, "running_var: expected shape (3,)"),
        Bad("nothing to use", (X, C, C), {}, ArgumentError, "both where training is False"),
        Bad("mean alone", (X, C, C, C), {"training": True}, ArgumentError, "both or neither"),
        Bad("var alone", (X, C, C, None, C), {}, ArgumentError, "running_mean: expected"),
        Bad("one number", (X[:1],), {"training": True}, ShapeError, "at least 2 numbers in each"),
        Bad("no number", (X[:0],), {"training": True}, ShapeError, "at least 2 numbers in each"),
        Bad("integers", (X.astype(int),), {"training": True}, DtypeError, "float32 or float64"),
        Bad("dtype", (X, C.astype("f4"), None, C, C), {}, DtypeError, "weight: expected float64"),
        Bad("statistics", (X, C, C, C, C.astype("f4")), {}, DtypeError, "running_var: expected"),
        Bad("momentum", (X,), {"training": True, "momentum": 1.5}, ArgumentError, "0 to 1"),
        Bad("no momentum", (X,), {"training": True, "momentum": None}, ArgumentError, "a finite"),
        Bad("eps", (X,), {"training": True, "eps": -1e-5}, ArgumentError, "eps: expected 0"),
        Bad("a parameter", (X, C, C, tg.Parameter(C), C), {}, ArgumentError, "mean.detach()"),
    ]

    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @given(problem=normalization_problems(training=True), momentum=st.floats(0, 1), seed=seeds)
    def test_running_statistics(self, dtype, layout, problem, momentum, seed):
        """Once for each training evaluation, in place, in any memory layout."""
        x, weight, bias = (cast(a, dtype) for a in problem.args[:3])
        start = [numbers(seed, x.shape[1:2]), numbers(seed + 1, x.shape[1:2], 0.5, 2.0)]
        start = [a.astype(dtype) for a in start]
        mean, var = (tg.Tensor(0.0) for _ in start)
        mean.value, var.value = (laid_out(a.copy(), layout) for a in start)
        arrays = mean.value, var.value
        y = tg.batch_norm(x, weight, bias, mean, var, True, momentum)
        assert mean.value is arrays[0] and var.value is arrays[1]
        expected = start
        for _ in range(2):
            expected = reference.running_statistics(x.astype(float), *expected, momentum)
            bound = 1e-4 if dtype == np.float32 else 1e-11
            np.testing.assert_allclose(mean.value, expected[0], rtol=bound, atol=bound)
            np.testing.assert_allclose(var.value, expected[1], rtol=bound, atol=bound)
            tg.Graph(y).forward()  # the second evaluation

    def test_updates_names_what_is_written(self):
        for absent, positions in (((), (3, 4)), ((0,), (2, 3)), ((0, 1), (1, 2))):
            affine = [None if i in absent else C for i in range(2)]
            y = tg.batch_norm(X, *affine, C.copy(), C.copy(), training=True)
            assert y.op.updates == positions
            assert tg.batch_norm(X, *affine, C, C).op.updates == ()
        assert tg.batch_norm(X, training=True).op.updates == ()

    def test_evaluation_and_backward_write_nothing(self):
        mean, var = tg.Tensor(C), tg.Tensor(C)
        y = tg.batch_norm(tg.Tensor(X, requires_grad=True), C, C, mean, var, training=True)
        after = mean.value.copy(), var.value.copy()
        y.backward(np.ones(y.shape))
        tg.batch_norm(X, C, C, mean, var)
        np.testing.assert_array_equal(mean.value, after[0])
        np.testing.assert_array_equal(var.value, after[1])

    def test_no_grad_does_not_stop_the_statistics(self):
        mean, var = tg.Tensor(C), tg.Tensor(C)
        with tg.no_grad():
            tg.batch_norm(X, None, None, mean, var, training=True, momentum=1.0)
        np.testing.assert_allclose(mean.value, [4.5, 5.5, 6.5])
        np.testing.assert_allclose(var.value, [15, 15, 15])  # 0, 3, 6, 9: 45 / 3

    def test_a_statistic_that_is_no_leaf_is_refused(self):
        node = tg.Tensor(C, requires_grad=True) * 2
        with pytest.raises(ArgumentError, match="a leaf that requires no gradient"):
            tg.batch_norm(X, None, None, node, C)

    @pytest.mark.parametrize("offset", [1e4, -3e5])
    def test_a_mean_far_from_zero_in_float32(self, offset):
        """mean of x^2 minus squared mean would have no correct digit left here."""
        rng = np.random.default_rng(0)
        x = (offset + rng.standard_normal((64, 2, 8, 8))).astype(np.float32)
        mean, var = tg.zeros(2), tg.zeros(2)
        y = tg.batch_norm(x, None, None, mean, var, training=True, momentum=1.0)
        exact = x.astype(np.float64)
        np.testing.assert_allclose(mean.value, exact.mean((0, 2, 3)), rtol=1e-7)
        np.testing.assert_allclose(var.value, exact.var((0, 2, 3), ddof=1), rtol=1e-5)
        deviation = np.sqrt(exact.var((0, 2, 3), keepdims=True) + 1e-5)
        np.testing.assert_allclose(
            y.value, (exact - exact.mean((0, 2, 3), keepdims=True)) / deviation, atol=2e-5
        )

    def test_a_constant_channel(self):
        """Variance 0: eps alone is under the root, and nothing is NaN."""
        x = tg.Tensor(np.full((3, 1), 7.0), requires_grad=True)
        y = tg.batch_norm(x, training=True)
        np.testing.assert_array_equal(y.value, np.zeros((3, 1)))
        y.backward(np.array([[1.0], [2.0], [3.0]]))
        np.testing.assert_allclose(x.grad[:, 0], np.array([-1, 0, 1]) / np.sqrt(1e-5), rtol=1e-12)

    def test_nothing_is_kept_without_gradients(self):
        assert tg.batch_norm(X, C, C, C, C).saved is None
        weightless = tg.batch_norm(tg.Tensor(X, requires_grad=True), C, C, C, C)
        assert weightless.saved[0] is None  # x - mean is for the gradient of the weight alone
