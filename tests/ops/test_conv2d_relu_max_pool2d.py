"""conv2d_relu_max_pool2d against loops and against the three ops, and what it keeps."""

import numpy as np
import pytest
from hypothesis import given

import tinygraph as tg
from tests import reference
from tests.conftest import DEVICES
from tests.op_contract import Bad, OpContract
from tests.ops.fused_convolutions import extreme_images, fused_problems, large
from tests.strategies import numbers, seeds
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.ops.windows.single_channel_stage import SingleChannelStage

X, W = np.ones((2, 3, 5, 5)), np.ones((4, 3, 3, 3))


def three_ops(x, w, b=None, stride=1, padding=0, dilation=1, *, pool=2):
    return tg.max_pool2d(tg.relu(tg.conv2d(x, w, b, stride, padding, dilation)), pool)


class TestConv2dReluMaxPool2d(OpContract):
    function = staticmethod(tg.conv2d_relu_max_pool2d)
    reference = staticmethod(reference.conv2d_relu_max_pool2d)
    problems = fused_problems()
    tolerance = 4.0
    large_problems = (
        large((3, 1, 12, 13), (35, 1, 3, 3)),  # two blocks of filters, several turns of items
        large((2, 5, 9, 8), (6, 5, 3, 3), padding=1, pool=3),  # two panels of taps
        large((2, 2, 12, 11), (3, 2, 2, 3), bias=False, stride=2, dilation=2, padding=2),
        large((40, 1, 6, 6), (2, 1, 3, 3)),  # two chunks of images in backward
        large((40, 1, 6, 5), (3, 1, 3, 3)),  # the same, of the kernels for any shape
        large((2, 1, 12, 13), (36, 1, 3, 3)),  # two blocks of filters, and single pixels
        large((2, 1, 34, 34), (2, 1, 3, 3), bias=False),  # most windows of a block, 16 x 16
        large((1, 1, 36, 34), (2, 1, 3, 3)),  # one more row of windows than it has room for
    )
    bad_input = [
        Bad("three axes", (X[0], W), {}, ShapeError, "conv2d_relu_max_pool2d: x: expected 4 axes"),
        Bad("channels", (X, W[:, :2]), {}, ShapeError, "the 3 channels of x"),
        Bad("no filter", (X, W[:0]), {}, ShapeError, "at least one filter"),
        Bad("bias", (X, W, np.ones(3)), {}, ShapeError, "b: expected shape (4,)"),
        Bad("small image", (X[..., :3], W), {}, ShapeError, "a convolution of at least 2x2"),
        Bad("pool", (X, W), {"pool": 4}, ArgumentError, "tg.max_pool2d(tg.relu(tg.conv2d("),
        Bad("pool of pairs", (X, W), {"pool": (2, 2)}, ArgumentError, "pool: expected 2 or 3"),
        Bad("stride", (X, W), {"stride": 0}, ArgumentError, "stride"),
        Bad("dtype", (X, W.astype("f4")), {}, DtypeError, "x: expected float32, the dtype of w"),
        Bad("integers", (X.astype(int), W), {}, DtypeError, "float32 or float64"),
    ]

    @pytest.mark.parametrize("place", DEVICES)
    @given(seed=seeds)
    def test_ties_nan_and_infinities_as_the_three_ops(self, seed, place):
        """Values and gradients, where 1x1 filters pass the images through or turn their sign."""
        x, w = extreme_images(seed, (2, 1, 6, 7)), np.array([1.0, -1.0]).reshape(2, 1, 1, 1)
        g = np.random.default_rng(seed).standard_normal((2, 2, 3, 3))
        found = []
        for function in (tg.conv2d_relu_max_pool2d, three_ops):
            nodes = [tg.Tensor(a, requires_grad=True, device=place) for a in (x, w, np.zeros(2))]
            y = function(*nodes)
            assert not np.signbit(y.numpy()[y.numpy() == 0]).any()
            y.backward(g)
            found.append([y.numpy(), nodes[0].grad, nodes[2].grad])
        for fused, unfused in zip(*found, strict=True):
            np.testing.assert_allclose(fused, unfused, atol=1e-12)

    @pytest.mark.second
    @pytest.mark.parametrize("place", DEVICES)
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @given(seed=seeds)
    def test_3x3_on_extreme_images_as_the_three_ops(self, seed, place, dtype):
        """Whole numbers, so that sums in any order are the same: ties, NaN and infinities."""
        rng = np.random.default_rng(seed)
        x, b = 3 * extreme_images(seed, (2, 1, 7, 8)), rng.integers(-2, 3, 4)
        w, g = rng.integers(1, 4, (4, 1, 3, 3)), rng.integers(-3, 4, (2, 4, 2, 3))
        found = []
        for function in (tg.conv2d_relu_max_pool2d, three_ops):
            nodes = [
                tg.Tensor(a.astype(dtype), requires_grad=True, device=place) for a in (x, w, b)
            ]
            y = function(*nodes)
            y.backward(g.astype(dtype))
            found.append([y.numpy(), nodes[0].grad, nodes[2].grad])
        for fused, unfused in zip(*found, strict=True):
            np.testing.assert_array_equal(fused, unfused)

    def test_images_that_lie_anywhere(self):
        """Not at a multiple of 8 bytes, where pixels are read one by one; whole numbers."""
        rng, stage = np.random.default_rng(0), SingleChannelStage(3, 6, 6, 2)
        gy = rng.integers(-9, 10, (3, 2, 4)).astype(np.float32)
        argmax = rng.choice([0, 1, 2, 3, 255], gy.shape).astype(np.uint8)
        memory = rng.random(3 * 36 + 1, np.float32)
        found = []
        for shift in (0, 1):
            x = memory[shift : shift + 3 * 36]
            x[:] = np.arange(3 * 36)
            assert x.ctypes.data % 8 == 4 * shift
            gw, gb = np.empty((1, 2, 9), np.float32), np.empty((1, 2), np.float32)
            stage.backward(gy, x.reshape(3, 1, 6, 6), argmax, gw, gb, 3)
            found.append((gw, gb))
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)

    def test_no_images_have_gradients_of_zero(self, kernel_device):
        x = tg.Tensor(np.ones((0, 1, 6, 6), np.float32), device=kernel_device)
        w = tg.Parameter(np.ones((2, 1, 3, 3), np.float32), device=kernel_device)
        tg.conv2d_relu_max_pool2d(x, w).backward(np.ones((0, 2, 2, 2), np.float32))
        np.testing.assert_array_equal(w.device.to_numpy(w.grad), np.zeros((2, 1, 3, 3)))

    def test_one_byte_is_kept_for_each_window(self, device):
        x = tg.Tensor([[[[1.0, 3, -1, -2, 5], [3, 2, 0, -3, 9], [7, 7, 7, 7, 7]]]], device=device)
        w = tg.Tensor(np.ones((1, 1, 1, 1), np.float32), requires_grad=True, device=device)
        y = tg.conv2d_relu_max_pool2d(x, w)
        np.testing.assert_array_equal(y.value, [[[[3, 0]]]])
        assert y.saved[0].dtype == np.uint8
        np.testing.assert_array_equal(y.saved[0], [[[[1, 255]]]])

    def test_kernels_never_write_an_array_of_the_convolutions_size(self):
        x, w = (
            tg.Tensor(numbers(i, shape), requires_grad=True, device="emulator")
            for i, shape in enumerate([(4, 2, 9, 9), (5, 2, 2, 2)])
        )
        with tg.cuda.recording() as launches:
            tg.conv2d_relu_max_pool2d(x, w).backward(np.ones((4, 5, 4, 4)))
        written = [use for launch in launches for use in launch.arrays if use.writes]
        assert {use.shape for use in written if use.bytes} >= {(4, 5, 4, 4), (4, 2, 9, 9)}
        assert max(use.bytes for use in written) < 8 * 4 * 5 * 8 * 8
