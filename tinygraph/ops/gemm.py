"""Launching a GEMM: which kernel, grid and block.  Shared by matmul, linear and conv2d.

    M K N      rows of the left factor, summed axis, columns of the right factor

    c[i] = sum over s of op(a[i, s]) @ op(b[i, s])        i batch axes, s axes that are summed over

The layout says how the factors are stored: "nn" a (M, K), b (K, N); "nt" b is (N, K); "tn" a is
(K, M).  Nothing is transposed or repeated in memory: an axis along which a factor repeats has
stride 0.  The kernels are in cuda/gemm.cuh.

Source: Volkov, Demmel, "Benchmarking GPUs to tune dense linear algebra", SC 2008.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Literal, NamedTuple

from tinygraph.cuda import InOut, Out, blocks, op_kernel
from tinygraph.memory import Memory
from tinygraph.ops.launch import THREADS
from tinygraph.shapes import Array, Shape

Layout = Literal["nn", "nt", "tn"]

MOST_BLOCKS = 65535  # on the second axis of a grid
ROWS_PER_CHUNK = 1024  # column_sums: one block sums so many rows
SHORTEST_SUM = 1024  # gemm_in_chunks: shorter sums are not cut
ENOUGH_BLOCKS = 256  # and no sum is cut where this many blocks work without it
MOST_CHUNKS = 64


class Axis(NamedTuple):
    """An axis beside those of the matrices, with the steps that the factors take along it."""

    size: int
    a: int  # in elements; 0 where a repeats
    b: int


def tile_for(m: int, n: int) -> int:
    """The kernel for an (M, N) product: 16 where one such tile holds it, else 64.

    On the emulator a tile of 64 takes less than twice as long as one of 16, and holds 16 times as
    much: it wins as soon as a second tile of 16 would be needed.  Not measured on a GPU.
    """
    return 64 if max(m, n) > 16 else 16


def tile_grid(tile: int, m: int, n: int, products: int) -> tuple[int, int]:
    """Tiles of one product, products; a block takes several where the second axis is too short."""
    return blocks(m, tile) * blocks(n, tile), min(products, MOST_BLOCKS)


def gemm(
    layout: Layout, a: Array, b: Array, c: Array, m: int, n: int, k: int,
    batch: Iterable[Axis] = (), sums: Iterable[Axis] = (),
) -> None:  # fmt: skip
    """Write the products of contiguous factors into c.

    Parameters
    ----------
    layout : "nn", "nt" or "tn"
    a, b : array
        Contiguous, of one dtype.
    c : array
        Contiguous: the batch axes, then (m, n).  Zeros where nothing is summed.
    m, n, k : int
    batch, sums : Axis for each batch axis and each axis that is summed over, outermost first

    Notes
    -----
    A launch knows two batch axes and one summed axis, which is all that most shapes have once
    neighbours are merged.  More of them are walked here: one launch each, in a fixed order.
    """
    if not c.size:
        return
    kept, summed = _merged(batch), _merged(sums)
    if any(axis.size == 0 for axis in summed):
        summed = [Axis(0, 0, 0)]
    launches, (outer, inner) = kept[:-2], [Axis(1, 0, 0)] * (2 - len(kept[-2:])) + kept[-2:]
    repeats, last = summed[:-1], (summed or [Axis(1, 0, 0)])[-1]
    size = outer.size * inner.size * m * n
    tile = tile_for(m, n)
    kernel = op_kernel(
        "matmul", "matmul", c.dtype, GEMM_TILE=tile,
        TRANSPOSE_A=int(layout == "tn"), TRANSPOSE_B=int(layout == "nt"),
    )  # fmt: skip
    grid = tile_grid(tile, m, n, outer.size * inner.size)
    a, b, c = a.reshape(-1), b.reshape(-1), c.reshape(-1)
    for part, (a_start, b_start) in enumerate(_starts(launches)):
        target = c[part * size : (part + 1) * size]
        for term, (a_term, b_term) in enumerate(_starts(repeats)):
            kernel(
                grid, THREADS, a[a_start + a_term :], b[b_start + b_term :],
                InOut(target) if term else Out(target), m, n, k,
                outer.size, inner.size, outer.a, inner.a, outer.b, inner.b,
                last.size, last.a, last.b, 1, int(term > 0),
            )  # fmt: skip


def _merged(axes: Iterable[Axis]) -> list[Axis]:
    """The same walk with fewer axes: size 1 dropped, neighbours joined where the steps compose.

    >>> _merged([Axis(5, 12, 0), Axis(1, 9, 9), Axis(3, 4, 0)])
    [Axis(size=15, a=4, b=0)]
    """
    merged: list[Axis] = []
    for axis in axes:
        if axis.size == 1:
            continue
        before = merged[-1] if merged else None
        if before and before.a == axis.a * axis.size and before.b == axis.b * axis.size:
            merged[-1] = Axis(before.size * axis.size, axis.a, axis.b)
        else:
            merged.append(axis)
    return merged


def _starts(axes: list[Axis]) -> Iterable[tuple[int, int]]:
    """Where a and b begin at each index of the axes, the last index running fastest."""
    for index in itertools.product(*[range(axis.size) for axis in axes]):
        pairs = list(zip(index, axes, strict=True))
        yield sum(i * axis.a for i, axis in pairs), sum(i * axis.b for i, axis in pairs)


def broadcast_steps(shape: Shape, full: Shape, size: int) -> list[int]:
    """The step along each axis of `full` in a stack of matrices of `size` elements.

    >>> broadcast_steps((4, 1), (5, 4, 3), size=10)
    [0, 10, 0]
    """
    steps = [0] * len(full)
    for axis in range(1, len(shape) + 1):
        if shape[-axis] != 1:
            steps[-axis] = size * math.prod(shape[len(shape) - axis + 1 :])
    return steps


def gemm_in_chunks(
    mem: Memory, layout: Layout, a: Array, b: Array, c: Array, m: int, n: int, k: int,
    batch: Iterable[Axis] = (), total: Axis | None = None,
) -> None:  # fmt: skip
    """A product with a long sum and a small result, as the gradient of weights: several blocks
    share the sum.

    The sum runs over `total` and k.  It is cut along `total`, or along k where there is none, which
    the layout "tn" allows.  Each chunk becomes one product, and `column_sums` adds these up.  How
    the sum is cut depends on the shapes alone: the bits are the same in every run.
    """
    along_k = total is None
    whole = total or Axis(k, m, n)
    length = whole.size if total is None else whole.size * k
    batch = list(batch)
    tile = tile_for(m, n)
    busy = math.prod(axis.size for axis in batch) * blocks(m, tile) * blocks(n, tile)
    chunks = min(MOST_CHUNKS, length // SHORTEST_SUM, ENOUGH_BLOCKS // max(busy, 1), whole.size)
    per_chunk = blocks(whole.size, max(chunks, 1))
    full, rest = divmod(whole.size, max(per_chunk, 1))

    def launch(start: int, parts: int, size: int, target: Array) -> None:
        steps = [Axis(parts, per_chunk * whole.a, per_chunk * whole.b), *batch]
        depth, sums = (size, []) if along_k else (k, [Axis(size, whole.a, whole.b)])
        left, right = a.reshape(-1)[start * whole.a :], b.reshape(-1)[start * whole.b :]
        gemm(layout, left, right, target, m, n, depth, steps, sums)

    if full + (rest > 0) <= 1:
        launch(0, 1, whole.size, c)
        return
    partial = mem.empty((full + (rest > 0), c.size), c.dtype)
    launch(0, full, per_chunk, partial[:full])
    if rest:
        launch(full * per_chunk, 1, rest, partial[full:])
    column_sums(mem, partial, c.reshape(-1))


def column_sums(mem: Memory, x: Array, sums: Array) -> None:
    """Write the sums over axis 0 of x (rows, columns) into sums (columns).

    A long axis is cut into chunks, whose sums are added by a second launch: several blocks work on
    it, and short sums round less.  The cut depends on the shape alone.
    """
    rows, columns = x.shape
    if not columns:
        return
    rows_per_chunk = max(ROWS_PER_CHUNK, blocks(rows, MOST_BLOCKS))
    chunks = max(blocks(rows, rows_per_chunk), 1)
    partial = mem.empty((chunks, columns), x.dtype) if chunks > 1 else sums
    kernel = op_kernel("linear", "column_sums", x.dtype)
    kernel((blocks(columns, 32), chunks), THREADS, x, Out(partial), rows, columns, rows_per_chunk)
    if chunks > 1:
        column_sums(mem, partial, sums)
