"""max_pool2d against loops, and its conventions: ties, NaN, -inf, padding, the stored argmax."""

import numpy as np
import pytest
from hypothesis import given

import tinygraph as tg
from tests import reference
from tests.conftest import DEVICES
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import pool_problems, seeds
from tinygraph.errors import ArgumentError, DtypeError, ShapeError

X = np.ones((1, 1, 4, 4))
IMAGES = np.random.default_rng(0).standard_normal((2, 3, 21, 26))


def first_argmax(x, problem):
    """For each window the position h * W + w of its first maximum; the first NaN beats all."""
    kwargs = dict(problem.kwargs)
    stride = kwargs.get("stride", kwargs["kernel_size"])
    at, oh, ow = reference.windows(
        x, kwargs["kernel_size"], stride, kwargs["padding"], 1, kwargs["ceil_mode"]
    )
    h_max, w_max = x.shape[2:]
    out = np.zeros((*x.shape[:2], oh, ow), int)
    for n, c in np.ndindex(x.shape[:2]):
        for (u, v), offsets in at.items():
            inside = [(h, w) for _, _, h, w in offsets if 0 <= h < h_max and 0 <= w < w_max]
            values = np.array([x[n, c, h, w] for h, w in inside])
            h, w = inside[int(np.argmax(values))]  # numpy's argmax: first maximum, first NaN
            out[n, c, u, v] = h * w_max + w
    return out


class TestMaxPool2d(OpContract):
    function = staticmethod(tg.max_pool2d)
    reference = staticmethod(reference.max_pool2d)
    problems = pool_problems()
    large_problems = (
        Problem((IMAGES,), {"kernel_size": 2}),
        Problem((IMAGES,), {"kernel_size": 3, "stride": 2, "padding": 1}),
        Problem((IMAGES,), {"kernel_size": (2, 5), "stride": 1, "padding": "same"}),
    )
    bad_input = [
        Bad("three axes", (X[0], 2), {}, ShapeError, "4 axes (N, C, H, W)"),
        Bad("large kernel", (X, 5), {}, ShapeError, "an image of at least 5 pixels"),
        Bad("kernel 0", (X, 0), {}, ArgumentError, "kernel_size: expected at least 1"),
        Bad("stride 0", (X, 2, 0), {}, ArgumentError, "stride: expected at least 1"),
        Bad("padding", (X, 2, 2, 2), {}, ArgumentError, "at most half of kernel_size"),
        Bad("integers", (X.astype(int), 2), {}, DtypeError, "float32 or float64"),
    ]

    @pytest.mark.parametrize("place", DEVICES)
    @given(problem=pool_problems(), seed=seeds)
    def test_argmax_with_ties_nan_and_infinities(self, problem, seed, place):
        rng = np.random.default_rng(seed)
        shape = problem.args[0].shape
        x = rng.choice([0.0, 1.0, -np.inf, np.inf, np.nan], shape, p=[0.3, 0.3, 0.2, 0.1, 0.1])
        node = tg.Tensor(x, requires_grad=True, device=place)
        y = tg.max_pool2d(node, **problem.kwargs)
        argmax = y.saved[0]
        assert argmax.dtype == np.int32
        np.testing.assert_array_equal(argmax, first_argmax(x, problem))
        np.testing.assert_array_equal(y.value, reference.max_pool2d(x, **problem.kwargs))
        g = rng.standard_normal(y.shape)
        y.backward(g)
        expected = np.zeros(x.shape)
        for (n, c, u, v), position in np.ndenumerate(argmax):
            expected[n, c, position // shape[3], position % shape[3]] += g[n, c, u, v]
        np.testing.assert_allclose(node.grad, expected, atol=1e-12)

    def test_a_kernel_of_more_than_256_offsets(self, device):
        x = np.random.default_rng(0).standard_normal((1, 1, 17, 17))
        node = tg.Tensor(x, requires_grad=True, device=device)
        assert tg.max_pool2d(node, 17).saved[0].item() == int(np.argmax(x))

    def test_a_subclass_has_the_kernels_of_its_base(self):
        class OfUsers(tg.max_pool2d(X, 2).op.__class__):
            pass

        op = OfUsers((2, 2), (2, 2), (0, 0), False)
        x = tg.Tensor(IMAGES, device="emulator", requires_grad=True)
        y = op(x)
        y.backward(np.ones(y.shape))
        np.testing.assert_array_equal(y.numpy(), tg.max_pool2d(IMAGES, 2).value)
        assert x.grad.sum() == y.size
