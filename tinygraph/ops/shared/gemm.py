"""Launching a GEMM: which kernel, grid and block.  Shared by matmul, linear and conv2d.

    M K N      rows of the left factor, summed axis, columns of the right factor

    c[i] = sum over s of op(a[i, s]) @ op(b[i, s])        i batch axes, s axes that are summed over

The layout says how the factors are stored: "nn" a (M, K), b (K, N); "nt" b is (N, K); "tn" a is
(K, M).  Nothing is transposed or repeated in memory: an axis along which a factor repeats has
stride 0.  The kernels are in gemm.cuh.

Source: Volkov, Demmel, "Benchmarking GPUs to tune dense linear algebra", SC 2008.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np

from tinygraph.cuda import InOut, Out, blocks, op_kernel
from tinygraph.cuda.tuning import choose
from tinygraph.memory import Memory
from tinygraph.ops.shared.launch import THREADS
from tinygraph.precision import TENSOR_CORE_NUMBERS, get_float32_matmul_precision
from tinygraph.shapes import Array, Shape

Layout = Literal["nn", "nt", "tn"]

MOST_BLOCKS = 65535  # on the second axis of a grid
ROWS_PER_CHUNK = 1024  # column_sums: one block sums so many rows
SHORTEST_SUM = 1024  # no chunk of a sum is shorter
ENOUGH_BLOCKS = 256  # and no sum is cut where this many blocks work without it
MOST_CHUNKS = 64
MULTIPROCESSORS = 100  # of a large GPU, about


class Axis(NamedTuple):
    """An axis beside those of the matrices, with the steps that the factors take along it."""

    size: int
    a: int  # in elements; 0 where a repeats
    b: int


def gemm_macros(m: int, n: int, dtype: Any, products: int = 1) -> dict[str, int]:
    """The macros of the kernel for (M, N) products, by their shape, number and dtype alone.

    GEMM_TILE is 16 where one such tile holds a product: on the emulator a tile of 64 takes less
    than twice as long as one of 16, and holds 16 times as much.  It is 128, the step with
    overlapped loads, where such tiles give every multiprocessor of a large GPU one, and 64 between.
    GEMM_MMA names tensor cores, where a lower precision of float32 is chosen.  Not measured on a
    GPU; cuda/tuning.py measures on the user's.

    >>> gemm_macros(10, 16, np.float32), gemm_macros(64, 10, np.float32)
    ({'GEMM_TILE': 16}, {'GEMM_TILE': 64})
    >>> gemm_macros(2048, 2048, np.float32)
    {'GEMM_TILE': 128}
    """
    number = TENSOR_CORE_NUMBERS[get_float32_matmul_precision()] if dtype == np.float32 else 0
    if max(m, n) <= 16:
        return {"GEMM_TILE": 16}
    if number:
        return {"GEMM_TILE": 128, "GEMM_MMA": number}
    edge = tile_edge(128, dtype)
    large = blocks(m, edge) * blocks(n, edge) * products >= MULTIPROCESSORS
    return {"GEMM_TILE": 128 if large and dtype in (np.float32, np.float64) else 64}


def tile_for(m: int, n: int) -> int:
    """The tile for an (M, N) product where the kernel knows only those of 16 and 64."""
    return 64 if max(m, n) > 16 else 16


def tile_edge(tile: int, dtype: Any) -> int:
    """Rows and columns of C that a block computes: GEMM_TILE=128 means 64 for double."""
    return 64 if tile == 128 and np.dtype(dtype).itemsize == 8 else tile


def tile_grid(tile: int, m: int, n: int, products: int, dtype: Any = np.float32) -> tuple[int, int]:
    """Tiles of one product, products; a block takes several where the second axis is too short."""
    edge = tile_edge(tile, dtype)
    return blocks(m, edge) * blocks(n, edge), min(products, MOST_BLOCKS)


def gemm(
    layout: Layout,
    a: Array,
    b: Array,
    c: Array,
    m: int,
    n: int,
    k: int,
    batch: Iterable[Axis] = (),
    sums: Iterable[Axis] = (),
    mem: Memory | None = None,
) -> None:
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
    mem : Memory, optional
        For partial sums: where c is small and the sum long, several blocks may share it then.

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
    products = outer.size * inner.size
    one_launch = mem is not None and not launches and not repeats
    problem = GemmProblem(
        "matmul",
        layout,
        m,
        n,
        k,
        products,
        last.size,
        c.dtype.name,
        get_float32_matmul_precision(),
        one_launch,
    )
    a, b, size = a.reshape(-1), b.reshape(-1), products * m * n

    def launch(choice: GemmChoice, c: Array) -> None:
        kernel = op_kernel(
            "matmul",
            "matmul",
            c.dtype,
            **choice.macros,
            TRANSPOSE_A=int(layout == "tn"),
            TRANSPOSE_B=int(layout == "nt"),
        )
        grid = tile_grid(choice.tile, m, n, choice.chunks * products, c.dtype)
        for part, (a_start, b_start) in enumerate(_starts(launches)):
            target = c[part * size : (part + 1) * size] if launches else c
            for term, (a_term, b_term) in enumerate(_starts(repeats)):
                kernel(
                    grid,
                    THREADS,
                    a[a_start + a_term :],
                    b[b_start + b_term :],
                    InOut(target) if term else Out(target),
                    m,
                    n,
                    k,
                    outer.size,
                    inner.size,
                    outer.a,
                    inner.a,
                    outer.b,
                    inner.b,
                    last.size,
                    last.a,
                    last.b,
                    choice.chunks,
                    int(term > 0),
                )

    run_gemm(problem, c, mem, launch)


class GemmProblem(NamedTuple):
    """All that a choice depends on, beside the GPU and the kernels; ready for JSON."""

    kernel: str  # the stem of the .cu file
    layout: str
    m: int
    n: int
    k: int
    products: int
    terms: int  # of the sum, k numbers each
    dtype: str
    precision: str
    one_launch: bool  # and memory for parts of a sum: then a sum may be cut


class GemmChoice(NamedTuple):
    """How a problem is computed: macros of the kernel, and the chunks of the sum."""

    tile: int
    number: int  # GEMM_MMA; 0 without tensor cores
    chunks: int

    @property
    def macros(self) -> dict[str, int]:
        return {"GEMM_TILE": self.tile} | ({"GEMM_MMA": self.number} if self.number else {})


def run_gemm(
    problem: GemmProblem, c: Array, mem: Memory | None, launch: Callable[[GemmChoice, Array], None]
) -> None:
    """Choose how to compute c, launch(choice, c, or its parts), and add up the parts."""

    def prepared(choice: GemmChoice) -> Callable[[], None]:
        if choice.chunks == 1 or mem is None:
            return lambda: launch(choice, c.reshape(-1))
        memory, parts = mem, mem.empty((choice.chunks, c.size), c.dtype)

        def run() -> None:
            launch(choice, parts.reshape(-1))
            column_sums(memory, parts, c.reshape(-1))

        return run

    prepared(_choice(problem, c, prepared))()


def _choice(
    problem: GemmProblem, c: Array, prepared: Callable[[GemmChoice], Callable[[], None]]
) -> GemmChoice:
    """By shape, or as it was measured on this GPU."""
    by_shape = choice_by_shape(problem)
    if isinstance(c, np.ndarray) or c.dtype.kind != "f" or not problem.one_launch:
        return by_shape
    choice = choose(
        problem._asdict(),
        by_shape._asdict(),
        lambda: [candidate._asdict() for candidate in candidates(problem)],
        lambda choice: prepared(GemmChoice(**choice)),
    )
    return GemmChoice(**choice)


def candidates(problem: GemmProblem) -> list[GemmChoice]:
    """The ways to compute a problem that may be the fastest, the one by shape first.

    All round the factors alike, so they differ by the rounding of sums alone: tensor cores are
    among them only where the precision has chosen them, and then alone.

    >>> problem = GemmProblem("matmul", "tn", 9, 9, 1024, 1, 1, "float32", "highest", True)
    >>> [(choice.tile, choice.chunks) for choice in candidates(problem)]
    [(16, 1), (16, 2), (16, 4), (64, 1), (64, 2), (64, 4)]
    """
    first = choice_by_shape(problem)
    found = [first]
    m, n, k, terms = problem.m, problem.n, problem.k, problem.terms
    for tile in (128,) if first.number else (16, 64, 128):
        if (tile == 16 and min(m, n) > 128) or (tile == 128 and max(m, n) <= 16):
            continue  # surely not the fastest
        busy = tile_grid(tile, m, n, 1, problem.dtype)[0] * problem.products
        steps = terms * blocks(k, sum_step(tile, first.number))
        chunks = 1
        while chunks == 1 or (
            chunks <= MOST_CHUNKS
            and terms * k // chunks >= SHORTEST_SUM // 4
            and busy * chunks <= 2 * ENOUGH_BLOCKS
        ):
            whole = blocks(steps, blocks(steps, chunks)) if chunks > 1 else 1  # none is empty
            choice = GemmChoice(tile, first.number, whole)
            found += [] if choice in found else [choice]
            chunks *= 2
    return found


def choice_by_shape(problem: GemmProblem) -> GemmChoice:
    """What is chosen where nothing was measured.

    >>> problem = GemmProblem("matmul", "tn", 40, 10, 60_000, 1, 1, "float32", "highest", True)
    >>> choice_by_shape(problem)
    GemmChoice(tile=64, number=0, chunks=58)
    """
    macros = gemm_macros(problem.m, problem.n, np.dtype(problem.dtype), problem.products)
    tile, number = macros["GEMM_TILE"], macros.get("GEMM_MMA", 0)
    chunks = 1
    if problem.one_launch:
        busy = tile_grid(tile, problem.m, problem.n, 1, problem.dtype)[0] * problem.products
        chunks = chunks_of_sum(problem.terms, problem.k, sum_step(tile, number), busy)
    return GemmChoice(tile, number, chunks)


def sum_step(tile: int, number: int) -> int:
    """How many numbers of the summed axis a kernel takes at a time."""
    return 8 if tile == 128 and not number else 16


def chunks_of_sum(terms: int, k: int, step: int, busy: int) -> int:
    """Into how many chunks a sum over terms and k is cut, where `busy` blocks work without it.

    It depends on the shapes alone: the bits are the same in every run.  No chunk is empty.

    >>> chunks_of_sum(1, 60_000, step=16, busy=4), chunks_of_sum(1, 60_000, step=16, busy=256)
    (58, 1)
    """
    steps = terms * blocks(k, step)
    most = min(MOST_CHUNKS, terms * k // SHORTEST_SUM, ENOUGH_BLOCKS // max(busy, 1))
    return blocks(steps, blocks(steps, most)) if most > 1 else 1


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
    mem: Memory,
    layout: Layout,
    a: Array,
    b: Array,
    c: Array,
    m: int,
    n: int,
    k: int,
    batch: Iterable[Axis] = (),
    total: Axis | None = None,
) -> None:
    """A product with a long sum, over k and `total`, and a small result, as the gradient of
    weights: several blocks share the sum, and `column_sums` adds up what they find."""
    gemm(layout, a, b, c, m, n, k, batch, [] if total is None else [total], mem)


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
