"""Launches of ops whose kernels are recorded: windows, axes, positions, normalisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import tinygraph as tg
from tests.cuda.launch import F4, I8, Launch, Maker, null
from tests.cuda.launches import Family
from tests.cuda.recorded import op_launches
from tinygraph.cuda import Out

# A set of one element, one block exactly, few long sets, many short ones, inner and outer axes.
AXES = [
    ((1,), None),
    ((256, 1), 1),
    ((1, 256), 1),
    ((2, 700), 1),
    ((40, 9), 0),
    ((3, 5, 4, 6), (0, 2)),
    ((2, 3, 300), (0, 2)),
    ((9000,), None),
]


def _numbers(random: np.random.Generator, shape: Any) -> np.ndarray:
    return random.standard_normal(shape).astype(F4)


def in_one_block(launches: Iterator[Launch]) -> Iterator[Launch]:
    """Each launch, and again with one block, which goes through all that several blocks did."""
    for launch in launches:
        yield launch
        if launch.grid[0] > 1:
            yield replace(launch, grid=(1, *launch.grid[1:]), label=f"{launch.label} one block")


def along_axes(*functions: Callable[..., Any]) -> Family:
    """Ops that take an axis; some elements are equal, one is NaN."""

    def launches(random: np.random.Generator) -> Iterator[Launch]:
        for function in functions:
            for shape, axis in AXES:
                x = _numbers(random, shape)
                yield from op_launches(function, x, axis=axis, label=f"{shape} axis={axis}")
                if x.size > 1:
                    tied = random.integers(-2, 3, shape).astype(F4)
                    tied.flat[-3:] = np.nan
                    label = f"ties {shape} {axis}"
                    yield from in_one_block(op_launches(function, tied, axis=axis, label=label))
            nowhere = np.full((3, 5), -np.inf, F4)
            yield from op_launches(function, nowhere, axis=1, label="minus infinity")

    return launches


def _max(random: np.random.Generator) -> Iterator[Launch]:
    yield from along_axes(tg.amax, tg.amin)(random)
    for shape, axis in (((40, 9), 0), ((2, 700), 1), ((9000,), None)):
        x = random.integers(-2, 3, shape).astype(F4)
        label = f"places {shape} {axis}"
        yield from op_launches(tg.argmax, x, differentiable=False, axis=axis, label=label)
    launch = Maker("max.cu")  # fewer elements than lanes: those without one must not count
    for order, sign, mark, found in (
        ("Larger", -1, "First", 1),
        ("Smaller", 1, "First", 1),
        ("Larger", -1, "Ties", 2),
        ("Smaller", 1, "Ties", 2),
    ):
        x = (sign * np.array([3, 1, 2, 1, 5])).astype(F4)
        yield launch(
            f"extreme_forward<float, {order}, {mark}>",
            1,
            x,
            null(I8),
            Out(x[1:2].copy()),
            Out(np.array([found])),
            1,
            1,
            1,
            5,
            1,
            1,
            32,
            label="5 elements, 32 lanes",
        )


POOLED = [
    ((1, 1, 1, 1), {"kernel_size": 1}),
    ((1, 1, 16, 16), {"kernel_size": 1}),
    ((2, 3, 5, 6), {"kernel_size": (3, 2), "stride": 2, "padding": 1}),
    ((1, 2, 8, 11), {"kernel_size": (2, 3), "stride": 3, "ceil_mode": True}),
    ((1, 2, 9, 11), {"kernel_size": 2}),  # pixels are left out at the end
    ((2, 2, 7, 6), {"kernel_size": 2, "stride": 1, "padding": 1, "count_include_pad": False}),
]


def _avg_pool2d(random: np.random.Generator) -> Iterator[Launch]:
    for shape, settings in POOLED:
        yield from op_launches(tg.avg_pool2d, _numbers(random, shape), label=f"{shape}", **settings)


def _global_avg_pool2d(random: np.random.Generator) -> Iterator[Launch]:
    for shape in (
        (1, 1, 1, 1),
        (1, 2, 16, 16),
        (3, 40, 3, 3),
        (2, 3, 20, 31),
        (300, 1, 1, 2),
        (1, 2, 50, 61),
    ):
        yield from op_launches(tg.global_avg_pool2d, _numbers(random, shape), label=f"{shape}")


def _pad(random: np.random.Generator) -> Iterator[Launch]:
    for shape, width in (
        ((1,), 1),
        ((250,), (3, 3)),
        ((5, 7), ((1, 2), (0, 3))),
        ((2, 3, 4, 5), ((0, 0), (1, 0), (2, 2), (0, 1))),
    ):
        x = _numbers(random, shape)
        yield from op_launches(tg.pad, x, pad_width=width, value=0.5, label=f"{shape} {width}")


def _transpose(random: np.random.Generator) -> Iterator[Launch]:
    for shape, axes in (
        ((1, 1), (1, 0)),
        ((32, 32), (1, 0)),
        ((33, 70), (1, 0)),
        ((2, 5, 40), (0, 2, 1)),
        ((5, 2, 40), (2, 1, 0)),
        ((3, 4, 5, 6), (1, 3, 0, 2)),
    ):
        x = _numbers(random, shape)
        yield from in_one_block(op_launches(tg.transpose, x, axes=axes, label=f"{shape} {axes}"))


def _strided(random: np.random.Generator) -> Iterator[Launch]:
    for shape, axes in (
        ((1, 1, 2), (1, 0, 2)),
        ((4, 8, 8), (1, 0, 2)),
        ((5, 7, 9), (1, 0, 2)),
        ((2, 3, 4, 5), (2, 0, 1, 3)),
    ):
        x = _numbers(random, shape)
        yield from op_launches(tg.transpose, x, axes=axes, label=f"{shape} {axes}")
    for shape in ((1,), (256,), (7, 43)):
        x = _numbers(random, shape)
        yield from op_launches(lambda x: x[..., ::-1], x, label=f"{shape} reversed")


def _getitem(random: np.random.Generator) -> Iterator[Launch]:
    rows = np.array([[3, 0, -1], [3, 3, 1]])
    indices = [
        ((1,), (np.array([0, 0]),)),
        ((6, 50), (rows,)),
        ((6, 50), (slice(None), rows)),
        ((6, 5, 7), (slice(1, None, 2), rows[0], ...)),
        ((6, 5), (rows, np.array([4, 0, -2]))),
        ((6, 5), (slice(None, None, -2), 3)),
        ((4, 3, 5), (rows[1], slice(None), rows[1])),
    ]
    for shape, index in indices:
        yield from op_launches(
            tg.getitem, _numbers(random, shape), index=index, label=f"{shape} {index}"
        )


def _concatenate(random: np.random.Generator) -> Iterator[Launch]:
    def join(*tensors: Any, axis: int) -> Any:
        return tg.concatenate(tensors, axis)

    for shapes, axis in (
        (((1,), (1,)), 0),
        (((3, 5), (3, 1), (3, 40)), 1),
        (((2, 4, 3), (5, 4, 3)), 0),
        (((2, 40), (2, 88)), 1),
    ):
        arrays = [_numbers(random, shape) for shape in shapes]
        yield from op_launches(join, *arrays, axis=axis, label=f"{shapes}")
    x = _numbers(random, (6, 7))
    yield from op_launches(lambda x: tg.split(x, [2, 1, 3])[1], x, label="split")


def _comparison(random: np.random.Generator) -> Iterator[Launch]:
    functions = (tg.less, tg.less_equal, tg.greater, tg.greater_equal, tg.equal, tg.not_equal)
    for function in functions:
        for shapes in (((1,), (1,)), ((256,), (256,)), ((7, 43), (43,)), ((5, 1, 3), (4, 1))):
            x, y = (random.integers(-2, 3, shape).astype(F4) for shape in shapes)
            x.flat[-1] = np.nan
            yield from op_launches(
                function, x, y, differentiable=False, label=f"{function.__name__} {shapes}"
            )


def _logic(random: np.random.Generator) -> Iterator[Launch]:
    for function in (tg.bitwise_and, tg.bitwise_or, tg.bitwise_xor):
        for shapes in (((1,), (1,)), ((256,), (256,)), ((7, 43), (43,)), ((5, 1, 3), (4, 1))):
            x, y = (random.integers(-9, 9, shape) for shape in shapes)
            label = f"{function.__name__} {shapes}"
            yield from op_launches(function, x, y, differentiable=False, label=label)


def _floor_divide(random: np.random.Generator) -> Iterator[Launch]:
    for shapes in (((1,), (1,)), ((7, 43), (43,)), ((5, 1, 3), (4, 1))):
        x, y = (random.integers(-9, 9, shape) for shape in shapes)
        y = y + (y == 0)
        x.flat[0], y.flat[0] = np.iinfo(x.dtype).min, -1
        for function in (tg.floor_divide, tg.remainder):
            label = f"{function.__name__} {shapes}"
            yield from op_launches(function, x, y, differentiable=False, label=label)
            floats = (x / 4).astype(F4), y.astype(F4)
            differentiable = function is tg.remainder
            yield from op_launches(function, *floats, differentiable=differentiable, label=label)


def _batch_norm(random: np.random.Generator) -> Iterator[Launch]:
    for shape in ((2, 1), (300, 3), (4, 3, 5, 7), (2, 2, 20, 31), (6, 1, 16, 16)):
        x = 2 * _numbers(random, shape) + 1
        for training in (True, False):

            def normalize(x: Any, w: Any, b: Any, training: bool = training) -> Any:
                mean, variance = (np.full(w.shape, v, F4) for v in (0.5, 2.0))
                means = [tg.Tensor(a, device=x.device) for a in (mean, variance)]
                return tg.batch_norm(x, w, b, *means, training=training)

            def plain(x: Any, training: bool = training) -> Any:
                stats = [tg.Tensor(np.full(x.shape[1], v, F4), device=x.device) for v in (0.5, 2)]
                none = (None, None)
                return tg.batch_norm(x, *none, *(none if training else stats), training=training)

            label = f"{shape} training={training}"
            yield from op_launches(normalize, x, *_numbers(random, (2, shape[1])), label=label)
            yield from op_launches(plain, x, label=f"{label} plain")


def _layer_norm(random: np.random.Generator) -> Iterator[Launch]:
    for shape, axes in (
        ((1, 1), 1),
        ((9, 7), 7),
        ((3, 40), 40),
        ((2, 1500), 1500),
        ((300, 33), 33),
        ((2, 3, 4, 5), (4, 5)),
    ):
        size = (axes,) if isinstance(axes, int) else axes
        x, w, b = _numbers(random, shape), _numbers(random, size), _numbers(random, size)
        yield from op_launches(
            lambda x, w, b, s=size: tg.layer_norm(x, s, w, b), x, w, b, label=f"{shape}"
        )
        yield from op_launches(lambda x, s=size: tg.layer_norm(x, s), x, label=f"{shape} plain")


def _softmax(random: np.random.Generator) -> Iterator[Launch]:
    for function in (tg.softmax, tg.log_softmax):
        for shape, axis in (
            ((1, 1), 1),
            ((9, 256), 1),
            ((2, 1500), 1),
            ((3, 40, 7), 1),
            ((300, 5), 0),
            ((2, 3), 1),
            ((1, 9000), 1),
            ((3, 2000, 2), 1),
        ):
            x = 3 * _numbers(random, shape)
            yield from op_launches(function, x, axis=axis, label=f"{shape} axis={axis}")
        x = _numbers(random, (4, 5))
        x[0, 1], x[1, 2], x[2, 3] = np.nan, np.inf, -np.inf
        yield from op_launches(function, x, axis=1, label="not finite")


FAMILIES: dict[str, Family] = {
    "mean.cu": along_axes(tg.mean),
    "max.cu": _max,
    "var.cu": along_axes(tg.var, tg.std),
    "logsumexp.cu": along_axes(tg.logsumexp),
    "softmax.cu": _softmax,
    "avg_pool2d.cu": _avg_pool2d,
    "global_avg_pool2d.cu": _global_avg_pool2d,
    "pad.cu": _pad,
    "transpose.cu": _transpose,
    "strided.cu": _strided,
    "getitem.cu": _getitem,
    "concatenate.cu": _concatenate,
    "comparison.cu": _comparison,
    "floor_divide.cu": _floor_divide,
    "logic.cu": _logic,
    "batch_norm.cu": _batch_norm,
    "layer_norm.cu": _layer_norm,
}
