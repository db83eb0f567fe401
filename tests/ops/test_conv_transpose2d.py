"""Transposed convolution against loops that paint, of images and of sequences."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import numbers, seeds
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X, W = np.ones((2, 4, 5, 3)), np.ones((4, 3, 2, 3))


@st.composite
def painting_problems(draw, axes):
    """Inputs, filters and perhaps a bias, with settings that leave something inside the padding."""
    groups, n = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    c, o_group = groups * draw(st.integers(1, 2)), draw(st.integers(1, 2))
    drawn = {"stride": [], "padding": [], "output_padding": [], "dilation": []}
    size, kernel = ([draw(st.integers(1, 3)) for _ in range(axes)] for _ in range(2))
    for k, length in zip(kernel, size, strict=True):
        step, gap = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        more = draw(st.integers(0, step - 1))
        whole = (length - 1) * step + gap * (k - 1) + 1 + more
        pad = draw(st.integers(0, min(2, (whole - 1) // 2)))
        for name, value in zip(drawn, (step, pad, more, gap), strict=True):
            drawn[name].append(value)
    x = numbers(draw(seeds), (n, c, *size))
    w = numbers(draw(seeds), (c, o_group, *kernel))
    b = numbers(draw(seeds), (o_group * groups,)) if draw(st.booleans()) else None
    kwargs = {name: tuple(v) if axes == 2 else v[0] for name, v in drawn.items()}
    carries = (True, False) if b is None else (True, False, False)
    return Problem((x, w, b), {**kwargs, "groups": groups}, carries)


def large(x_shape, w_shape, **kwargs):
    b = numbers(3, (w_shape[1] * kwargs.get("groups", 1),))
    return Problem((numbers(1, x_shape), numbers(2, w_shape), b), kwargs)


class TestConvTranspose2d(OpContract):
    function = staticmethod(tg.conv_transpose2d)
    reference = staticmethod(reference.conv_transpose2d)
    problems = painting_problems(2)
    tolerance = 4.0
    large_problems = (
        large((2, 18, 5, 6), (18, 9, 2, 2), stride=2),
        large(
            (2, 6, 4, 7), (6, 2, 3, 2), groups=2, stride=(2, 1), padding=1, output_padding=(1, 0)
        ),
    )
    conventions = [
        Convention(
            "a pixel paints its filter",
            ([[[[2.0]]]], [[[[1.0, -3.0]]]]),
            [[[[2.0, -6.0]]]],
            ([[[[-2.0]]]], [[[[2.0, 2.0]]]]),
        ),
        Convention(
            "padding cuts off",
            ([[[[1.0, 2.0]]]], [[[[1.0, 1.0, 1.0]]]]),
            [[[[3.0, 3.0]]]],
            ([[[[2.0, 2.0]]]], [[[[2.0, 3.0, 1.0]]]]),
            {"padding": (0, 1)},
        ),
    ]
    bad_input = [
        Bad("three axes", (X[0], W), {}, ShapeError, "conv_transpose2d: x: expected 4 axes"),
        Bad("flat weights", (X, W[0]), {}, ShapeError, "4 axes (C, O/groups, KH, KW)"),
        Bad("channels", (X, W[:3]), {}, ShapeError, "equal to the 4 channels of x, got 3"),
        Bad("groups", (X, W), {"groups": 3}, ShapeError, "that 3 groups divide"),
        Bad("groups 0", (X, W), {"groups": 0}, ArgumentError, "groups: expected"),
        Bad("bias", (X, W, np.ones(4)), {}, ShapeError, "b: expected shape (3,)"),
        Bad("bias dtype", (X, W, np.ones(3, "f4")), {}, DtypeError, "the dtype of b, got float64"),
        Bad("no kernel", (X, W[..., :0]), {}, ShapeError, "at least one element"),
        Bad("no pixel", (X[..., :0], W), {}, ShapeError, "at least one element"),
        Bad("padding", (X, W), {"padding": 3}, ShapeError, "an output of at least one element"),
        Bad("stride", (X, W), {"stride": 0}, ArgumentError, "stride: expected at least 1"),
        Bad("words", (X, W), {"padding": "same"}, ArgumentError, "padding: expected an int"),
        Bad("more", (X, W), {"output_padding": 1}, ArgumentError, "less than the stride (1, 1)"),
        Bad("dtype", (X, W.astype("f4")), {}, DtypeError, "x: expected float32, the dtype of w"),
        Bad("integers", (X.astype(int), W), {}, DtypeError, "float32 or float64"),
    ]

    def test_it_is_the_gradient_of_a_convolution(self, device):
        """<conv(image), x> = <image, conv_transpose(x)>, for sizes that do not divide."""
        image, w = numbers(1, (2, 2, 8, 9)), numbers(2, (4, 2, 3, 3))
        x = numbers(3, tg.conv2d(image, w, stride=2, padding=1).shape)
        y = tg.conv_transpose2d(
            tg.Tensor(x, device=device), w, stride=2, padding=1, output_padding=(1, 0)
        )
        there = (tg.conv2d(image, w, stride=2, padding=1).value * x).sum()
        np.testing.assert_allclose((y.numpy() * image).sum(), there)

    @pytest.mark.parametrize("wanted", [(True, True), (False, True), (True, False)])
    def test_a_compiled_step_has_the_same_gradients(self, device, wanted):
        def step(x, w):
            return (tg.conv_transpose2d(x, w, stride=2) ** 2.0).sum()

        def gradients(function):
            both = zip((X, W), wanted, strict=True)
            leaves = [tg.Tensor(a, requires_grad=r, device=device) for a, r in both]
            function(*leaves).backward()
            return [None if leaf.grad is None else device.to_numpy(leaf.grad) for leaf in leaves]

        device = tg.device(device)
        for a, b in zip(gradients(tg.compile(step)), gradients(step), strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(a, b)


class TestConvTranspose1d(OpContract):
    function = staticmethod(tg.conv_transpose1d)
    reference = staticmethod(reference.conv_transpose1d)
    problems = painting_problems(1)
    tolerance = 4.0
    conventions = [
        Convention(
            "side by side",
            ([[[1.0, 2.0]]], [[[1.0, 3.0]]]),
            [[[1.0, 3.0, 2.0, 6.0]]],
            ([[[4.0, 4.0]]], [[[3.0, 3.0]]]),
            {"stride": 2},
        )
    ]
    bad_input = [
        Bad("images", (X, W[0]), {}, ShapeError, "conv_transpose1d: x: expected 3 axes (N, C, L)"),
        Bad("weights", (X[0], W), {}, ShapeError, "w: expected 3 axes (C, O/groups, K)"),
        Bad("channels", (X[0], W[:, 0]), {}, ShapeError, "weights are (C, O/groups, K)"),
        Bad("pair", (X[0], W[:, 0]), {"stride": (1, 2)}, ArgumentError, "stride: expected an int"),
        Bad("more", (X[0], W[:, 0]), {"output_padding": 1}, ArgumentError, "less than the stride"),
        Bad("negative", (X[0], W[:, 0]), {"padding": -1}, ArgumentError, "at least 0, got -1"),
    ]
