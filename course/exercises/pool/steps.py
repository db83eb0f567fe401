"""What is tried of exercise 8."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.engine.spec import Array
from tinygraph_course.checking.op_step import OpStep
from tinygraph_course.checking.steps import FunctionStep, shown

_drawn = np.random.default_rng(8)


def whole(*shape: int, low: int = -9, high: int = 9) -> Array:
    """Whole numbers, some of them equal."""
    return _drawn.integers(low, high + 1, shape).astype(np.float64)


def distinct(*shape: int) -> Array:
    return _drawn.permutation(int(np.prod(shape))).reshape(shape).astype(np.float64) - 3


SIZES = [
    *((1, 1, 1), (3, 3, 1), (2, 2, 2), (4, 2, 2), (5, 3, 1), (4, 3, 2)),
    *((5, 2, 2), (7, 3, 3), (5, 2, 3), (6, 3, 2)),
]
IMAGES: list[tuple[Array, int, int]] = [
    (np.array([[[[1.0, 3.0], [2.0, 0.0]]]]), 2, 2),
    (np.array([[[[-1.0, -3.0], [-2.0, -5.0]]]]), 2, 2),
    (np.array([[[[2.0, 2.0], [2.0, 2.0]]]]), 2, 2),
    (distinct(1, 1, 2, 4), 2, 2),
    (distinct(1, 1, 4, 2), 2, 2),
    (distinct(1, 1, 3, 3), 2, 1),
    (whole(1, 1, 3, 4, low=0, high=1), 2, 1),
    (distinct(1, 1, 5, 5), 2, 3),
    (distinct(2, 1, 2, 2), 2, 2),
    (distinct(1, 2, 2, 3), 2, 1),
    (whole(2, 3, 5, 7, low=-4, high=0), 3, 2),
    (distinct(2, 2, 4, 6).astype(np.float32), 2, 2),
    (distinct(1, 2, 3, 4), 2, 1),
]


def winners(x: Array, kernel: int, stride: int) -> Array:
    """The positions by a loop over all pixels of all windows."""
    (N, C), (OH, OW) = x.shape[:2], [(size - kernel) // stride + 1 for size in x.shape[2:]]
    out = np.empty((N, C, OH, OW), np.int32)
    inside = [(i, j) for i in range(kernel) for j in range(kernel)]
    for n, c, u, v in np.ndindex(out.shape):
        pixels = [(u * stride + i, v * stride + j) for i, j in inside]
        h, w = max(pixels, key=lambda p: (x[n, c, p[0], p[1]], -p[0], -p[1]))
        out[n, c, u, v] = h * x.shape[3] + w
    return out


def _upstream() -> list[tuple[Array, Array, tuple[int, ...]]]:
    cases = []
    for x, kernel, stride in IMAGES:
        argmax = winners(x, kernel, stride)
        cases.append((whole(*argmax.shape, low=1).astype(x.dtype), argmax, x.shape))
    twice = np.array([[[[5.0, 7.0]]]]), np.array([[[[1, 1]]]], np.int32), (1, 1, 2, 3)
    return [*cases[:3], twice, *cases[3:]]


def sizes() -> Any:
    from hypothesis import strategies as st

    numbers = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(0, 12))
    return numbers.map(lambda t: (t[0] + t[2], t[0], t[1]))


def images() -> Any:
    from hypothesis import strategies as st

    @st.composite
    def cases(draw: Any) -> tuple[Array, int, int]:
        kernel, stride = draw(st.integers(1, 3)), draw(st.integers(1, 4))
        N, C = draw(st.integers(1, 2)), draw(st.integers(1, 2))
        H, W = (draw(st.integers(kernel, kernel + 4)) for _ in "HW")
        numbers, shape = np.random.default_rng(draw(st.integers(0, 99))), (N, C, H, W)
        if draw(st.booleans()):
            return numbers.integers(-2, 3, shape).astype(np.float64), kernel, stride
        return numbers.standard_normal(shape), kernel, stride

    return cases()


def gradients() -> Any:
    def of(case: tuple[Array, int, int]) -> tuple[Array, Array, tuple[int, ...]]:
        argmax = winners(*case)
        numbers = np.random.default_rng(argmax.size)
        return numbers.standard_normal(argmax.shape), argmax, case[0].shape

    return images().map(of)


def show_image(name: str) -> Any:
    """A call with its image as rows, where it is a small one."""

    def show(x: Array, kernel: int, stride: int) -> str:
        call = f"{name}(x, kernel={kernel}, stride={stride}), x {x.shape} {x.dtype}"
        if x.shape[:2] != (1, 1) or x.shape[3] > 8:
            return call
        rows = ["".join(f"{value:6g}" for value in row) for row in x[0, 0]]
        return "\n".join([f"{call}:", *rows])

    return show


def show_gradient(gy: Array, argmax: Array, shape: tuple[int, ...]) -> str:
    return f"backward(gy, argmax, {tuple(shape)})\n  gy = {shown(gy)}\n  argmax = {shown(argmax)}"


STEPS = [
    FunctionStep(
        1,
        "windows",
        SIZES,
        sizes,
        lambda size, kernel, stride: f"windows(size={size}, kernel={kernel}, stride={stride})",
    ),
    FunctionStep(
        2,
        "pool",
        IMAGES,
        images,
        show_image("pool"),
    ),
    FunctionStep(
        3,
        "positions",
        IMAGES,
        images,
        show_image("positions"),
    ),
    FunctionStep(
        4,
        "backward",
        _upstream(),
        gradients,
        show_gradient,
    ),
    OpStep(
        5,
        "MaxPool2d",
        [((kernel, stride), (x,)) for x, kernel, stride in IMAGES],
        differenced=(5, 12),
        keeps=2,  # positions in int64 where int32 would do
        drawn=lambda: images().map(lambda case: (case[1:], case[:1])),
    ),
]
