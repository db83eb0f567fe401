"""What is tried of exercise 9: sizes that no block divides, and whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.engine.spec import Array
from tinygraph_course.checking.kernel_step import KernelStep, Launch, blocks_of

_drawn = np.random.default_rng(9)
WARP = {"sectors": 4.5}  # 4 where 32 floats lie side by side; a little more where a row ends


def whole(*shape: int, seed: Any = _drawn) -> Array:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


def relus(n: int, block: int, nan: bool = False, seed: Any = _drawn) -> Launch:
    x, blocks = whole(n, seed=seed), -(-n // block)
    if nan:
        x[n // 2] = np.nan
    title = f"n = {n}, {blocks_of(blocks, block)}" + (", with a NaN" if nan else "")
    return Launch(
        title, "relu", blocks, block, [x, None, n], {1: np.where(x < 0, np.float32(0), x)}
    )


def sums(n: int, blocks: int, block: int, seed: Any = _drawn) -> Launch:
    draw = np.random.default_rng(seed)
    x, y, a = whole(n, seed=draw), whole(n, seed=draw), np.float32(3)
    title = f"n = {n}, {blocks_of(blocks, block)}"
    return Launch(title, "axpy", blocks, block, [float(a), x, y, n], {2: a * x + y})


def scaled(
    rows: int, cols: int, block: int, most: dict[str, float] | None = None, seed: Any = _drawn
) -> Launch:
    draw = np.random.default_rng(seed)
    m, s = whole(rows, cols, seed=draw), whole(cols, seed=draw)
    blocks = -(-rows * cols // block)
    title = f"{rows} rows, {cols} columns, {blocks_of(blocks, block)}"
    arguments = [m, s, rows, cols]
    expected = {0: m * s}
    return Launch(title, "scale_columns", blocks, block, arguments, expected, most=most or {})


def backwards(n: int, block: int, seed: Any = _drawn) -> Launch:
    draw = np.random.default_rng(seed)
    y, gy, blocks = np.maximum(whole(n, seed=draw), 0), whole(n, seed=draw), -(-n // block)
    gx = np.where(y > 0, gy, np.float32(0))
    title = f"n = {n}, {blocks_of(blocks, block)}"
    return Launch(title, "relu_backward", blocks, block, [y, gy, None, n], {2: gx})


def drawn(make: Any, *sizes: tuple[int, int]) -> Any:
    """A strategy of launches: sizes within ends, threads of a block, and numbers."""
    from hypothesis import strategies as st

    threads, seeds = st.sampled_from([1, 7, 32, 48, 96, 256]), st.integers(0, 999)
    return st.builds(make, *(st.integers(*ends) for ends in sizes), threads, seed=seeds)


STEPS = [
    KernelStep(
        1,
        [relus(1, 32), relus(8, 4), relus(255, 128), relus(257, 128), relus(5, 8, True)],
        lambda: drawn(relus, (1, 400)),
    ),
    KernelStep(
        2,
        [sums(8, 1, 8), sums(20, 2, 4), sums(3, 2, 4), sums(257, 3, 32)],
        lambda: drawn(sums, (1, 400), (1, 4)),
    ),
    KernelStep(
        3,
        [scaled(2, 3, 8), scaled(33, 5, 64), scaled(32, 64, 128, WARP)],
        lambda: drawn(scaled, (1, 20), (1, 20)),
    ),
    KernelStep(
        4,
        [backwards(8, 8), backwards(255, 128)],
        lambda: drawn(backwards, (1, 400)),
    ),
]
