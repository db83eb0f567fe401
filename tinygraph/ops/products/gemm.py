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
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from tinygraph.base import frozen
from tinygraph.base.precision import TENSOR_CORE_NUMBERS, get_float32_matmul_precision
from tinygraph.cuda import BoundLaunch, InOut, blocks, op_kernel
from tinygraph.engine import Array, Memory, Shape
from tinygraph.ops.common import THREADS, ChunkedLaunch, remembered
from tinygraph.ops.common.strided import merged

Layout = Literal["nn", "nt", "tn"]

MOST_BLOCKS = 65535  # on the second axis of a grid
STEP = 16  # numbers of a sum that a block takes at a time
SHORTEST_SUM = 1024  # no chunk of a sum is shorter
ENOUGH_BLOCKS = 256  # and no sum is cut where this many blocks work without it
# Halves do not pay for the pass that adds them up: on an H100 a convolution of 128 blocks took 1.3
# times as long in two chunks, one of 32 blocks half as long in eight.
FEWEST_CHUNKS = 3
MOST_CHUNKS = 64
MULTIPROCESSORS = 100  # of a large GPU, about


class Axis(NamedTuple):
    """An axis beside those of the matrices, with the steps that the factors take along it."""

    size: int
    a: int  # in elements; 0 where a repeats
    b: int


STEPS = {16: "gemm_shared_tile", 64: "gemm_register_tile", 128: "gemm_pipelined"}


class GemmChoice(NamedTuple):
    """How a product is computed: a step of the ladder in gemm.cuh, and the chunks of the sum."""

    tile: int
    number: int  # GEMM_MMA; 0 without tensor cores
    chunks: int

    @property
    def step(self) -> str:
        """The step's name, which is that of its function."""
        return "gemm_mma" if self.number else STEPS[self.tile]

    @property
    def macros(self) -> dict[str, int]:
        """The macros that choose the step."""
        return {"GEMM_TILE": self.tile} | ({"GEMM_MMA": self.number} if self.number else {})


def choose_gemm(
    m: int, n: int, k: int, dtype: Any, products: int = 1, terms: int = 1, cut: bool = True
) -> GemmChoice:
    """How (M, N) products are computed, by shape, number, dtype and precision alone.

    It is gemm_shared_tile where one tile of 16 holds a product: on the emulator a tile of 64 takes
    less than twice as long as one of 16, and holds 16 times as much.  It is gemm_pipelined where
    tiles of 128 give every multiprocessor of a large GPU one, and gemm_register_tile between.
    gemm_mma is taken where a lower precision of float32 is chosen.  A sum of `terms` times k
    numbers is in chunks where `cut` allows it.  On an H100 each was the fastest where it is taken,
    of 512 to 4096 rows: docs/benchmarks, `variants`.

    >>> choose_gemm(10, 16, 5, np.float32), choose_gemm(2048, 2048, 9, np.float32)
    (GemmChoice(tile=16, number=0, chunks=1), GemmChoice(tile=128, number=0, chunks=1))
    >>> choose_gemm(40, 10, 60_000, np.float32), choose_gemm(40, 10, 60_000, np.float32).step
    (GemmChoice(tile=64, number=0, chunks=58), 'gemm_register_tile')
    """
    number = TENSOR_CORE_NUMBERS[get_float32_matmul_precision()] if dtype == np.float32 else 0
    edge = tile_edge(128, dtype)
    large = blocks(m, edge) * blocks(n, edge) * products >= MULTIPROCESSORS
    tile = tile_for(m, n)
    if tile == 16:
        number = 0
    elif number or (large and dtype in (np.float32, np.float64)):
        tile = 128
    chunks = 1
    if cut:
        busy = tile_grid(tile, m, n, 1, dtype)[0] * products
        chunks = chunks_of_sum(terms, k, busy, SHORTEST_SUM)
    return GemmChoice(tile, number, chunks)


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
    cut, precision = mem is not None, get_float32_matmul_precision()
    product = _product(layout, m, n, k, c.dtype, tuple(batch), tuple(sums), cut, precision)
    if not product.launches and not product.repeats:
        product.first.write(mem, c, a, b)
        return
    flat_a, flat_b, flat_c = a.reshape(-1), b.reshape(-1), c.reshape(-1)
    for part, (a_start, b_start) in enumerate(_starts(product.launches)):
        target = flat_c[part * product.size : (part + 1) * product.size]
        for term, (a_term, b_term) in enumerate(_starts(product.repeats)):
            factors = flat_a[a_start + a_term :], flat_b[b_start + b_term :]
            if term:
                product.more(*factors, InOut(target))
            else:
                product.first.write(mem, target, *factors)


@frozen
class _Product:
    """What `gemm` launches for one kind of products.

    Attributes
    ----------
    first, more : ChunkedLaunch, BoundLaunch
        Writes a part of c, and adds to one.
    launches, repeats : tuple of Axis
        Axes of c that the host walks over, a launch for each part; and those of the sum, a launch
        for each term.
    size : int
        Elements of a part of c.
    """

    first: ChunkedLaunch
    more: BoundLaunch
    launches: tuple[Axis, ...]
    repeats: tuple[Axis, ...]
    size: int


@remembered
def _product(
    layout: Layout,
    m: int,
    n: int,
    k: int,
    dtype: Any,
    batch: tuple[Axis, ...],
    sums: tuple[Axis, ...],
    cut: bool,
    precision: str,
) -> _Product:
    """The launches of a product; `precision` is what choose_gemm finds set."""
    kept, summed = merged(batch), merged(sums)
    if any(axis.size == 0 for axis in summed):
        summed = (Axis(0, 0, 0),)
    launches, inmost = kept[:-2], kept[-2:]
    outer, inner = [Axis(1, 0, 0)] * (2 - len(inmost)) + list(inmost)
    repeats, last = summed[:-1], (summed or (Axis(1, 0, 0),))[-1]
    products = outer.size * inner.size
    one_launch = not launches and not repeats
    choice = choose_gemm(m, n, k, dtype, products, last.size, cut=cut and one_launch)
    kernel = op_kernel(
        "matmul",
        "matmul",
        dtype,
        **choice.macros,
        TRANSPOSE_A=int(layout == "tn"),
        TRANSPOSE_B=int(layout == "nt"),
    )
    both = zip(outer, inner, strict=True)  # sizes, steps of a, steps of b
    grid = tile_grid(choice.tile, m, n, choice.chunks * products, dtype)
    numbers = (m, n, k, *itertools.chain(*both), *last, choice.chunks)
    first, more = [kernel.bind(grid, THREADS, *numbers, adds) for adds in (0, 1)]
    first_in_chunks = ChunkedLaunch(first, choice.chunks)
    return _Product(first_in_chunks, more, launches, repeats, products * m * n)


def chunks_of_sum(terms: int, k: int, busy: int, shortest: int) -> int:
    """Into how many chunks a sum over terms and k is cut, where `busy` blocks work without it.

    It depends on the shapes alone: the bits are the same in every run.  No chunk is empty.

    >>> chunks_of_sum(1, 60_000, 4, SHORTEST_SUM), chunks_of_sum(1, 60_000, 256, SHORTEST_SUM)
    (58, 1)
    """
    steps = terms * blocks(k, STEP)
    most = min(MOST_CHUNKS, terms * k // shortest, ENOUGH_BLOCKS // max(busy, 1))
    return blocks(steps, blocks(steps, most)) if most >= FEWEST_CHUNKS else 1


def _starts(axes: Sequence[Axis]) -> Iterable[tuple[int, int]]:
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
