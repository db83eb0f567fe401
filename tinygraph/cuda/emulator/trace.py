"""A launch that was recorded: what each thread did, one event after the other.

    code        a thread comes to the start of a basic block
    branch      a conditional jump, and where the thread goes from there
    load, store, atomic      an access to an array
    barrier     a thread comes to a barrier of the block; `release`: the barrier opens
    syncwarp, shuffle, vote, exchange     the lanes of a mask meet
    end         a thread leaves the kernel

The order is that of the emulator: a thread runs until it has to wait, then the next one.  Threads
of one block that touch different bytes might have run in any other order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base.frozen import frozen

Index3 = tuple[int, int, int]

KINDS = (
    *("code", "load", "store", "atomic", "barrier", "release"),
    *("syncwarp", "shuffle", "vote", "exchange", "end", "branch"),
)
CODE, LOAD, STORE, ATOMIC, BARRIER, RELEASE, SYNCWARP, SHUFFLE, VOTE, EXCHANGE, END, BRANCH = range(
    len(KINDS)
)

EVENT = np.dtype(
    [
        ("block", np.uint64),
        ("thread", np.uint32),
        ("epoch", np.uint32),
        ("kind", np.uint8),
        ("refused", np.bool_),
        ("size", np.uint16),
        ("array", np.int32),
        ("offset", np.int64),
        ("value", np.uint64, 2),
        ("before", np.uint64),
        ("mask", np.uint32),
        ("source", np.int32),
        ("place", np.int32),
        ("site", np.int32),
        ("to", np.int32),
    ]
)


CHANGE = np.dtype(
    [
        ("event", np.int64),
        ("block", np.uint64),
        ("thread", np.uint32),
        ("variable", np.uint32),
        ("value", np.uint64),
    ]
)


class TracedVariable(NamedTuple):
    """A number among the parameters and variables of a function of the source."""

    name: str
    function: str
    dtype: np.dtype[Any]
    line: int  # of its declaration


class Place(NamedTuple):
    """A line of the source."""

    file: str
    line: int


@frozen
class TracedArray:
    """An array that the launch could touch.

    Attributes
    ----------
    name : str
    space : str
        "global" (an argument, a `__device__` variable), "shared" or "constant".
    bytes, element : int
        Its size, and that of one element.
    dtype : dtype or None
        None where it is not known.
    shape : tuple of int
        In elements; of one axis where no more is known.
    address : int
        Of its first byte, modulo 256: where it lies in the sectors and banks.
    initial : ndarray or None
        What it held before the launch, of this dtype and shape; None for shared memory.
    """

    name: str
    space: str
    bytes: int
    element: int
    dtype: np.dtype[Any] | None
    shape: tuple[int, ...]
    address: int = 0
    initial: np.ndarray | None = None


@frozen
class Trace:
    """What happened in a few blocks of one launch.

    Attributes
    ----------
    kernel : str
    grid, block_size : (x, y, z)
    blocks : tuple of int
        The blocks that were recorded, by their number: x + y * X + z * X * Y.
    events : structured array
        In the order of execution.  `block`, `thread`: numbers; the lane is thread % 32.  `epoch`:
        how many barriers the block has passed.  `kind`: an index into `KINDS`.  `place`: an index
        into `places`, -1 for none.  `site`: a number for the place in the machine code; of two in
        one function the lower one comes first.

        Of an access: `array` (an index into `arrays`, -1 for none), `offset` and `size` in bytes,
        `value` (what was read, or lies there after a write: the first 16 bytes as two numbers),
        `before` (of a write or an atomic: the first 8 bytes that lay there), `refused` (the checker
        stopped the thread before it).

        Of a call of the warp: `mask`, `before` (what the lane gave), `value` (what it got), and of
        a shuffle `source`, the lane that it takes from.

        Of a branch: `to`, the site at which the thread goes on; lanes that part have two.
    places : tuple of Place
    arrays : tuple of TracedArray
    findings : tuple of Finding
        Each with the number of its event.
    files : dict of str to tuple of str
        The lines of each file that occurs among the places.
    cut : int
        How many events came after the limit and are left out; 0 for none.  Branches are found
        afterwards and do not count.
    reverse : bool
        Whether lanes and warps ran from the last one on.
    variables : tuple of TracedVariable
        Numbers in functions of the source whose place the debug information tells.
    changes : structured array
        When they had new values, in the order of events: `event`, `block`, `thread`, `variable` (an
        index into `variables`), `value` (its bytes as a number).  What is assigned on a line shows
        at the thread's next event.
    """

    kernel: str
    grid: Index3
    block_size: Index3
    blocks: tuple[int, ...]
    events: np.ndarray
    places: tuple[Place, ...]
    arrays: tuple[TracedArray, ...]
    findings: tuple[Any, ...]  # Finding: its file stands above this one
    files: Mapping[str, tuple[str, ...]]
    cut: int = 0
    reverse: bool = False
    variables: tuple[TracedVariable, ...] = ()
    changes: np.ndarray = field(default_factory=lambda: np.zeros(0, CHANGE))

    def __len__(self) -> int:
        return len(self.events)

    def kind(self, number: int) -> str:
        """What kind of event it is."""
        return KINDS[self.events[number]["kind"]]

    def locals(self, number: int) -> dict[str, Any]:
        """What the variables of the thread of an event hold when it happens, by name.

        Of the function that the thread is in, and of those that it was in before; of two of one
        name the one that changed last.
        """
        event = self.events[number]
        until = np.searchsorted(self.changes["event"], number, side="right")
        before = self.changes[:until]
        mine = (before["thread"] == event["thread"]) & (before["block"] == event["block"])
        found: dict[str, Any] = {}
        for change in before[mine]:
            variable = self.variables[change["variable"]]
            raw = change["value"].tobytes()[: variable.dtype.itemsize]
            found[variable.name] = np.frombuffer(raw, variable.dtype)[0].item()
        return found

    def value(self, number: int) -> Any:
        """What an access read or wrote, as numbers of the array's dtype; bytes if it has none."""
        event = self.events[number]
        raw = event["value"].tobytes()[: min(16, int(event["size"]))]
        array = self.arrays[event["array"]] if event["array"] >= 0 else None
        if array is None or array.dtype is None or len(raw) % array.dtype.itemsize:
            return raw
        values = np.frombuffer(raw, array.dtype)
        return values[0] if len(values) == 1 else values
