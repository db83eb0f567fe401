"""What the kernels of reductions share: axes merged, and threads dealt out to the sets that meet.

set      the elements that meet in one output: all combinations of the reduced axes
group    1, 32 or 256 threads that walk over a set together; axes.cuh says which and why
slices   how many groups share a set: a thread never takes more than 32 elements

x.shape  ->  (kept0, reduced0, kept1, reduced1, kept2)       axes of size 1 left out

(8, 10) over axis 0               (1, 1, 1, 8, 10)
(8, 3, 5, 5) over (0, 2, 3)       (1, 8, 3, 25, 1)
(8, 10, 5, 5) over axis 1         (8, 1, 1, 10, 25)
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from tinygraph.cuda import BoundLaunch, Kernel, blocks
from tinygraph.engine import Array, Memory, Shape
from tinygraph.ops.common.launch import THREADS, on_elements, remembered

WARP = 32
MOST_TERMS = 32  # of a set, for one thread


def as_int64(mem: Memory, x: Array) -> Array:
    """Integers or bools as kernels take them; those of uint64 keep their bits."""
    if x.dtype.itemsize == 8:
        return x.view(np.int64)
    wide = mem.empty(x.shape, np.int64)
    wide[...] = x
    return wide


class Sets(NamedTuple):
    """An array of five axes, of which the second and fourth are reduced, and who walks over it."""

    kept0: int
    reduced0: int
    kept1: int
    reduced1: int
    kept2: int
    slices: int
    group: int

    @staticmethod
    def of(kept0: int, reduced0: int, kept1: int, reduced1: int, kept2: int) -> Sets:
        count = reduced0 * reduced1
        if not count:  # of nothing; the kernels divide by reduced1
            kept0, reduced0, kept1, reduced1, kept2 = kept0 * kept1 * kept2, 0, 1, 1, 1
        group = 1
        if kept2 == 1 and count > MOST_TERMS:
            group = WARP if count <= WARP * MOST_TERMS else THREADS
        slices = max(blocks(count, group * MOST_TERMS), 1)
        return Sets(kept0, reduced0, kept1, reduced1, kept2, slices, group)

    @property
    def outputs(self) -> int:
        return self.kept0 * self.kept1 * self.kept2

    @property
    def terms(self) -> int:
        """The number of elements in a set."""
        return self.reduced0 * self.reduced1

    def parts(self) -> Sets:
        """The sets of the next stage: the results of all slices, an array (outputs, slices)."""
        return Sets.of(self.outputs, 1, 1, self.slices, 1)

    def launch(self, kernel: Kernel, *arguments: Any) -> None:
        """One group of threads for each slice of each set; nothing for no outputs."""
        launch = _over(kernel, self)
        if launch:
            launch(*arguments)

    def launch_on_elements(self, kernel: Kernel, *arguments: Any) -> None:
        """The same, for a kernel that writes an array of all elements: nothing for none."""
        if self.terms:
            self.launch(kernel, *arguments)


@remembered
def _over(kernel: Kernel, sets: Sets) -> BoundLaunch | None:
    threads = sets.outputs * sets.slices * sets.group
    return on_elements(kernel, threads, *sets) if threads else None


@remembered
def sets_of(shape: Shape, axes: tuple[int, ...]) -> Sets:
    """The sets of an array that has been `arranged`; `axes` are those that are reduced.

    >>> sets_of((8, 3, 5, 5), (0, 2, 3))
    Sets(kept0=1, reduced0=8, kept1=3, reduced1=25, kept2=1, slices=1, group=32)
    """
    sizes = _merged(shape, axes)
    if len(sizes) == 1:
        return Sets.of(1, 1, 1, 1, sizes[0])  # every set is one element
    if len(sizes) == 3:
        return Sets.of(sizes[0], 1, 1, sizes[1], sizes[2])
    if len(sizes) == 5:
        return Sets.of(*sizes)
    return Sets.of(math.prod(sizes[::2]), 1, 1, math.prod(sizes[1::2]), 1)


def _merged(shape: Shape, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes that are kept and reduced by turns; the first and the last of them are kept."""
    kinds = [(a in axes, n) for a, n in enumerate(shape) if n != 1]
    runs = [(kind, math.prod([n for _, n in run])) for kind, run in groupby(kinds, lambda k: k[0])]
    before = (1,) if not runs or runs[0][0] else ()
    after = (1,) if runs and runs[-1][0] else ()
    return (*before, *[size for _, size in runs], *after)


def kept_then_reduced(ndim: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    """All axes, with the reduced ones moved to the end."""
    return (*[a for a in range(ndim) if a not in axes], *axes)


def moved_back(x: Array, shape: Shape, order: tuple[int, ...]) -> Array:
    """The elements of `shape`, which x has with the axes in that order: a view."""
    back = sorted(range(len(order)), key=order.__getitem__)  # the inverse permutation
    return x.reshape([shape[a] for a in order]).transpose(back)


@remembered
def _order(shape: Shape, axes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The axes with the reduced ones last, where they change too often for a kernel."""
    return None if len(_merged(shape, axes)) <= 5 else kept_then_reduced(len(shape), axes)


def arranged(mem: Memory, x: Array, axes: tuple[int, ...]) -> Array:
    """x as the kernels take it: itself, or a copy with the reduced axes last."""
    order = _order(x.shape, axes)
    if order is None:
        return x
    copy = mem.empty(tuple([x.shape[a] for a in order]), x.dtype)
    copy[...] = x.transpose(order)
    return copy


def restored(x: Array, shape: Shape, axes: tuple[int, ...]) -> Array:
    """The inverse of `arranged`, for an array of the elements of `shape`: a view."""
    order = _order(shape, axes)
    return x.reshape(shape) if order is None else moved_back(x, shape, order)
