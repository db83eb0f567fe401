"""conv2d against loops, with every stride, padding, dilation and group that conv_problems draws."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import conv_problems, numbers
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.ops.windows.conv2d import Conv2d, _launch_of
from tinygraph.ops.windows.convolution import Sum, choose_convolution


def large(x_shape, w_shape, bias=True, **kwargs):
    b = numbers(3, (w_shape[0],)) if bias else None
    return Problem((numbers(1, x_shape), numbers(2, w_shape), b), kwargs)


def conv2d_im2col(*args, **kwargs):
    return tg.conv2d(*args, **kwargs, algorithm="im2col")


def conv2d_naive(*args, **kwargs):
    return tg.conv2d(*args, **kwargs, algorithm="naive_implicit")


conv2d_naive.__module__ = tg.conv2d.__module__
conv2d_im2col.__module__ = tg.conv2d.__module__  # where the contract looks for the ops
X, W = np.ones((2, 3, 5, 5)), np.ones((4, 3, 3, 3))


class TestConv2d(OpContract):
    function = staticmethod(tg.conv2d)
    reference = staticmethod(reference.conv2d)
    problems = conv_problems()
    tolerance = 4.0
    large_problems = (
        large((2, 3, 10, 11), (18, 3, 3, 3)),  # register tiles with edges, two steps of k
        large((3, 4, 9, 8), (6, 2, 2, 3), groups=2, stride=(2, 1), padding=1),
        large((2, 4, 4, 4), (4, 4, 2, 2), bias=False),  # one shared tile
        large((9, 1, 13, 13), (2, 1, 2, 2)),  # gw: a sum over images that is cut into chunks
        large((1, 1, 9, 15), (130, 1, 2, 2)),  # three tiles of 64 filters
        large((2, 3, 5, 6), (33, 3, 3, 3), stride=2, padding=1),  # a tile of 64, phases
        large((1, 44, 6, 5), (65, 44, 3, 3), padding="same"),  # a tile of 128, sums in chunks
        large((2, 1, 7, 9), (1, 1, 3, 3), padding="same", stride=2),  # more padding after
        large((1, 6, 5, 7), (96, 2, 1, 1), groups=3, stride=(2, 3)),  # 32 filters a group
        large((3, 2, 8, 8), (4, 2, 3, 2), dilation=(2, 3), stride=(3, 2), padding=(2, 3)),
    )
    bad_input = [
        Bad("three axes", (X[0], W), {}, ShapeError, "conv2d: x: expected 4 axes (N, C, H, W)"),
        Bad("flat weights", (X, W[0]), {}, ShapeError, "4 axes (O, C/groups, KH, KW)"),
        Bad("channels", (X, W[:, :2]), {}, ShapeError, "the 3 channels of x"),
        Bad("groups", (X, W[:, :1]), {"groups": 3}, ShapeError, "that 3 groups divide"),
        Bad("groups 0", (X, W), {"groups": 0}, ArgumentError, "groups: expected an int"),
        Bad("bias", (X, W, np.ones(3)), {}, ShapeError, "b: expected shape (4,)"),
        Bad("small image", (X[..., :2], W), {}, ShapeError, "use a smaller kernel"),
        Bad("stride", (X, W), {"stride": 0}, ArgumentError, "stride"),
        Bad("padding", (X, W), {"padding": "wrong"}, ArgumentError, "'same'"),
        Bad("algorithm", (X, W), {"algorithm": "fft"}, ArgumentError, "or 'naive_implicit' or"),
        Bad("dtype", (X, W.astype("f4")), {}, DtypeError, "x: expected float32, the dtype of w"),
        Bad("integers", (X.astype(int), W), {}, DtypeError, "float32 or float64"),
    ]

    def test_published_size(self):
        """AlexNet's first layer: 227x227, kernel 11, stride 4 gives 55x55 (Krizhevsky 2012)."""
        x, w = np.zeros((1, 3, 227, 227), np.float32), np.zeros((2, 3, 11, 11), np.float32)
        assert tg.conv2d(x, w, stride=4).shape == (1, 2, 55, 55)

    def test_the_images_are_not_kept_where_the_weights_are_constant(self):
        x = tg.Tensor(X, requires_grad=True)
        assert tg.conv2d(x, W).saved[2] is None

    def test_kernel_sums_the_bias_in_chunks_of_images(self, kernel_device):
        """More elements of a channel than one block sums; sums of halves are exact."""
        w = tg.Tensor(np.ones((2, 1, 1, 1), np.float32), device=kernel_device)
        x = tg.Tensor(np.ones((5, 1, 64, 128), np.float32), device=kernel_device)
        b = tg.Tensor(np.zeros(2, np.float32), requires_grad=True, device=kernel_device)
        tg.conv2d(x, w, b).backward(np.full((5, 2, 64, 128), 0.5, np.float32))
        np.testing.assert_array_equal(b.device.to_numpy(b.grad), [5 * 64 * 64] * 2)

    def test_kernels_write_no_columns_and_keep_none(self):
        """Bytes by the launches: x, w, gy and the gradients, no KH * KW copies of anything."""
        arrays = np.ones((2, 3, 12, 12), np.float32), np.ones((4, 3, 3, 3), np.float32)
        moved = {}
        for algorithm in ("implicit", "im2col"):
            x, w = (tg.Tensor(a, requires_grad=True, device="emulator") for a in arrays)
            with tg.cuda.recording(execute=False) as launches:
                y = tg.conv2d(x, w, algorithm=algorithm)
                y.backward(np.ones(y.shape, np.float32))
            moved[algorithm] = sum(launch.bytes for launch in launches)
        x, w, y = 4 * 2 * 3 * 144, 4 * 4 * 27, 4 * 2 * 4 * 100
        assert moved["implicit"] == 3 * (x + w + y)  # forward and the two gradients
        assert moved["im2col"] > moved["implicit"] + 4 * (9 * 4 * 2 * 3 * 100)

    @pytest.mark.second
    @pytest.mark.parametrize("algorithm", ["implicit", "naive_implicit", "im2col"])
    def test_algorithms_agree(self, algorithm):
        """Each step of the ladder against loops, with phases, padding and groups."""
        x, w, b, settings = numbers(1, (2, 4, 7, 6)), numbers(2, (6, 2, 3, 2)), numbers(3, (6,)), {
            "stride": (2, 3), "padding": (1, 2), "dilation": (2, 1), "groups": 2,
        }  # fmt: skip
        given = [tg.Tensor(a, device="emulator", requires_grad=True) for a in (x, w, b)]
        y = tg.conv2d(*given, **settings, algorithm=algorithm)
        np.testing.assert_allclose(y.value, reference.conv2d(x, w, b, **settings), atol=1e-12)
        plain = [tg.Tensor(a, requires_grad=True) for a in (x, w, b)]
        for value in (y, tg.conv2d(*plain, **settings)):
            value.backward(np.ones(value.shape))
        for one, other in zip(given, plain, strict=True):
            np.testing.assert_allclose(one.grad, other.grad, atol=1e-12)

    def test_tiles_and_chunks(self):
        """Few filters have low tiles; few blocks share sums; the naive step does neither."""

        def chosen(filters, columns, taps, **settings):
            size = Sum(filters, columns, 1, taps)
            choice = choose_convolution(size, 1, np.float32, "highest", **settings)
            return choice.tile, choice.chunks

        assert [chosen(o, 10**6, 576)[0] for o in (1, 32, 33, 64, 96, 130)] == [
            32, 32, 64, 64, 128, 64,
        ]  # fmt: skip
        blocks_alone = 128 * 64  # columns of 64 blocks
        assert chosen(128, blocks_alone, 1152) == (128, 4)
        assert chosen(128, 256 * 128, 1152) == (128, 1)
        assert chosen(128, blocks_alone, 255) == (128, 1)  # too short to be cut
        assert chosen(32, blocks_alone, 1152, naive=True, cut=False) == (128, 1)

    def test_what_shapes_say_of_a_launch_is_remembered(self):
        op, x, w = Conv2d((1, 1), (0, 0), (1, 1), 1), (2, 3, 5, 5), (4, 3, 3, 3)
        first, again, other = (
            _launch_of(op, "forward", x, w, np.dtype("f4"), precision)
            for precision in ("highest", "highest", "high")
        )
        assert again is first
        kernel, others = first.launch.kernel, other.launch.kernel
        assert kernel.name == others.name and kernel is not others


@pytest.mark.second
class TestNaiveImplicitConv2d(OpContract):
    """Implicit GEMM without the table, with one tile, uncut."""

    function = staticmethod(conv2d_naive)
    reference = staticmethod(reference.conv2d)
    problems = conv_problems()
    tolerance = 4.0
    large_problems = (TestConv2d.large_problems[1], *TestConv2d.large_problems[3:6])
    bad_input = TestConv2d.bad_input[:3]


class TestIm2colConv2d(OpContract):
    """The step before, with the columns written out."""

    function = staticmethod(conv2d_im2col)
    reference = staticmethod(reference.conv2d)
    problems = conv_problems()
    tolerance = 4.0
    large_problems = TestConv2d.large_problems[:4]
    bad_input = TestConv2d.bad_input[:3]


@st.composite
def sequence_problems(draw):
    """Those of images, of which one row is left."""
    problem = draw(conv_problems())
    x, w, b = problem.args
    kwargs = {k: v[1] if isinstance(v, tuple) else v for k, v in problem.kwargs.items()}
    return Problem((x[:, :, 0], w[:, :, 0], b), kwargs, problem.carries)


class TestConv1d(OpContract):
    function = staticmethod(tg.conv1d)
    reference = staticmethod(reference.conv1d)
    problems = sequence_problems()
    tolerance = 4.0
    large_problems = (large((3, 4, 200), (6, 2, 5), groups=2, stride=2, padding=2, dilation=3),)
    conventions = [
        Convention(
            "cross-correlation",
            ([[[1.0, 2.0, 4.0]]], [[[-1.0, 1.0]]]),
            [[[1.0, 2.0]]],
            ([[[-1.0, 0.0, 1.0]]], [[[3.0, 6.0]]]),
        )
    ]
    bad_input = [
        Bad("images", (X, W[0]), {}, ShapeError, "conv1d: x: expected 3 axes (N, C, L)"),
        Bad("weights", (X[0], W), {}, ShapeError, "conv1d: w: expected 3 axes (O, C/groups, K)"),
        Bad("channels", (X[0], W[:, 0]), {"groups": 2}, ShapeError, "inputs (N, C, L)"),
        Bad(
            "short",
            (X[:, :, 0, :2], W[:, :, 0]),
            {},
            ShapeError,
            "conv1d: x: expected an image of at",
        ),
        Bad("two strides", (X[0], W[0]), {"stride": (1, 2)}, ArgumentError, "conv1d: stride"),
        Bad("padding", (X[0], W[0]), {"padding": "wrong"}, ArgumentError, "'same'"),
        Bad("groups", (X[0], W[0]), {"groups": 0}, ArgumentError, "groups: expected an int"),
    ]


@pytest.mark.parametrize("stride, padding", [(1, 1), (2, 0)])
@pytest.mark.parametrize("filters", [0, 3])
def test_of_no_channel_the_bias_is_left(filters, stride, padding):
    x = tg.Tensor(np.ones((2, 0, 5, 5)), requires_grad=True)
    w = tg.Parameter(np.ones((filters, 0, 3, 3)), dtype=np.float64)
    b = tg.Parameter(np.arange(filters), dtype=np.float64)
    y = tg.conv2d(x, w, b, stride=stride, padding=padding)
    assert (y.value == np.arange(filters)[:, None, None]).all()
    y.backward(np.ones(y.shape))
    assert (x.grad.shape, w.grad.shape) == (x.shape, w.shape)
    np.testing.assert_array_equal(b.grad, [y.size / max(filters, 1)] * filters)
