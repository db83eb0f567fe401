"""How a product of implicit GEMM is launched: tile, chunks and macros, by shapes alone.

A block of conv2d_implicit.cu computes 32, 64 or 128 rows (filters, or channels) of 128 columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygraph.base import frozen
from tinygraph.base.precision import TENSOR_CORE_NUMBERS
from tinygraph.cuda import blocks, op_kernel
from tinygraph.ops.common import THREADS, ChunkedLaunch
from tinygraph.ops.products.gemm import STEP, chunks_of_sum

# Rows of a tile, and what part of the instructions of its main loop are multiply-adds (on sm_90).
TILES = {32: 0.57, 64: 0.71, 128: 0.82}
DOUBLE_TILES = {32: 0.53, 64: 0.57}  # sums of 128 rows would not fit in registers
SHORTEST_SUM = 8 * STEP  # no chunk of a sum is shorter: each writes a part of the result


@frozen
class ConvolutionChoice:
    """How a product is computed: macros of the kernel, and the chunks of the sum."""

    tile: int  # rows
    table: bool  # whether places of elements stand in a table
    number: int  # GEMM_MMA; 0 without tensor cores
    chunks: int

    @property
    def macros(self) -> dict[str, int]:
        number = {"GEMM_MMA": self.number} if self.number else {}
        return {"TILE_ROWS": self.tile, "TABLE": int(self.table)} | number


@frozen
class Sum:
    """The product of one group: rows, columns, and a sum over `terms` times `k` numbers."""

    rows: int
    columns: int
    terms: int
    k: int


def choose_convolution(
    size: Sum, groups: int, dtype: Any, precision: str, naive: bool = False, cut: bool = True
) -> ConvolutionChoice:
    """How the products of all groups are computed, by shapes, dtype and precision alone.

    Of the tiles that one is taken which issues least for the rows that there are; the naive step
    has one tile, and no table, and tensor cores have one tile.  A sum is cut into chunks where
    blocks are few (`cut`).  On an H100 that tile was the fastest of each pass of four layers, or
    within 2 % of it: docs/benchmarks, `variants`.

    >>> choose_convolution(Sum(32, 10**6, 1, 288), 1, np.float32, "highest")
    ConvolutionChoice(tile=32, table=True, number=0, chunks=1)
    >>> choose_convolution(Sum(130, 784, 1, 1152), 1, np.float32, "highest")
    ConvolutionChoice(tile=64, table=True, number=0, chunks=9)
    """
    number = TENSOR_CORE_NUMBERS[precision] if dtype == np.float32 else 0
    tiles = TILES if np.dtype(dtype).itemsize == 4 else DOUBLE_TILES
    tile = max(tiles)
    if not (naive or number):
        tile = min(tiles, key=lambda rows: blocks(size.rows, rows) * rows / tiles[rows])
    busy = tiles_of(tile, size, dtype) * groups
    chunks = chunks_of_sum(size.terms, size.k, busy, SHORTEST_SUM) if cut else 1
    return ConvolutionChoice(tile, not naive or bool(number), number, chunks)


def tiles_of(tile: int, size: Sum, dtype: Any) -> int:
    """Blocks for one product; a tile of 64 rows has 64 columns for double, all others have 128."""
    width = 64 if tile == 64 and np.dtype(dtype).itemsize == 8 else 128
    return blocks(size.rows, tile) * blocks(size.columns, width)


def convolution_launch(
    name: str,
    choice: ConvolutionChoice,
    size: Sum,
    groups: int,
    dtype: Any,
    numbers: Sequence[int],
) -> ChunkedLaunch:
    """The launch of conv2d_implicit_NAME for the products of all groups."""
    kernel = op_kernel("conv2d_implicit", f"conv2d_implicit_{name}", dtype, **choice.macros)
    grid = tiles_of(choice.tile, size, dtype), groups * choice.chunks
    return ChunkedLaunch(kernel.bind(grid, THREADS, *numbers, choice.chunks), choice.chunks)
