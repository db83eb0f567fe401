"""conv2d against loops, with every stride, padding, dilation and group that conv_problems draws."""

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.strategies import conv_problems
from tinygraph.errors import ArgumentError, DtypeError, ShapeError

X, W = np.ones((2, 3, 5, 5)), np.ones((4, 3, 3, 3))


class TestConv2d(OpContract):
    function = staticmethod(tg.conv2d)
    reference = staticmethod(reference.conv2d)
    problems = conv_problems()
    tolerance = 4.0
    bad_input = [
        Bad("three axes", (X[0], W), {}, ShapeError, "conv2d: x: expected 4 axes (N, C, H, W)"),
        Bad("flat weights", (X, W[0]), {}, ShapeError, "4 axes (O, C/groups, KH, KW)"),
        Bad("channels", (X, W[:, :2]), {}, ShapeError, "the 3 channels of x"),
        Bad("groups", (X, W[:, :1]), {"groups": 3}, ShapeError, "that 3 groups divide"),
        Bad("groups 0", (X, W), {"groups": 0}, ArgumentError, "groups: expected an int"),
        Bad("bias", (X, W, np.ones(3)), {}, ShapeError, "b: expected shape (4,)"),
        Bad("small image", (X[..., :2], W), {}, ShapeError, "use a smaller kernel"),
        Bad("stride", (X, W), {"stride": 0}, ArgumentError, "stride"),
        Bad("padding", (X, W), {"padding": "valid"}, ArgumentError, "'same'"),
        Bad("dtype", (X, W.astype("f4")), {}, DtypeError, "w: expected float64, the dtype of x"),
        Bad("integers", (X.astype(int), W), {}, DtypeError, "float32 or float64"),
    ]

    def test_published_size(self):
        """AlexNet's first layer: 227x227, kernel 11, stride 4 gives 55x55 (Krizhevsky 2012)."""
        x, w = np.zeros((1, 3, 227, 227), np.float32), np.zeros((2, 3, 11, 11), np.float32)
        assert tg.conv2d(x, w, stride=4).shape == (1, 2, 55, 55)

    def test_no_columns_are_kept_where_the_weights_are_constant(self):
        x = tg.Tensor(X, requires_grad=True)
        assert tg.conv2d(x, W).saved[2] is None
