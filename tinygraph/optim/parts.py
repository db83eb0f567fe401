"""Parts: what one launch of an optimiser's kernel updates, up to eight parameters.

Most parameters of a network are small.  A launch for each would cost more than its numbers, so that
a step of P parameters with equal settings takes ceil(P / 8) launches instead of P.  How blocks are
dealt out to parts stands in parameters.cuh.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from tinygraph.cuda import Kernel
from tinygraph.device import Device
from tinygraph.ops.shared.launch import MOST_BLOCKS, THREADS, grid_of
from tinygraph.optim.members import Group
from tinygraph.shapes import Array

PARTS = 8  # of one launch; the same number stands in parameters.cuh

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


def by_eights(members: Sequence[_Member]) -> Iterator[Sequence[_Member]]:
    """The members, as many at a time as a launch takes.

    >>> [len(some) for some in by_eights(range(20))]
    [8, 8, 4]
    """
    for begin in range(0, len(members), PARTS):
        yield members[begin : begin + PARTS]


def launch(kernel: Kernel, device: Device, arrays: Sequence[Sequence[Array]], *rest: Any) -> None:
    """One launch over up to eight parts; none where all of them are empty.

    Parameters
    ----------
    kernel : Kernel
        Takes eight pointers of each kind, eight sizes, the most blocks of a part, and the rest.
    device : Device
    arrays : sequence of sequences
        For each kind, such as values and gradients, the arrays of the parts; an empty one is null.
    *rest
        The arguments behind.
    """
    sizes = [array.size for array in arrays[0]]
    grid = sum(map(grid_of, sizes))
    if not grid:
        return
    absent = PARTS - len(sizes)
    none = [device.empty((0,), arrays[0][0].dtype)] * absent
    pointers = [array for kind in arrays for array in (*kind, *none)]
    kernel(grid, THREADS, *pointers, *sizes, *(0,) * absent, MOST_BLOCKS, *rest)
