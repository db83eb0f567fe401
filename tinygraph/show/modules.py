"""Which module a node of a graph belongs to, found out from the names of parameters.

A parameter is called by its path, `layer1.0.conv1.weight`, so what is made of it alone, and an op
that takes either, belongs to `layer1.0.conv1`.  Another op is put where its surroundings are:

    between     from one part of a module to another: in that module
    after       what it takes comes from a layer: in the module that has that layer, as the ReLU
                behind a convolution.  Where another op took the same value before, as at the end
                of a residual block, in the module that has both
    a new shape out of the last layer of a module, as pooling before the classifier: outside of it

Nothing is noted while a network runs, so any graph can be folded that was ever made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple, TypeAlias

from tinygraph.engine import Buffer, Parameter, Tensor

Path: TypeAlias = tuple[str, ...]


class Home(NamedTuple):
    """The module of a node; `own`: the node is a parameter of it, or an op that takes one."""

    path: Path = ()
    own: bool = False

    @property
    def around(self) -> Path:
        """The module in which what follows is done."""
        return self.path[:-1] if self.own else self.path


OUTERMOST = Home()


def common(paths: Iterable[Path]) -> Path:
    """The innermost module that has all of these; the outermost one if there are none.

    >>> common([("layer1", "0", "conv1"), ("layer1", "1")])
    ('layer1',)
    """
    steps = zip(*paths, strict=False)
    return tuple(step[0] for step in takewhile(lambda step: len(set(step)) == 1, steps))


def homes(order: Sequence[Tensor]) -> dict[Tensor, Home]:
    """The module of each node; `order` is a graph in forward order."""
    found = _of_names(order)
    turn: dict[Path, int] = {}  # of each module with parameters: when it was called first
    for home in found.values():
        turn.setdefault(home.path, len(turn))
    after = _after(order, found)
    last: dict[Tensor, int] = {}  # the turn of the latest module above each node
    used_in: dict[Tensor, list[Path]] = {node: [] for node in order}
    for node in order:
        home, following = found[node], after[node]
        last[node] = max([last[x] for x in node.inputs], default=-1)
        if home.own:
            last[node] = turn[home.path]
        elif node.op is not None:
            path = _surroundings(node, found, used_in, common(following))
            again = any(turn[module] <= last[node] for module in following)
            found[node] = Home(path[:-1] if again else path)  # the next call begins behind it
        for x in set(node.inputs):
            used_in[x].append(found[node].path)
    for node in order:
        if node.op is None and node.size == 1 and not node.name:
            found[node] = Home(common(used_in[node]))  # a constant, of those that use it
    return found


def _of_names(order: Sequence[Tensor]) -> dict[Tensor, Home]:
    """The module of parameters, of what is made of them alone, and of an op that takes either."""
    found: dict[Tensor, Home] = {}
    made: dict[Tensor, Path] = {}  # of parameters alone: a bias with axes for images
    for node in order:
        if isinstance(node, (Parameter, Buffer)) and node.name:
            made[node] = tuple(str(node.name).split(".")[:-1])
        taken = [made[x] for x in (node.inputs or [node]) if x in made]
        found[node] = Home(common(taken), bool(taken))
        if node.op is not None and len(taken) == len(node.inputs):
            made[node] = found[node].path
    return found


def _after(order: Sequence[Tensor], found: dict[Tensor, Home]) -> dict[Tensor, set[Path]]:
    """For each node the modules of the next ops with parameters."""
    after: dict[Tensor, set[Path]] = {node: set() for node in order}
    for node in reversed(order):
        for x in node.inputs:
            after[x] |= {found[node].path} if found[node].own else after[node]
    return after


def _surroundings(
    node: Tensor, found: dict[Tensor, Home], used_in: dict[Tensor, list[Path]], after: Path
) -> Path:
    """The module of an op that takes no parameters."""
    before = [x for x in node.inputs if x.op is not None or used_in[x]]
    behind = common(common(used_in[x]) if used_in[x] else found[x].around for x in before)
    if before and node.shape != before[-1].shape:
        behind = common([behind, after])
    between = [common([found[x].path, after]) for x in before]
    return max([behind, *between], key=len)
