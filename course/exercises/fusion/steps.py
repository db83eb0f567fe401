"""What is tried of exercise 13: whole numbers, whose sums are exact, then counted bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tinygraph.engine.spec import Array
from tinygraph_course.checking.kernel_step import KernelStep, Launch, blocks_of
from tinygraph_course.checking.steps import shown

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_drawn = np.random.default_rng(13)
POOL = 2
WITHIN = 0.05  # a prediction


def whole(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(-4, 9, shape).astype(np.float32)


def relu(x: Array) -> Array:
    return np.where(x > 0, x, np.float32(0))


def _title(words: str, **arrays: Array) -> str:
    small = [f"  {name} = {shown(a)}" for name, a in arrays.items() if a.size <= 16]
    return "\n".join([words, *small])


def _most(bytes_: int | None) -> dict[str, float]:
    return {} if bytes_ is None else {"bytes": bytes_}


def biased(
    N: int, C: int, P: int, block: int = 8, most: int | None = None, seed: Any = _drawn
) -> Launch:
    """A launch of bias_relu."""
    rng = np.random.default_rng(seed)
    x, b = whole(rng, N, C, P), whole(rng, C) - 2
    y, blocks = relu(x + b[:, None]), -(-x.size // block)
    title = _title(f"N = {N}, C = {C}, P = {P}, {blocks_of(blocks, block)}", x=x, b=b)
    arguments = [x, b, None, N, C, P]
    return Launch(title, "bias_relu", blocks, block, arguments, {2: y}, drawn="y", most=_most(most))


def back(
    N: int, OUT: int, IN: int, block: int = 8, most: int | None = None, seed: Any = _drawn
) -> Launch:
    """A launch of delta."""
    rng = np.random.default_rng(seed)
    gy, w, h = whole(rng, N, OUT), whole(rng, OUT, IN), relu(whole(rng, N, IN) - 2)
    gx, blocks = (gy @ w) * (h > 0), -(-h.size // block)
    words = f"N = {N}, OUT = {OUT}, IN = {IN}, {blocks_of(blocks, block)}"
    arguments = [gy, w, h, None, N, OUT, IN]
    title = _title(words, gy=gy, w=w, h=h)
    return Launch(title, "delta", blocks, block, arguments, {3: gx}, drawn="gx", most=_most(most))


def stage(x: Array, w: Array, b: Array) -> tuple[Array, Array]:
    """Convolution, bias, ReLU and pooling one after the other: y and argmax."""
    (N, _, H, W), (D, _, K, _) = x.shape, w.shape
    z = np.zeros((N, D, H - K + 1, W - K + 1), x.dtype)
    for i, j in np.ndindex(K, K):
        pixels = x[:, :, i : i + z.shape[2], j : j + z.shape[3]]
        z += np.einsum("dc,nchw->ndhw", w[:, :, i, j], pixels)
    a = relu(z + b[:, None, None])
    PH, PW = a.shape[2] // POOL, a.shape[3] // POOL
    a = a[:, :, : PH * POOL, : PW * POOL].reshape(N, D, PH, POOL, PW, POOL)
    a = a.transpose(0, 1, 2, 4, 3, 5).reshape(N, D, PH, PW, POOL * POOL)
    return a.max(-1), a.argmax(-1).astype(np.int32)


def pooled(
    shape: tuple[int, int, int, int],
    filters: int,
    kernel: int = 3,
    block: int = 8,
    bias: int = 0,
    most: int | None = None,
    seed: Any = _drawn,
) -> Launch:
    """A launch of conv_relu_pool; of filters of 3 x 3 without a macro."""
    rng = np.random.default_rng(seed)
    x, w = whole(rng, *shape), whole(rng, filters, shape[1], kernel, kernel) - 2
    b = whole(rng, filters) + bias
    y, argmax = stage(x, w, b)
    blocks = -(-y.size // block)
    sizes = dict(zip("NCHW", shape, strict=True))
    words = ", ".join(f"{name} = {n}" for name, n in {**sizes, "D": filters}.items())
    words += f", {'no macro' if kernel == 3 else f'K = {kernel}'}, {blocks_of(blocks, block)}"
    arguments = [x, w, b, None, None, *shape, filters, *y.shape[2:]]
    return Launch(
        _title(words, x=x, w=w, b=b),
        "conv_relu_pool",
        blocks,
        block,
        arguments,
        {3: y, 4: argmax},
        {} if kernel == 3 else {"K": kernel},
        "y",
        _most(most),
    )


def moved(fused: bool, N: int, OUT: int, IN: int) -> int:
    """Bytes: of each sector of 32 that a warp of 32 neighbours asks for."""
    per_warp = 5 * OUT + 8 + (0 if fused else 8)
    return 32 * (N * IN // 32) * per_warp


def predicted(fused: bool, N: int, OUT: int, IN: int) -> Launch:
    """A launch that asks for a prediction."""
    expected = np.array([moved(fused, N, OUT, IN)], np.float64)
    title = f"{'fused' if fused else 'two launches'}, N = {N}, OUT = {OUT}, IN = {IN}"
    arguments = [None, int(fused), N, OUT, IN]
    return Launch(title, "tg_step_4", 1, 1, arguments, {0: expected}, within=WITHIN)


def _maps(of: Any) -> SearchStrategy[Launch]:
    from hypothesis import strategies as st

    sizes = st.integers(1, 5), st.integers(1, 5), st.integers(1, 20)
    blocks, seeds = st.sampled_from([8, 32, 96]), st.integers(0, 999)
    return st.builds(of, *sizes, block=blocks, seed=seeds)


def _stages() -> SearchStrategy[Launch]:
    from hypothesis import strategies as st

    two, size = st.integers(1, 2), st.integers(6, 9)
    others = {"block": st.sampled_from([8, 32, 96]), "bias": st.integers(-60, 20)}
    kernels, seeds = st.sampled_from([3, 4, 5]), st.integers(0, 999)
    shapes = st.tuples(two, two, size, size)
    return st.builds(pooled, shapes, st.integers(1, 3), kernels, **others, seed=seeds)


def _predictions() -> SearchStrategy[Launch]:
    from hypothesis import strategies as st

    counts = st.integers(1, 999)
    return st.builds(
        predicted, st.booleans(), counts, counts, st.integers(1, 99).map(lambda n: 32 * n)
    )


STEPS = [
    KernelStep(
        1,
        [
            biased(1, 2, 3),
            biased(2, 3, 5),
            biased(1, 1, 1),
            biased(2, 3, 64, 64, most=3_456),
        ],
        drawn=lambda: _maps(biased),
    ),
    KernelStep(
        2,
        [
            back(1, 1, 4),
            back(2, 3, 4),
            back(3, 2, 7),
            back(3, 5, 64, 64, most=6_336),
        ],
        drawn=lambda: _maps(back),
    ),
    KernelStep(
        3,
        [
            pooled((1, 1, 3, 3), 1, 2),
            pooled((1, 1, 4, 6), 2, 2, bias=-20),
            pooled((1, 1, 4, 4), 1),
            pooled((2, 2, 7, 6), 3, bias=-40),
            pooled((1, 2, 6, 66), 2, block=64, most=40_000),
        ],
        drawn=_stages,
    ),
    KernelStep(
        4,
        [
            predicted(True, 1, 1, 32),
            predicted(False, 1, 1, 32),
            predicted(True, 2, 10, 64),
            predicted(False, 3, 1, 96),
            predicted(True, 64, 256, 512),
            predicted(False, 4096, 4096, 4096),
        ],
        drawn=_predictions,
    ),
]
