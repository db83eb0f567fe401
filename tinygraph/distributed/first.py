"""What the first rank does for all of them: whatever touches the disk or looks at a clock.

All ranks call these functions together.  In a world of one they do what they are given.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from tinygraph.base import DistributedError
from tinygraph.base.streams import say
from tinygraph.distributed.ending import end, wait_turn
from tinygraph.distributed.joined import world
from tinygraph.engine import Array

T = TypeVar("T")


def leads() -> bool:
    """Whether this is the first rank, or the only process."""
    return world().rank == 0


def from_first(make: Callable[[], T]) -> T:
    """What `make()` gives on the first rank, as JSON has it; its error there is one everywhere.

    Raises
    ------
    DistributedError
        On the other ranks, where it fails on the first.

    Examples
    --------
    >>> from_first(lambda: [1, 2])
    [1, 2]
    """
    ranks = world()
    if ranks.size == 1:
        return make()
    made, failure = None, None
    with ranks.patiently():
        if leads():
            try:
                made = make()
            except Exception as error:
                failure = error
        told = None if failure is None else f"{type(failure).__name__}: {failure}"
        found, why = ranks.broadcast_object([made, told])
    if failure is not None:
        raise failure
    if why is not None:
        ranks.failed = 0
        raise DistributedError(f"rank 0 has failed: {why}")
    return made if leads() else found  # type: ignore[return-value]


def arrays_from_first(make: Callable[[], Mapping[str, Array] | None]) -> Any:
    """The same for arrays by name, or None."""
    ranks = world()
    if ranks.size == 1:
        return make()
    kept: dict[str, Array] = {}

    def described() -> list[Any] | None:
        made = make()
        if made is None:
            return None
        kept.update(made)
        return [[name, x.dtype.str, list(x.shape)] for name, x in kept.items()]

    listed = from_first(described)
    if listed is None:
        return None
    return {
        name: ranks.broadcast(kept[name] if leads() else np.empty(shape, np.dtype(dtype)))
        for name, dtype, shape in listed
    }


def launched_by() -> str:
    """How the ranks of this world are started, in front of a command: nothing for one process."""
    size = world().size
    return f"mpiexec -n {size} " if size > 1 else ""


def end_together(message: str, code: int) -> int:
    """Say on stderr why a command ends, once for all ranks, and end those of a launch."""
    ranks = world()
    if ranks.size > 1:
        wait_turn(ranks)
        end(ranks, f"rank {ranks.rank}: {message}" if ranks.rank else message, code)
    say(message, sys.stderr)
    return code
