"""max_pool2d against loops, and its conventions: ties, NaN, -inf, padding, the stored argmax."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.conftest import DEVICES
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import as_pair, numbers, pool_problems, seeds
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.ones((1, 1, 4, 4))
IMAGES = np.random.default_rng(0).standard_normal((2, 3, 21, 26))


def first_argmax(x, problem):
    """For each window the position h * W + w of its first maximum; the first NaN beats all."""
    kwargs = dict(problem.kwargs)
    stride = kwargs.get("stride", kwargs["kernel_size"])
    gaps = kwargs.get("dilation", 1)
    at, oh, ow = reference.windows(
        x, kwargs["kernel_size"], stride, kwargs["padding"], gaps, kwargs["ceil_mode"]
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


@st.composite
def dilated_problems(draw):
    """Windows of elements that lie apart, on images that are larger than they."""
    problem = draw(pool_problems())
    gaps = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    kernel = as_pair(problem.kwargs["kernel_size"])
    x = problem.args[0]
    sides = [n + (d - 1) * (k - 1) for n, d, k in zip(x.shape[2:], gaps, kernel, strict=True)]
    x = numbers(draw(seeds), (*x.shape[:2], *sides))
    return Problem((x,), {**problem.kwargs, "dilation": gaps}, problem.carries)


@st.composite
def sequence_problems(draw):
    """Those of images, of which one row is left."""
    problem = draw(dilated_problems())
    kwargs = {k: v[1] if isinstance(v, tuple) else v for k, v in problem.kwargs.items()}
    return Problem((problem.args[0][:, :, 0],), kwargs, problem.carries)


class TestMaxPool2d(OpContract):
    function = staticmethod(tg.max_pool2d)
    reference = staticmethod(reference.max_pool2d)
    problems = st.one_of(pool_problems(), dilated_problems())
    large_problems = (
        Problem((IMAGES,), {"kernel_size": 2}),
        Problem((IMAGES,), {"kernel_size": 3, "stride": 2, "padding": 1}),
        Problem((IMAGES,), {"kernel_size": (2, 5), "stride": 1, "padding": "same"}),
        Problem((IMAGES,), {"kernel_size": 3, "stride": 2, "padding": 1, "dilation": (2, 3)}),
    )
    bad_input = [
        Bad("three axes", (X[0], 2), {}, ShapeError, "4 axes (N, C, H, W)"),
        Bad("large kernel", (X, 5), {}, ShapeError, "an image of at least 5 pixels"),
        Bad("kernel 0", (X, 0), {}, ArgumentError, "kernel_size: expected at least 1"),
        Bad("stride 0", (X, 2, 0), {}, ArgumentError, "stride: expected at least 1"),
        Bad("padding", (X, 2, 2, 2), {}, ArgumentError, "at most half of kernel_size"),
        Bad("dilation", (X, 2, 2, 0, 0), {}, ArgumentError, "dilation: expected at least 1"),
        Bad("indices", (X, 2), {"return_indices": True}, ArgumentError, "tg.argmax their places"),
        Bad(
            "a window of padding alone",
            (X[:, :, :, :2], (1, 2), 1, (0, 1), (1, 3)),
            {},
            ShapeError,
            "each window has a pixel (dilation (1, 3))",
        ),
        Bad("integers", (X.astype(int), 2), {}, DtypeError, "float32 or float64"),
    ]

    @pytest.mark.parametrize("place", DEVICES)
    @given(problem=st.one_of(pool_problems(), dilated_problems()), seed=seeds)
    def test_argmax_with_ties_nan_and_infinities(self, problem, seed, place):
        rng = np.random.default_rng(seed)
        shape = problem.args[0].shape
        x = rng.choice([0.0, 1.0, -np.inf, np.inf, np.nan], shape, p=[0.3, 0.3, 0.2, 0.1, 0.1])
        node = tg.Tensor(x, requires_grad=True, device=place)
        y = tg.max_pool2d(node, **problem.kwargs)
        argmax = first_argmax(x, problem)
        if place != "cpu":  # what a kernel stores, and other kernels read
            assert y.saved[0].dtype == np.int32
            np.testing.assert_array_equal(y.saved[0], argmax)
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
        tg.max_pool2d(node, 17).sum().backward()
        assert np.flatnonzero(node.grad).tolist() == [int(np.argmax(x))]

    def test_a_subclass_has_the_kernels_of_its_base(self):
        class OfUsers(tg.max_pool2d(X, 2).op.__class__):
            pass

        op = OfUsers((2, 2), (2, 2), (0, 0), False)
        x = tg.Tensor(IMAGES, device="emulator", requires_grad=True)
        y = op(x)
        y.backward(np.ones(y.shape))
        np.testing.assert_array_equal(y.numpy(), tg.max_pool2d(IMAGES, 2).value)
        assert x.grad.sum() == y.size


class TestMaxPool1d(OpContract):
    function = staticmethod(tg.max_pool1d)
    reference = staticmethod(reference.max_pool1d)
    problems = sequence_problems()
    conventions = [
        Convention(
            "ties",
            ([[[2.0, 2.0, 1.0]]],),
            [[[2.0, 2.0]]],
            ([[[1.0, 1.0, 0.0]]],),
            {"kernel_size": 2, "stride": 1},
        ),
    ]
    bad_input = [
        Bad("images", (X, 2), {}, ShapeError, "max_pool1d: x: expected 3 axes (N, C, L)"),
        Bad("two sizes", (X[0], (2, 2)), {}, ArgumentError, "max_pool1d: kernel_size: expected an"),
        Bad("stride", (X[0], 2, 0), {}, ArgumentError, "max_pool1d: stride: expected at least 1"),
        Bad("padding", (X[0], 2, 2, 2), {}, ArgumentError, "max_pool1d: padding: expected at most"),
        Bad("indices", (X[0], 2), {"return_indices": True}, ArgumentError, "max_pool1d: return_in"),
        Bad("long kernel", (X[0], 9), {}, ShapeError, "at least 9 pixels"),
    ]
