"""What is tried of exercise 2."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tinygraph.engine.spec import Array
from tinygraph_course.checking.compare import difference
from tinygraph_course.checking.steps import FunctionStep, shown

Problem = tuple[Array, Array, Array]  # x (N, F), y (N,), w (F+1,)
CLOSE = 1e-6  # of what is solved and not added up: there are several good ways to do that


def problem(x: Any, y: Any, w: Any) -> Problem:
    return tuple(np.array(a, np.float64) for a in (x, y, w))  # type: ignore[return-value]


PROBLEMS = [
    problem([[2]], [7], [0, 3]),
    problem([[2]], [3], [1, 3]),
    problem([[1], [2]], [3, 5], [0, 3]),
    problem([[1], [2]], [0, 8], [1, 2]),
    problem([[2, -1]], [1], [4, 1, 2]),
    problem([[1, 2], [0, 3]], [4, 1], [1, 2, -1]),
    problem([[1], [0], [-2]], [1, 2, 0], [2, 1]),
    problem([[1, 2], [3, 4], [0, 1]], [10, 14, 7], [5, 1, 2]),
    problem([[0, 1, 0], [2, 0, 1]], [3, -2], [1, 1, -1, 2]),
    problem([[3, 0], [-1, 2], [1, 1], [0, -2]], [1, 0, 2, -1], [-1, 2, 1]),
]
RATES = (0.5, 0.25, 0.125, 0.25, 0.125, 0.0625, 0.125, 0.03125, 0.125, 0.0625)
DESCENTS = [
    *((*case, lr, 1) for case, lr in zip(PROBLEMS[:4], RATES, strict=False)),
    *((*case, lr, n % 3 + 1) for n, (case, lr) in enumerate(zip(PROBLEMS, RATES, strict=True))),
    (*PROBLEMS[3], 0.25, 0),
    (*PROBLEMS[5], 0.125, 4),
]
SETS = [
    problem(x, y, [])[:2]
    for x, y in (
        ([[0], [1]], [1, 3]),
        ([[1], [2]], [5, 8]),
        ([[0], [1], [2]], [1, 2, 6]),
        ([[-1], [0], [1], [2]], [1, 0, 3, 2]),
        ([[0, 0], [1, 0], [0, 2]], [1, 4, -3]),
        ([[0, 1], [2, 0], [1, 1], [3, -1]], [1, 5, 0, 2]),
        ([[1], [1]], [1, 3]),  # any line through (1, 2) is as good
        ([[2]], [5]),
        ([[0, 0], [1, 1], [2, 2]], [1, 3, 5]),  # a column that comes twice
    )
]
INPUTS = [
    (np.array(x, np.float64),)
    for x in (
        [[0]],
        [[2]],
        [[1], [-1]],
        [[2], [-2]],
        [[2], [2]],
        [[1, 0], [-1, 0], [0, 3], [0, -3]],
        [[1, 2], [3, 4], [0, 1]],
        [[0.25], [-0.25], [0.25], [-0.25]],
    )
]


def problems() -> Any:
    from hypothesis import strategies as st

    @st.composite
    def cases(draw: Any) -> Problem:
        N, F = draw(st.integers(1, 5)), draw(st.integers(1, 3))
        numbers = np.random.default_rng(draw(st.integers(0, 999)))
        return problem(*(numbers.integers(-3, 4, shape) for shape in ((N, F), N, F + 1)))

    return cases()


def descents() -> Any:
    from hypothesis import strategies as st

    rates, steps = st.sampled_from([0.125, 0.0625, 0.015625]), st.integers(0, 4)
    return st.tuples(problems(), rates, steps).map(lambda t: (*t[0], t[1], t[2]))


def sets() -> Any:
    """With one solution: the samples 0 and those of one input alone are among them."""
    from hypothesis import strategies as st

    @st.composite
    def cases(draw: Any) -> tuple[Array, Array]:
        F, more = draw(st.integers(1, 3)), draw(st.integers(0, 3))
        numbers = np.random.default_rng(draw(st.integers(0, 999)))
        rows = [np.zeros((1, F)), np.eye(F), numbers.integers(-3, 4, (more, F))]
        x = numbers.permutation(np.concatenate(rows))
        return x, numbers.integers(-5, 6, len(x)).astype(np.float64)

    return cases()


def inputs() -> Any:
    return problems().map(lambda case: case[:1])


def rows(**arrays: Array) -> str:
    return "\n".join(f"  {name} = {shown(a)}" for name, a in arrays.items())


def rounded(answer: Any) -> str:
    """An answer that was solved, without what its last digits make of a whole number."""
    return shown(np.round(answer, 6) + 0.0 if isinstance(answer, np.ndarray) else answer)


def show_problem(name: str) -> Any:
    def show(x: Array, y: Array, w: Array) -> str:
        return f"{name}(x, y, w)\n{rows(x=x, y=y, w=w)}"

    return show


def show_descent(x: Array, y: Array, w: Array, lr: float, steps: int) -> str:
    return f"descend(x, y, w, lr={shown(lr)}, steps={steps})\n{rows(x=x, y=y, w=w)}"


STEPS = [
    FunctionStep(
        1,
        "predict",
        [(x, w) for x, _, w in PROBLEMS],
        lambda: problems().map(lambda case: (case[0], case[2])),
        lambda x, w: f"predict(x={shown(x)}, w={shown(w)})",
    ),
    FunctionStep(
        2,
        "loss",
        PROBLEMS,
        problems,
        show_problem("loss"),
    ),
    FunctionStep(
        3,
        "gradient",
        PROBLEMS,
        problems,
        show_problem("gradient"),
    ),
    FunctionStep(
        4,
        "descend",
        DESCENTS,
        descents,
        show_descent,
    ),
    FunctionStep(
        5,
        "closed_form",
        SETS,
        sets,
        lambda x, y: f"closed_form(x, y)\n{rows(x=x, y=y)}",
        differs=partial(difference, within=CLOSE),
        words=rounded,
    ),
    FunctionStep(
        6,
        "lr_limit",
        INPUTS,
        inputs,
        lambda x: f"lr_limit(x={shown(x)})",
        differs=partial(difference, within=CLOSE),
    ),
]
