"""Where the boxes of a directed acyclic graph go, and how its edges run between them.

The method is that of layers.  A box lies one layer below its lowest input, so an edge points down.
An edge that spans several layers passes through a point in each of them, which takes part in the
ordering like a narrow box; that keeps the edge from running through boxes.  All long edges of one
box share these points (its trunk), so their number does not grow with the number of edges.

    layer     longest path from the leaves, then down to just above the first use
    order     a few sweeps down and up: each box moves to the mean position of its neighbours
    x         the same means again, as coordinates, made to fit the order and the widths

Source: Sugiyama, Tagawa, Toda, "Methods for visual understanding of hierarchical system
structures", IEEE Transactions on Systems, Man, and Cybernetics, 1981.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tinygraph.base import GraphError

MAX_POINTS = 50_000  # of all trunks together
SWEEPS = 8  # of each kind; more do not change the pictures of networks
GAP = 24.0  # between boxes of a layer
LEAF_PULL = 0.02  # of a leaf on its surroundings, so that a chain of ops stands upright
POINT = 10.0  # the room that a passing edge takes


@dataclass(eq=False)
class Place:
    """A place in a layer: a box, or a point of some box's trunk."""

    box: int  # the box, or the one whose trunk this is
    layer: int
    width: float
    is_box: bool = True
    pull: float = 1.0  # how strongly it draws its neighbours, and keeps its place among them
    x: float = 0.0  # of the centre
    above: list[Place] = field(default_factory=list)  # neighbours one layer up
    below: list[Place] = field(default_factory=list)


@dataclass
class Arrangement:
    """The finished layout: places by layer, left to right."""

    layers: list[list[Place]]
    boxes: list[Place]  # by box number
    trunks: list[list[Place]]  # by box number: the points below it, top to bottom
    width: float


def arrange(inputs: Sequence[Sequence[int]], widths: Sequence[float]) -> Arrangement:
    """Lay out boxes 0 ... n-1, where `inputs[i]` are the boxes, all smaller than i, that i uses."""
    layer_of = _assign_layers(inputs)
    layers: list[list[Place]] = [[] for _ in range(max(layer_of) + 1)]
    boxes = [Place(i, layer_of[i], width) for i, width in enumerate(widths)]
    trunks = _make_trunks(inputs, boxes)
    for i, box in enumerate(boxes):
        box.pull = 1.0 if inputs[i] else LEAF_PULL
        for place in (box, *trunks[i]):
            layers[place.layer].append(place)
    for i, sources in enumerate(inputs):
        for source in sources:
            upper = start_of_edge(boxes, trunks, source, i)
            upper.below.append(boxes[i])
            boxes[i].above.append(upper)
    _order(layers)
    _place(layers)
    left = min(place.x - place.width / 2 for layer in layers for place in layer)
    for layer in layers:
        for place in layer:
            place.x -= left
    width = max(place.x + place.width / 2 for layer in layers for place in layer)
    return Arrangement(layers, boxes, trunks, width)


def start_of_edge(
    boxes: Sequence[Place], trunks: Sequence[Sequence[Place]], source: int, target: int
) -> Place:
    """Where the last piece of an edge starts: at its source, or a point of its trunk."""
    span = boxes[target].layer - boxes[source].layer
    return boxes[source] if span == 1 else trunks[source][span - 2]


def _assign_layers(inputs: Sequence[Sequence[int]]) -> list[int]:
    """The layer of each box: longest path from a leaf, then down to just above its first use."""
    layers = [0] * len(inputs)
    for i, sources in enumerate(inputs):
        if sources:
            layers[i] = 1 + max(layers[s] for s in sources)
    first_use: dict[int, int] = {}
    for i in reversed(range(len(inputs))):  # users before their inputs
        layers[i] = first_use.get(i, layers[i] + 1) - 1
        for s in inputs[i]:
            first_use[s] = min(layers[i], first_use.get(s, layers[i]))
    return layers


def _make_trunks(inputs: Sequence[Sequence[int]], boxes: Sequence[Place]) -> list[list[Place]]:
    """For each box the points that its long edges share, linked to one another."""
    last = [box.layer for box in boxes]
    for i, sources in enumerate(inputs):
        for s in sources:
            last[s] = max(last[s], boxes[i].layer)
    total = sum(max(end - box.layer - 1, 0) for end, box in zip(last, boxes, strict=True))
    if total > MAX_POINTS:
        raise GraphError(
            "show.graph",
            "outputs",
            f"long edges through at most {MAX_POINTS} layers",
            total,
            "draw a part: show.graph(..., depth=20)",
        )
    trunks = []
    for box in boxes:
        points = [
            Place(box.box, k, POINT, is_box=False) for k in range(box.layer + 1, last[box.box])
        ]
        for upper, lower in zip([box, *points], points, strict=False):
            upper.below.append(lower)
            lower.above.append(upper)
        trunks.append(points)
    return trunks


def _order(layers: list[list[Place]]) -> None:
    """Sort each layer by the mean position of its neighbours above, then below, and so on."""
    position = {place: k for layer in layers for k, place in enumerate(layer)}

    def mean(place: Place, neighbours: list[Place]) -> float:
        if not neighbours:
            return float(position[place])
        return sum(position[n] for n in neighbours) / len(neighbours)

    best, fewest = [list(layer) for layer in layers], _crossings(layers, position)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            layer.sort(key=lambda s: mean(s, s.above if down else s.below))
            for k, place in enumerate(layer):
                position[place] = k
        crossings = _crossings(layers, position)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
        if not crossings:
            break
    layers[:] = best


def _crossings(layers: list[list[Place]], position: dict[Place, int]) -> int:
    """How many pairs of edges cross, counted as inversions between neighbouring layers."""
    total = 0
    for layer in layers:
        ends: list[int] = []
        for place in sorted(layer, key=position.__getitem__):
            ends.extend(sorted(position[n] for n in place.below))
        total += _inversions(ends)
    return total


def _inversions(numbers: Sequence[int]) -> int:
    """How many pairs are out of order."""
    before: list[int] = []
    count = 0
    for k, n in enumerate(numbers):
        smaller = bisect_right(before, n)
        count += k - smaller
        before.insert(smaller, n)
    return count


def _place(layers: list[list[Place]]) -> None:
    """Give every place its x: near the mean of its neighbours, without changing the order."""
    for layer in layers:
        _fit(layer, [0.0] * len(layer))
    for sweep in range(2 * SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            wanted = []
            for place in layer:
                neighbours = place.above if down else place.below
                pulls = [n.pull for n in neighbours]
                mean = sum(n.x * n.pull for n in neighbours) / sum(pulls) if pulls else place.x
                wanted.append(mean)
            _fit(layer, wanted)


def _fit(layer: list[Place], wanted: list[float]) -> None:
    """Least squares: x as near as can be to `wanted`, the order kept and no two places overlapping.

    Without the widths this is isotonic regression, which pooling adjacent violators solves; the
    widths are subtracted first and added again.
    """
    offsets = [0.0]
    for left, right in pairwise(layer):
        gap = GAP if left.is_box and right.is_box else GAP / 2
        offsets.append(offsets[-1] + (left.width + right.width) / 2 + gap)
    pools: list[tuple[float, float, int]] = []  # (weighted sum, weight, number of places)
    for place, x, offset in zip(layer, wanted, offsets, strict=True):
        weight = place.pull if place.is_box else 4.0  # a passing edge should run straight
        pool = (weight * (x - offset), weight, 1)
        while pools and pools[-1][0] / pools[-1][1] > pool[0] / pool[1]:
            total, mass, number = pools.pop()
            pool = (pool[0] + total, pool[1] + mass, pool[2] + number)
        pools.append(pool)
    means = [total / mass for total, mass, number in pools for _ in range(number)]
    for place, x, offset in zip(layer, means, offsets, strict=True):
        place.x = x + offset
