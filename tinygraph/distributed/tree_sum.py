"""TreeSum: the one order in which the gradients of shards are added, whoever holds them.

    shards     0   1   2   3   4   5
    level 1    0 + 1   2 + 3   4 + 5
    level 2    (0 + 1) + (2 + 3)   |
    level 3    ((0 + 1) + (2 + 3)) + (4 + 5)

Sums of floating-point numbers depend on their order.  A node (level, index) of this binary tree is
the sum of the shards index * 2**level ... (index + 1) * 2**level, as far as there are any; one that
has no neighbour to its right climbs as it is.  Whoever has some neighbouring shards adds up the
nodes that lie among them, and whoever has all of those nodes finishes the tree: the bits are those
of one process that had all the shards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Add = Callable[[Any, Any], Any]
Node = tuple[int, int]  # level, index


class TreeSum:
    """Takes the terms from left to right, and holds few sums at a time.

    Parameters
    ----------
    shards : int
        How many terms the whole sum has.
    add : function of (left, right)
        Their sum, which may stand in the place of one of them.

    Attributes
    ----------
    nodes : list of ((level, index), sum)
        What the terms so far add up to, from left to right.

    Examples
    --------
    >>> whole = TreeSum(6, lambda left, right: f"({left}+{right})")
    >>> for shard in range(6):
    ...     whole.put((0, shard), str(shard))
    >>> whole.nodes
    [((3, 0), '(((0+1)+(2+3))+(4+5))')]
    """

    def __init__(self, shards: int, add: Add) -> None:
        self.shards, self.add = shards, add
        self.nodes: list[tuple[Node, Any]] = []

    def put(self, node: Node, term: Any) -> None:
        """The next term: a shard, which is a node of level 0, or a node that others have summed."""
        level, index = node
        while (index << level) or (1 << level) < self.shards:  # it is not the root
            if index % 2:
                if not self.nodes or self.nodes[-1][0] != (level, index - 1):
                    break  # what stands to its left is somebody else's
                term = self.add(self.nodes.pop()[1], term)
            elif (index + 1) << level < self.shards:
                break  # it waits for what stands to its right
            level, index = level + 1, index // 2
        self.nodes.append(((level, index), term))


def nodes_of(first: int, stop: int, shards: int) -> list[Node]:
    """The nodes that are left to whoever has the shards first ... stop.

    >>> nodes_of(2, 4, 4), nodes_of(1, 4, 4)
    ([(1, 1)], [(0, 1), (1, 1)])
    """
    found = TreeSum(shards, lambda left, right: None)
    for shard in range(first, stop):
        found.put((0, shard), None)
    return [node for node, _ in found.nodes]


def share(total: int, rank: int, size: int) -> tuple[int, int]:
    """Where the part of a rank begins and ends, of so many things dealt to `size` ranks.

    >>> [share(10, rank, 4) for rank in range(4)]
    [(0, 2), (2, 5), (5, 7), (7, 10)]
    """
    return total * rank // size, total * (rank + 1) // size
