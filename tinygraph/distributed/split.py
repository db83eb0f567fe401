"""Split: a parameter of which each rank of a launch has a part, of its own along one axis.

    weight (O, I) on 2 ranks, axis 0    rank 0: rows 0 ... O/2      rank 1: rows O/2 ... O

A part has its whole gradient where it is: nobody adds it up.  What is saved is the whole, which the
ranks bring together, so that a checkpoint fits any number of ranks; one that is loaded is cut.  All
ranks take part in that: `state_dict` is called on each of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import whole
from tinygraph.distributed.joined import world
from tinygraph.distributed.tree_sum import share
from tinygraph.engine import Array, Parameter, Shape


def owner_of(index: int, total: int, ranks: int | None = None) -> int:
    """The rank that owns one of so many things, which are dealt to the ranks in order.

    Parameters
    ----------
    index : int
        From 0 to `total` - 1: a node of a layer, for example.
    total : int
    ranks : int, optional
        By default those of this launch.

    Returns
    -------
    int

    Raises
    ------
    ArgumentError
        An index that is not among them.

    Examples
    --------
    >>> [owner_of(index, 6, ranks=4) for index in range(6)]
    [0, 1, 1, 2, 3, 3]
    """
    ranks = world().size if ranks is None else whole("owner_of", "ranks", ranks)
    count = whole("owner_of", "total", total)
    place = whole("owner_of", "index", index, 0, count - 1)
    return ((place + 1) * ranks - 1) // count  # the last rank whose share begins at or before it


class Parted:
    """How a parameter is dealt out to the ranks of this launch.

    Attributes
    ----------
    axis : int
        Along which it is cut.
    total : int
        The size of the whole on that axis.
    sizes : list of int
        Those of the parts, by rank.
    own : slice
        The part of this rank.
    same_batch : bool
        Whether the ranks share the nodes of a layer and have the same samples.  Otherwise each has
        samples of its own.
    """

    def __init__(self, axis: int, total: int, same_batch: bool = False) -> None:
        self.axis, self.total, self.same_batch = axis, total, same_batch
        ranks = world()
        ends = [share(total, rank, ranks.size) for rank in range(ranks.size)]
        self.sizes = [stop - first for first, stop in ends]
        self.own = slice(*ends[ranks.rank])

    def part_of(self, array: Array) -> Array:
        """This rank's part of a whole, an array of its own."""
        cut = (slice(None),) * self.axis + (self.own,)
        return array[cut].copy()

    def whole_of(self, array: Array) -> Array:
        """The parts of all ranks together."""
        rows = np.moveaxis(array, self.axis, 0)
        return np.moveaxis(world().all_gather_rows(rows), 0, self.axis)

    def of_all_ranks(self, number: float) -> list[float]:
        """A number of each rank, by rank; all get the same list."""
        found: list[float] = world().all_gather(np.array(number, np.float64)).tolist()
        return found


class SplitParameter(Parameter):
    """A Parameter that is this rank's part of `whole`, as `parted` says."""

    __slots__ = ("_parted",)

    def __init__(self, whole: Array, parted: Parted, name: str | None = None) -> None:
        super().__init__(parted.part_of(whole), name=name)
        self._parted = parted

    @property
    def parted(self) -> Parted:
        return self._parted

    @property
    def whole_shape(self) -> Shape:
        axis = self._parted.axis
        return (*self.shape[:axis], self._parted.total, *self.shape[axis + 1 :])

    def whole_of(self, array: Array) -> Array:
        return self._parted.whole_of(array)

    def part_of(self, array: Array) -> Array:
        return self._parted.part_of(array)

    def __deepcopy__(self, memo: dict[int, Any]) -> SplitParameter:
        made: Any = super().__deepcopy__(memo)
        made._parted = self._parted
        return made
