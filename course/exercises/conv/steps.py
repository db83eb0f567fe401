"""What is tried of exercise 7."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.engine.spec import Array, Pair, Shape
from tinygraph_course.checking.compare import difference
from tinygraph_course.checking.op_step import OpStep
from tinygraph_course.checking.steps import FunctionStep, shown

Problem = tuple[Array, Array, Array, Pair, Pair]  # x, w, b, stride, padding
Columns = tuple[Array, Pair, Pair, Pair, Pair]  # cols, size, kernel, stride, padding

_drawn = np.random.default_rng(7)


def wide(*values: float) -> Array:
    """An image, or a filter, of one channel and one row."""
    return np.array([[[values]]], np.float64)


def high(*values: float) -> Array:
    """The same of one column."""
    return wide(*values).reshape(1, 1, -1, 1)


def plain(x: Array, w: Array, b: float = 0, s: Pair = (1, 1), p: Pair = (0, 0)) -> Problem:
    return x, w, np.array([float(b)]), s, p


def whole(x: Shape, w: Shape, s: Pair = (1, 1), p: Pair = (0, 0), seed: Any = _drawn) -> Problem:
    """Whole numbers without a zero, and a bias for each filter."""
    draw = np.random.default_rng(seed)
    arrays = [draw.integers(1, 6, shape) * draw.choice([1.0, -1.0], shape) for shape in (x, w)]
    return arrays[0], arrays[1], 10.0 * np.arange(1, w[0] + 1), s, p


SIZES = [
    *((1, 1, 1, 0), (3, 3, 1, 0), (4, 2, 1, 0), (4, 2, 2, 0), (3, 3, 1, 1), (5, 2, 1, 1)),
    *((5, 2, 2, 0), (6, 3, 2, 1), (3, 2, 4, 0), (2, 3, 2, 2), (9, 4, 3, 2)),
]
PROBLEMS = [
    plain(wide(1, 2, 3), wide(1, 10)),
    plain(wide(1, 2, 3), wide(1, 10), 500),
    plain(high(1, 2, 3), high(1, 10)),
    plain(wide(1, 2, 3, 4, 5), wide(1, 10), s=(1, 2)),
    plain(high(1, 2, 3, 4, 5), high(1, 10), s=(2, 1)),
    plain(wide(1, 2, 3), wide(1, 10, 100), p=(0, 1)),
    plain(high(1, 2, 3), high(1, 10, 100), p=(1, 0)),
    whole((1, 2, 1, 3), (1, 2, 1, 2)),
    whole((1, 1, 1, 3), (2, 1, 1, 2)),
    whole((2, 1, 1, 3), (1, 1, 1, 2)),
    whole((1, 1, 3, 4), (1, 1, 2, 3)),
    whole((2, 2, 3, 4), (3, 2, 1, 1)),
    whole((2, 2, 3, 2), (3, 2, 2, 1), (1, 1), (1, 0)),
    whole((2, 2, 4, 3), (2, 2, 3, 2), (1, 1), (1, 2)),
    whole((1, 2, 4, 7), (3, 2, 2, 3), (1, 3), (1, 2)),
    whole((2, 3, 5, 4), (4, 3, 3, 2), (2, 1), (1, 0)),
]
_x, _w, _b, _s, _p = PROBLEMS[-1]
PROBLEMS.append((_x.astype(np.float32), _w.astype(np.float32), _b.astype(np.float32), _s, _p))


def windows_of(case: Problem) -> tuple[Array, Pair, Pair, Pair]:
    """The arguments of im2col."""
    x, w, _, s, p = case
    return x, w.shape[2:], s, p


def columns_of(case: Problem) -> Columns:
    """The arguments of col2im: columns of whole numbers for that image."""
    x, w, _, s, p = case
    (N, C, H, W), (KH, KW) = x.shape, w.shape[2:]
    places = [
        len(range(0, n + 2 * q - k + 1, t))
        for n, k, t, q in zip((H, W), (KH, KW), s, p, strict=True)
    ]
    shape = N, C * KH * KW, places[0] * places[1]
    numbers = np.arange(1, np.prod(shape) + 1) * 7 % 31
    return numbers.reshape(shape).astype(x.dtype), (H, W), (KH, KW), s, p


def sizes() -> Any:
    from hypothesis import strategies as st

    numbers = st.tuples(*(st.integers(*ends) for ends in ((0, 9), (1, 5), (1, 5), (0, 3))))
    return numbers.map(lambda t: (max(t[1] - 2 * t[3], 1) + t[0], *t[1:]))


def problems() -> Any:
    from hypothesis import strategies as st

    @st.composite
    def cases(draw: Any) -> Problem:
        pair = [draw(st.tuples(*2 * [st.integers(*ends)])) for ends in ((1, 3), (1, 3), (0, 2))]
        k, s, p = pair
        size = [max(n - 2 * q, 1) + draw(st.integers(0, 3)) for n, q in zip(k, p, strict=True)]
        N, C, O = (draw(st.integers(1, n)) for n in (2, 3, 3))  # noqa: E741  # O: filters
        return whole((N, C, *size), (O, C, *k), s, p, seed=draw(st.integers(0, 99)))

    return cases()


def table(name: str, array: Array) -> list[str]:
    """An array of one plane as rows, another one as it is typed."""
    if array.shape[:-2] != (1, 1) or array.shape[-1] > 8:
        return [f"  {name} = {shown(array)}"]
    rows = ["".join(f"{value:6g}" for value in row) for row in array[0, 0]]
    return [f"  {' ' if h else name}{row}" for h, row in enumerate(rows)]


def show_problem(name: str) -> Any:
    def show(x: Array, w: Array, b: Array, s: Pair, p: Pair) -> str:
        arrays = [*table("x", x), *table("w", w), f"  b = {shown(b)}"]
        return "\n".join([f"{name}(x, w, b, s={s}, p={p}), {x.dtype}", *arrays])

    return show


def show_windows(x: Array, k: Pair, s: Pair, p: Pair) -> str:
    return "\n".join([f"im2col(x, k={k}, s={s}, p={p}), x {x.shape} {x.dtype}", *table("x", x)])


def product_differs(got: Any, expected: Any) -> str:
    """What differs between two answers of step 4: their numbers, then the way to them."""
    if words := difference(got[0], expected[0]):
        return words
    if bool(got[1]) != bool(expected[1]):
        return "rule: the numbers are right, but gemm does not call im2col"
    if bool(got[2]) != bool(expected[2]):
        return "rule: the numbers are right, but gemm calls direct"
    return ""


def product_words(answer: Any) -> str:
    y, columns, loops = answer
    return f"{shown(y)} by {'direct' if loops else 'im2col' if columns else 'other means'}"


def show_columns(cols: Array, size: Pair, k: Pair, s: Pair, p: Pair) -> str:
    call = f"col2im(cols, size={size}, k={k}, s={s}, p={p}), cols {cols.shape} {cols.dtype}"
    return f"{call}\n  cols = {shown(cols)}"


STEPS = [
    FunctionStep(
        1,
        "out_size",
        SIZES,
        sizes,
        lambda n, k, s, p: f"out_size(n={n}, k={k}, s={s}, p={p})",
    ),
    FunctionStep(
        2,
        "direct",
        PROBLEMS,
        problems,
        show_problem("direct"),
    ),
    FunctionStep(
        3,
        "im2col",
        [windows_of(case) for case in PROBLEMS],
        lambda: problems().map(windows_of),
        show_windows,
    ),
    FunctionStep(
        4,
        "tg_gemm",
        PROBLEMS,
        problems,
        show_problem("gemm"),
        differs=product_differs,
        words=product_words,
    ),
    FunctionStep(
        5,
        "col2im",
        [columns_of(case) for case in PROBLEMS],
        lambda: problems().map(columns_of),
        show_columns,
    ),
    OpStep(
        6,
        "Conv2d",
        [((s, p), (x, w, b)) for x, w, b, s, p in PROBLEMS],
        differenced=(12,),
        drawn=lambda: problems().map(lambda case: (case[3:], case[:3])),
    ),
]
