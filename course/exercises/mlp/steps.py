"""What is tried of exercise 3."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.engine.spec import Array
from tinygraph_course.checking.steps import FunctionStep, shown

SEEDS, XOR_STEPS, XOR_RATE = range(5), 100, 8.0
TABLE = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
_drawn = np.random.default_rng(3)


def whole(*shape: int, ends: tuple[int, int] = (-2, 2)) -> Array:
    return _drawn.integers(ends[0], ends[1] + 1, shape).astype(np.float64)


def quarters(*shape: int) -> Array:
    """What sigmoids may give: 1/4, 1/2 and 3/4."""
    return _drawn.integers(1, 4, shape) / 4


def array(*rows: Any) -> Array:
    return np.array(rows, np.float64)


def weights(*shape: int) -> Array:
    """Whole numbers but 0."""
    return whole(*shape, ends=(1, 2)) * _drawn.choice([-1.0, 1.0], shape)


def parameters(i: int, h: int, o: int) -> tuple[Array, Array, Array, Array]:
    """W1, b1, W2, b2 for i inputs, h hidden units and o outputs."""
    return weights(h, i), whole(h), weights(o, h), whole(o)


SIZES = [(1, 2, 2, 2), (2, 2, 1, 1), (3, 3, 3, 3), (4, 2, 3, 1), (2, 1, 4, 3), (5, 2, 4, 3)]

FORWARD: list[tuple[Array, ...]] = [
    (array([0]), array([1]), array(0), array([2]), array(-1)),
    (array([1]), array([1]), array(-1), array([4]), array(-1)),
    (array([1]), array([2]), array(-1), array([0]), array(0)),
    (array([0]), array([1]), array(0), array([4]), array(0)),
    (array([1, 2]), array([2, -1], [1, 1]), array(0, -3), array([2, 4], [2, -2]), array(-3, 1)),
    *((whole(n, i), *parameters(i, h, o)) for n, i, h, o in SIZES),
]
DELTAS: list[tuple[Array, ...]] = [
    (array([0.5]), array([0.5]), array([0]), array([8])),
    (array([0.5]), array([0.25]), array([1]), array([2])),
    (array([0.25]), array([0.5]), array([1]), array([-4])),
    (array([0.5, 0.25]), array([0.5]), array([1]), array([4, -8])),
    (array([0.5]), array([0.5, 0.75]), array([1, 0]), array([4], [8])),
    (array([0.5], [0.75]), array([0.5], [0.25]), array([0], [1]), array([4])),
    *(
        (quarters(n, h), quarters(n, o), whole(n, o, ends=(0, 1)), weights(o, h))
        for n, i, h, o in SIZES
    ),
]
GRADIENTS: list[tuple[Array, ...]] = [
    (array([2]), array([0.5]), array([3]), array([4])),
    (array([1, 2]), array([0.5]), array([3]), array([2])),
    (array([1], [2]), array([0.5], [0.25]), array([1], [10]), array([4], [8])),
    (
        array([1, 2], [3, 4]),
        array([0.5, 0.25], [0.5, 0.75]),
        array([1, 2], [3, 5]),
        array([4], [8]),
    ),
    *((whole(n, i), quarters(n, h), whole(n, h), whole(n, o)) for n, i, h, o in SIZES),
]
STEPPED: list[tuple[Any, ...]] = [
    (1, array([1, 2]), array([1]), array([2, -1]), array(0), array([4]), array(-2), 8.0),
    (1, array([1]), array([0]), array([1]), array(-1), array([8]), array(-4), 2.0),
    (1, array([1], [2]), array([0], [1]), array([1]), array(-1), array([4]), array(-2), 4.0),
    *(
        (1, whole(n, i), whole(n, o, ends=(0, 1)), *parameters(i, h, o), 0.5)
        for n, i, h, o in SIZES
    ),
]


def xor(seed: int) -> tuple[Any, ...]:
    """Many steps of 4 hidden units on XOR, from weights of a seed."""
    draw = np.random.default_rng(seed).standard_normal
    W1, W2 = draw((4, 2)), draw((1, 4))
    y = array([0], [1], [1], [0])
    return XOR_STEPS, TABLE, y, W1, np.zeros(4), W2, np.zeros(1), XOR_RATE


def _problems(kind: str) -> Any:
    """A strategy of calls, of numbers with many digits."""
    from hypothesis import strategies as st

    def of(sizes: tuple[int, int, int, int], seed: int, lr: float) -> tuple[Any, ...]:
        n, i, h, o = sizes
        numbers = np.random.default_rng(seed)
        draw, values = numbers.standard_normal, (numbers.random((n, h)), numbers.random((n, o)))
        x, y = draw((n, i)), np.round(numbers.random((n, o)))
        four = draw((h, i)), draw(h), draw((o, h)), draw(o)
        return {
            "forward": (x, *four),
            "deltas": (*values, y, four[2]),
            "gradients": (x, values[0], draw((n, h)), draw((n, o))),
            "step": (1, x, y, *four, lr),
        }[kind]

    size = st.integers(1, 4)
    sizes = st.tuples(size, size, size, size)
    return st.builds(of, sizes, st.integers(0, 999), st.sampled_from([0.1, 0.5, 2.0]))


def show(call: str) -> Any:
    """A call with its arrays by name, on a line each."""
    names = call[call.index("(") + 1 : -1].split(", ")

    def of(*arguments: Any) -> str:
        pairs = zip(names, arguments, strict=True)
        return "\n".join([call, *(f"  {name} = {shown(value)}" for name, value in pairs)])

    return of


def show_step(times: int, *arguments: Any) -> str:
    if times == 1:
        return show("step(x, y, W1, b1, W2, b2, lr)")(*arguments)
    return (
        f"step {times} times on XOR, 4 hidden units, lr = {shown(arguments[-1])}, from\n"
        f"  W1 = {shown(arguments[2].round(2))}\n  W2 = {shown(arguments[4].round(2))}, no biases"
    )


def outcome_of(value: Any) -> str:
    """An answer of step 4: parameters, or whether it has learnt XOR."""
    if isinstance(value, bool):
        return f"{'all four' if value else 'not all'} outputs on the right side of 0.5"
    return shown(value)


STEPS = [
    FunctionStep(
        1,
        "forward",
        FORWARD,
        lambda: _problems("forward"),
        show("forward(x, W1, b1, W2, b2)"),
    ),
    FunctionStep(
        2,
        "deltas",
        DELTAS,
        lambda: _problems("deltas"),
        show("deltas(h, o, y, W2)"),
    ),
    FunctionStep(
        3,
        "gradients",
        GRADIENTS,
        lambda: _problems("gradients"),
        show("gradients(x, h, d1, d2)"),
    ),
    FunctionStep(
        4,
        "tg_step",
        [*STEPPED, *map(xor, SEEDS)],
        lambda: _problems("step"),
        show_step,
        words=outcome_of,
    ),
]
