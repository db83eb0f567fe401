"""im2col and col2im against loops over windows, and against each other."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import numbers, seeds, window_problems
from tinygraph.errors import ArgumentError, DtypeError, ShapeError

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
    bad_input = [
        Bad("three axes", (IMAGE[0], 2), {}, ShapeError, "4 axes (N, C, H, W)"),
        Bad("large kernel", (IMAGE, 5), {}, ShapeError, "an image of at least 5 pixels"),
        Bad("stride 0", (IMAGE, 2), {"stride": 0}, ArgumentError, "stride: expected at least 1"),
        Bad("negative padding", (IMAGE, 2), {"padding": -1}, ArgumentError, "padding"),
        Bad("padding word", (IMAGE, 2), {"padding": "valid"}, ArgumentError, "'same'"),
        Bad("three numbers", (IMAGE, (1, 2, 3)), {}, ArgumentError, "a pair of ints"),
        Bad("float kernel", (IMAGE, 2.5), {}, ArgumentError, "an int or a pair"),
        Bad("integers", (IMAGE.astype(int), 2), {}, DtypeError, "float32 or float64"),
    ]


class TestCol2im(OpContract):
    function = staticmethod(tg.col2im)
    reference = staticmethod(reference.col2im)
    problems = column_problems()
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
