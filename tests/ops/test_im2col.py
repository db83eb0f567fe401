"""im2col and col2im against loops over windows, and against each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import numbers, seeds, window_problems
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.cuda import Out, blocks, op_kernel
from tinygraph.ops.windows.windows import windows_2d

IMAGE = np.ones((1, 1, 4, 4))


@st.composite
def column_problems(draw):
    """Columns that belong to the windows of an image."""
    image = draw(window_problems())
    (x,) = image.args
    cols = reference.im2col(x, **image.kwargs)
    kwargs = {**image.kwargs, "output_size": x.shape[2:]}
    return Problem((numbers(draw(seeds), cols.shape),), kwargs, (True,))


class TestIm2col(OpContract):
    function = staticmethod(tg.im2col)
    reference = staticmethod(reference.im2col)
    problems = window_problems()
    large_problems = (
        Problem((numbers(1, (3, 2, 13, 11)),), {"kernel_size": 3, "padding": 1}),
        Problem((numbers(1, (2, 2, 17, 9)),), {"kernel_size": (2, 3), "stride": (2, 1)}),
    )
    bad_input = [
        Bad("three axes", (IMAGE[0], 2), {}, ShapeError, "4 axes (N, C, H, W)"),
        Bad("large kernel", (IMAGE, 5), {}, ShapeError, "an image of at least 5 pixels"),
        Bad("stride 0", (IMAGE, 2), {"stride": 0}, ArgumentError, "stride: expected at least 1"),
        Bad("negative padding", (IMAGE, 2), {"padding": -1}, ArgumentError, "padding"),
        Bad("padding word", (IMAGE, 2), {"padding": "wrong"}, ArgumentError, "'same'"),
        Bad("three numbers", (IMAGE, (1, 2, 3)), {}, ArgumentError, "a pair of ints"),
        Bad("float kernel", (IMAGE, 2.5), {}, ArgumentError, "an int or a pair"),
        Bad("integers", (IMAGE.astype(int), 2), {}, DtypeError, "float32 or float64"),
    ]


class TestCol2im(OpContract):
    function = staticmethod(tg.col2im)
    reference = staticmethod(reference.col2im)
    problems = column_problems()
    large_problems = (
        Problem(
            (numbers(1, (3, 18, 143)),), {"output_size": (13, 11), "kernel_size": 3, "padding": 1}
        ),
        Problem(
            (numbers(1, (2, 12, 42)),),
            {"output_size": (13, 9), "kernel_size": (2, 3), "stride": (2, 1)},
        ),
    )
    bad_input = [
        Bad("two axes", (np.ones((4, 9)), 4, 2), {}, ShapeError, "3 axes (N, C*KH*KW, OH*OW)"),
        Bad("wrong count", (np.ones((1, 4, 8)), 4, 2), {}, ShapeError, "(N, C * 4, 9)"),
        Bad("wrong height", (np.ones((1, 5, 9)), 4, 2), {}, ShapeError, "(N, C * 4, 9)"),
        Bad("integers", (np.ones((1, 4, 9), int), 4, 2), {}, DtypeError, "float32 or float64"),
    ]

    @given(problem=window_problems(), seed=seeds)
    def test_is_the_transpose_of_im2col(self, problem, seed):
        """<im2col(x), c> = <x, col2im(c)> for any c."""
        (x,) = problem.args
        cols = tg.im2col(x, **problem.kwargs).value
        c = numbers(seed, cols.shape)
        back = tg.col2im(c, x.shape[2:], **problem.kwargs).value
        np.testing.assert_allclose(np.sum(cols * c), np.sum(x * back), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_that_count_in_64_bits(dtype):
    """What arrays of 2^31 elements take, on a small one: the same bits."""
    x = numbers(1, (2, 3, 9, 8)).astype(dtype)
    at = windows_2d("im2col", (9, 8), (3, 2), (2, 1), (1, 2), (1, 2))
    shape = (2, 18, at[0].out * at[1].out)
    cols, back = np.empty((2, *shape), dtype), np.empty((2, *x.shape), dtype)
    sizes = [*x.shape, 3, 2, at[0].out, at[1].out, 2, 1, 1, 2, 1, 2]
    with tg.cuda.checking():
        for wide in (0, 1):
            unfold = op_kernel("im2col", "im2col", dtype, WIDE=wide)
            unfold(blocks(cols[0].size, 256), 256, x, Out(cols[wide]), *sizes)
            fold = op_kernel("im2col", "col2im", dtype, WIDE=wide)
            fold(blocks(x.size, 256), 256, cols[wide], Out(back[wide]), *sizes)
    assert cols[0].tobytes() == cols[1].tobytes() and back[0].tobytes() == back[1].tobytes()
    expected = reference.im2col(x, (3, 2), (2, 1), (1, 2), (1, 2))
    np.testing.assert_array_equal(cols[1], expected.astype(dtype))
