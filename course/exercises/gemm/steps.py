"""What is tried of exercise 11: small products by hand, then counted bytes, reads and barriers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tinygraph.engine.spec import Array
from tinygraph_course.checking.kernel_step import KernelStep, Launch
from tinygraph_course.checking.steps import shown

_drawn = np.random.default_rng(11)
ODD = 33, 17, 40  # M, N, K: no multiple of 16
SQUARE = 64, 64, 64


def whole(*shape: int, seed: Any = _drawn) -> Array:
    return np.random.default_rng(seed).integers(-3, 10, shape).astype(np.float32)


def product(
    kernel: str,
    sizes: tuple[int, int, int],
    tile: int = 2,
    most: Mapping[str, float] | None = None,
    drawn: str = "a",
    seed: Any = _drawn,
) -> Launch:
    """A launch of one of the products; a block makes `per` x `per` elements of C."""
    M, N, K = sizes
    draw = np.random.default_rng(seed)
    A, B = whole(M, K, seed=draw), whole(K, N, seed=draw)
    per = tile if kernel in ("naive", "tiled") else 4 * tile
    grid = -(-N // per), -(-M // per)
    title = f"M = {M}, N = {N}, K = {K}, TILE = {tile}"
    if max(A.size, B.size) <= 12:
        title += f"\n  A = {shown(A)}\n  B = {shown(B)}"
    arguments = [A, B, None, M, N, K]
    macros = {"TILE": tile}
    return Launch(
        title, kernel, grid, (tile, tile), arguments, {2: A @ B}, macros, drawn, most or {}
    )


def part(
    rows: int,
    columns: int,
    row0: int,
    column0: int,
    tile: int = 2,
    most: Mapping[str, float] | None = None,
    seed: Any = _drawn,
) -> Launch:
    """A launch that loads the tile at row0, column0 of a matrix."""
    matrix = whole(rows, columns, seed=seed)
    wide = np.pad(matrix, ((0, tile), (0, tile)))
    expected = wide[row0 : row0 + tile, column0 : column0 + tile].copy()
    title = f"{rows} x {columns}, row0 = {row0}, column0 = {column0}, TILE = {tile}"
    if matrix.size <= 15:
        title += f"\n  matrix = {shown(matrix)}"
    return Launch(
        title,
        "tg_step_2",
        1,
        (tile, tile),
        [matrix, None, rows, columns, row0, column0],
        {1: expected},
        {"TILE": tile},
        "tile",
        most or {},
    )


def products(kernel: str) -> Any:
    """A strategy of products of other sizes, with tiles that the public ones have not."""
    from hypothesis import strategies as st

    sizes, tiles = st.tuples(*3 * [st.integers(1, 21)]), st.sampled_from([3, 4, 8])
    return st.builds(product, st.just(kernel), sizes, tiles, seed=st.integers(0, 999))


def corners() -> Any:
    """A strategy of tiles that begin inside of a matrix."""
    from hypothesis import strategies as st

    def of(rows: int, columns: int, row: int, column: int, tile: int, seed: int) -> Launch:
        return part(rows, columns, row % rows, column % columns, tile, seed=seed)

    numbers = 4 * [st.integers(1, 21)]
    return st.builds(of, *numbers, st.sampled_from([3, 4, 8]), st.integers(0, 999))


STEPS = [
    KernelStep(
        1,
        [
            product("naive", (2, 2, 3), drawn="B"),
            product("naive", (3, 4, 2), drawn="C"),
            product("naive", (3, 5, 4), drawn="C"),
            product("naive", ODD, 16, {"bytes": 172_480}),
            product("naive", SQUARE, 16, {"bytes": 1_064_960}),
        ],
        lambda: products("naive"),
    ),
    KernelStep(
        2,
        [
            part(2, 3, 0, 0),
            part(3, 5, 2, 2),
            part(3, 5, 0, 4),
            part(3, 5, 2, 4),
            part(40, 64, 16, 32, 16, {"sectors": 4.5, "turns": 1}),
        ],
        corners,
    ),
    KernelStep(
        3,
        [
            product("tiled", (2, 2, 2)),
            product("tiled", (2, 2, 3)),
            product("tiled", (3, 5, 6), most={"barriers": 7}),
            product("tiled", ODD, 16, {"turns": 1}),
            product("tiled", SQUARE, 16, {"bytes": 147_456, "turns": 1}),
        ],
        lambda: products("tiled"),
    ),
    KernelStep(
        4,
        [
            product("register_tile", (2, 3, 3)),
            product("register_tile", (9, 11, 5)),
            product("register_tile", ODD, 16, {"turns": 1}),
            product("register_tile", SQUARE, 16, {"bytes": 49_152, "reads": 0.5, "turns": 1}),
        ],
        lambda: products("register_tile"),
    ),
    KernelStep(
        5,
        [
            product("double_buffered", (2, 3, 3)),
            product("double_buffered", (9, 7, 8), most={"barriers": 5}),
            product("double_buffered", ODD, 16, {"turns": 1}),
            product("double_buffered", SQUARE, 16, {"bytes": 49_152, "reads": 0.5, "turns": 1}),
        ],
        lambda: products("double_buffered"),
    ),
]
