"""Launches of the kernels that are matrix products: matmul, linear, conv2d; and of their sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.cuda.launch import F4, F8, I4, Launch, Maker, Shifted, Updated
from tinygraph.cuda import Out, blocks
from tinygraph.ops.products.gemm import STEP, tile_edge

C_TYPES = {F4: "float", F8: "double", I4: "int"}

# M, N, K: one element, exactly one tile, edges on all sides, rows on multiples of 16 bytes
SIZES = {
    16: [(1, 1, 1), (16, 16, 16), (17, 19, 35)],
    64: [(1, 1, 1), (64, 64, 16), (67, 70, 19), (68, 72, 19), (68, 72, 36)],
    128: [(1, 1, 1), (128, 128, 16), (132, 134, 19), (131, 136, 20)],
}
TF32, BF16 = 19, 16  # whole numbers up to 8 are exact in both
TRANSPOSED = [(0, 0), (0, 1), (1, 0)]


def _numbers(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Random numbers whose products and sums are exact in every dtype."""
    return random.integers(-8, 9, shape).astype(dtype)


def _tiles(m: int, n: int, tile: int) -> int:
    return blocks(m, tile) * blocks(n, tile)


def _matmul(random: np.random.Generator) -> Iterator[Launch]:
    for tile, sizes in SIZES.items():
        for transposed in TRANSPOSED:
            types = {64: (F4, F8, I4), 128: (F4, F8)}.get(tile, ()) if transposed == (0, 0) else ()
            types = types or (F4,)
            for dtype in types:
                for size in sizes:
                    yield _one_product(random, tile, transposed, dtype, size)
                if tile > 16:
                    yield from _not_aligned(random, tile, transposed, dtype)
                yield _many_products(random, tile, transposed, dtype)
    yield from _chunks(random)
    for tile in SIZES:
        yield _apart(random, tile)
        yield _nothing(tile)
    for mma in (TF32, BF16):
        for transposed in TRANSPOSED:
            for size in SIZES[128]:
                yield _one_product(random, 128, transposed, F4, size, mma=mma)
            yield from _not_aligned(random, 128, transposed, F4, mma)
            yield _many_products(random, 128, transposed, F4, mma)
        yield _apart(random, 128, mma)
        yield _nothing(128, mma)


def _maker(tile: int, transposed: tuple[int, int], mma: int = 0) -> Maker:
    macros = {"GEMM_TILE": tile, "TRANSPOSE_A": transposed[0], "TRANSPOSE_B": transposed[1]}
    return Maker("matmul.cu", macros | ({"GEMM_MMA": mma} if mma else {}))


def _stored(matrices: np.ndarray, transposed: int) -> np.ndarray:
    return np.ascontiguousarray(matrices.swapaxes(-1, -2) if transposed else matrices)


def _one_product(
    random: np.random.Generator,
    tile: int,
    transposed: tuple[int, int],
    dtype: Any,
    size: tuple[int, int, int],
    shifted: str = "",
    mma: int = 0,
) -> Launch:
    """One product; of the arrays that `shifted` names, rows do not begin on 16 bytes."""
    m, n, k = size
    a, b = _numbers(random, (m, k), dtype), _numbers(random, (k, n), dtype)
    arguments = {"a": _stored(a, transposed[0]), "b": _stored(b, transposed[1]), "c": Out(a @ b)}
    for name in shifted:
        arguments[name] = Shifted(arguments[name])
    edge = tile_edge(tile, dtype)
    return _maker(tile, transposed, mma)(
        f"matmul<{C_TYPES[dtype]}>",
        _tiles(m, n, edge),
        *arguments.values(),
        m,
        n,
        k,
        1,
        1,
        0,
        0,
        0,
        0,
        1,
        0,
        0,
        1,
        0,
        label=f"{size} {shifted}",
    )


def _not_aligned(
    random: np.random.Generator, tile: int, transposed: tuple[int, int], dtype: Any, mma: int = 0
) -> Iterator[Launch]:
    for name in "abc":
        size = (tile + 4, tile + 8, 20)
        yield _one_product(random, tile, transposed, dtype, size, name, mma)


def _many_products(
    random: np.random.Generator, tile: int, transposed: tuple[int, int], dtype: Any, mma: int = 0
) -> Launch:
    """2 x 3 products of 2 terms each in 4 blocks, b the same for all outer ones; added to c."""
    m, n, k = 5, 6, 20
    outer, inner, sums = 2, 3, 2
    a = _numbers(random, (outer, inner, sums, m, k), dtype)
    b = _numbers(random, (inner, sums, k, n), dtype)
    before = _numbers(random, (outer, inner, m, n), dtype)
    c = Updated(before, before + np.einsum("oismk,iskn->oimn", a, b).astype(dtype))
    return _maker(tile, transposed, mma)(
        f"matmul<{C_TYPES[dtype]}>",
        (1, 4),
        _stored(a, transposed[0]),
        _stored(b, transposed[1]),
        c,
        m,
        n,
        k,
        outer,
        inner,
        inner * sums * m * k,
        sums * m * k,
        0,
        sums * k * n,
        sums,
        m * k,
        k * n,
        1,
        1,
        label="2x3 products",
    )


def _apart(random: np.random.Generator, tile: int, mma: int = 0) -> Launch:
    """2 terms whose rows are whole fours; those of the second do not begin on 16 bytes."""
    m, n, k = 8, 12, 16
    a, b = _numbers(random, (2, m * k + 1), F4), _numbers(random, (2, k * n + 2), F4)
    first, second = (a[s, : m * k].reshape(m, k) @ b[s, : k * n].reshape(k, n) for s in (0, 1))
    return _maker(tile, (0, 0), mma)(
        "matmul<float>",
        1,
        a,
        b,
        Out(first + second),
        m,
        n,
        k,
        1,
        1,
        0,
        0,
        0,
        0,
        2,
        m * k + 1,
        k * n + 2,
        1,
        0,
        label="terms apart",
    )


def _nothing(tile: int, mma: int = 0) -> Launch:
    """No terms: the factors have no elements, and sums are 0."""
    m, n, k = 5, 6, 20
    a, b, c = np.empty(0, F4), np.empty(0, F4), Out(np.zeros((m, n), F4))
    return _maker(tile, (0, 0), mma)(
        "matmul<float>", 1, a, b, c, m, n, k, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, label="no terms"
    )


def _linear(random: np.random.Generator) -> Iterator[Launch]:
    for tile, sizes in SIZES.items():
        launch = Maker("linear.cu", {"GEMM_TILE": tile})
        for r, o, i in sizes:
            x, w, b = (_numbers(random, shape, F4) for shape in ((r, i), (o, i), (o,)))
            yield launch(
                "linear_forward<float>",
                _tiles(r, o, tile),
                x,
                w,
                b,
                Out(x @ w.T + b),
                r,
                o,
                i,
                1,
                label=f"{(r, o, i)}",
            )
    launch = Maker("linear.cu")
    for rows, columns, per_chunk in ((1, 1, 1), (8, 32, 8), (45, 40, 20), (33, 70, 33)):
        x = _numbers(random, (rows, columns), F4)
        sums = np.add.reduceat(x, range(0, rows, per_chunk), axis=0)
        yield launch(
            "column_sums<float>",
            (blocks(columns, 32), len(sums)),
            x,
            Out(sums),
            rows,
            columns,
            per_chunk,
            label=f"{(rows, columns)}",
        )
    r, o, i = SIZES[16][2]
    x, w, b = (_numbers(random, shape, F4) for shape in ((r, i), (o, i), (o,)))
    x[0, 0] = np.nan
    launch = Maker("linear.cu", {"GEMM_TILE": 16, "RELU": 1})
    yield launch(
        "linear_forward<float>",
        _tiles(r, o, 16),
        x,
        w,
        b,
        Out(np.maximum(x @ w.T + b, 0)),
        r,
        o,
        i,
        1,
        label="relu",
    )
    yield from _linear_chunks(random)


def _linear_chunks(random: np.random.Generator) -> Iterator[Launch]:
    """40 numbers in chunks, the first with the bias; the last may be shorter, or empty."""
    r, o, i = 5, 6, 40
    for tile, mma in ((16, 0), (64, 0), (128, 0), (128, TF32)):
        x, w, b = (_numbers(random, shape, F4) for shape in ((r, i), (o, i), (o,)))
        for chunks in (2, 5):
            width = blocks(blocks(i, STEP), chunks) * STEP
            y = np.stack(
                [
                    x[:, at : at + width] @ w[:, at : at + width].T
                    for at in range(0, chunks * width, width)
                ]
            )
            y[0] += b
            macros = {"GEMM_TILE": tile} | ({"GEMM_MMA": mma} if mma else {})
            yield Maker("linear.cu", macros)(
                "linear_forward<float>",
                (1, chunks),
                x,
                w,
                b,
                Out(y),
                r,
                o,
                i,
                chunks,
                label=f"{chunks} chunks",
            )


def _chunks(random: np.random.Generator) -> Iterator[Launch]:
    """2 terms of 20 numbers, in chunks of which the last may be shorter, or empty."""
    m, n, k, sums = 5, 6, 20, 2
    for tile, mma in ((16, 0), (64, 0), (128, 0), (128, TF32)):
        a, b = _numbers(random, (m, sums, k), F4), _numbers(random, (sums, k, n), F4)
        for chunks in (3, 4):
            terms = [(s, k0) for s in range(sums) for k0 in range(0, k, STEP)]
            each = blocks(len(terms), chunks)
            c = np.zeros((chunks, m, n), F4)
            for at, (s, k0) in enumerate(terms):
                c[at // each] += a[:, s, k0 : k0 + STEP] @ b[s, k0 : k0 + STEP]
            yield _maker(tile, (0, 0), mma)(
                "matmul<float>",
                (1, chunks),
                np.ascontiguousarray(a.swapaxes(0, 1)),
                b,
                Out(c),
                m,
                n,
                k,
                1,
                1,
                0,
                0,
                0,
                0,
                sums,
                m * k,
                k * n,
                chunks,
                0,
                label=f"{chunks} chunks",
            )


def _conv2d(random: np.random.Generator) -> Iterator[Launch]:
    for tile in (16, 64):
        sizes = SIZES[tile]
        launch = Maker("conv2d.cu", {"GEMM_TILE": tile})
        for n, g in ((1, 1), (2, 3)):
            o, p, k = sizes[2]  # edges on all sides
            w, cols, b = (
                _numbers(random, shape, F4) for shape in ((g, o, k), (n, g, k, p), (g * o,))
            )
            y = w @ cols + b.reshape(g, o, 1)
            yield launch(
                "conv2d_forward<float>",
                (_tiles(o, p, tile), n * g),
                w,
                cols,
                b,
                Out(y),
                n,
                g,
                o,
                p,
                k,
                label=f"N={n} G={g}",
            )
    launch = Maker("conv2d.cu")
    for n, o, p, per_chunk in ((1, 1, 1, 1), (1, 2, 256, 1), (5, 3, 200, 2)):
        gy = _numbers(random, (n, o, p), F4)
        sums = np.add.reduceat(gy.sum(2), range(0, n, per_chunk), axis=0)
        yield launch(
            "conv2d_bias_gradient<float>",
            (o, len(sums)),
            gy,
            Out(sums),
            n,
            o,
            p,
            per_chunk,
            label=f"{(n, o, p)}",
        )


FAMILIES = {"matmul.cu": _matmul, "linear.cu": _linear, "conv2d.cu": _conv2d}
