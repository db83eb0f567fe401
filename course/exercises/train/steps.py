"""What is tried of exercise 14: an op, functions of arrays, and an optimizer."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.engine.spec import Array
from tinygraph_course.checking.compare import difference
from tinygraph_course.checking.op_step import OpStep
from tinygraph_course.checking.steps import FunctionStep, shown

_drawn = np.random.default_rng(14)
Tuples = tuple[tuple[float, ...], tuple[float, ...]]


def row(*values: float) -> Array:
    return np.array(values, np.float64)


def single(*values: float) -> Array:
    return np.array(values, np.float32)


def column(*values: float) -> Array:
    return row(*values)[:, None]


def whole(*shape: int, low: int = -4, high: int = 4) -> Array:
    return _drawn.integers(low, high + 1, shape).astype(np.float64)


def drawn(shapes: Any, of: Any) -> Any:
    """A strategy: `of(shape, draw)` for a drawn shape and a generator of numbers."""
    from hypothesis import strategies as st

    return st.builds(
        lambda shape, seed: of(shape, np.random.default_rng(seed)), shapes, st.integers(0, 99)
    )


def sizes(*ends: tuple[int, int]) -> Any:
    from hypothesis import strategies as st

    return st.tuples(*(st.integers(*pair) for pair in ends))


# ---- step 1: batch norm -----------------------------------------------------------------------

Normed = tuple[tuple[float, Tuples | None], tuple[Array, Array, Array]]


def normed(x: Array, w: Array, b: Array, eps: float = 0.0, running: Tuples | None = None) -> Normed:
    return (eps, running), (x, w, b)


NORMS = [
    normed(column(1, 3), row(1), row(0)),
    normed(column(1, 3), row(2), row(10)),
    normed(column(1, 3), row(2), row(10), 3.0),
    normed(column(1, 3), row(2), row(10), 0.0, ((1.0,), (4.0,))),
    normed(column(1, 3), row(2), row(10), 9.0, ((1.0,), (16.0,))),
    normed(column(1, 3, 8), row(2), row(0)),
    normed(np.stack([row(1, 3), row(0, 8)], 1), row(1, 1), row(0, 0)),
    normed(column(5, 5, 5), row(1), row(0), 1.0),
    normed(column(4), row(2), row(1), 0.0, ((1.0,), (9.0,))),
    normed(np.array([[1.0, 0, 2], [3, 1, 9], [8, 7, 4]]), row(1, 2, -3), row(1, 2, 3), 0.25),
    normed(np.array([[1.0, 0, 2], [3, 1, 9], [8, 7, 4], [0, 2, 2]]), row(1, 2, -3), row(1, 2, 3)),
    normed(whole(3, 2), row(2, -1), row(0, 5), 1.0, ((1.0, 2.0), (3.0, 8.0))),
    normed(single(1, 2, 6)[:, None], single(3), single(1), 0.5),
    normed(single(1, 2, 6)[:, None], single(3), single(1), 0.5, ((1.0,), (3.5,))),
]


def norms() -> Any:
    from hypothesis import strategies as st

    def of(shape: tuple[int, int], draw: np.random.Generator) -> Normed:
        C = shape[1]
        arrays = draw.standard_normal(shape), draw.standard_normal(C), draw.standard_normal(C)
        running = tuple(draw.standard_normal(C)), tuple(draw.uniform(0.5, 2, C))
        return normed(*arrays, 0.25, running if draw.random() < 0.5 else None)

    return drawn(st.tuples(st.integers(2, 5), st.integers(1, 3)), of)


# ---- step 2: running statistics ---------------------------------------------------------------

RUNNING = [
    (row(0), row(1), column(1, 3), 1.0),
    (row(0), row(1), column(1, 3), 0.25),
    (row(4), row(8), column(1, 3), 0.0),
    (row(4, 1), row(8, 2), np.stack([row(1, 3, 5), row(0, 0, 6)], 1), 0.25),
    (row(1, 2, 3), row(1, 2, 3), whole(4, 3), 0.1),
    (single(1, 2), single(1, 2), whole(3, 2).astype(np.float32), 0.25),
]


def batches() -> Any:
    def of(shape: tuple[int, int], draw: np.random.Generator) -> Any:
        mean, var = draw.standard_normal(shape[1]), draw.uniform(0.5, 2, shape[1])
        return mean, var, draw.standard_normal(shape), float(draw.choice([0.1, 0.25, 0.9]))

    return drawn(sizes((2, 5), (1, 3)), of)


def show_running(mean: Array, var: Array, batch: Array, momentum: float) -> str:
    return (
        f"running(mean={shown(mean)}, var={shown(var)}, batch, momentum={shown(momentum)})\n"
        f"  batch = {shown(batch)}, {batch.dtype}"
    )


# ---- step 3: dropout --------------------------------------------------------------------------

DROPS = [
    (row(1, 2), 0.5, [row(0.75, 0.25), row(0.25, 0.75)], row(1, 1)),
    (row(1, 2, 3), 0.75, [row(0.9, 0.1, 0.8), row(0.1, 0.9, 0.9)], row(4, 5, 6)),
    (row(1, 2), 0.0, [row(0.0, 0.5), row(0.5, 0.0)], row(3, 4)),
    (row(0, 2), 0.5, [row(0.75, 0.25), row(0.75, 0.75)], row(3, 4)),
    (
        np.array([[1.0, 2], [3, 4]]),
        0.25,
        [row(0.1, 0.9, 0.9, 0.2).reshape(2, 2), row(0.3, 0.2, 0.1, 0.7).reshape(2, 2)],
        np.array([[1.0, 2], [3, 4]]),
    ),
    (
        whole(2, 3).astype(np.float32),
        0.5,
        [row(0.1, 0.9, 0.9, 0.2, 0.7, 0.6).reshape(2, 3)],
        whole(2, 3, low=1).astype(np.float32),
    ),
]


def drops() -> Any:
    def of(shape: tuple[int, int], draw: np.random.Generator) -> Any:
        numbers = [draw.random(shape) for _ in range(2)]
        p = float(draw.choice([0.1, 0.5, 0.8]))
        return draw.standard_normal(shape), p, numbers, draw.standard_normal(shape)

    return drawn(sizes((1, 3), (1, 4)), of)


def show_drop(x: Array, p: float, numbers: list[Array], gy: Array) -> str:
    first = f"  x = {shown(x)}, {x.dtype}"
    draws = [f"  uniform, call {i}: {shown(r)}" for i, r in enumerate(numbers, 1)]
    return "\n".join([f"dropout(x, p={shown(p)}, uniform)", first, *draws, f"  gy = {shown(gy)}"])


def drop_words(answer: Any) -> str:
    if not isinstance(answer, list) or len(answer) != 2:
        return shown(answer)
    return f"y = {shown(answer[0])}, gx = {shown(answer[1])}"


# ---- step 4: momentum -------------------------------------------------------------------------

MOVES: list[tuple[Any, ...]] = [
    ([row(1)], [[row(2)]], [0.5], 0.0, 9),
    ([row(0)], [[row(1)], [row(1)]], [1.0, 1.0], 0.5, 9),
    ([row(0)], [[row(4)], [row(0)]], [1.0, 1.0], 0.5, 9),
    ([row(0)], [[row(2)], [row(2)]], [1.0, 0.25], 0.5, 9),
    ([row(0), row(0)], [[row(1), row(8)], [row(1), row(8)]], [1.0, 1.0], 0.5, 9),
    ([row(0)], [[row(2)], [row(2)], [row(4)]], [1.0, 1.0, 1.0], 0.5, 2),
    (
        [whole(2, 2), whole(3)],
        [[whole(2, 2), whole(3)] for _ in range(3)],
        [0.5, 0.25, 0.25],
        0.75,
        1,
    ),
]


def moves() -> Any:
    def of(shape: tuple[int, int, int], draw: np.random.Generator) -> Any:
        steps, some = shape[0], [shape[1:], shape[1:]]
        gradients = [[draw.standard_normal(s) for s in some] for _ in range(steps)]
        rates = [float(rate) for rate in draw.uniform(0.1, 1, steps)]
        return [draw.standard_normal(s) for s in some], gradients, rates, 0.9, 1

    return drawn(sizes((2, 3), (1, 2), (1, 3)), of)


def show_move(
    values: list[Array], gradients: Any, rates: list[float], momentum: float, pause: int
) -> str:
    told = ", ".join(shown(value) for value in values)
    lines = [f"Momentum(params, lr, momentum={shown(momentum)}), parameters {told}"]
    for t, (some, lr) in enumerate(zip(gradients, rates, strict=True)):
        over = " (another optimizer, with the state of the first)" if t == pause else ""
        given = ", ".join(shown(g) for g in some)
        lines.append(f"  step {t + 1}, lr {shown(lr)}: gradients {given}{over}")
    return "\n".join(lines)


def move_differs(got: Any, expected: Any) -> str:
    """What differs between two runs: the values after the steps, then the gradients."""
    words = difference(got[0], expected[0])
    if not words and difference(got[1], expected[1]):
        return "values: a gradient is another after the step than before"
    return words


def move_words(answer: Any) -> str:
    after, gradients = answer
    steps = "; ".join(", ".join(shown(value) for value in values) for values in after)
    return f"after each step {steps}; gradients {', '.join(shown(g) for g in gradients)}"


# ---- steps 5 and 6: adam and adadelta ---------------------------------------------------------


def adam_case(p: Array, g: Array, m: Array, v: Array, t: int, *numbers: float) -> tuple[Any, ...]:
    return p, g, m, v, t, *(numbers or (1.0, 0.75, 0.75, 0.0))  # lr, beta1, beta2, eps


ADAMS = [
    adam_case(row(0), row(2), row(0), row(0), 1),
    adam_case(row(0, 0), row(2, -8), row(0, 0), row(0, 0), 1, 0.5, 0.75, 0.5, 0.0),
    adam_case(row(0), row(2), row(0), row(0), 1, 1.0, 0.5, 0.75, 2.0),
    adam_case(row(1), row(1), row(1), row(4), 2, 0.5, 0.5, 0.75, 1.0),
    adam_case(row(1), row(0), row(3), row(4), 3),
    adam_case(whole(3), whole(3), whole(3), whole(3, low=1, high=9), 2, 0.1, 0.9, 0.99, 0.5),
]
DELTAS = [
    (row(0), row(2), row(0), row(0), 0.75, 1.0),
    (row(0), row(2), row(0), row(3), 0.75, 0.0),
    (row(1), row(2), row(4), row(8), 0.5, 0.0),
    (row(1), row(2), row(0), row(8), 0.5, 1.0),
    (row(1, 5), row(-2, 4), row(4, 0), row(1, 3), 0.75, 0.25),
    (whole(3), whole(3), whole(3, low=1, high=9), whole(3, low=1, high=9), 0.9, 0.5),
]


def adams() -> Any:
    def of(shape: tuple[int, int], draw: np.random.Generator) -> Any:
        p, g, m = (draw.standard_normal(shape) for _ in "pgm")
        numbers = 0.1, 0.5, 0.75, 0.25
        return p, g, m, draw.uniform(0.1, 2, shape), int(draw.integers(1, 9)), *numbers

    return drawn(sizes((1, 2), (1, 3)), of)


def deltas() -> Any:
    def of(shape: tuple[int, int], draw: np.random.Generator) -> Any:
        p, g = (draw.standard_normal(shape) for _ in "pg")
        eg, ed = (draw.uniform(0.1, 2, shape) for _ in "gd")
        return p, g, eg, ed, float(draw.choice([0.5, 0.9])), 0.25

    return drawn(sizes((1, 2), (1, 3)), of)


def shower(name: str, *names: str) -> Any:
    """A call with its arguments by name."""

    def show(*arguments: Any) -> str:
        told = ", ".join(f"{n}={shown(a)}" for n, a in zip(names, arguments, strict=True))
        return f"{name}({told}), {arguments[0].dtype}"

    return show


STEPS = [
    OpStep(
        1,
        "BatchNorm",
        NORMS,
        differenced=(9, 11),
        drawn=norms,
    ),
    FunctionStep(
        2,
        "running",
        RUNNING,
        batches,
        show_running,
    ),
    FunctionStep(
        3,
        "tg_dropout",
        DROPS,
        drops,
        show_drop,
        words=drop_words,
    ),
    FunctionStep(
        4,
        "tg_momentum",
        MOVES,
        moves,
        show_move,
        examples=20,
        differs=move_differs,
        words=move_words,
    ),
    FunctionStep(
        5,
        "adam",
        ADAMS,
        adams,
        shower("adam", *"pgmvt", "lr", "beta1", "beta2", "eps"),
    ),
    FunctionStep(
        6,
        "adadelta",
        DELTAS,
        deltas,
        shower("adadelta", "p", "g", "eg", "ed", "rho", "eps"),
    ),
]
