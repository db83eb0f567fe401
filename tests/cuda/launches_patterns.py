"""Launches of the kernels that make arrays of the places of their elements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.cuda.launch import F4, F8, FLAT, I8, Launch, Maker
from tinygraph.cuda import Out


def _patterns(random: np.random.Generator) -> Iterator[Launch]:
    launch = Maker("patterns.cu")
    for n, grid in FLAT:
        for name, dtype in (("float", F4), ("double", F8), ("long long", I8)):
            first, step, value = (dtype(v) for v in random.integers(-50, 50, 3) / 7)
            for place in (-1, n // 2):
                out = first + np.arange(n).astype(dtype) * step
                out[place : place + 1] = value
                numbers = (n, first, step, place, value)
                yield launch(f"spaced<{name}>", grid, Out(out), *numbers, label=f"{n} {place=}")
    for (rows, columns), grid in (((1, 1), 1), ((16, 16), 1), ((9, 70), 3), ((70, 9), 2)):
        for least, most in ((0, 0), (-2, 3), (1, 2**31), (-(2**31), -1)):
            distance = np.arange(columns) - np.arange(rows)[:, None]
            out = (least <= distance) & (distance <= most)
            numbers = (out.size, columns, least, most)
            yield launch("band", grid, Out(out), *numbers, label=f"{rows, columns} {least, most}")


FAMILIES = {"patterns.cu": _patterns}
