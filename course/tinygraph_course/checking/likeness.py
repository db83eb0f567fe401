"""How a wrong kernel behaves, in what does not depend on how it is written, and how alike two are.

Of a launch counts, whatever the order of lines, the place of barriers and the names:

    kinds      what the checker finds, not at which line; of a right one which goals are missed; of
               one without an end only that it has none
    arrays     in which arrays
    wrong      the outputs that are not as they shall be, and what they hold
    written    which thread of the first block writes which element of an array
    read       which elements of arrays the first block reads
    hazards    accesses of two threads that no barrier orders: a read or a write that comes too
               early, and in which round of writing, or two writes
    waits      with them, whether the first block passes any barrier
    loads      reads of each array by the first block, by which kernels are told from one another
               whose numbers are right and which cost too much

Each is a set; two launches are as alike as the least alike of them (Jaccard, "The distribution of
the flora in the alpine zone", New Phytologist 11, 1912), two kernels as the least alike launches.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

SURE, LIKELY = 0.999, 0.72  # from which likeness on it is that mistake, or looks like it
ROUNDS = 9  # that are told from one another
KEPT = 64  # outputs that are kept one by one; of more than these there is a sum
_ENDLESS = "endless"
_ANY_ORDER = {"race", "uninitialized"}  # numbers are others at each run then
_OTHER_ARRAYS = 0.9  # as alike as two launches are whose findings name other arrays


def fingerprint(seen: Sequence[Any], expected: Sequence[Mapping[int, Any]]) -> list[Any]:
    """What tells one wrong kernel from another, launch by launch, as JSON takes it.

    Parameters
    ----------
    seen : sequence of dict or Raised
        What each launch did; see `child.launched`.
    expected : sequence of mappings
        What it should have written.
    """
    return [_of_launch(*pair) for pair in zip(seen, expected, strict=True)]


def _of_launch(answer: Any, expected: Mapping[int, Any]) -> dict[str, Any]:
    if not isinstance(answer, dict):
        return {"kinds": ["error"]}
    found = answer["findings"]
    kinds = {f["kind"] for f in found}
    if any(map(is_endless, found)):  # the rest is a matter of how far it got
        return {"kinds": [_ENDLESS]}
    wrong = [] if kinds & _ANY_ORDER else _wrong(answer["out"], expected)
    missed = [] if found or wrong else [f"{one.goal} missed" for one in answer["missed"]]
    touched, names = answer["touched"], answer["arrays"]
    mark: dict[str, Any] = {
        "kinds": sorted([*{_kind(f) for f in found}, *missed]),
        "arrays": sorted({f"{f['kind']} {f['array']}" for f in found if f["array"]}),
        "wrong": wrong,
        "hazards": _hazards(touched, names) if "race" in kinds else [],
        "waits": "race" in kinds and answer["barriers"] > 0,
    }
    if len(touched):
        outside = [name not in answer["shared"] for name in names]
        marks: dict[str, set[int]] = {"written": set(), "read": set()}
        for a, element, _, thread, write, _ in touched.tolist():
            if outside[a]:
                what = f"{names[a]} {element} {thread}" if write else f"{names[a]} {element}"
                marks["written" if write else "read"].add(zlib.crc32(what.encode()))
        if "out-of-bounds" in kinds:  # a thread that is stopped may have read this or that before
            marks["read"].clear()
        mark |= {what: sorted(found) for what, found in marks.items()}
        loads = touched[touched[:, 4] == 0]
        mark["loads"] = {name: int(np.sum(loads[:, 0] == a)) for a, name in enumerate(names)}
    return mark


def is_endless(finding: Mapping[str, Any]) -> bool:
    """Whether a launch was given up: a loop without an end, or threads that wait while it goes on.

    >>> is_endless({"kind": "deadlock", "message": "2 threads wait; given up after 2 seconds"})
    True
    """
    return finding["kind"] == "timeout" or "given up after" in finding["message"]


def _kind(finding: Mapping[str, Any]) -> str:
    """What the checker finds; of what has no value, whether that is a variable or memory."""
    of_variable = finding["kind"] == "uninitialized" and "local variable" in finding["message"]
    return "variable without a value" if of_variable else str(finding["kind"])


def _wrong(outs: Sequence[Any], expected: Mapping[int, Any]) -> list[str]:
    """Elements and what they hold: the first ones, and a sum over all."""
    found = []
    for number, (out, (_, right)) in enumerate(zip(outs, sorted(expected.items()), strict=True)):
        got, due = np.ravel(out), np.ravel(right)
        for i in np.flatnonzero(~np.isclose(got, due, 1e-5, 1e-5, equal_nan=True)).tolist():
            found.append(f"{number} {i} {got[i]:.4g}")
    if len(found) > KEPT:
        return [*found[:KEPT], f"{zlib.crc32(' '.join(found).encode())}"]
    return found


def _hazards(touched: Any, names: Sequence[str]) -> list[str]:
    """Accesses of two threads to one element, one of them a write, between the same barriers.

    Which came first says no barrier.  But each thread does its part in the same order: a read
    comes too early where the reader has made as many rounds of writing as the writer, and the
    write too early where the writer is ahead.
    """
    rounds: dict[tuple[int, int], int] = defaultdict(int)  # of an array and a thread
    met: dict[tuple[int, int, int], list[tuple[int, bool, int]]] = defaultdict(list)
    for a, element, epoch, thread, write, _ in touched.tolist():
        rounds[a, thread] += write
        met[a, element, epoch].append((thread, bool(write), rounds[a, thread]))
    found = set()
    for (a, _, _), accesses in met.items():
        writes = {one for one in accesses if one[1]}
        for (writer, _, k), (other, wrote, j) in product(writes, set(accesses)):
            if writer == other:
                continue
            kind = "two writes" if wrote else "read too early" if k <= j else "written too early"
            found.add(f"{names[a]} {kind}{'' if wrote else f' {min(k, ROUNDS)}'}")
    return sorted(found)


def likeness(mine: Sequence[Any], known: Sequence[Any]) -> float:
    """1 where two kernels do the same, 0 where they go wrong in another way."""
    pairs = list(zip(mine, known, strict=True))
    costs = all(_only_costs(one) and _only_costs(other) for one, other in pairs)
    return min((min(parts(one, other, costs).values()) for one, other in pairs), default=0.0)


def parts(one: Mapping[str, Any], other: Mapping[str, Any], costs: bool) -> dict[str, float]:
    """How alike two launches are in each respect; `costs` where nothing but costs is wrong."""
    found = {"kinds": float(one["kinds"] == other["kinds"])}
    if not found["kinds"] or one["kinds"] in (["error"], [_ENDLESS]):
        return found
    found["arrays"] = 1.0 if one["arrays"] == other["arrays"] else _OTHER_ARRAYS
    for respect in ("wrong", "hazards", "written"):
        found[respect] = _jaccard(set(one.get(respect, ())), set(other.get(respect, ())))
    reads = _jaccard(set(one.get("read", ())), set(other.get("read", ())))
    found["read"] = (1 + reads) / 2  # more may be read than is used
    found["waits"] = float(one["waits"] == other["waits"])
    if costs and "loads" in one and "loads" in other:
        found["loads"] = _ratio(one["loads"], other["loads"])
    return found


def _only_costs(launch: Mapping[str, Any]) -> bool:
    return not launch.get("wrong") and all(kind.endswith(" missed") for kind in launch["kinds"])


def _jaccard(one: set[Any], other: set[Any]) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0


def _ratio(one: Mapping[str, int], other: Mapping[str, int]) -> float:
    """The least ratio of two counts of one name."""
    pairs = [(one.get(name, 0), other.get(name, 0)) for name in {*one, *other}]
    return min((min(p) / max(p) for p in pairs if max(p)), default=1.0)
