"""What is tried of exercise 6: functions of arrays, an op, and how small models train."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.data import digits
from tinygraph.engine.spec import Array
from tinygraph_course.checking.compare import RELATIVE, difference
from tinygraph_course.checking.op_step import OpStep
from tinygraph_course.checking.steps import FunctionStep, shown

Labelled = tuple[Array, Array]  # logits or inputs, labels
Weights = list[Array]  # of each layer, (outputs, inputs)

GOOD = 0.93  # of the test digits, the median of SEEDS
SEEDS = 5
_drawn = np.random.default_rng(6)


def rows(*values: list[float]) -> Array:
    return np.array(values, np.float64)


def whole(*shape: int, low: int = -4, high: int = 4) -> Array:
    return _drawn.integers(low, high + 1, shape).astype(np.float64)


def classes(*values: int) -> Array:
    return np.array(values, np.int64)


# ---- steps 1 to 4 -----------------------------------------------------------------------------

LOGITS: list[Labelled] = [
    (rows([0, 0]), classes(1)),
    (rows([2, 0]), classes(0)),
    (rows([0, 0], [0, 1]), classes(1, 0)),
    (rows([0, 1], [0, 0], [3, 0]), classes(1, 0, 0)),
    (rows([1, 2, 0]), classes(2)),
    (rows([1000, 0]), classes(0)),
    (rows([1000, 0]), classes(1)),
    (rows([-1000, -1000]), classes(0)),
    (rows([0, 1], [1000, 1001]), classes(0, 1)),
    (rows([-1000, 1000, 0], [1, 2, 3]), classes(2, 0)),
    (whole(3, 3), classes(2, 0, 2)),
    (whole(4, 3), classes(0, 1, 2, 1)),
    (whole(2, 5).astype(np.float32), classes(4, 3)),
]


def labelled(*sizes: float) -> Any:
    """Drawn logits of one of some sizes."""
    from hypothesis import strategies as st

    def of(shape: tuple[int, int], size: float, seed: int) -> Labelled:
        draw = np.random.default_rng(seed)
        return draw.standard_normal(shape) * size, draw.integers(0, shape[1], shape[0])

    shapes = st.tuples(st.integers(1, 4), st.integers(2, 5))
    return st.builds(of, shapes, st.sampled_from(sizes or (1.0, 100.0, 1000.0)), st.integers(0, 99))


def near(got: Any, expected: Any) -> str:
    """What differs, beside 1: p - 1 of a p near 1 has few digits, whoever computes it."""
    return difference(got, expected, RELATIVE.get(str(np.asarray(expected).dtype)))


def show_labelled(name: str) -> Any:
    def show(z: Array, labels: Array) -> str:
        return f"{name}(z, labels), {z.dtype}\n  z = {shown(z)}\n  labels = {shown(labels)}"

    return show


# ---- steps 5 and 6 ----------------------------------------------------------------------------

_TWO = [rows([0], [0])]  # two classes, one input
_WRONG = [rows([-1], [1])]
TRAININGS: list[tuple[Weights, list[Labelled], float]] = [
    (_TWO, [(rows([2]), classes(0))], 0.5),
    (_TWO, [(rows([2]), classes(0)), (rows([0]), classes(1))], 0.5),
    (_TWO, [(rows([0]), classes(1)), (rows([2]), classes(0))], 0.5),
    (_TWO, [(rows([2], [-2]), classes(0, 1)), (rows([1]), classes(1))], 1.0),
    (
        [whole(3, 2) / 4],
        [(whole(2, 2), classes(2, 0)), (whole(1, 2), classes(1)), (whole(3, 2), classes(0, 1, 1))],
        0.25,
    ),
    (
        [whole(3, 2) / 4, whole(2, 3) / 4],
        [(whole(2, 2), classes(1, 0)), (whole(2, 2), classes(0, 1))],
        0.5,
    ),
]
_TEST = rows([1], [-1], [2], [3])
_ROWS = rows([1], [2], [-1])
LEARNED: list[tuple[Any, ...]] = [
    ([_WRONG], [(rows([1]), classes(0))], (_TEST, classes(0, 1, 0, 1)), 2.0, 1),
    ([_WRONG], [(rows([1]), classes(0))], (_TEST, classes(0, 1, 0, 1)), 0.5, 3),
    ([_WRONG], [(rows([1]), classes(0))], (rows([1]), classes(1)), 0.5, 3),
    ([[rows([1], [-1])]], [(rows([1]), classes(0))], (_ROWS, classes(0, 0, 0)), 0.5, 1),
    (
        [_WRONG],
        [(rows([1], [2]), classes(0, 1)), (rows([-1]), classes(1))],
        (rows([1], [-3]), classes(1, 1)),
        0.5,
        4,
    ),
    (
        [[whole(3, 2) / 4]],
        [(whole(4, 2), classes(0, 1, 2, 1)), (whole(3, 2), classes(2, 2, 0))],
        (whole(5, 2), classes(0, 1, 0, 2, 1)),
        0.25,
        2,
    ),
]


def _digits() -> tuple[Any, ...]:
    """Digits, and the starting weights of a network for each seed."""
    (x, y), (test, labels) = (digits(split)[:] for split in ("train", "test"))
    x, test, size = x.reshape(len(x), -1), test.reshape(len(test), -1), 32
    batches = [(x[i : i + size], y[i : i + size]) for i in range(0, len(x), size)]
    starts = []
    for seed in range(SEEDS):
        draw = np.random.default_rng(seed)
        shapes = (16, 64), (10, 16)
        starts.append([(draw.standard_normal(s) / s[1] ** 0.5).astype(np.float32) for s in shapes])
    return starts, batches, (test, labels), 0.5, 4


DIGITS = _digits()


def trainings() -> Any:
    from hypothesis import strategies as st

    def of(sizes: tuple[int, int], counts: list[int], seed: int) -> Any:
        (count, inputs), draw = sizes, np.random.default_rng(seed)
        batches = [(draw.standard_normal((n, inputs)), draw.integers(0, count, n)) for n in counts]
        return [draw.standard_normal((count, inputs))], batches, 0.5

    sizes = st.tuples(st.integers(2, 4), st.integers(1, 3))
    return st.builds(of, sizes, st.lists(st.integers(1, 3), min_size=1, max_size=3), _seeds(st))


def learnings() -> Any:
    from hypothesis import strategies as st

    def of(training: Any, epochs: int, seed: int) -> Any:
        (w,), batches, lr = training
        count, inputs = w.shape
        draw = np.random.default_rng(seed)
        test = draw.standard_normal((6, inputs)), draw.integers(0, count, 6)
        return [[w]], batches, test, lr, epochs

    return st.builds(of, trainings(), st.integers(1, 3), _seeds(st))


def _seeds(st: Any) -> Any:
    return st.integers(0, 99)


def _batches(batches: list[Labelled]) -> str:
    return "\n".join(f"  batch: x = {shown(x)}, labels = {shown(y)}" for x, y in batches)


def _model(weights: Weights) -> str:
    if len(weights) == 1:
        return f"  model(x) = x @ w.T, w = {shown(weights[0])}"
    return f"  model(x) = relu(x @ v.T) @ w.T, v = {shown(weights[0])}, w = {shown(weights[1])}"


def show_training(weights: Weights, batches: list[Labelled], lr: float) -> str:
    call = f"train(model, batches, SGD with lr={shown(lr)})"
    return "\n".join([call, _model(weights), _batches(batches)])


def trained_words(answer: Any) -> str:
    losses, weights = answer
    told = ", ".join(f"{name} = {shown(w)}" for name, w in zip("wv", weights[::-1], strict=False))
    return f"losses {shown(losses)}, then {told}"


def show_learning(
    starts: list[Weights], batches: list[Labelled], test: Labelled, lr: float, epochs: int
) -> str:
    if len(starts) > 1:
        return (
            f"learn(model, batches, test, SGD with lr={shown(lr)}, epochs={epochs}) on digits:\n"
            f"  networks with a layer of 16, from {len(starts)} starting weights"
        )
    call = f"learn(model, batches, test, SGD with lr={shown(lr)}, epochs={epochs})"
    told = f"  test: x = {shown(test[0])}, labels = {shown(test[1])}"
    return "\n".join([call, _model(starts[0]), _batches(batches), told])


def share_differs(got: Any, expected: Any) -> str:
    """What differs between two lists of shares; of digits, whether their medians are good."""
    bare = difference(got, expected)
    if len(expected) == 1 or bare.startswith(("type", "shape")):
        return bare
    middle = float(np.median(got))
    if (GOOD <= middle <= 1) == (GOOD <= np.median(expected) <= 1):
        return ""
    return f"values: of {SEEDS} networks the middle one gets {middle:.1%} right; {GOOD:.0%} are due"


def share_words(shares: Any) -> str:
    return shown(shares[0]) if len(shares) == 1 else shown(shares)


STEPS = [
    FunctionStep(
        1,
        "log_softmax",
        [(z,) for z, _ in LOGITS],
        lambda: labelled().map(lambda case: case[:1]),
        lambda z: f"log_softmax(z), {z.dtype}\n  z = {shown(z)}",
        differs=near,
    ),
    FunctionStep(
        2,
        "cross_entropy",
        LOGITS,
        labelled,
        show_labelled("cross_entropy"),
        differs=near,
    ),
    FunctionStep(
        3,
        "gradient",
        LOGITS,
        labelled,
        show_labelled("gradient"),
        differs=near,
    ),
    OpStep(
        4,
        "SoftmaxCrossEntropy",
        [((), case) for case in LOGITS],
        differenced=(4, 11),
        drawn=lambda: labelled(1.0).map(lambda case: ((), case)),
    ),
    FunctionStep(
        5,
        "tg_train",
        TRAININGS,
        trainings,
        show_training,
        examples=15,
        words=trained_words,
    ),
    FunctionStep(
        6,
        "tg_learn",
        [*LEARNED, DIGITS],
        learnings,
        show_learning,
        examples=15,
        differs=share_differs,
        words=share_words,
        likely=1,
    ),
]
