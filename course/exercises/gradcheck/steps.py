"""What is tried of exercise 5: functions and ops of harness.py, right and wrong ones."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from tinygraph.engine.spec import Array
from tinygraph_course.checking.compare import difference
from tinygraph_course.checking.steps import FunctionStep, module, shown
from tinygraph_course.content.exercise import find
from tinygraph_course.exercises.gradcheck.ops import COALS, IN_PLACE, KINKS, LAYERS, RIGHT

Layered = tuple[Array, Array, Array]

SMALL = 1e-4  # between rounding and a mistake
DRAWN = 30
_drawn = np.random.default_rng(5)


def whole(*shape: int) -> Array:
    """Whole numbers but 0."""
    return _drawn.integers(1, 10, shape) * _drawn.choice([-1.0, 1.0], shape)


def layered(N: int, inputs: int, outputs: int) -> Layered:
    """A problem far from kinks, of numbers with two digits behind the point."""
    shapes = (N, inputs), (outputs, inputs), (outputs,)
    x, w, b = (_drawn.standard_normal(shape).round(2) for shape in shapes)
    return x, w, b


# ---- step 1 -----------------------------------------------------------------------------------

SLOPES = [
    *(("x * x", 3.0, 1.0), ("x ** 3", 1.0, 1.0), ("|x|", 0.0, 1.0), ("5", 2.0, 1.0)),
    *(("x * x", -2.0, 0.5), ("x ** 3", 2.0, 0.25), ("1 / x", 1.0, 0.5)),
]


def slopes() -> Any:
    from hypothesis import strategies as st

    names, steps = st.sampled_from(["x * x", "x ** 3", "|x|"]), st.sampled_from([1.0, 0.5, 0.25])
    return st.tuples(names, st.integers(-9, 9).map(float), steps)


def show_slope(name: str, x: float, h: float) -> str:
    return f"slope(f, x={shown(x)}, h={shown(h)}) with f(x) = {name}"


# ---- step 2 -----------------------------------------------------------------------------------

GRADIENTS: list[tuple[str, list[Array], Array]] = [
    ("x * x", [np.array([3.0])], np.array([1.0])),
    ("a * b", [np.array([2.0, 3.0]), np.array([5.0, 7.0])], np.array([1.0, 10.0])),
    ("|x|", [np.array([0.0, 2.0])], np.array([1.0, 1.0])),
    ("b cut off at -|a| and |a|", [np.array([0.0]), np.array([0.0])], np.array([1.0])),
    ("x", [np.array([20000.0])], np.array([1.0])),
    ("x", [np.array([2048.0], np.float32)], np.array([1.0])),
    ("100 * x ** 3", [np.array([0.1])], np.array([1.0])),
    ("sum of x", [whole(2, 2)], np.array(2.0)),
    ("x @ w", [whole(2, 3), whole(3, 2)], whole(2, 2)),
]


def products() -> Any:
    from hypothesis import strategies as st

    def of(sizes: tuple[int, int, int], seed: int) -> tuple[str, list[Array], Array]:
        N, inner, M = sizes
        draw = np.random.default_rng(seed).standard_normal
        return "x @ w", [draw((N, inner)), draw((inner, M))], draw((N, M))

    size = st.integers(1, 3)
    return st.builds(of, st.tuples(size, size, size), st.integers(0, 99))


def show_numeric(name: str, arrays: list[Array], upstream: Array) -> str:
    of_dtype = " of float32" if arrays[0].dtype == np.float32 else ""
    inputs = ", ".join(f"{shown(a)}{of_dtype}" for a in arrays)
    return f"numeric(op, [{inputs}], upstream={shown(upstream)})\n  forward: {name}"


# ---- step 3 -----------------------------------------------------------------------------------


def _of(number: float, *shape: int) -> Array:
    return np.full(shape, number)


_MIRRORED = 1.1530867373321434  # where 1 - z * z is -(1 - y * y): signs alone are wrong


def _few_negative() -> Layered:
    """Of 800 numbers of x 4 are negative, in as many samples."""
    x = np.abs(_drawn.standard_normal((20, 40))) + 0.1
    x[np.arange(4), np.arange(4)] *= -1
    return x, np.ones((1, 40)), np.zeros(1)


DEVIATIONS: list[tuple[Any, ...]] = [
    (9, *layered(1, 1, 1)),
    (19, *layered(2, 3, 2)),
    (15, *layered(2, 3, 2)),
    (6, _of(-2.0, 1, 1), _of(3.0, 1, 1), _of(1.0, 1)),
    (11, _of(1.0, 1, 1), _of(2.0, 1, 1), _of(0.0, 1)),
    (7, _of(-1.0, 1, 1), _of(2.0, 1, 1), _of(0.0, 1)),
    (1, *layered(2, 3, 2)),
    (3, *layered(3, 2, 2)),
    (18, *layered(2, 3, 2)),
    (7, np.array([[3.0, 1.0, -2.0]]), _of(1.0, 1, 3), _of(0.0, 1)),
    (7, np.array([[3.0, 1.0, -2.0]]), _of(-1.0, 1, 3), _of(0.0, 1)),  # too little for too much
    (14, *layered(2, 3, 2)),
    (16, *layered(2, 3, 2)),
    (20, *layered(2, 3, 2)),
    (13, *_few_negative()),
    (11, _of(1.0, 1, 1), _of(_MIRRORED, 1, 1), _of(0.0, 1)),
]


def size_differs(got: Any, expected: Any) -> str:
    """Whether one of two numbers is small and the other is not; NaN is not."""
    if isinstance(got, bool) or not isinstance(got, (int, float, np.number)):
        return difference(got, expected)
    return "" if bool(got < SMALL) == bool(expected < SMALL) else "values"


def size_of(value: Any) -> str:
    if not isinstance(value, (int, float, np.number)):
        return shown(value)
    return f"{value:.2g}, which is {'below' if value < SMALL else 'not below'} {SMALL:g}"


def show_layer(call: str) -> Any:
    """A call with the layer that it is about."""

    def show(number: int, *arrays: Array) -> str:
        names = zip("xwb", arrays, strict=True)
        told = [f"{name} = {shown(a)}" if a.size < 7 else f"{name} {a.shape}" for name, a in names]
        return f"{call}\n{LAYERS[number].said()}\n  {', '.join(told)}"

    return show


# ---- step 4 -----------------------------------------------------------------------------------


@cache
def _solution() -> Any:
    exercise = find("gradcheck")
    return module(exercise.solution + exercise.harness)


def broken_problem(problem: Any) -> str:
    """What a problem lacks; empty where it is one."""
    if not isinstance(problem, (tuple, list)) or len(problem) != 3:
        return f"type: a problem is three arrays, x, w and b; one of yours is {shown(problem)}"
    if not all(isinstance(a, np.ndarray) and a.dtype.kind == "f" for a in problem):
        return f"type: x, w and b are arrays of floats; a problem of yours is {shown(problem)}"
    x, w, b = problem
    shapes = f"x {x.shape}, w {w.shape}, b {b.shape}"
    if (x.ndim, w.ndim, b.ndim) != (2, 2, 1) or (*b.shape, x.shape[1]) != w.shape:
        return f"shape: expected x (N, I), w (O, I), b (O,); a problem of yours has {shapes}"
    if not all(a.size for a in problem):
        return f"shape: no array may be empty; a problem of yours has {shapes}"
    if not all(np.isfinite(a).all() for a in problem):
        return "values: a problem of yours has a NaN or an infinity, under which nothing is right"
    return ""


def verdicts(problems: list[Layered]) -> list[tuple[int, str]]:
    """What problems do wrong: coals that none of them shows, right layers that they accuse."""
    found = []
    for number in COALS:
        if number != IN_PLACE and not any(_shows(number, problem) for problem in problems):
            formula, wrong, hidden = LAYERS[number]
            said = f"no problem of yours shows what this backward does wrong: {wrong}; hidden where"
            found.append((number, f"{said} {hidden}. Its forward is {formula}"))
    for number, (where, at_kink) in KINKS.items():
        if any(at_kink(x, w) for x, w, _ in problems):
            said = f"a right backward is accused at a kink of its forward, where {where}:"
            found.append((number, f"{said} {LAYERS[number].formula}"))
    return found


def _shows(number: int, problem: Layered) -> bool:
    """Whether a wrong backward gives something else than the right one of the same forward."""
    alike = next(n for n in RIGHT if LAYERS[n].formula == LAYERS[number].formula)
    wrong, right = (_solution().tg_layer(n) for n in (number, alike))
    with np.errstate(all="ignore"):
        gy = np.random.default_rng(0).standard_normal(right.forward(*problem).shape)
        pairs = zip(wrong.backward(gy, *problem), right.backward(gy, *problem), strict=True)
        return any(bool(difference(got, expected, SMALL)) for got, expected in pairs)


def problems_differ(got: Any, expected: Any) -> str:
    """Whether two lists of problems do the same wrong."""
    if not isinstance(got, list) or not got:
        return "type: problems() gives no problem"
    if broken := next(filter(None, map(broken_problem, got)), ""):
        return broken
    found = verdicts(got)
    if any(map(broken_problem, expected)):  # those of a known mistake
        return "values"
    if [number for number, _ in found] == [number for number, _ in verdicts(expected)]:
        return ""
    return f"values: {found[0][1]}" if found else "values"


def range_of(problems: Any) -> str:
    """Sizes and numbers of some problems, in a line."""
    if not isinstance(problems, list) or not problems or any(map(broken_problem, problems)):
        return ""
    sizes = np.array([(*x.shape, len(b)) for x, _, b in problems])
    numbers = np.concatenate([a.ravel() for problem in problems for a in problem])
    told = [
        f"{name} {low} to {high}"
        for name, low, high in zip("NIO", sizes.min(0), sizes.max(0), strict=True)
    ]
    square = f"I = O in {np.mean(sizes[:, 1] == sizes[:, 2]):.0%}"
    return f"{', '.join(told)}, {square}, numbers {numbers.min():.2g} to {numbers.max():.2g}"


# ---- step 5 -----------------------------------------------------------------------------------

VERDICTS = [(number, *layered(6, 3, 4)) for number in sorted(range(len(LAYERS)), key=COALS.count)]


def drawn_verdicts() -> Any:
    from hypothesis import strategies as st

    return st.builds(
        lambda number, problem: (number, *problem),
        st.sampled_from(RIGHT),
        _solution().problems(),
    )


STEPS = [
    FunctionStep(
        1,
        "tg_slope",
        SLOPES,
        slopes,
        show_slope,
    ),
    FunctionStep(
        2,
        "tg_numeric",
        GRADIENTS,
        products,
        show_numeric,
        examples=20,
        differs=partial(difference, within=1e-3),
    ),
    FunctionStep(
        3,
        "tg_worst",
        DEVIATIONS,
        None,
        show_layer("worst(op, [x, w, b])"),
        differs=size_differs,
        likely=1,
        words=size_of,
    ),
    FunctionStep(
        4,
        "tg_problems",
        [(DRAWN,)],
        None,
        lambda count: f"{count} problems, drawn by problems()",
        differs=problems_differ,
        likely=1,
        words=range_of,
    ),
    FunctionStep(
        5,
        "tg_agrees",
        VERDICTS,
        drawn_verdicts,
        show_layer("agrees(op, (x, w, b))"),
        examples=20,
        likely=0.9,
    ),
]
