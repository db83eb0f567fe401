"""The nodes of a graph as boxes to draw, in forward order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tinygraph.base import ArgumentError, GraphError
from tinygraph.engine import Array, Parameter, Tensor, topological_order
from tinygraph.show.modules import OUTERMOST, Home, homes

MAX_NODES = 5000  # more boxes than anyone can read
FEW = 4  # numbers, shown one by one


@dataclass(frozen=True)
class Box:
    """One node as it is drawn."""

    number: int  # in forward order, from 1
    kind: str  # data, constant, parameter, state, op or module
    title: str  # name of the op or leaf
    detail: str  # dtype and shape
    settings: str  # the op with its hyper-parameters; a tooltip
    inputs: tuple[int, ...]  # indices of boxes
    cut: bool = False  # has inputs that are not drawn
    home: Home = OUTERMOST  # the module that it belongs to
    size: int = 0  # how many numbers it has
    numbers: tuple[str, ...] = ()  # its value and its gradient, where they are shown


def collect(
    outputs: tuple[Tensor, ...], depth: int | None = None, values: bool = False
) -> list[Box]:
    """A box for each node below the outputs, or for those at most `depth` edges above them.

    With `values`, numbers of the value and the gradient too.
    """
    order = topological_order(outputs)
    kept = _near(outputs, depth)
    drawn = len(order) if kept is None else len(kept)
    if drawn > MAX_NODES:
        raise GraphError(
            "show.graph",
            "outputs",
            f"at most {MAX_NODES} nodes to draw",
            drawn,
            "draw a part: show.graph(..., depth=20) stops 20 edges above the outputs, and "
            "an inner node in place of the output leaves out what comes after it",
        )
    home = homes(order)
    state = {node.inputs[i] for node in order if node.op for i in node.op.updates}
    index: dict[Tensor, int] = {}
    boxes: list[Box] = []
    for number, node in enumerate(order, start=1):
        if kept is not None and node not in kept:
            continue
        index[node] = len(boxes)
        inputs = tuple([index[x] for x in node.inputs if x in index])
        box = _box(number, node, inputs, node in state)
        numbers = _numbers(node) if values else ()
        boxes.append(replace(box, home=home[node], size=node.size, numbers=numbers))
    return boxes


def _near(outputs: tuple[Tensor, ...], depth: int | None) -> set[Tensor] | None:
    """The nodes at most `depth` edges above the outputs; None stands for all."""
    if depth is None:
        return None
    if depth < 0:
        raise ArgumentError("show.graph", "depth", "0 or more", depth)
    kept = set(outputs)
    front = list(kept)
    for _ in range(depth):
        above = dict.fromkeys(x for node in front for x in node.inputs)
        front = [x for x in above if x not in kept]
        if not front:
            break
        kept.update(front)
    return kept


def _box(number: int, node: Tensor, inputs: tuple[int, ...], is_state: bool) -> Box:
    detail = f"{node.dtype} {tuple(node.shape)}"
    if node.op is not None:
        title = f"{node.op.name}: {node.name}" if node.name else node.op.name
        cut = len(inputs) < len(node.inputs)
        return Box(number, "op", title, detail, repr(node.op), inputs, cut)
    if isinstance(node, Parameter) or node.requires_grad:
        kind = "parameter"
    elif is_state:
        kind = "state"  # running statistics: an op writes them
    elif node.size == 1 and not node.name:
        kind, detail = "constant", str(node.dtype)
        return Box(number, kind, f"{np.asarray(node.numpy()).item():.6g}", detail, "", inputs)
    else:
        kind = "data"
    return Box(number, kind, node.name or kind, detail, "", inputs)


def _numbers(node: Tensor) -> tuple[str, ...]:
    """The value and, where there is one, the gradient, in a line each."""
    lines = (f"value {in_short(node.numpy())}",)
    if node.grad is None:
        return lines
    return (*lines, f"grad {in_short(node.device.to_numpy(node.grad))}")


def in_short(array: Array) -> str:
    """The numbers of a small array; of a larger one the smallest, the mean and the largest.

    >>> in_short(np.array([0.5, -2.0])), in_short(np.arange(10))
    ('0.5 -2', 'min 0  mean 4.5  max 9')
    """
    if array.size <= FEW or array.dtype.kind not in "fiu":
        shown = [f"{x:.3g}" for x in array.ravel()[:FEW].tolist()]
        return " ".join([*shown, "…"] if array.size > FEW else shown) or "empty"
    low, mean, high = float(array.min()), float(array.mean(dtype=float)), float(array.max())
    return f"min {low:.3g}  mean {mean:.3g}  max {high:.3g}"
