"""`strict=True`: convolution and pooling refuse exactly the sizes that leave pixels out."""

from __future__ import annotations

import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ShapeError


def reads_last_pixel(size, kernel, stride, padding, dilation=1):
    """Whether any window of a floor-division layout reads pixel size - 1, by trying them all."""
    span = dilation * (kernel - 1) + 1
    starts = range(-padding, size + padding - span + 1, stride)
    return any(s + span - 1 >= size - 1 for s in starts)


@pytest.mark.parametrize("kernel", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("dilation", [1, 2])
def test_strict_refuses_exactly_the_sizes_that_leave_pixels_out(kernel, stride, padding, dilation):
    layer = nn.Conv2d(1, 1, kernel, stride, padding, dilation, strict=True)
    span = dilation * (kernel - 1) + 1
    fits = {
        s
        for s in range(1, 20)
        if s + 2 * padding >= span and reads_last_pixel(s, kernel, stride, padding, dilation)
    }
    for size in range(max(1, span - 2 * padding), 15):
        x = tg.ones((1, 1, size, size))
        if size in fits:
            layer(x)
            continue
        near = [
            str(s)
            for s in (
                max((f for f in fits if f < size), default=None),
                min(f for f in fits if f > size),
            )
            if s is not None
        ]
        with pytest.raises(ShapeError) as caught:
            layer(x)
        assert f"height {' or '.join(near)}, width {' or '.join(near)}" in str(caught.value)


def test_strict_messages():
    pool = nn.MaxPool2d(2, strict=True)
    words = r"MaxPool2d: x: .*height 26 or 28, got 27x28, which leaves out 1 row\. Way out: pad or"
    with pytest.raises(ShapeError, match=words):
        pool(tg.ones((1, 1, 27, 28)))
    with pytest.raises(ShapeError, match=r"width 9 or 14, got 9x12, which leaves out 3 columns"):
        nn.Conv2d(1, 1, 4, stride=5, strict=True)(tg.ones((1, 1, 9, 12)))
    assert pool(tg.ones((1, 1, 28, 28))).shape == (1, 1, 14, 14)
    assert nn.MaxPool2d(2, ceil_mode=True, strict=True)(tg.ones((1, 1, 27, 27))).shape[2] == 14
    assert nn.Conv2d(1, 1, 3, 2, "same", strict=True)(tg.ones((1, 1, 5, 5))).shape[2] == 3
    assert nn.MaxPool2d(2)(tg.ones((1, 1, 27, 27))).shape[2] == 13, "not strict by default"


def test_strict_leaves_other_faults_to_the_op():
    with pytest.raises(ShapeError, match="4 axes"):
        nn.MaxPool2d(2, strict=True)(tg.ones((3,)))
    with pytest.raises(ShapeError, match="at least 5 pixels"):
        nn.Conv2d(1, 1, 5, strict=True)(tg.ones((1, 1, 4, 4)))
