"""Convolutions whose products take rows of the images, moved: blocks, threads, stride, dilation.

The loops are plain Python here, see test_fast_bodies.py for the compiled ones.
"""

import numpy as np
import pytest

from tests.ops.test_convolution_blocks import CASES, OnThreads, by_windows
from tests.plan.test_fast_bodies import python_bodies
from tests.strategies import numbers
from tinygraph.ops.windows import convolution_rows
from tinygraph.ops.windows.windows import windows_2d
from tinygraph.plan.fast import row_loops
from tinygraph.plan.fast.convolution import Whole
from tinygraph.plan.fast.moved_rows import MovedLayout

OF_ONE_GROUP = {name: case[:5] for name, case in CASES.items() if case[5] == 1}


def found(layout, x, w, b, gy, workers=1):
    """y, gx, gw."""
    mem = OnThreads(workers, (True, True))
    with python_bodies():
        whole = Whole(mem, layout, w)
        return whole.forward(x, b), *whole.backward(gy, x, True)


def assert_as_windows(found, x, w, b, gy, *geometry):
    y, gx, gw = by_windows(x, w, gy, *geometry, 1)
    for got, right in zip(found, (y + b[:, None, None], gx, gw), strict=True):
        np.testing.assert_allclose(got, right, atol=1e-12)


@pytest.mark.parametrize("images", [1, 2, 7])
@pytest.mark.parametrize("case", OF_ONE_GROUP)
def test_any_blocks_and_threads(case, images, monkeypatch):
    """Blocks of one image, of up to two, and of all; the same bits on any threads."""
    x_shape, w_shape, *geometry = OF_ONE_GROUP[case]
    at = windows_2d("conv2d", x_shape[2:], w_shape[2:], *geometry)
    if images < 7:
        monkeypatch.setattr(convolution_rows, "WORTH_SHARING", 0)
    each = MovedLayout(at, (1, *x_shape[1:]), w_shape, 8).bytes_of_image
    monkeypatch.setattr(convolution_rows, "BLOCK_BYTES", images * each)
    layout = MovedLayout(at, x_shape, w_shape, 8)
    assert (layout.images, layout.blocks) == {1: (1, 7), 2: (2, 4), 7: (7, 1)}[images]
    x, w, b = numbers(1, x_shape), numbers(2, w_shape), numbers(4, w_shape[:1])
    gy = numbers(3, layout.outputs)
    first, *others = [found(layout, x, w, b, gy, workers) for workers in (1, 2, 3)]
    assert_as_windows(first, x, w, b, gy, *geometry)
    for other in others:
        for got, wanted in zip(other, first, strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("case", OF_ONE_GROUP)
def test_a_smaller_block_after_a_larger_one(case):
    """What the larger one has left in the rows and maps of a thread is not read."""
    x_shape, w_shape, *geometry = OF_ONE_GROUP[case]
    x_shape = (8, *x_shape[1:])
    at = windows_2d("conv2d", x_shape[2:], w_shape[2:], *geometry)
    layout = MovedLayout(at, x_shape, w_shape, 8)
    layout.blocks, layout.images, layout.shares = 6, 2, 1
    x, w, b = numbers(1, x_shape), numbers(2, w_shape), numbers(4, w_shape[:1])
    gy = numbers(3, layout.outputs)
    assert_as_windows(found(layout, x, w, b, gy), x, w, b, gy, *geometry)


def test_several_chunks_of_places(monkeypatch):
    monkeypatch.setattr(row_loops, "CHUNK", 7)
    x, w, b = numbers(1, (3, 2, 6, 5)), numbers(2, (5, 2, 3, 3)), numbers(3, (5,))
    at = windows_2d("conv2d", (6, 5), (3, 3), (1, 1), (1, 1))
    gy = numbers(4, (3, 5, 6, 5))
    layout = MovedLayout(at, x.shape, w.shape, 8)
    assert_as_windows(found(layout, x, w, b, gy), x, w, b, gy, (1, 1), (1, 1), (1, 1))


def test_what_makes_up_for_missing_rows_is_zero_times_zero():
    """An infinite pixel or weight makes nothing of its neighbours NaN: 5 filters of 2 numbers."""
    at = windows_2d("conv2d", (2, 3), (1, 1), (1, 1), (0, 0))
    x, w = numbers(1, (1, 2, 2, 3)), numbers(2, (5, 2, 1, 1))
    x[0, 1, 0, 1] = np.inf
    layout = MovedLayout(at, x.shape, w.shape, 8)
    gy = numbers(3, layout.outputs)
    gy[0, 4, 1, 1] = -np.inf
    y, gx, gw = found(layout, x, w, np.zeros(5), gy)
    np.testing.assert_allclose(y, np.einsum("oc,nchw->nohw", w[..., 0, 0], x))
    np.testing.assert_allclose(gx, np.einsum("oc,nohw->nchw", w[..., 0, 0], gy))
    np.testing.assert_allclose(gw[..., 0, 0], np.einsum("nohw,nchw->oc", gy, x))


def test_which_convolutions_are_left_to_numpy():
    """Where few of the places would be outputs; and where there is nothing to sum."""

    def fits(x, w, **options):
        at = windows_2d("conv2d", x[2:], w[2:], **{"stride": (1, 1), "padding": (0, 0)} | options)
        return MovedLayout(at, x, w, 4).fits

    assert fits((2, 3, 14, 14), (4, 3, 5, 5))
    assert not fits((2, 3, 14, 14), (4, 3, 9, 9))
    assert fits((2, 3, 14, 14), (4, 3, 9, 9), padding=(4, 4))
    assert not fits((0, 3, 14, 14), (4, 3, 5, 5)) and not fits((2, 3, 14, 14), (0, 3, 5, 5))
