"""What is tried of exercise 16: small pictures that are made up, none of a collection."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.engine.spec import Array
from tinygraph.recipes import srcnn_colour as colours
from tinygraph_course.checking.compare import difference
from tinygraph_course.checking.steps import FunctionStep, shown

_drawn = np.random.default_rng(16)


def grey(level: float, height: int, width: int) -> Array:
    """A picture of one grey, of which 0 is black and 1 white."""
    return np.full((3, height, width), float(level))


def colour(red: float, green: float, blue: float) -> Array:
    return np.array([red, green, blue], np.float64).reshape(3, 1, 1)


def picture(height: int, width: int) -> Array:
    return _drawn.random((3, height, width))


# ---- steps 1 to 3 -----------------------------------------------------------------------------

LUMAS: list[tuple[Array]] = [
    (colour(0, 0, 0),),
    (colour(1, 1, 1),),
    (colour(1, 0, 0),),
    (colour(0, 1, 0),),
    (colour(0, 0, 1),),
    (picture(2, 3),),
    (picture(3, 2).astype(np.float32),),
]
BLACK = 16 / 255


def framed(outer: float, inner: float, size: int) -> Array:
    """Luma that is off by `outer` from black at the edge, and by `inner` inside."""
    y = np.full((size, size), BLACK + outer)
    y[1:-1, 1:-1] = BLACK + inner
    return y


_TILTED = framed(0, 0.1, 4)
_TILTED[:, 0] += 0.2
_RIGHT = framed(0, 0.1, 4)
_RIGHT[-1] += 0.3
PSNRS: list[tuple[Array, Array, int]] = [
    (framed(0.1, 0.1, 3), grey(0, 3, 3), 1),
    (framed(0.01, 0.01, 4), grey(0, 4, 4), 1),
    (framed(0.5, 0.1, 4), grey(0, 4, 4), 1),
    (_TILTED, grey(0, 4, 4), 1),
    (_RIGHT, grey(0, 4, 4), 1),
    (framed(0.2, 0.1, 3), grey(0, 3, 3), 0),
    (np.full((3, 3), 0.5), np.concatenate([grey(v, 3, 3)[:1] for v in (1, 0.5, 0)]), 1),
    (_drawn.random((7, 9)), picture(7, 9), 2),
    (framed(0.0011, 0.0011, 5), grey(0, 5, 5), 1),
]


def counted(height: int, width: int) -> tuple[Array, Array]:
    """Luma whose numbers say where they lie, and the same with details: 100 more."""
    low = 10.0 * np.arange(height)[:, None] + np.arange(width)
    return low, low + 100


CROPS: list[tuple[Array, Array, int, int, int]] = [
    (*counted(3, 3), 2, 1, 0),
    (*counted(4, 4), 3, 1, 1),
    (*counted(5, 7), 3, 2, 1),
    (*counted(7, 5), 3, 2, 1),
    (*counted(6, 8), 5, 1, 2),
    (counted(7, 9)[0].astype("f4"), counted(7, 9)[1].astype("f4"), 4, 2, 1),
]


def drawn_lumas() -> Any:
    from hypothesis import strategies as st

    def of(size: tuple[int, int], seed: int) -> tuple[Array]:
        return (np.random.default_rng(seed).random((3, *size)),)

    side = st.integers(1, 4)
    return st.builds(of, st.tuples(side, side), st.integers(0, 99))


def drawn_psnrs() -> Any:
    from hypothesis import strategies as st

    def of(size: tuple[int, int], border: int, seed: int) -> tuple[Array, Array, int]:
        draw = np.random.default_rng(seed).random
        height, width = (n + 2 * border for n in size)
        return draw((height, width)), draw((3, height, width)), border

    side = st.integers(1, 4)
    return st.builds(of, st.tuples(side, side), st.integers(0, 3), st.integers(0, 99))


def drawn_crops() -> Any:
    from hypothesis import strategies as st

    def of(margin: int, inner: int, more: tuple[int, int], stride: int) -> Any:
        size = inner + 2 * margin
        return *counted(size + more[0], size + more[1]), size, stride, margin

    small = st.integers(0, 4)
    return st.builds(
        of, st.integers(0, 2), st.integers(1, 3), st.tuples(small, small), st.integers(1, 4)
    )


def show_crops(low: Array, high: Array, size: int, stride: int, margin: int) -> str:
    of_high = "high = low + 100"
    settings = f"size={size}, stride={stride}, margin={margin}"
    return f"crops(low, high, {settings}), {of_high}\n  low = {shown(low, 60)}"


def show_psnr(y: Array, rgb: Array, border: int) -> str:
    off = np.round(y - colours.luma(rgb)[0], 6)
    grey = f"{shown(float(rgb.flat[0]))} everywhere" if np.ptp(rgb) == 0 else shown(rgb)
    return f"psnr(y, rgb, border={border})\n  y - luma(rgb) = {shown(off)}\n  rgb = {grey}"


# ---- step 4 -----------------------------------------------------------------------------------


def dot(value: float, size: int = 13) -> Array:
    """A picture with one pixel in its middle, x (1, 1, H, W)."""
    x = np.zeros((1, 1, size, size), np.float32)
    x[0, 0, size // 2, size // 2] = value
    return x


_RANDOM = _drawn.standard_normal((2, 1, 15, 14)).astype(np.float32)
NETWORKS: list[tuple[int, int, list[float], list[float], Array]] = [
    (1, 1, [1, 1, 1], [0, 0, 0], dot(5)),
    (1, 1, [1, 1, -1], [0, 0, 0], dot(5)),
    (1, 1, [-1, -1, 1], [0, 0, 0], dot(5)),
    (1, 1, [1, 1, 1], [0, 0, 0], dot(-5)),
    (1, 1, [1, -1, 1], [0, 0, 0], dot(5)),
    (2, 3, [1, 1, 1], [10, 100, 1000], dot(5)),
    (3, 2, [], [0.5, -0.25, 0.125], _RANDOM),
]


def drawn_networks() -> Any:
    from hypothesis import strategies as st

    def of(n1: int, n2: int, size: tuple[int, int], seed: int) -> Any:
        draw = np.random.default_rng(seed).standard_normal
        x = draw((2, 1, *size)).astype(np.float32)
        return n1, n2, [], draw(3).tolist(), x

    side, count = st.integers(13, 16), st.integers(1, 4)
    return st.builds(of, count, count, st.tuples(side, side), st.integers(0, 99))


def network_differs(got: Any, expected: Any) -> str:
    """What differs of parameters, then of the output."""
    if got[0] != expected[0]:
        missing = next((name for name in expected[0] if name not in got[0]), None)
        other = f"{missing} is missing" if missing else "there are more than are asked for"
        return f"parameters: {other}; yours are {', '.join(got[0])}"
    return difference(got[1], expected[1], 1e-4)


def show_network(n1: int, n2: int, taps: list[float], biases: list[float], x: Array) -> str:
    call, middle = f"SRCNN({n1}, {n2}) of x {x.shape}", x.shape[2] // 2
    if not taps:
        return f"{call}, all numbers of the filters different"
    return (
        f"{call}, in its middle {shown(float(x[0, 0, middle, middle]))}, else 0\n"
        f"  in the middle of the filters {shown(taps)}, else 0; biases {shown(biases)}"
    )


# ---- step 5 -----------------------------------------------------------------------------------

EXPERIMENTS: list[tuple[int, int, list[float], list[float], int]] = [
    (8, 3, [1, 3, 2], [10, 20, 30], 0),
    (8, 3, [3, 1, 2], [20, 30, 10], 1),
    (9, 2, [1, 2, 3, 0], [30, 10, 20, 40], 2),
    (9, 4, [2, 5, 5, 4], [40, 30, 20, 10], 3),
    (12, 3, [1, 2, 3, 4, 5], [50, 10, 20, 30, 40], 4),
    (8, 3, [7], [20], 5),
]


def drawn_experiments() -> Any:
    from hypothesis import strategies as st

    def of(more: int, held: int, quality: list[int], seed: int) -> Any:
        on_test = [float((7 * i + seed) % 10) for i in range(len(quality))]
        return held + 5 + more, held, [float(q) for q in quality], on_test, seed

    curve = st.lists(st.integers(0, 9), min_size=1, max_size=5)
    return st.builds(of, st.integers(0, 3), st.integers(2, 4), curve, st.integers(0, 99))


def experiment_differs(got: Any, expected: Any) -> str:
    """What differs of what was done, then of what is reported."""
    count = 1 + max(max(some) for _, _, some in expected[0][1] if max(some) < 100)
    its, due = done(got, count), done(expected, count)
    if words := next((f"values: {its[key]}" for key in due if its[key] != due[key]), ""):
        return words
    return difference([found for found, _ in got], [found for found, _ in expected])


def done(runs: Any, count: int) -> dict[str, str]:
    """What is to be said of some runs with `count` pictures; the first two have the same seed."""
    log = runs[0][1]
    training = [some for what, _, some in log if what == "train"]
    measured = [(p, some) for what, p, some in log if what == "measure"]
    tests = [p for p, some in measured if max(some) >= 100]
    none: list[int] = []
    held = next((some for _, some in measured if max(some) < 100), none)
    seen = set(training[0]) if training else set()
    known = len(set(held) & seen)
    splits = [[some for what, _, some in each if what == "train"][:1] for _, each in runs]
    ends = [tuple(range(len(held))), tuple(range(count - len(held), count))]
    first = [next((s for _, p, s in each if p and max(s) < 100), none) for _, each in runs]
    same = len({tuple(sorted(*s)) for s in splits[1:] if s}) == 1
    sizes = {(len(some), len(set(some))) for some in training}
    return {
        "in test": "the network is trained on test pictures" if max(seen, default=0) >= 100 else "",
        "in both": f"it learns from {known} of the pictures that it is validated on"
        if known
        else "",
        "validated": "" if held else "nothing is measured on the pictures that were held out",
        "seed": "the same seed gives another split the second time"
        if splits[0] != splits[1]
        else "",
        "order": "the pictures that are held out are always the first or the last ones"
        if all(some and tuple(sorted(some)) in ends for some in first)
        else "",
        "drawn": "several seeds give the same split" if same else "",
        "trained": f"{len(training)} epochs, with (pictures, different ones) {sorted(sizes)}",
        "held": f"of {count} pictures {len(set(held))} are validated on, {len(seen)} learnt from"
        if len(held) != len(set(held)) or len(held) + len(seen) != count
        else "",
        "tests": f"the test is measured {len(tests)} times; once is due",
    }


def experiment_words(found: Any) -> str:
    epoch, quality = (*found[0][0], None, None)[:2]
    return f"epoch {shown(epoch)}, quality {shown(quality)}"


def show_experiment(
    count: int, held: int, quality: list[float], on_test: list[float], seed: int
) -> str:
    return (
        f"experiment of {count} pictures, held={held}, epochs={len(quality)}, seed={seed}\n"
        f"  after each epoch, on validation {shown(quality)}, on test {shown(on_test)}"
    )


# ---- step 6 -----------------------------------------------------------------------------------

TIMES: list[tuple[list[float], int]] = [
    ([9.0, 4.0, 2.0, 1.0], 3),
    ([9.0, 2.0], 1),
    ([5.0, 1.0, 2.0, 4.0, 9.0], 4),
    ([8.0, 3.0, 1.0, 6.0, 2.0, 7.0], 5),
    ([2.0, 2.0, 9.0, 2.0], 3),
]


def drawn_times() -> Any:
    from hypothesis import strategies as st

    seconds = st.lists(st.integers(1, 9).map(float), min_size=2, max_size=8)
    return seconds.map(lambda found: (found, len(found) - 1))


def time_differs(got: Any, expected: Any) -> str:
    if words := difference(got[0], expected[0]):
        return words
    return "" if got[1] == expected[1] else f"values: it runs {got[1]} times, {expected[1]} are due"


def time_words(found: Any) -> str:
    return f"{shown(found[0])} seconds, of {found[1]} runs"


def show_times(seconds: list[float], repeats: int) -> str:
    return f"timed(run, repeats={repeats}, clock), of runs that take {shown(seconds)} seconds"


STEPS = [
    FunctionStep(
        1,
        "luma",
        LUMAS,
        drawn_lumas,
    ),
    FunctionStep(
        2,
        "psnr",
        PSNRS,
        drawn_psnrs,
        show_psnr,
    ),
    FunctionStep(
        3,
        "crops",
        CROPS,
        drawn_crops,
        show_crops,
    ),
    FunctionStep(
        4,
        "tg_srcnn",
        NETWORKS,
        drawn_networks,
        show_network,
        examples=10,
        differs=network_differs,
        words=lambda found: shown(found[1]),
    ),
    FunctionStep(
        5,
        "tg_experiment",
        EXPERIMENTS,
        drawn_experiments,
        show_experiment,
        examples=15,
        differs=experiment_differs,
        words=experiment_words,
    ),
    FunctionStep(
        6,
        "tg_timed",
        TIMES,
        drawn_times,
        show_times,
        differs=time_differs,
        words=time_words,
    ),
]
