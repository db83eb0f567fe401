"""batch_norm against loops, in training and evaluation, and what it does to running statistics."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import KERNEL_EXAMPLES, LAYOUTS, Bad, OpContract, Problem, cast, laid_out
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

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


def large_problem(shape, **kwargs):
    """Weight, bias and running statistics; a mean that differs from channel to channel."""
    rng = np.random.default_rng(sum(shape))
    channels = shape[1]
    x = rng.standard_normal(shape) + rng.uniform(-20, 20, (channels, *(1,) * (len(shape) - 2)))
    weight, bias, mean = rng.standard_normal((3, channels))
    return Problem((x, weight, bias, mean, rng.uniform(0.5, 2.0, channels)), kwargs)


class TestBatchNorm(OpContract):
    function = staticmethod(tg.batch_norm)
    reference = staticmethod(reference.batch_norm)
    problems = normalization_problems()
    large_problems = (
        large_problem((7, 3, 30, 31), training=True),  # several slices of a channel
        large_problem((600, 40), training=True),  # a channel for each thread, the last warp in part
        large_problem((7, 3, 30, 32), training=True),  # positions in packs of 16 bytes
        large_problem((7, 3, 30, 32), training=False),
        large_problem((600, 40), training=False),
        large_problem((3, 300, 2), training=True),  # more channels than a block has threads
    )
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
        Bad(
            "dtype",
            (X, C.astype("f4"), None, C, C),
            {},
            DtypeError,
            "x: expected float32, the dtype of weight",
        ),
        Bad("statistics", (X, C, C, C, C.astype("f4")), {}, DtypeError, "the dtype of running_var"),
        Bad("momentum", (X,), {"training": True, "momentum": 1.5}, ArgumentError, "0 to 1"),
        Bad("no momentum", (X,), {"training": True, "momentum": None}, ArgumentError, "got None"),
        Bad("eps", (X,), {"training": True, "eps": -1e-5}, ArgumentError, "eps: expected a number"),
        Bad("a parameter", (X, C, C, tg.Parameter(C), C), {}, ArgumentError, "mean.detach()"),
    ]

    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @given(problem=normalization_problems(training=True), momentum=st.floats(0, 1), seed=seeds)
    def test_running_statistics(self, dtype, layout, problem, momentum, seed):
        """Once for each training evaluation, in place, in any memory layout."""
        self.try_running_statistics(dtype, layout, problem, momentum, seed, "cpu")

    @KERNEL_EXAMPLES
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @given(problem=normalization_problems(training=True), momentum=st.floats(0, 1), seed=seeds)
    def test_kernel_moves_running_statistics(self, kernel_device, dtype, problem, momentum, seed):
        self.try_running_statistics(dtype, "contiguous", problem, momentum, seed, kernel_device)

    def try_running_statistics(self, dtype, layout, problem, momentum, seed, device):
        x, weight, bias = (cast(a, dtype) for a in problem.args[:3])
        start = [numbers(seed, x.shape[1:2]), numbers(seed + 1, x.shape[1:2], 0.5, 2.0)]
        start = [a.astype(dtype) for a in start]
        mean, var = (tg.Tensor(0.0, device=device) for _ in start)
        mean.value, var.value = (laid_out(a.copy(), layout, device) for a in start)
        arrays = mean.value, var.value
        y = tg.batch_norm(x, weight, bias, mean, var, True, momentum)
        assert mean.value is arrays[0] and var.value is arrays[1]
        expected = start
        for _ in range(2):
            expected = reference.running_statistics(x.astype(float), *expected, momentum)
            bound = 1e-4 if dtype == np.float32 else 1e-11
            np.testing.assert_allclose(mean.numpy(), expected[0], rtol=bound, atol=bound)
            np.testing.assert_allclose(var.numpy(), expected[1], rtol=bound, atol=bound)
            tg.Graph(y).forward()  # the second evaluation

    def test_updates_names_what_is_written(self):
        for absent, positions in (((), (3, 4)), ((0,), (2, 3)), ((0, 1), (1, 2))):
            affine = [None if i in absent else C for i in range(2)]
            y = tg.batch_norm(X, *affine, C.copy(), C.copy(), training=True)
            assert y.op.updates == positions
            assert tg.batch_norm(X, *affine, C, C).op.updates == ()
        assert tg.batch_norm(X, training=True).op.updates == ()

    def test_evaluation_and_backward_write_nothing(self, device):
        mean, var = tg.Tensor(C, device=device), tg.Tensor(C, device=device)
        x = tg.Tensor(X, requires_grad=True, device=device)
        y = tg.batch_norm(x, C, C, mean, var, training=True)
        after = mean.value.copy(), var.value.copy()
        y.backward(np.ones(y.shape))
        tg.batch_norm(x, C, C, mean, var)
        np.testing.assert_array_equal(mean.value, after[0])
        np.testing.assert_array_equal(var.value, after[1])

    def test_no_grad_does_not_stop_the_statistics(self, device):
        x, mean, var = (tg.Tensor(a, device=device) for a in (X, C, C))
        with tg.no_grad():
            tg.batch_norm(x, None, None, mean, var, training=True, momentum=1.0)
        np.testing.assert_allclose(mean.value, [4.5, 5.5, 6.5])
        np.testing.assert_allclose(var.value, [15, 15, 15])  # 0, 3, 6, 9: 45 / 3

    def test_a_statistic_that_is_no_leaf_is_refused(self):
        node = tg.Tensor(C, requires_grad=True) * 2
        with pytest.raises(ArgumentError, match="a leaf that requires no gradient"):
            tg.batch_norm(X, None, None, node, C)

    @pytest.mark.parametrize("offset", [1e4, -3e5])
    def test_a_mean_far_from_zero_in_float32(self, offset, device):
        """mean of x^2 minus squared mean would have no correct digit left here."""
        rng = np.random.default_rng(0)
        x = (offset + rng.standard_normal((64, 2, 8, 8))).astype(np.float32)
        mean, var = tg.zeros(2, device=device), tg.zeros(2, device=device)
        y = tg.batch_norm(
            tg.Tensor(x, device=device), None, None, mean, var, training=True, momentum=1.0
        )
        exact = x.astype(np.float64)
        np.testing.assert_allclose(mean.value, exact.mean((0, 2, 3)), rtol=1e-7)
        np.testing.assert_allclose(var.value, exact.var((0, 2, 3), ddof=1), rtol=1e-5)
        deviation = np.sqrt(exact.var((0, 2, 3), keepdims=True) + 1e-5)
        np.testing.assert_allclose(
            y.value, (exact - exact.mean((0, 2, 3), keepdims=True)) / deviation, atol=2e-5
        )

    def test_an_outlier_that_comes_first(self, device):
        """The kernel takes means relative to a channel's first number, which may lie far off."""
        x = np.random.default_rng(1).standard_normal((500, 1, 6, 6)).astype(np.float32)
        x[0, 0, 0, 0] = 1e4
        y = tg.batch_norm(tg.Tensor(x, device=device), training=True)
        exact = x.astype(np.float64)
        expected = (exact - exact.mean()) / np.sqrt(exact.var() + 1e-5)
        np.testing.assert_allclose(y.value, expected, rtol=1e-5, atol=1e-5)

    def test_what_is_no_number_stays_in_its_channel(self, device):
        x = tg.Tensor(X, requires_grad=True, device=device)
        x.value[1, 1] = np.nan
        y = tg.batch_norm(x, training=True)
        y.backward(X)
        for a in (y.value, x.grad):
            assert np.isnan(a[:, 1]).all() and np.isfinite(a[:, [0, 2]]).all()

    def test_what_is_for_the_weight_alone_is_not_kept_without_it(self):
        weightless = tg.batch_norm(tg.Tensor(X, requires_grad=True), C, C, C, C)
        assert weightless.saved[0] is None  # x - mean is for the gradient of the weight alone
