"""Launches of the kernels that compute one element from one element of each array."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tinygraph as tg
from tests.cuda.launch import F4, I4, I8, Launch
from tests.cuda.launches import Family
from tests.cuda.recorded import op_launches

# One element, a block exactly, a part of a second one.
SHAPES = [(1,), (256,), (7, 43)]
# Pairs of shapes: equal, one broadcast over the other, each over the other.
PAIRS = [
    ((1,), (1,)),
    ((256,), (256,)),
    ((7, 43), (7, 43)),
    ((301,), ()),
    ((7, 43), (43,)),
    ((5, 1, 3), (4, 1)),
]


def of_one(function: Callable[..., Any], low: float = -2, **keywords: Any) -> Family:
    """An op of one array: values from `low` to 2, with 0 and 1 among them, each more than once."""

    def launches(random: np.random.Generator) -> Iterator[Launch]:
        for shape in SHAPES:
            x = random.uniform(low, 2, shape).astype(F4)
            x.flat[::5] = 1
            x.flat[1::7] = max(low, 0)
            if low < 0:
                x.flat[2::31] = np.nan
            yield from op_launches(function, x, label=f"{function.__name__} {shape}", **keywords)

    return launches


def of_two(function: Callable[..., Any], low: float = -2) -> Family:
    """An op of two arrays that are broadcast; some elements are equal."""

    def launches(random: np.random.Generator) -> Iterator[Launch]:
        for shapes in PAIRS:
            x, y = (random.uniform(low, 2, shape).astype(F4) for shape in shapes)
            x.flat[0] = y.flat[0] = 1
            yield from op_launches(function, x, y, label=f"{function.__name__} {shapes}")

    return launches


def of_integers(*functions: Callable[..., Any], count: int) -> Family:
    """Ops of integers, which have no gradient; none is negative where it is an exponent."""

    def launches(random: np.random.Generator) -> Iterator[Launch]:
        for function in functions:
            x, y = random.integers(-3, 4, 300).astype(I4), random.integers(0, 4, 300).astype(I4)
            yield from op_launches(function, *(x, y)[:count], label=f"{function.__name__} int")

    return launches


def _powers(random: np.random.Generator) -> Iterator[Launch]:
    x = np.array([0, 0, 0, 0, 2, -2, 3], F4)
    y = np.array([0, 1, 2, 3, 0, 2, 1], F4)
    yield from op_launches(tg.pow, x, y, label="of zero")


def each_of(*families: Family) -> Family:
    """The launches of several families, one after the other."""

    def launches(random: np.random.Generator) -> Iterator[Launch]:
        for family in families:
            yield from family(random)

    return launches


def _where(random: np.random.Generator) -> Iterator[Launch]:
    for shape, other in PAIRS:
        a, b = (random.standard_normal(s).astype(F4) for s in (shape, other))
        condition = random.random(shape) < 0.5
        yield from op_launches(tg.where, condition, a, b, label=f"{shape} {other}")


# From and to: kernels of 3 kinds, and the conversions of halves both ways.
CASTS = [(F4, I4), (I8, F4), (np.uint8, F4), (F4, np.bool_), (F4, np.float16), (np.float16, F4)]
# Of half precision: zeros, the smallest, below the smallest normal one, rounded up and down, the
# largest, beyond it, not finite.
HALVES = [0, -0.0, 6e-8, 3e-5, -3e-5, 1.0004, 1.0006, 65504, 65519, 65520, -np.inf, np.nan]


def _cast(random: np.random.Generator) -> Iterator[Launch]:
    for source, target in CASTS:
        for n in (1, 256, 300):
            x = random.integers(-3, 4, n).astype(source)  # of bytes, -3 is 253
            if n > len(HALVES) and np.float16 in (source, target):
                with np.errstate(over="ignore"):
                    x[: len(HALVES)] = np.array(HALVES).astype(source)
            yield from op_launches(
                tg.astype,
                x,
                dtype=target,
                differentiable=False,
                label=f"{source.__name__} to {target.__name__}",
            )


FAMILIES: dict[str, Family] = {
    "arithmetic.cu": each_of(
        *map(of_two, (tg.add, tg.sub, tg.mul, tg.div, tg.maximum, tg.minimum)),
        of_two(tg.pow, 0.25),
        _powers,
        of_integers(tg.add, tg.sub, tg.mul, tg.pow, count=2),
    ),
    "elementwise.cu": each_of(
        *map(of_one, (tg.neg, tg.abs, tg.exp)),
        of_one(tg.log, 0.25),
        of_one(tg.sqrt, 0.25),
        of_integers(tg.neg, tg.abs, count=1),
    ),
    "clip.cu": each_of(
        of_one(tg.clip, min=-1, max=1),
        of_one(tg.clip, min=0.5),
        of_one(tg.clip, max=0.5),
        of_one(tg.clip, min=1, max=1),
    ),
    "heaviside.cu": of_one(tg.heaviside, value=0.5),
    "where.cu": _where,
    "cast.cu": _cast,
}
