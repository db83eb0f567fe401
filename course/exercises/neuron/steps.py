"""What is tried of exercise 1.

All numbers are whole, or halves and quarters: nothing is rounded, so that a sum of 0 is 0 in
whichever order it is added up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.engine.spec import Array
from tinygraph_course.checking.steps import FunctionStep, shown

Sample = tuple[Array, Array]  # x (F,), w (F+1,)
Learnt = tuple[Array, Array, float, int]  # x (N, F), y (N,), eta, epochs

SQUARE = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
TABLES = {
    "OR": (0, 1, 1, 1),
    "AND": (0, 0, 0, 1),
    "NAND": (1, 1, 1, 0),
    "NOR": (1, 0, 0, 0),
    "XOR": (0, 1, 1, 0),
}
ETAS = (0.25, 0.5, 1.0, 2.0)


def row(*values: float) -> Array:
    return np.array(values, np.float64)


def table(name: str, eta: float, epochs: int) -> Learnt:
    return SQUARE, row(*TABLES[name]), eta, epochs


SAMPLES: list[Sample] = [
    (row(1), row(0, 1)),
    (row(1), row(0, -1)),
    (row(1), row(-1, 1)),
    (row(2), row(1, -1)),
    (row(1), row(-3, 2)),
    (row(1), row(3, -2)),
    (row(-2), row(1, 1)),
    (row(0, 0), row(0, 0, 0)),
    (row(1, 0), row(-1, 0, 1)),
    (row(1, 3), row(1, 2, -1)),
    (row(1, 1), row(-2, 1, 1)),
    (row(1, 0), row(3, 2, -2)),
    (row(1, 1), row(2, -1, 2)),
    (row(2), row(-3, 2)),
    (row(1), row(-0.75, 1)),
    (row(1), row(-1.25, 1)),
    (row(0, 1), row(1, 2, -3)),
    (row(2, 1, 0), row(-1, 1, -2, 3)),
    (row(1, -1, 2), row(2, -3, 1, 1)),
]
UPDATES: list[tuple[Array, Array, float, float]] = [
    (row(0, 0), row(3), 0.0, 1.0),
    (row(-1, 0), row(3), 1.0, 1.0),
    (row(5, 0), row(3), 1.0, 1.0),
    (row(-5, 0), row(3), 0.0, 1.0),
    (row(1, 1), row(2), 0.0, 0.5),
    (row(-6, 1), row(2), 1.0, 2.0),
    (row(0, 1, 2), row(3, -1), 0.0, 1.0),
    (row(-9, 1, 2), row(3, 0), 1.0, 0.25),
    (row(2, 1, -2), row(0, 4), 1.0, 0.5),
    (row(2, 1, -2), row(0, 4), 0.0, 0.5),
    (row(2, 0, 1, -1), row(1, 2, 3), 0.0, 2.0),
    (row(-4, 3, 1, -1), row(1, 2, 3), 1.0, 1.0),
]
SETS: list[Learnt] = [
    (np.array([[1.0]]), row(1), 1.0, 5),
    (np.array([[2.0]]), row(0), 1.0, 5),
    (np.array([[1.0], [2.0]]), row(0, 1), 1.0, 3),
    (np.array([[1.0], [-2.0]]), row(1, 0), 1.0, 9),
    (np.array([[1.0], [2.0]]), row(0, 1), 1.0, 20),
    table("OR", 1.0, 1),
    table("OR", 1.0, 9),
    table("NOR", 0.5, 9),
    table("AND", 2.0, 9),
    table("NAND", 1.0, 9),
    table("XOR", 1.0, 6),
    (np.array([[1.0, 2, 0], [0, -1, 3], [2, 0, 1], [-1, 1, 1]]), row(1, 0, 0, 1), 0.5, 20),
]
_XOR = [(0, 0, 0), (-1, -1, 0), (0, -1, 0), (0, -1, 0)]  # weights of XOR, eta = 1, by hand
_LARGE = 1e6  # two of them that differ by 1 are close, and not the same
_SMALL = 2.0**-40  # close to 0, and not the same
HISTORIES: list[tuple[Array]] = [
    (np.array(rows, np.float64),)
    for rows in (
        [(0, 0)],
        [(0, 0), (0, 0)],
        [(0, 0), (-1, 1)],
        [(0, 0), (-1, 1), (0, 0)],
        [(0, 0), (-1, 1), (0, 1), (-1, 1)],
        [(0, 0), (2, -2), (-2, 2), (1, -1)],
        [(1, 2), (2, 1), (0, 2), (0, 3)],
        [(0, 0), (1, 3), (2, 2), (4, 0)],
        [(0, 0), (5, 0), (3, 4), (4, 3)],
        _XOR,
        [*_XOR, (0, -1, 0)],
        [(0, 0), (_LARGE, 1), (_LARGE + 1, 1), (_LARGE + 2, 1)],
        [(0, 0), (1, 0), (1, _SMALL)],
        [(0, 0, 0), (1, 0, 0), (1, 2, 0), (1, 2, 3), (4, 2, 3)],
        [(0, 0, 0), (1, 0, 0), (1, 2, 0), (1, 2, 3), (4, 2, 3), (1, 2, 0), (1, 2, 3)],
    )
]


def _whole(draw: Any, *shape: int, ends: tuple[int, int] = (-3, 3)) -> Array:
    from hypothesis import strategies as st

    count = int(np.prod(shape))
    numbers = st.lists(st.integers(*ends), min_size=count, max_size=count)
    return np.array(draw(numbers), np.float64).reshape(shape)


def samples() -> Any:
    from hypothesis import strategies as st

    @st.composite
    def cases(draw: Any) -> Sample:
        F, part = draw(st.integers(1, 4)), draw(st.sampled_from(ETAS[:3]))
        return _whole(draw, F), part * _whole(draw, F + 1)

    return cases()


def updates() -> Any:
    from hypothesis import strategies as st

    labels, etas = st.sampled_from([0.0, 1.0]), st.sampled_from(ETAS)
    return st.tuples(samples(), labels, etas).map(lambda t: (t[0][1], t[0][0], t[1], t[2]))


def separable() -> Any:
    """Samples of which a neuron that is drawn too knows all."""
    from hypothesis import strategies as st

    @st.composite
    def cases(draw: Any) -> Learnt:
        N, F = draw(st.integers(1, 6)), draw(st.integers(1, 3))
        x, w = _whole(draw, N, F), _whole(draw, F + 1)
        y = (x @ w[1:] + w[0] >= 0).astype(np.float64)
        return x, y, draw(st.sampled_from(ETAS)), draw(st.integers(0, 25))

    return cases()


def histories() -> Any:
    """What a rule gives that knows nothing but the weights: some epochs, then a circle or none."""
    from hypothesis import strategies as st

    @st.composite
    def cases(draw: Any) -> tuple[Array]:
        F, numbers = draw(st.integers(0, 2)), st.integers(-2, 2)
        weights = st.tuples(*[numbers] * (F + 1))
        rows = draw(st.lists(weights, min_size=1, max_size=6, unique=True))
        if draw(st.booleans()):
            rows += rows[draw(st.integers(0, len(rows) - 1)) :]
        return (np.array(rows, np.float64),)

    return cases()


def show_update(w: Array, x: Array, y: float, eta: float) -> str:
    return f"update(w={shown(w)}, x={shown(x)}, y={shown(y)}, eta={shown(eta)})"


def show_set(x: Array, y: Array, eta: float, epochs: int) -> str:
    known = {(*row(*values),): name for name, values in TABLES.items()}
    name = known.get((*y,), "") if np.array_equal(x, SQUARE) else ""
    call = f"learn(x, y, eta={shown(eta)}, epochs={epochs})"
    named = f"{call}, the table of {name}" if name else call
    return f"{named}\n  x = {shown(x)}\n  y = {shown(y)}"


STEPS = [
    FunctionStep(
        1,
        "respond",
        SAMPLES,
        samples,
        lambda x, w: f"respond(x={shown(x)}, w={shown(w)})",
    ),
    FunctionStep(
        2,
        "update",
        UPDATES,
        updates,
        show_update,
    ),
    FunctionStep(
        3,
        "learn",
        SETS,
        separable,
        show_set,
    ),
    FunctionStep(
        4,
        "repeats",
        HISTORIES,
        histories,
        lambda history: f"repeats({shown(history)})",
    ),
]
