"""Launches of norms, of ordinary numbers and of those whose powers are out of range."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.cuda.launch import F4, F8, Launch, Maker
from tinygraph.cuda import Out

# (kept0, reduced0, kept1, reduced1, kept2), slices, group, blocks
SETS = [
    ((1, 1, 1, 1, 1), 1, 1, 1),
    ((256, 1, 1, 2, 1), 1, 1, 1),
    ((3, 1, 1, 9, 100), 1, 1, 2),
    ((4, 1, 1, 70, 11), 3, 1, 1),
    ((2, 3, 2, 5, 1), 1, 1, 1),
    ((21, 1, 1, 70, 1), 2, 32, 3),
    ((5, 1, 1, 1300, 1), 3, 256, 2),
]


def _norms(random: np.random.Generator) -> Iterator[Launch]:
    launch = Maker("norm.cu")
    for sizes, slices, group, grid in SETS:
        for p, kind in ((2.0, "Euclidean"), (3.0, "General"), (-2.0, "General"), (1.5, "General")):
            for name, dtype, scales in (
                ("float", F4, (1.0, 1e-25, 1e25)),
                ("double", F8, (1.0, 1e-25, 1e-180, 1e180)),
            ):
                for scale in scales:
                    v = random.uniform(0.5, 2, sizes) * random.choice([-1, 1], sizes)
                    x, numbers = (v * scale).astype(dtype), (*sizes, slices, group)
                    y = _of_parts(v, p, slices, group) * scale
                    label = f"{sizes} {slices=} {p=} {scale=}"
                    yield launch(
                        f"norm_forward<{name}, {kind}>",
                        grid,
                        x,
                        Out(y.astype(dtype)),
                        p,
                        *numbers,
                        label=label,
                    )
                    whole = _of_parts(v, p, 1, group)
                    gy = random.standard_normal(whole.shape).astype(dtype)
                    gy_, y_ = (a.reshape(sizes[0], 1, sizes[2], 1, sizes[4]) for a in (gy, whole))
                    gx = gy_ * np.sign(v) * (np.abs(v) / y_) ** (p - 1)
                    yield launch(
                        f"norm_backward<{name}, {kind}>",
                        grid,
                        gy,
                        x,
                        (whole * scale).astype(dtype),
                        Out(gx.astype(dtype)),
                        p - 1,
                        *numbers,
                        label=label,
                    )
    yield from _special(launch)


def _special(launch: Maker) -> Iterator[Launch]:
    """What a set cannot be divided by, a set whose numbers are far apart, and one of nothing."""
    for p, kind in ((2.0, "Euclidean"), (3.0, "General"), (-2.0, "General")):
        nothing, end = (np.inf, 1e-25) if p < 0 else (0.0, 1e25)
        for row, norm in (
            *(([special] * 40, special) for special in (0.0, np.inf, np.nan)),
            ([1e-25, *[1e25] * 39], end if p < 0 else end * 39 ** (1 / p)),
            ([], nothing),
        ):
            x, y = np.array([row] * 3, F4), np.full((3, 1), norm, F4)
            sizes = (3, 1, 1, 40, 1) if row else (3, 0, 1, 1, 1)
            yield launch(
                f"norm_forward<float, {kind}>", 1, x, Out(y), p, *sizes, 1, 32, label=f"{norm} {p=}"
            )
    x, y = np.array([[0.5, *[2] * 39]], F4), np.full((1, 1), 0.5, F4)
    yield launch(
        "norm_forward<float, General>", 1, x, Out(y), -200.0, 1, 1, 1, 40, 1, 1, 32, label="p=-200"
    )


def _of_parts(v: np.ndarray, p: float, slices: int, group: int) -> np.ndarray:
    """(outputs, slices): the norms of every slice, whose threads take every slices * group-th."""
    sets = np.moveaxis(v, (1, 3), (3, 4)).reshape(-1, v.shape[1] * v.shape[3])
    slice_of = np.arange(sets.shape[1]) // group % slices
    powers = np.abs(sets) ** p
    return np.stack([powers[:, slice_of == s].sum(1) ** (1 / p) for s in range(slices)], 1)


FAMILIES = {"norm.cu": _norms}
