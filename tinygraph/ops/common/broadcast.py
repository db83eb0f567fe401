"""How kernels take operands of several shapes and dtypes: the host's side of broadcast.cuh.

    merge        neighbouring axes along which every operand either has all elements or is repeated
                 are one axis: (N, C, H, W) with (C, 1, 1) has the axes N, C, H*W
    for_each_broadcast   one thread an element of the broadcast shape
    sum_broadcast        the gradient of an operand: terms of the broadcast shape, summed over the
                         axes along which it was repeated; two launches where there are few sums

A kernel takes at most six merged axes.  More than that needs operands of seven and more axes that
are repeated along every second one; these are written out whole first.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tinygraph.cuda import BoundLaunch, Kernel, blocks, op_kernel
from tinygraph.engine import Array, Memory, Shape
from tinygraph.engine.spec import broadcast_axes
from tinygraph.ops.common.launch import MOST_BLOCKS, THREADS, ChunkedLaunch, on_elements, remembered

MOST_AXES = 6  # the same number stands in broadcast.cuh
TERMS_OF_A_THREAD = 64  # from here on terms are cut into chunks, if blocks are too few


def rounded(value: float, dtype: np.dtype[Any]) -> float:
    """The number that an array of that float dtype would hold; infinity beyond its range.

    >>> rounded(1e300, np.dtype("float32")), rounded(0.5, np.dtype("float32"))
    (inf, 0.5)
    """
    with np.errstate(over="ignore"):
        return float(np.array(value).astype(dtype))


class Axes(NamedTuple):
    """Merged axes, the innermost first; bit a of an operand's mask: it has axis a."""

    sizes: tuple[int, ...]
    masks: tuple[int, ...]

    @property
    def arguments(self) -> tuple[int, ...]:
        """AXES_PARAMETERS of the kernels."""
        return (len(self.sizes), *self.sizes, *(1,) * (MOST_AXES - len(self.sizes)))


@remembered
def merge(out: Shape, *shapes: Shape) -> Axes:
    """The axes of operands of these shapes, which are broadcast to `out`.

    >>> merge((8, 3, 5, 5), (8, 3, 5, 5), (3, 1, 1))
    Axes(sizes=(25, 3, 8), masks=(7, 2))
    """
    sizes: list[int] = []
    patterns: list[tuple[bool, ...]] = []
    for back, size in enumerate(reversed(out), start=1):
        if size == 1:
            continue
        pattern = tuple([len(shape) >= back and shape[-back] != 1 for shape in shapes])
        if patterns and pattern == patterns[-1]:
            sizes[-1] *= size
        else:
            sizes.append(size)
            patterns.append(pattern)
    masks = [
        sum(1 << axis for axis, has in enumerate(column) if has)
        for column in zip(*patterns, strict=True)
    ]
    return Axes(tuple(sizes), tuple(masks) or (0,) * len(shapes))


def _whole(mem: Memory, x: Array, shape: Shape) -> Array:
    """The operand with every repeated element written out."""
    copies = mem.empty(shape, x.dtype)
    copies[...] = x
    return copies


@remembered
def _over(kernel: Kernel, out: Shape, *shapes: Shape) -> BoundLaunch | None:
    """The launch over `out` but for its arrays; None where there are too many axes."""
    axes = merge(out, *shapes)
    if len(axes.sizes) > MOST_AXES:
        return None
    size = math.prod(out)
    return on_elements(kernel, size, size, *axes.arguments, *axes.masks)


def for_each_broadcast(mem: Memory, kernel: Kernel, out: Array, *operands: Array) -> None:
    """Launch kernel(*operands, out, size, axes, masks); for no element, launch nothing."""
    if not out.size:
        return
    launch = _over(kernel, out.shape, *[x.shape for x in operands])
    if launch:
        launch(*operands, out)
    else:
        for_each_broadcast(mem, kernel, out, *[_whole(mem, x, out.shape) for x in operands])


# ---- the way back ---------------------------------------------------------------------------


class Tiling(NamedTuple):
    """How the terms of the sums are dealt out to threads: see Sums in broadcast.cuh."""

    lanes: int  # threads that share a sum
    spacing: int  # how far apart they are in the block
    chunks: int
    terms_of_a_chunk: int


@remembered
def tiling(outputs: int, terms: int, keeps_innermost: bool) -> Tiling:
    """How to deal out `terms` terms of each of `outputs` sums, one of both on the innermost axis.

    >>> tiling(1, 10**6, keeps_innermost=False)  # 256 threads share one sum, in 62 blocks
    Tiling(lanes=256, spacing=1, chunks=62, terms_of_a_chunk=16130)
    >>> tiling(10**6, 10, keeps_innermost=True)  # a thread for each sum
    Tiling(lanes=1, spacing=256, chunks=1, terms_of_a_chunk=10)
    """
    if keeps_innermost:
        # Neighbouring threads read neighbouring sums: 32 of them, and all 256 where that leaves
        # enough blocks.
        side_by_side = 32 if outputs < MOST_BLOCKS * THREADS else THREADS
        lanes = THREADS // min(_power_of_two(outputs), side_by_side)
    else:
        lanes = THREADS
    lanes = min(lanes, _power_of_two(terms))
    grid = blocks(outputs * lanes, THREADS)
    wanted = min(blocks(terms, lanes * TERMS_OF_A_THREAD), blocks(MOST_BLOCKS, grid))
    per_chunk = blocks(terms, wanted)
    return Tiling(
        lanes, THREADS // lanes if keeps_innermost else 1, blocks(terms, per_chunk), per_chunk
    )


def _power_of_two(n: int) -> int:
    """The smallest power of two that is not below n.

    >>> [_power_of_two(n) for n in (1, 2, 3, 8, 9)]
    [1, 2, 4, 8, 16]
    """
    return 1 << (n - 1).bit_length()


def sum_broadcast(
    mem: Memory, kernel: Kernel, shape: Shape, g: Array, *operands: Array | None
) -> Array:
    """The gradient of an operand of `shape`: terms of the shape of g, summed where it was repeated.

    The kernel computes the terms from g and the operands, which broadcast to g; None stands for one
    that it does not read.  It is launched as kernel(g, *operands, sums, tiling, axes, kept axes,
    masks of the operands).
    """
    if not (g.size and math.prod(shape)):  # no terms, or no sums: nothing is to be launched
        return mem.zeros(shape, g.dtype)
    used = [x for x in operands if x is not None]
    axes = merge(g.shape, shape, *[x.shape for x in used])
    if len(axes.sizes) > MOST_AXES:  # the terms one by one, then the sums
        wholes = [x if x is None else _whole(mem, x, g.shape) for x in operands]
        return sum_to(mem, sum_broadcast(mem, kernel, g.shape, g, *wholes), shape)
    kept, *left = axes.masks
    masks = kept, *[0 if x is None else left.pop(0) for x in operands]
    none, total = mem.empty((0,), g.dtype), mem.empty(shape, g.dtype)
    launch = _sums(kernel, total.size, g.size // total.size, axes, masks)
    launch.write(mem, total, g, *[none if x is None else x for x in operands])
    return total


def sum_to(mem: Memory, g: Array, shape: Shape) -> Array:
    """g summed over the axes along which an operand of `shape` was repeated; g itself for none."""
    if g.shape == shape:
        return g
    if not (g.size and math.prod(shape)):  # no terms, or no sums: nothing is to be launched
        return mem.zeros(shape, g.dtype)
    axes = merge(g.shape, shape)
    if len(axes.sizes) > MOST_AXES:  # one axis after the other
        axis = broadcast_axes(shape, g.shape)[0]
        one = (*g.shape[:axis], 1, *g.shape[axis + 1 :])
        g = sum_to(mem, g, one)
        return sum_to(mem, g.reshape(_without_ones_in_front(one, len(shape))), shape)
    kernel, total = op_kernel("expand", "expand_backward", g.dtype), mem.empty(shape, g.dtype)
    _sums(kernel, total.size, g.size // total.size, axes, axes.masks).write(mem, total, g)
    return total


def _without_ones_in_front(shape: Shape, ndim: int) -> Shape:
    """`shape` with axes of size 1 dropped in front, down to `ndim` axes."""
    front = 0
    while len(shape) - front > ndim and shape[front] == 1:
        front += 1
    return shape[front:]


@remembered
def _sums(
    kernel: Kernel, outputs: int, terms: int, axes: Axes, masks: tuple[int, ...]
) -> ChunkedLaunch:
    """The launch of sums; the masks are those of its axes and of the operands behind g."""
    tile = tiling(outputs, terms, keeps_innermost=bool(masks[0] & 1))
    grid = blocks(outputs, THREADS // tile.lanes), tile.chunks
    numbers = outputs, terms, tile.terms_of_a_chunk, tile.lanes, tile.spacing
    launch = kernel.bind(grid, THREADS, *numbers, *axes.arguments, *masks)
    return ChunkedLaunch(launch, tile.chunks)
