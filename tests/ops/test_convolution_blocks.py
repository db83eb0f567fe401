"""Blocks of images: every way to cut a convolution against windows and einsum, on any threads."""

import numpy as np
import pytest

from tests.strategies import numbers
from tests.test_threads import OnThreads
from tinygraph.ops.windows import convolution_rows
from tinygraph.ops.windows.convolution_blocks import Convolution
from tinygraph.ops.windows.convolution_rows import Layout
from tinygraph.ops.windows.windows import windows_2d


def by_windows(x, w, gy, stride, padding, dilation, groups):
    """Forward and gradients, with a sum written out for each tap."""
    (sh, sw), (ph, pw), (dh, dw) = stride, padding, dilation
    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    n, o, oh, ow = gy.shape
    y, gw, gpadded = np.zeros_like(gy), np.zeros_like(w), np.zeros_like(padded)
    by_group = (n, groups, -1, oh, ow)
    wg, gwg = (a.reshape(groups, o // groups, *w.shape[1:]) for a in (w, gw))
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            rows = slice(i * dh, i * dh + (oh - 1) * sh + 1, sh)
            columns = slice(j * dw, j * dw + (ow - 1) * sw + 1, sw)
            seen = padded[:, :, rows, columns].reshape(by_group)
            up = gy.reshape(by_group)
            y += np.einsum("gmc,ngchw->ngmhw", wg[..., i, j], seen).reshape(y.shape)
            gwg[..., i, j] = np.einsum("ngmhw,ngchw->gmc", up, seen)
            of_seen = np.einsum("gmc,ngmhw->ngchw", wg[..., i, j], up)
            gpadded[:, :, rows, columns] += of_seen.reshape(n, -1, oh, ow)
    h, width = x.shape[2:]
    return y, gpadded[:, :, ph : ph + h, pw : pw + width], gw


ONE, NONE = (1, 1), (0, 0)
CASES = {
    "turned": ((7, 4, 6, 5), (3, 4, 3, 3), ONE, ONE, ONE, 1),
    "folded": ((7, 2, 6, 5), (5, 2, 3, 3), ONE, ONE, ONE, 1),
    "folded with zeros, unfolded without": ((7, 2, 8, 8), (5, 2, 4, 4), ONE, NONE, ONE, 1),
    "stride, turned": ((7, 6, 9, 8), (4, 6, 3, 3), (2, 2), ONE, ONE, 1),
    "stride, folded": ((7, 2, 9, 8), (4, 2, 3, 2), (2, 3), ONE, ONE, 1),
    "a phase that no tap meets": ((7, 3, 9, 8), (2, 3, 1, 1), (2, 2), NONE, ONE, 1),
    "1x1": ((7, 3, 4, 4), (2, 3, 1, 1), ONE, NONE, ONE, 1),
    "1x1 with padding": ((7, 3, 4, 4), (2, 3, 1, 1), ONE, ONE, ONE, 1),
    "large kernel, without padding": ((7, 1, 11, 12), (3, 1, 7, 7), ONE, NONE, ONE, 1),
    "to one map": ((7, 5, 7, 7), (1, 5, 3, 3), ONE, NONE, ONE, 1),
    "to one map, without zeros": ((7, 5, 11, 11), (1, 5, 7, 7), ONE, NONE, ONE, 1),
    "dilation": ((7, 3, 9, 9), (2, 3, 3, 3), (2, 1), (2, 2), (2, 3), 1),
    "groups": ((7, 6, 6, 6), (4, 3, 3, 3), ONE, ONE, ONE, 2),
    "depthwise": ((7, 4, 6, 6), (8, 1, 3, 3), ONE, ONE, ONE, 4),
    "much padding": ((7, 2, 3, 3), (2, 2, 2, 2), ONE, (4, 5), ONE, 1),
}


@pytest.mark.parametrize("images", [1, 2, 4, 7])
@pytest.mark.parametrize("case", CASES)
def test_any_blocks_and_threads(case, images, monkeypatch):
    """Blocks of one image, of up to two, of halves, and of all; the same bits on any threads."""
    x_shape, w_shape, stride, padding, dilation, groups = CASES[case]
    at = windows_2d("conv2d", x_shape[2:], w_shape[2:], stride, padding, dilation)
    if images < 7:
        monkeypatch.setattr(convolution_rows, "WORTH_SHARING", 0)
    each = Layout(at, (1, *x_shape[1:]), w_shape, 8).bytes_of_image
    monkeypatch.setattr(convolution_rows, "BLOCK_BYTES", images * each)
    layout = Layout(at, x_shape, w_shape, 8)
    assert (layout.images, layout.blocks) == {1: (1, 7), 2: (2, 4), 4: (4, 2), 7: (7, 1)}[images]
    x, w = numbers(1, x_shape), numbers(2, w_shape)
    gy, b = numbers(3, layout.outputs), numbers(4, w_shape[:1])
    found = []
    for workers in (1, 2, 3):
        mem = OnThreads(workers, (True, True))
        y = Convolution(mem, layout, groups, w).forward(x, b)
        gx, gw = Convolution(mem, layout, groups, w).backward(gy, x, True)
        found.append((y, gx, gw))
    y, gx, gw = by_windows(x, w, gy, stride, padding, dilation, groups)
    for got, expected in zip(found[0], (y + b[:, None, None], gx, gw), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-12)
    for others in found[1:]:
        for got, first in zip(others, found[0], strict=True):
            np.testing.assert_array_equal(got, first)


@pytest.mark.parametrize("case", CASES)
def test_a_smaller_block_after_a_larger_one(case):
    """What the larger one has left in the rows and maps of a thread is not read."""
    x_shape, w_shape, stride, padding, dilation, groups = CASES[case]
    x_shape = (8, *x_shape[1:])
    at = windows_2d("conv2d", x_shape[2:], w_shape[2:], stride, padding, dilation)
    layout = Layout(at, x_shape, w_shape, 8)
    for each in {id(layout): layout, id(layout.to_fold): layout.to_fold}.values():
        each.blocks, each.images, each.shares = 6, 2, 1
    assert [block.stop - block.start for block in layout.of_share(0)] == [1, 1, 2, 1, 1, 2]
    x, w, gy = numbers(1, x_shape), numbers(2, w_shape), numbers(3, layout.outputs)
    convolution = Convolution(OnThreads(1, (True, True)), layout, groups, w)
    found = convolution.forward(x, None), *convolution.backward(gy, x, True)
    expected = by_windows(x, w, gy, stride, padding, dilation, groups)
    for got, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, right, atol=1e-12)


def test_which_places_have_columns():
    """Few zeros: the lines as they lie.  Many: the outputs alone."""
    padded = windows_2d("conv2d", (32, 32), (3, 3), ONE, ONE)
    assert Layout(padded, (2, 3, 32, 32), (4, 3, 3, 3), 4).places == (33, 33)
    large = windows_2d("conv2d", (33, 33), (9, 9), ONE, NONE)
    layout = Layout(large, (2, 3, 33, 33), (4, 3, 9, 9), 4)
    assert layout.places == (25, 25) and layout.to_fold.places == (33, 33)
    larger = windows_2d("conv2d", (16, 16), (9, 9), ONE, NONE)
    assert Layout(larger, (2, 3, 16, 16), (4, 3, 9, 9), 4).to_fold.places == (8, 8)
