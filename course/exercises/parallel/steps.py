"""What is tried of exercise 15."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.engine.spec import Array
from tinygraph_course.checking.compare import difference
from tinygraph_course.checking.steps import FunctionStep, shown

_drawn = np.random.default_rng(15)


def whole(*shape: int) -> Array:
    """Whole numbers."""
    return _drawn.integers(-9, 10, shape).astype(np.float64)


def row(*values: float) -> Array:
    return np.array(values, np.float64)


# ---- steps 1 to 3 -----------------------------------------------------------------------------

SHARDS = [
    *((4, 2), (3, 1), (3, 2), (5, 2), (4, 3), (5, 3), (7, 4), (6, 4), (8, 5), (10, 4)),
    *((100, 7), (2, 4)),
]
GRADIENTS: list[tuple[list[list[Array]], list[int]]] = [
    ([[row(2)], [row(6)]], [2, 2]),
    ([[row(2)], [row(6)]], [3, 1]),
    ([[row(4, 8)], [row(0, 4)]], [1, 3]),
    ([[row(2), row(10)], [row(6), row(30)]], [3, 1]),
    ([[row(5)]], [4]),
    ([[row(1)], [row(2)], [row(6)]], [2, 1, 1]),
    ([[whole(2, 3), whole(2)] for _ in range(3)], [5, 2, 1]),
]
MOMENTS: list[tuple[list[Array], list[Array], list[int]]] = [
    ([row(1), row(1)], [row(4), row(8)], [2, 2]),
    ([row(0), row(4)], [row(1), row(1)], [2, 2]),
    ([row(0), row(4)], [row(1), row(5)], [3, 1]),
    ([row(3)], [row(2)], [4]),
    ([row(0, 1), row(4, 1)], [row(0, 2), row(0, 6)], [1, 3]),
    ([whole(3) for _ in range(3)], [abs(whole(3)) for _ in range(3)], [5, 2, 1]),
]


def drawn_shards() -> Any:
    from hypothesis import strategies as st

    return st.tuples(st.integers(1, 40), st.integers(1, 9))


def drawn_gradients() -> Any:
    from hypothesis import strategies as st

    def of(sizes: list[int], seed: int) -> Any:
        draw = np.random.default_rng(seed).standard_normal
        return [[draw((2, 3)), draw(2)] for _ in sizes], sizes

    return st.builds(of, st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 99))


def drawn_moments() -> Any:
    from hypothesis import strategies as st

    def of(sizes: list[int], seed: int) -> Any:
        draw = np.random.default_rng(seed).standard_normal
        return [draw(2) for _ in sizes], [draw(2) ** 2 for _ in sizes], sizes

    return st.builds(of, st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 99))


# ---- step 4 -----------------------------------------------------------------------------------


def cut(W: int, *lengths: int) -> tuple[list[list[Array]]]:
    """Gradients of W workers, in W parts each: those of worker w are 10 ** w times as large."""
    parts = [np.arange(1.0, n + 1) + 2 * k for k, n in enumerate(lengths)]
    return ([[10.0**w * part for part in parts] for w in range(W)],)


RINGS: list[tuple[list[list[Array]]]] = [
    cut(2, 1, 1),
    cut(1, 2),
    ([[row(x)] * 3 for x in (0.1, 0.2, 0.3)],),
    cut(3, 1, 1, 1),
    cut(2, 3, 2),
    cut(4, 2, 2, 1, 1),
    ([[row(x)] * 4 for x in (0.1, 0.2, 0.3, 0.7)],),
]


def drawn_rings() -> Any:
    from hypothesis import strategies as st

    def of(lengths: list[int], seed: int) -> Any:
        draw = np.random.default_rng(seed).standard_normal
        return ([[draw(n) for n in lengths] for _ in lengths],)

    return st.builds(of, st.lists(st.integers(1, 3), min_size=1, max_size=5), st.integers(0, 99))


def ring_differs(got: Any, expected: Any) -> str:
    """What differs: the sums, else which bits are the same, else who sends what to whom."""
    if words := difference([results for results, _ in got], [results for results, _ in expected]):
        return words
    its, due = facts(got), facts(expected)
    return next((f"values: {its[key]}" for key in due if its[key] != due[key]), "")


def facts(found: Any) -> dict[str, str]:
    """What is to be said of some runs, beside the sums; all have the same keys."""
    results, sent = found[0]
    bits = [[shown_exactly(parts) for parts in results] for results, _ in found]
    other = next((w for w, mine in enumerate(bits[0]) if mine != bits[0][0]), 0)
    again = next((run for run in bits if run != bits[0]), None)
    W = len(results)
    astray = [(w, to) for w, each in enumerate(sent) for to, _ in each if to != (w + 1) % W]
    counts = [len(each) for each in sent]
    numbers = sum(size for each in sent for _, size in each)
    return {
        "workers": f"worker 0 has other bits than worker {other}: {bits[0][0]} and {bits[0][other]}"
        if other
        else "",
        "runs": f"other bits when others come first: {bits[0][0]} and {again[0]}" if again else "",
        "counts": f"the workers send {shown(counts)} messages; each 2 (W - 1) = {2 * W - 2}",
        "to": f"worker {astray[0][0]} sends to {astray[0][1]}, who is not next to it"
        if astray
        else "",
        "numbers": f"the workers send {numbers} numbers in all",
    }


def shown_exactly(parts: Any) -> str:
    """The numbers of some parts, with all their digits."""
    return str([np.asarray(part).tolist() for part in parts])


def ring_words(found: Any) -> str:
    """What each worker has at the end."""
    if not isinstance(found, list):
        return shown(found)
    return "; ".join(f"worker {w} {shown(parts)}" for w, parts in enumerate(found[0][0]))


def show_ring(gradients: list[list[Array]]) -> str:
    """The parts of each worker."""
    lines = [f"  worker {w}: parts = {shown(parts)}" for w, parts in enumerate(gradients)]
    return "\n".join([f"ring on {len(gradients)} workers", *lines])


# ---- steps 5 and 6 ----------------------------------------------------------------------------

SIZE = 12  # floats of the model: Linear(1, 2), BatchNorm1d(2) with its running mean and variance
STATES: list[tuple[list[Array]]] = [
    ([np.arange(1.0, SIZE + 1), 10 * np.arange(1.0, SIZE + 1)],),
    ([abs(whole(SIZE)) + 1 for _ in range(3)],),
    ([abs(whole(SIZE)) + 1 for _ in range(4)],),
]


def drawn_states() -> Any:
    from hypothesis import strategies as st

    def of(workers: int, seed: int) -> Any:
        return (list(np.random.default_rng(seed).uniform(0.5, 2, (workers, SIZE))),)

    return st.builds(of, st.integers(1, 5), st.integers(0, 99))


def show_broadcast(numbers: list[Array]) -> str:
    lines = [f"  model {w}: {shown(some)}" for w, some in enumerate(numbers)]
    return "\n".join(["broadcast(models), of a Linear(1, 2) and a BatchNorm1d(2) each", *lines])


def broadcast_differs(got: Any, expected: Any) -> str:
    if words := difference(got[0], expected[0]):
        return words
    if got[1] == expected[1]:
        return ""
    return f"values: a change of models[0] changes models[{1 + [*got[1], True].index(True)}] too"


def broadcast_words(found: Any) -> str:
    first, *others = (f"model {w} {shown(some)}" for w, some in enumerate(found[0]))
    return "; ".join([*others, first])


def problem(workers: int, n: int, inputs: int, outputs: int, times: int = 1) -> tuple[Any, ...]:
    """Whole numbers, with a bias; the rate is small enough for small weights afterwards."""
    arrays = whole(outputs, inputs), whole(outputs)
    return *arrays, workers, whole(n, inputs), whole(n, outputs), 0.125, times


_x, _y = row(1, 2, 3)[:, None], row(1, 1, 1)[:, None]
PROBLEMS: list[tuple[Any, ...]] = [
    (np.zeros((1, 1)), None, 1, _x[:2], _y[:2], 1.0, 1),
    (np.zeros((1, 1)), None, 2, _x[:2], _y[:2], 1.0, 1),
    (np.zeros((1, 1)), None, 2, _x, _y, 0.5, 1),
    (np.zeros((1, 1)), None, 2, _x, 2 * _x - 1, 0.25, 2),
    problem(3, 5, 2, 1),
    problem(3, 7, 3, 2),
    problem(4, 6, 2, 2, 2),
]


def drawn_problems() -> Any:
    from hypothesis import strategies as st

    def of(workers: int, more: int, sizes: tuple[int, int], seed: int) -> Any:
        n, (inputs, outputs) = workers + more, sizes
        draw = np.random.default_rng(seed).standard_normal
        weights = draw((outputs, inputs)), draw(outputs)
        return *weights, workers, draw((n, inputs)), draw((n, outputs)), 0.1, 2

    size = st.integers(1, 3)
    return st.builds(
        of, st.integers(1, 4), st.integers(0, 5), st.tuples(size, size), st.integers(0, 99)
    )


def show_step(
    weight: Array, bias: Array | None, workers: int, x: Array, y: Array, lr: float, times: int
) -> str:
    of_bias = "without a bias" if bias is None else f"and bias {shown(bias)}"
    often = "" if times == 1 else f", {times} times"
    return (
        f"step(models, x, y, lr={shown(lr)}){often}, {workers} of a Linear with weight "
        f"{shown(weight)} {of_bias}\n  x = {shown(x)}\n  y = {shown(y)}"
    )


def step_differs(got: Any, expected: Any) -> str:
    """The numbers of the models, else whether they have the same bits, else the work done."""
    for w, (its, due) in enumerate(zip(got[0], expected[0], strict=True)):
        if words := difference(its, due):
            return f"values: model {w} is wrong" if words == "values" else words
    other, due_other = (_first_other(found[0]) for found in (got, expected))
    if other != due_other:
        return f"values: model {other} has other bits than model 0"
    if got[1] == expected[1]:
        return ""
    return f"values: your models are given {got[1]} samples in all, {expected[1]} are due"


def _first_other(models: Any) -> int:
    """The first model that is not bit by bit as model 0; 0 for none."""
    return next(
        (w for w, m in enumerate(models) if shown_exactly(m) != shown_exactly(models[0])), 0
    )


def step_words(found: Any) -> str:
    return "; ".join(f"model {w} {', '.join(map(shown, some))}" for w, some in enumerate(found[0]))


STEPS = [
    FunctionStep(
        1,
        "shard",
        SHARDS,
        drawn_shards,
    ),
    FunctionStep(
        2,
        "combine",
        GRADIENTS,
        drawn_gradients,
    ),
    FunctionStep(
        3,
        "moments",
        MOMENTS,
        drawn_moments,
    ),
    FunctionStep(
        4,
        "tg_ring",
        RINGS,
        drawn_rings,
        show_ring,
        examples=15,
        differs=ring_differs,
        words=ring_words,
    ),
    FunctionStep(
        5,
        "tg_broadcast",
        STATES,
        drawn_states,
        show_broadcast,
        examples=10,
        differs=broadcast_differs,
        words=broadcast_words,
    ),
    FunctionStep(
        6,
        "tg_step",
        PROBLEMS,
        drawn_problems,
        show_step,
        examples=10,
        differs=step_differs,
        words=step_words,
    ),
]
