"""Parts: what one launch of an optimiser's kernel updates, up to 32 parameters.

Most parameters of a network are small.  A launch for each would cost more than its numbers, so that
a step of P parameters with equal settings takes ceil(P / 32) launches instead of P.  How blocks are
dealt out to parts stands in parameters.cuh.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from tinygraph.cuda import blocks, op_kernel
from tinygraph.engine import Array, Device
from tinygraph.ops.common import MOST_BLOCKS, THREADS
from tinygraph.optim.members import Group

PARTS = (8, 32)  # as many as an instance of a kernel takes: PARTS of parameters.cuh
OF_A_BLOCK = 4096  # elements; the same number stands in parameters.cuh

_Member = TypeVar("_Member")


class Part(NamedTuple):
    """A parameter in a launch.

    Attributes
    ----------
    value, grad : array
        Contiguous, of one shape and dtype.
    state : dict
        Of this parameter.
    group : dict
        The hyper-parameters, as Python numbers.  All parts of a launch share all of them but lr.
    """

    value: Array
    grad: Array
    state: dict[str, Any]
    group: Group


def by_launches(members: Sequence[_Member]) -> Iterator[Sequence[_Member]]:
    """The members, as many at a time as a launch takes.

    >>> [len(some) for some in by_launches(range(70))]
    [32, 32, 6]
    """
    for begin in range(0, len(members), PARTS[-1]):
        yield members[begin : begin + PARTS[-1]]


def blocks_of(arrays: Sequence[Array]) -> int:
    """The number of blocks of a launch for these parts.

    >>> import numpy as np
    >>> blocks_of([np.zeros(4096), np.zeros(0), np.zeros(3)])
    2
    """
    return sum([min(blocks(array.size, OF_A_BLOCK), MOST_BLOCKS) for array in arrays])


def launch(
    stem: str, function: str, device: Device, arrays: Sequence[Sequence[Array]], *rest: Any
) -> None:
    """One launch over up to 32 parts; none where all of them are empty.

    Parameters
    ----------
    stem, function : str
        A kernel that takes PARTS pointers of each kind, as many sizes, the most blocks of a part,
        and the rest.
    device : Device
    arrays : sequence of sequences
        For each kind, such as values and gradients, the arrays of the parts; an empty one is null.
    *rest
        The arguments behind.
    """
    first = arrays[0]
    grid = blocks_of(first)
    if not grid:
        return
    dtype, few = first[0].dtype, len(first) <= PARTS[0]
    kernel = op_kernel(stem, function, dtype, **({} if few else {"PARTS": PARTS[-1]}))
    absent = PARTS[not few] - len(first)
    none = [device.empty((0,), dtype)] * absent
    pointers = [array for kind in arrays for array in (*kind, *none)]
    sizes = [array.size for array in first]
    kernel(grid, THREADS, *pointers, *sizes, *(0,) * absent, MOST_BLOCKS, *rest)
