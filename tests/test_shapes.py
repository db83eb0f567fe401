"""Windows against the naive search for positions; axes and broadcasting against numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import reference
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.engine.spec import broadcast_axes, broadcast_shapes, normalize_axes, reduced_shape
from tinygraph.ops.common.arguments import pair
from tinygraph.ops.windows.sliding import windows

small = st.integers(1, 4)


@given(
    size=st.integers(0, 12),
    kernel=small,
    stride=small,
    dilation=small,
    ceil_mode=st.booleans(),
    padding=st.one_of(st.just("same"), st.integers(0, 3)),
)
def test_windows_equal_a_search(size, kernel, stride, dilation, ceil_mode, padding):
    span = dilation * (kernel - 1) + 1
    if padding != "same" and size + 2 * padding < span:
        with pytest.raises(ShapeError, match="use a smaller kernel"):
            windows("op", size, kernel, stride, padding, dilation, ceil_mode)
        return
    if ceil_mode and padding != "same" and padding > kernel // 2:
        return  # pooling, the only op with ceil_mode, refuses it
    at = windows("op", size, kernel, stride, padding, dilation, ceil_mode)
    before, out = reference.window_layout(size, kernel, stride, padding, dilation, ceil_mode)
    assert (at.before, at.out) == (before, out)
    for offset in range(kernel):
        to, source = at.inside(offset, size)
        reads = [(o, o * stride + offset * dilation - before) for o in range(out)]
        real = [(o, i) for o, i in reads if 0 <= i < size]
        assert [o for o, _ in real] == list(range(out))[to]
        assert [i for _, i in real] == list(range(size))[source]


@pytest.mark.parametrize(
    ("shape", "out"),
    [((), (2, 3)), ((3,), (2, 3)), ((2, 1), (2, 3)), ((1, 1), (2, 1)), ((2,), (2,))],
)
def test_broadcast_axes_are_those_to_sum_over(shape, out):
    ones = np.broadcast_to(np.ones(shape), out)
    axes = broadcast_axes(shape, out)
    assert np.sum(ones, axis=axes).size == np.prod(shape)
    assert np.sum(ones) == np.prod(out)
    assert broadcast_shapes("op", shape, out) == out


def test_shapes_that_do_not_broadcast():
    with pytest.raises(ShapeError, match=r"add: inputs: .*got \(2, 3\) and \(4,\)"):
        broadcast_shapes("add", (2, 3), (4,))


def test_axes():
    assert normalize_axes("sum", (-1, 0), 3) == (0, 2)
    bad = [(3, ShapeError), ((0, -3), ShapeError), (0.5, DtypeError), ("x", DtypeError)]
    for axis, error in bad:
        with pytest.raises(error, match="sum: axis"):
            normalize_axes("sum", axis, 3)
    with pytest.raises(ShapeError, match="the input is 0-d"):
        normalize_axes("sum", 0, 0)
    assert reduced_shape((2, 3), (0,), keepdims=False) == (3,)


@pytest.mark.parametrize("value", [0, (1, 0), (1,), (1, 2, 3), 1.5, None, "2"])
def test_bad_pairs(value):
    with pytest.raises(ArgumentError, match="conv2d: stride"):
        pair("conv2d", "stride", value)
