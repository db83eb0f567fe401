"""What is tried of exercise 10: whole numbers, whose sums are exact in any order."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.engine.spec import Array
from tinygraph_course.checking.kernel_step import KernelStep, Launch, blocks_of

_drawn = np.random.default_rng(10)


def whole(count: int, seed: Any = _drawn) -> Array:
    return np.random.default_rng(seed).integers(1, 1000, count).astype(np.float32)


def loads(n: int, block: int, seed: Any = _drawn) -> Launch:
    x, blocks = whole(n, seed), -(-n // block)
    brought = np.zeros(blocks * block, np.float32)
    brought[:n] = x
    title = f"n = {n}, {blocks_of(blocks, block)}"
    return Launch(
        title, "tg_step_1", blocks, block, [x, None, n], {1: brought}, {"BLOCK": block}, "x"
    )


def tree(block: int, seed: Any = _drawn) -> Launch:
    x = whole(block, seed)
    total = np.array([x.sum()], np.float32)
    title, macros = f"{block} parts", {"BLOCK": block}
    most = {"loads": 4 * (block - 1).bit_length()} if block > 32 else {}  # a tree needs half of it
    return Launch(title, "tg_step_2", 1, block, [x, None], {1: total}, macros, "parts", most)


def sums(n: int, block: int, seed: Any = _drawn) -> Launch:
    x, blocks = whole(n, seed), -(-n // block)
    total = np.array([x[b * block :][:block].sum() for b in range(blocks)], np.float32)
    title = f"n = {n}, {blocks_of(blocks, block)}"
    return Launch(
        title, "block_sums", blocks, block, [x, None, n], {1: total}, {"BLOCK": block}, "sums"
    )


def warps(count: int, seed: Any = _drawn) -> Launch:
    x = whole(32 * count, seed)
    total = x.reshape(count, 32).sum(1, dtype=np.float32)
    title = f"{count} warps" if count > 1 else "1 warp"
    return Launch(title, "tg_step_4", 1, 32 * count, [x, None], {1: total})


def drawn(make: Any, *sizes: Any) -> Any:
    """A strategy of launches of other sizes, and of blocks that the public ones have not."""
    from hypothesis import strategies as st

    return st.builds(make, *sizes, seed=st.integers(0, 999))


def elements() -> Any:
    from hypothesis import strategies as st

    return st.integers(1, 400)


def blocks() -> Any:
    from hypothesis import strategies as st

    return st.sampled_from([4, 32, 256])


STEPS = [
    KernelStep(
        1,
        [loads(8, 8), loads(20, 8), loads(1, 8), loads(300, 128)],
        lambda: drawn(loads, elements(), blocks()),
    ),
    KernelStep(
        2,
        [tree(8), tree(2), tree(64), tree(128)],
        lambda: drawn(tree, blocks()),
    ),
    KernelStep(
        3,
        [sums(8, 8), sums(20, 8), sums(300, 128)],
        lambda: drawn(sums, elements(), blocks()),
    ),
    KernelStep(
        4,
        [warps(1), warps(3)],
        lambda: drawn(warps, elements().map(lambda n: 1 + n % 8)),
    ),
]
