"""avg_pool2d against loops, and its conventions: what counts in the divisor."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import pool_problems
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.ones((1, 1, 4, 4))


@st.composite
def average_problems(draw):
    """Pooling windows of every kind, with and without the padding in the divisor, or with one."""
    problem = draw(pool_problems())
    kwargs = {**problem.kwargs, "count_include_pad": draw(st.booleans())}
    if draw(st.integers(0, 2)) == 0:
        kwargs["divisor_override"] = draw(st.sampled_from([1, 3, -2]))
    return problem._replace(kwargs=kwargs)


class TestAvgPool2d(OpContract):
    function = staticmethod(tg.avg_pool2d)
    reference = staticmethod(reference.avg_pool2d)
    problems = average_problems()
    bad_input = [
        Bad("three axes", (X[0], 2), {}, ShapeError, "4 axes (N, C, H, W)"),
        Bad("no pixel", (X[:, :, :0], 2), {}, ShapeError, "images of at least one pixel"),
        Bad("large kernel", (X, 5), {}, ShapeError, "an image of at least 5 pixels"),
        Bad("kernel 0", (X, 0), {}, ArgumentError, "kernel_size: expected at least 1"),
        Bad("stride 0", (X, 2, 0), {}, ArgumentError, "stride: expected at least 1"),
        Bad("padding", (X, 2, 2, 2), {}, ArgumentError, "at most half of kernel_size"),
        Bad("padding word", (X, 2, 2, "wrong"), {}, ArgumentError, "'same'"),
        Bad("integers", (X.astype(int), 2), {}, DtypeError, "float32 or float64"),
        Bad("by 0", (X, 2), {"divisor_override": 0}, ArgumentError, "divisor_override: expected"),
        Bad("by a word", (X, 2), {"divisor_override": "sum"}, ArgumentError, "a finite number"),
    ]

    @pytest.mark.parametrize(
        ("include", "expected"),
        [(True, [[4 / 9, 2 / 6], [2 / 6, 1 / 4]]), (False, [[1, 1], [1, 1]])],
    )
    def test_the_divisor_by_hand(self, include, expected):
        """A 3x3 image of ones with padding 1, windows of 3 from -1 and from 2.

        The second window holds pixel 2, padding at 3, and nothing at 4: 1 of 2 that count.
        """
        x = np.ones((1, 1, 3, 3))
        y = tg.avg_pool2d(x, 3, 3, 1, ceil_mode=True, count_include_pad=include)
        np.testing.assert_allclose(y.value[0, 0], expected, rtol=1e-15)

    def test_same_padding_is_part_of_the_image(self):
        """4 pixels, kernel 2, stride 1: one zero behind the last pixel, which counts or not."""
        x = np.full((1, 1, 1, 4), 6.0)
        y = tg.avg_pool2d(x, (1, 2), 1, "same")
        np.testing.assert_array_equal(y.value[0, 0, 0], [6, 6, 6, 3])
        y = tg.avg_pool2d(x, (1, 2), 1, "same", count_include_pad=False)
        np.testing.assert_array_equal(y.value[0, 0, 0], [6, 6, 6, 6])


@st.composite
def sequence_problems(draw):
    """Those of images, of which one row is left."""
    problem = draw(average_problems())
    kwargs = {k: v[1] if isinstance(v, tuple) else v for k, v in problem.kwargs.items()}
    kwargs.pop("divisor_override", None)  # which images alone have
    return Problem((problem.args[0][:, :, 0],), kwargs, problem.carries)


class TestAvgPool1d(OpContract):
    function = staticmethod(tg.avg_pool1d)
    reference = staticmethod(reference.avg_pool1d)
    problems = sequence_problems()
    conventions = [
        Convention(
            "padding counts",
            ([[[2.0, 4.0]]],),
            [[[1.0, 2.0]]],
            ([[[0.5, 0.5]]],),
            {"kernel_size": 2, "padding": 1},
        ),
    ]
    bad_input = [
        Bad("images", (X, 2), {}, ShapeError, "avg_pool1d: x: expected 3 axes (N, C, L)"),
        Bad("two sizes", (X[0], (2, 2)), {}, ArgumentError, "avg_pool1d: kernel_size: expected an"),
        Bad("padding", (X[0], 2, 2, 2), {}, ArgumentError, "avg_pool1d: padding: expected at most"),
    ]


def test_arguments_in_pytorchs_order():
    """A window of 2 pixels of padding and 1 of the image: its sum by 1, not by 3."""
    x = np.ones((1, 1, 1, 4), np.float32)
    y = tg.avg_pool2d(x, (1, 3), 2, (0, 1), True, False)
    assert y.value.tolist() == [[[[1.0, 1.0, 1.0]]]]
    layer = tg.nn.AvgPool2d((1, 3), 2, (0, 1), True, False)
    np.testing.assert_array_equal(layer(x).value, y.value)
