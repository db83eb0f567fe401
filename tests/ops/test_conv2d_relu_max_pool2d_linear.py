"""conv2d_relu_max_pool2d_linear against loops, and the bytes of the step that it is made for."""

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.ops.fused_convolutions import extreme_images, fused_problems, large
from tinygraph.errors import ArgumentError, DtypeError, ShapeError

X, W, B = np.ones((2, 3, 6, 6)), np.ones((4, 3, 3, 3)), np.ones(4)
HEAD, HEAD_B = np.ones((2, 16)), np.ones(2)


class TestConv2dReluMaxPool2dLinear(OpContract):
    function = staticmethod(tg.conv2d_relu_max_pool2d_linear)
    reference = staticmethod(reference.conv2d_relu_max_pool2d_linear)
    problems = fused_problems(head=True)
    tolerance = 8.0
    large_problems = (
        large((5, 1, 12, 13), (35, 1, 3, 3), outs=10),  # two blocks of filters, images left over
        large((2, 3, 9, 8), (6, 3, 3, 3), outs=23, padding=1, pool=3),  # three turns of both
        large((40, 1, 6, 6), (2, 1, 2, 2), outs=3, stride=2),  # two chunks of images in backward
    )
    bad_input = [
        Bad("three axes", (X[0], W, B, HEAD, HEAD_B), {}, ShapeError, "x: expected 4 axes"),
        Bad("bias", (X, W, B[:3], HEAD, HEAD_B), {}, ShapeError, "b: expected shape (4,)"),
        Bad("features", (X, W, B, HEAD[:, :9], HEAD_B), {}, ShapeError, "expected 16 features"),
        Bad("head", (X, W, B, HEAD[0], HEAD_B), {}, ShapeError, "head: expected 2 axes"),
        Bad("head's bias", (X, W, B, HEAD, B), {}, ShapeError, "head_b: expected shape (2,)"),
        Bad("pool", (X, W, B, HEAD, HEAD_B), {"pool": 1}, ArgumentError, "pool: expected 2 or 3"),
        Bad("dtype", (X, W, B, HEAD.astype("f4"), HEAD_B), {}, DtypeError, "head: expected f"),
        Bad("integers", (X.astype(int), W, B, HEAD, HEAD_B), {}, DtypeError, "float32 or float64"),
    ]

    def test_values_that_are_not_finite_as_op_by_op(self, device):
        x = extreme_images(3, (3, 1, 6, 7))
        w, b = np.array([1.0, -1.0]).reshape(2, 1, 1, 1), np.array([0.5, 0.0])
        arrays = x, w, b, np.ones((2, 18)), np.ones(2)
        x, w, b, head, head_b = (tg.Tensor(a, requires_grad=True, device=device) for a in arrays)
        y = tg.conv2d_relu_max_pool2d_linear(x, w, b, head, head_b)
        pooled = tg.max_pool2d(tg.relu(tg.conv2d(x, w, b)), 2)
        expected = tg.linear(tg.flatten(pooled, 1), head, head_b)
        np.testing.assert_array_equal(y.numpy(), expected.numpy())
