"""How kernels find elements that lie some step apart: the host's side of strided.cuh.

    y[i_2, i_1, i_0] = x[first + i_2 * step_2 + i_1 * step_1 + i_0 * step_0]

    merged    axes of size 1 dropped, and neighbours joined that are one axis in both arrays:
              the channels of images (N, C, H, W) from 0 to 2 are axes N and 2*H*W
    read      such elements of x as an array: a view where they lie side by side, else a copy
    write     an array to such elements of another

Elements are moved as words of their size, so that every dtype has a kernel.  A kernel takes at most
six merged axes; of more, the host walks over the outer ones, with a launch for each position.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tinygraph.cuda import InOut, Kernel, op_kernel
from tinygraph.engine import Array, Memory, Shape
from tinygraph.ops.common.broadcast import MOST_AXES
from tinygraph.ops.common.launch import for_each


class Axis(NamedTuple):
    """One axis: its size, and how many elements apart neighbours lie in the strided array."""

    size: int
    step: int


class Strided(NamedTuple):
    """Elements of an array, in the row-major order of the axes; the outermost axis comes first."""

    first: int
    axes: tuple[Axis, ...]

    @property
    def size(self) -> int:
        return math.prod(axis.size for axis in self.axes)

    @property
    def side_by_side(self) -> bool:
        """Whether the elements are one stretch of the array, in its order."""
        return not self.axes or (len(self.axes) == 1 and self.axes[0].step == 1)

    def pieces(self) -> Iterator[Strided]:
        """These elements in order, cut into as few parts as have no more axes than a kernel."""
        outer, inner = self.axes[:-MOST_AXES], self.axes[-MOST_AXES:]
        for index in product(*[range(axis.size) for axis in outer]):
            moved = sum([k * axis.step for k, axis in zip(index, outer, strict=True)])
            yield Strided(self.first + moved, inner)


def merged(axes: Iterable[Any]) -> tuple[Any, ...]:
    """The same elements in the same order, with as few axes as there can be.

    An axis is a size with its steps; of a walk through two arrays it has one in each.

    >>> merged([Axis(5, 24), Axis(1, 7), Axis(2, 4), Axis(4, 1)])
    (Axis(size=5, step=24), Axis(size=8, step=1))
    """
    out: list[Any] = []
    for axis in axes:
        size, *steps = axis
        if out and out[-1][1:] == tuple([size * step for step in steps]):
            out[-1] = axis._replace(size=out[-1].size * size)
        elif size != 1:
            out.append(axis)
    return tuple(out)


def steps_of(shape: Shape) -> Shape:
    """How many elements apart neighbours along each axis of a contiguous array lie.

    >>> steps_of((2, 3, 4))
    (12, 4, 1)
    """
    return tuple([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])


def axis_arguments(axes: tuple[Axis, ...]) -> tuple[int, ...]:
    """STRIDED_PARAMETERS of a kernel: the innermost axis comes first there."""
    rest = MOST_AXES - len(axes)
    sizes = [axis.size for axis in reversed(axes)]
    steps = [axis.step for axis in reversed(axes)]
    return (len(axes), *sizes, *[1] * rest, *steps, *[0] * rest)


def words(array: Array) -> Array:
    """A contiguous array as a flat one of unsigned integers of the same size: a view."""
    return array.reshape(-1).view(f"u{array.dtype.itemsize}")


def word_kernel(stem: str, function: str, dtype: np.dtype[Any]) -> Kernel:
    """The instance of a kernel that moves elements of that dtype as `words`.

    >>> word_kernel("strided", "strided_read", np.dtype("float32")).name
    'strided_read<unsigned int>'
    """
    return op_kernel(stem, function, np.dtype(f"u{dtype.itemsize}"))


def as_word(value: float, dtype: np.dtype[Any]) -> int:
    """The bits of a number in that dtype.

    >>> hex(as_word(1.0, np.dtype("float32")))
    '0x3f800000'
    """
    return int(np.full((), value, dtype).view(f"u{dtype.itemsize}"))


def read(mem: Memory, x: Array, elements: Strided, shape: Shape) -> Array:
    """Those elements of a contiguous x, as a contiguous array of that shape."""
    size = math.prod(shape)
    if elements.side_by_side or not size:
        start = elements.first if size else 0
        return x.reshape(-1)[start : start + size].reshape(shape)
    y = mem.empty(shape, x.dtype)
    kernel, source, target = word_kernel("strided", "strided_read", x.dtype), words(x), words(y)
    for k, piece in enumerate(elements.pieces()):
        n = piece.size
        part = target if n == size else target[k * n : (k + 1) * n]
        for_each(kernel, n, source, part, n, piece.first, *axis_arguments(piece.axes))
    return y


def write(x: Array, y: Array, elements: Strided) -> None:
    """Set those elements of a contiguous y to x; the other elements of y stay as they are."""
    if not x.size:
        return
    kernel, source, target = word_kernel("strided", "strided_write", x.dtype), words(x), words(y)
    for k, piece in enumerate(elements.pieces()):
        n = piece.size
        part = source[k * n : (k + 1) * n]
        for_each(kernel, n, part, InOut(target), n, piece.first, *axis_arguments(piece.axes))
