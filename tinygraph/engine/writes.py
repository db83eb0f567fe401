"""Leaves whose arrays are written to after a node has saved them: noticed by a count of all writes.

    loss = model(x)          nodes are dated: written = 7
    optimizer.step()         parameters are dated: written = 8, after the nodes
    loss.backward()          an error: what the ops saved is no longer what they computed with

An optimiser, `load_state_dict`, `p.value = array` and `p += array` note what they write.  What
writes into an array itself, `p.value[...] = 0`, is noticed under `detect_anomaly` alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import GraphError


class Writes:
    """How often values of leaves were replaced or written to."""

    count = 0

    @classmethod
    def note(cls, *leaves: Any) -> None:
        """The values of some leaves have just changed."""
        cls.count += 1
        for x in leaves:
            x.written = cls.count


def refuse_overwritten(node: Any) -> None:
    """Raise GraphError where a leaf was written to whose array the node's op has saved."""
    for x in node.inputs:
        if x.written > node.written and x.op is None and holds(node.saved, x.value):
            name = f" {x.name!r}" if x.name else ""
            raise GraphError(
                f"{node.op.name}: its backward needs the values that the leaf{name} {x.shape} had "
                "in the forward, and they were overwritten since, by an optimiser's step, "
                "load_state_dict or an assignment. Way out: call backward before that, or run the "
                "forward again"
            )


def refuse_read_only(leaf: Any) -> None:
    """Raise GraphError where numpy may not write to a leaf's array, as of `from_numpy`."""
    if isinstance(leaf.value, np.ndarray) and not leaf.value.flags.writeable:
        expected, got = "an array that can be written to", "a read-only one, which it shares"
        way_out = "x.value = x.numpy().copy(), or tg.tensor(array), which copies"
        raise GraphError("in place", leaf.name or "self", expected, got, way_out)


def holds(saved: Any, array: Any) -> bool:
    """Whether an array, or memory that it has, is among what an op saved."""
    if isinstance(saved, (tuple, list)):
        return any(holds(each, array) for each in saved)
    if isinstance(saved, np.ndarray) and isinstance(array, np.ndarray):
        return np.may_share_memory(saved, array)
    return saved is array
