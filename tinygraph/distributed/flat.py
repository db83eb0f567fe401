"""Flat: the gradients of many parameters side by side in one array, added up over shards and ranks.

    | weight of layer 1   | bias |  | weight of layer 2 | bias |  | running mean | running var |

One array makes one message.  Parameters begin at multiples of 64 bytes, as in arrays of their own.
Running statistics ride along, each shard's times its weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinygraph.distributed.shards import Part
from tinygraph.distributed.tree_sum import Node, TreeSum, nodes_of, share
from tinygraph.distributed.world import Handle, World
from tinygraph.engine import Device
from tinygraph.ops.elementwise.arithmetic import times
from tinygraph.plan.buffers import ALIGNMENT, Lent
from tinygraph.plan.leaf_gradients import added


class Flat:
    """Of leaves and buffers of one dtype on one device."""

    def __init__(
        self, leaves: Sequence[Any], buffers: Sequence[Any], dtype: Any, device: Device, size: int
    ) -> None:
        self.leaves, self.buffers, self.dtype, self.device = leaves, buffers, dtype, device
        step = ALIGNMENT // np.dtype(dtype).itemsize
        self._places: list[slice] = []
        end = 0
        for node in (*leaves, *buffers):
            self._places.append(slice(end, end + node.size))
            end = -(-(end + node.size) // step) * step
        self.length = -(-end // (step * size)) * step * size  # the same number for each rank
        self.nbytes = self.length * np.dtype(dtype).itemsize
        self._free: list[Any] = []
        self.total: Any = None  # on a GPU, the gradients of the last batch
        self._sum = TreeSum(1, self._added)
        self._handle: Handle | None = None  # of the message that has begun

    # ---- the shards of this rank ------------------------------------------------------------

    def begin(self, shards: int) -> None:
        """A new batch."""
        self._sum = TreeSum(shards, self._added)

    def put(self, part: Part) -> None:
        """Take what backward of a shard has left in `.grad`, and the running statistics."""
        flat = self._array()
        places = iter(self._places)
        for leaf in self.leaves:
            flat[next(places)] = 0 if leaf.grad is None else leaf.grad.reshape(-1)
        for buffer in self.buffers:
            flat[next(places)] = times(self.device, buffer.value.reshape(-1), part.weight)
        self._sum.put((0, part.shard), flat)

    def put_nothing(self, part: Part) -> None:
        """A shard without samples."""
        flat = self._array()
        flat[:] = 0
        self._sum.put((0, part.shard), flat)

    def _added(self, left: Any, right: Any) -> Any:
        total = added(self.device, left, right)
        self._let_go(right)
        return total

    def _array(self) -> Any:
        return self._free.pop() if self._free else self.device.zeros((self.length,), self.dtype)

    def _let_go(self, array: Any) -> None:
        if self.device.on_host:  # a GPU has its pools for that
            self._free.append(array)

    # ---- over the ranks ---------------------------------------------------------------------

    def add_up(self, world: World) -> None:
        """The sum over all ranks, on all of them."""
        if world.size == 1:
            return
        nodes = self._nodes_of_ranks(world)
        levels = {tuple(level for level, _ in own) for own in nodes}
        if self._handle is not None:
            handle, self._handle = self._handle, None
            total = self._finished(world, nodes, handle.wait())
        elif len(levels) == 1 and len(nodes[0]) == 1:  # a whole part of the tree on each rank
            ((_, own),) = self._sum.nodes
            total = world.all_reduce(own, out=self._array() if self.device.on_host else None)
            self._let_go(own)
        else:
            total = self._finished(world, nodes, world.all_to_all(self._slices(world, nodes)))
        self._sum.nodes = [((0, 0), total)]

    def start(self, world: World) -> None:
        """Begin to send what this rank has, which `add_up` waits for; after a failure anything."""
        if world.size > 1:
            sent = self._slices(world, self._nodes_of_ranks(world))
            self._handle = world.start_all_to_all(sent)

    def move_on(self) -> None:
        """Let a message move that has begun: MPI does so where it is asked."""
        if self._handle is not None:
            self._handle.test()

    def settle(self) -> None:
        """Wait for a message that has begun, and forget it."""
        if self._handle is not None:
            self._handle.wait()
            self._handle = None

    def _nodes_of_ranks(self, world: World) -> list[list[Node]]:
        shards = self._sum.shards
        return [nodes_of(*share(shards, rank, world.size), shards) for rank in range(world.size)]

    def _slices(self, world: World, nodes: Sequence[Sequence[Node]]) -> Any:
        """(ranks, parts of the tree, length / ranks): a slice of each part for each rank."""
        most = max(map(len, nodes))
        sent = self.device.zeros((world.size, most, self.length // world.size), self.dtype)
        for at, (_, own) in enumerate(self._sum.nodes[:most]):
            sent[:, at] = own.reshape(world.size, -1)
            self._let_go(own)
        return sent

    def _finished(self, world: World, nodes: Sequence[Sequence[Node]], received: Any) -> Any:
        """Ranks that hold several parts of the tree: each finishes it on a slice of the array."""
        tree = TreeSum(self._sum.shards, lambda left, right: added(self.device, left, right))
        for rank, own_nodes in enumerate(nodes):
            for at, node in enumerate(own_nodes):
                tree.put(node, self.device.contiguous(received[rank, at]))
        ((_, slice_sum),) = tree.nodes
        return world.all_gather_rows(slice_sum, self._array() if self.device.on_host else None)

    @property
    def nodes(self) -> list[tuple[Node, Any]]:
        """What the shards of this rank add up to."""
        return self._sum.nodes

    @nodes.setter
    def nodes(self, nodes: Sequence[tuple[Node, Any]]) -> None:
        self._sum.nodes = [*nodes]

    def hand_out(self, reached: Mapping[Any, bool], changed: Mapping[Any, bool]) -> None:
        """Let leaves have their part as `.grad`, and buffers theirs, where a shard wrote one."""
        ((_, total),) = self._sum.nodes
        self._sum.nodes = []
        if self.device.on_host:  # the memory comes back when nobody holds a gradient any more
            total = np.asarray(Lent(total, self._free))
        else:
            self.total = total
        self.gradients_in(total, reached)
        for buffer, place in zip(self.buffers, self._places[len(self.leaves) :], strict=True):
            if changed[buffer]:
                buffer.value[...] = total[place].reshape(buffer.shape)

    def gradients_in(self, total: Any, reached: Mapping[Any, bool]) -> None:
        """Let leaves have their part of an array like this one as `.grad`."""
        for leaf, place in zip(self.leaves, self._places[: len(self.leaves)], strict=True):
            leaf.grad = total[place].reshape(leaf.shape) if reached[leaf] else None
