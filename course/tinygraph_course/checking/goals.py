"""What a launch may cost at most, as the emulator counts it: the same on every machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np


class Missed(NamedTuple):
    """A goal that was not reached: its name, what was counted, and the learner's line."""

    goal: str
    words: str
    line: int | None


def missed(most: Mapping[str, float], answer: Mapping[str, Any]) -> list[Missed]:
    """The goals that a launch does not reach, in the order of `most`.

    Parameters
    ----------
    most : mapping
        "sectors": of 32 bytes, that a request of a warp moves, at any line.
        "bytes": that the launch moves between global memory and the multiprocessors.
        "reads": of shared memory, of one number, for each multiply-add.
        "turns": that a request to shared memory takes where one would do, at any line.
        "barriers": that the first block passes.
        "loads": of shared memory, by the busiest thread of the first block.
    answer : mapping
        What `child.launched` gives.

    Examples
    --------
    >>> missed({"barriers": 3}, {"barriers": 4})[0].words
    'the block passes 4 barriers, 3 at most'
    """
    found = []
    for goal, limit in most.items():
        value, line = COUNTS[goal](answer)
        if value > limit:
            words = _WORDS[goal].format(f"{value:,.10g}" if value > 99 else f"{value:.3g}")
            found.append(Missed(goal, f"{words}, {limit:,.10g} at most", line))
    return found


def _worst(answer: Mapping[str, Any], space: str, above: str, below: str) -> tuple[float, Any]:
    """The highest ratio of two counts among the lines, and that line."""
    lines = [line for line in answer["lines"] if line["space"] == space and line[below]]
    ratios = [(line[above] / line[below], line["line"]) for line in lines]
    return max(ratios, key=lambda pair: pair[0], default=(0.0, None))


def _bytes(answer: Mapping[str, Any]) -> tuple[float, Any]:
    lines = [line for line in answer["lines"] if line["space"] == "global"]
    most = max(lines, key=lambda line: line["sectors"], default={"line": None})
    return answer["bytes"], most["line"]


def _reads(answer: Mapping[str, Any]) -> tuple[float, Any]:
    lines = [c for c in answer["lines"] if (c["space"], c["access"]) == ("shared", "load")]
    most = max(lines, key=lambda line: line["requests"], default={"line": None})
    reads = 32 * sum(line["requests"] for line in lines)
    return 2 * reads / max(1, answer["operations"]), most["line"]


def _loads(answer: Mapping[str, Any]) -> tuple[float, Any]:
    shared = [answer["arrays"].index(name) for name in answer["shared"]]
    touched = answer["touched"]  # array, element, epoch, thread, whether it was written, line
    loads = touched[np.isin(touched[:, 0], shared) & (touched[:, 4] == 0)]
    if not len(loads):
        return 0, None
    own = loads[loads[:, 3] == np.bincount(loads[:, 3]).argmax()]
    return len(own), int(np.bincount(own[:, 5]).argmax())


COUNTS: dict[str, Callable[[Mapping[str, Any]], tuple[float, Any]]] = {
    "sectors": lambda answer: _worst(answer, "global", "sectors", "requests"),
    "bytes": _bytes,
    "reads": _reads,
    "turns": lambda answer: _worst(answer, "shared", "wavefronts", "least_wavefronts"),
    "barriers": lambda answer: (answer["barriers"], None),
    "loads": _loads,
}
_WORDS = {
    "sectors": "a warp moves {} sectors of 32 bytes at once",
    "bytes": "{} bytes of global memory are moved",
    "reads": "{} reads of shared memory for each multiply-add",
    "turns": "lanes of a warp meet in a bank: a request takes {} turns",
    "barriers": "the block passes {} barriers",
    "loads": "one thread loads {} numbers of shared memory",
}
RECORDED = {"barriers", "loads"}  # the others are counted
