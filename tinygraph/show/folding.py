"""Boxes folded by module: each call of a module becomes one box.

A box joins the latest one of its module, unless what it takes was made from that one elsewhere:
then the module was called again, as a cell of a recurrent network is at every step, and gets a
further box.  So the folded graph has no cycles either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter

from tinygraph.show.boxes import Box
from tinygraph.show.modules import Path

FITS = 40  # boxes on a page


@dataclass(eq=False)
class _Group:
    """Boxes that are drawn as one."""

    path: Path  # of the module; () for a box that stands alone
    members: list[Box] = field(default_factory=list)
    inputs: dict[_Group, None] = field(default_factory=dict)


def fitted(boxes: Sequence[Box]) -> list[Box]:
    """The boxes as they are, or folded no more than it takes to fit them on a page."""
    deepest = max((len(box.home.path) for box in boxes), default=0)
    folded = list(boxes)
    for depth in range(deepest, 0, -1):
        if len(folded) <= FITS:
            break
        folded = fold(boxes, depth)
    return folded


def fold(boxes: Sequence[Box], depth: int) -> list[Box]:
    """Every module whose path has `depth` names, or fewer and no modules below, as one box.

    >>> fold([], 1)
    []
    """
    groups: list[_Group] = []
    latest: dict[Path, _Group] = {}
    group_of: list[_Group] = []
    for box in boxes:
        path = box.home.path[:depth] if box.home.own or len(box.home.path) >= depth else ()
        sources = {group_of[i]: None for i in box.inputs if not _is_inner(boxes[i], path, depth)}
        group = latest.get(path) if path else None
        if group is None or _made_from(group, sources):
            group = _Group(path)
            groups.append(group)
            latest[path] = group
        group.members.append(box)
        group.inputs.update((source, None) for source in sources if source is not group)
        group_of.append(group)
    order = list(TopologicalSorter({g: g.inputs for g in groups}).static_order())
    index = {group: k for k, group in enumerate(order)}
    return [_as_box(group, tuple(index[s] for s in group.inputs)) for group in order]


def _is_inner(box: Box, path: Path, depth: int) -> bool:
    """Whether a box is a leaf of the module that takes it: no edge goes to its further calls."""
    leaf = box.kind in ("parameter", "state", "constant")
    return bool(path) and leaf and box.home.path[:depth] == path


def _made_from(group: _Group, sources: dict[_Group, None]) -> bool:
    """Whether some source depends on the group."""
    front = [source for source in sources if source is not group]
    seen = set(front)
    while front:
        for source in front.pop().inputs:
            if source is group:
                return True
            if source not in seen:
                seen.add(source)
                front.append(source)
    return False


def _as_box(group: _Group, inputs: tuple[int, ...]) -> Box:
    """The box of a group: that of its last op, with the module's name and what is in it."""
    last = group.members[-1]
    ops = [box for box in group.members if box.kind == "op"]
    if not group.path or not ops:
        return replace(last, inputs=inputs)
    name = ".".join(group.path)
    title = f"{name}: {ops[-1].title}" if len(ops) == 1 else f"{name}: {len(ops)} ops"
    counts = Counter(box.title.partition(":")[0] for box in ops)
    inside = ", ".join(f"{number} {op}" if number > 1 else op for op, number in counts.items())
    numbers = sum(box.size for box in group.members if box.kind == "parameter")
    settings = f"{name}: {inside}; {numbers:,} parameters"
    cut = any(box.cut for box in group.members)
    return replace(last, kind="module", title=title, settings=settings, inputs=inputs, cut=cut)
