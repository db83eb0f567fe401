"""Random graphs of ops: nodes with several users, several outputs, leaves that nothing uses.

    x0 ---.--> (mul) --> n2 --.--> (tanh) --> n3 ---> output
           '-----^             '--> (add) <--- x1

A graph is drawn as data, a list of steps, and not as nodes: so it can be printed, shrunk, built as
often as a test likes, and evaluated by something that is not tinygraph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from tinygraph import ops
from tinygraph.engine import Array, Shape, Tensor, normalize_axes, reduced_shape
from tinygraph.testing.strategies.arrays import numbers, seeds

UNARY = ("neg", "tanh", "sigmoid", "relu", "abs")  # same shape; none grows without bound
BINARY = ("add", "mul", "sub", "maximum")
REDUCING = ("sum", "mean")


class Step(NamedTuple):
    """One node: the name of its op, which earlier nodes it takes (leaves first), keywords."""

    op: str
    inputs: tuple[int, ...]
    kwargs: dict[str, Any] = {}  # noqa: RUF012  # never changed


@dataclass(frozen=True)
class GraphProblem:
    """A graph as data.

    Attributes
    ----------
    leaves : tuple of ndarray
        float64 values of the leaves, which are the first nodes.
    trainable : tuple of bool
        Which leaves require a gradient; at least one that an output depends on.
    steps : tuple of Step
        The other nodes, each after its inputs.
    outputs : tuple of int
        The nodes that are asked for.
    functions : mapping of str to callable
        The user's own ops, by the name in a step; all other names are public ops of tinygraph.
    """

    leaves: tuple[Array, ...]
    trainable: tuple[bool, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict, repr=False)

    def nodes(self, dtype: Any = np.float64, device: str = "cpu") -> list[Tensor]:
        """New leaves in that dtype, on a device; some require a gradient."""
        values = zip(self.leaves, self.trainable, strict=True)
        return [Tensor(a, wanted, dtype, device) for a, wanted in values]

    def build(self, leaves: Sequence[Any]) -> tuple[Tensor, ...]:
        """Apply the steps to leaves, tensors or arrays, and return the outputs."""
        nodes = list(leaves)
        for step in self.steps:
            function = self.functions.get(step.op) or getattr(ops, step.op)
            nodes.append(function(*[nodes[i] for i in step.inputs], **step.kwargs))
        return tuple([nodes[i] for i in self.outputs])


def graphs(
    max_steps: int = 8, functions: Mapping[str, tuple[Callable[..., Any], int]] | None = None
) -> st.SearchStrategy[GraphProblem]:
    """Random graphs of public ops, and of your own.

    Parameters
    ----------
    max_steps : int
        The largest number of nodes that are no leaves.
    functions : mapping, optional
        Ops of your own that act element by element: name -> (function, number of inputs).  Inputs
        of one call have one shape.

    Returns
    -------
    strategy of GraphProblem
        Shrinks to few steps over leaves with few elements.

    Examples
    --------
    >>> from hypothesis import find
    >>> def uses_a_node_twice(graph):
    ...     return any(len(set(step.inputs)) < len(step.inputs) for step in graph.steps)
    >>> find(graphs(), uses_a_node_twice).steps
    (Step(op='add', inputs=(0, 0), kwargs={}),)
    """
    return _graphs(max_steps, dict(functions or {}))


@st.composite
def _graphs(
    draw: st.DrawFn, max_steps: int, functions: dict[str, tuple[Callable[..., Any], int]]
) -> GraphProblem:
    m, n = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    among: list[Shape] = [(), (n,), (m, n), (n, m), (m, 1)]
    shapes = [draw(st.sampled_from(among)) for _ in range(draw(st.integers(1, 3)))]
    leaves = tuple(numbers(draw(seeds), shape, -1.0, 1.0) for shape in shapes)
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, max_steps))):
        step = _step(draw, shapes, functions)
        steps.append(step)
        shapes.append(_shape(step, shapes))
    used = {i for step in steps for i in step.inputs}
    ends = tuple(i for i in range(len(leaves), len(shapes)) if i not in used)
    # Besides what nothing uses: a node with users of its own, or a leaf.
    outputs = (*ends, *draw(st.sets(st.integers(0, len(shapes) - 1), max_size=1)) - {*ends})
    reached = sorted(_below(outputs, steps, len(leaves)))
    sure = draw(st.sampled_from(reached))
    trainable = tuple(i == sure or draw(st.booleans()) for i in range(len(leaves)))
    own = {name: function for name, (function, _) in functions.items()}
    return GraphProblem(leaves, trainable, tuple(steps), outputs, own)


def _inputs(
    name: str, shapes: list[Shape], functions: dict[str, tuple[Callable[..., Any], int]]
) -> list[tuple[int, ...]]:
    """What the op of that name can be applied to."""
    if name in functions:
        return _alike(shapes, functions[name][1])
    if name in BINARY or name == "matmul":
        pairs = product(range(len(shapes)), repeat=2)
        return [pair for pair in pairs if _fit(name, *[shapes[i] for i in pair])]
    return [(i,) for i, shape in enumerate(shapes) if name != "transpose" or len(shape) == 2]


def _fit(name: str, a: Shape, b: Shape) -> bool:
    """Whether two shapes can be those of the operands."""
    if name == "matmul":
        return len(a) == len(b) == 2 and a[1] == b[0]
    return all(x == y or 1 in (x, y) for x, y in zip(reversed(a), reversed(b), strict=False))


def _step(
    draw: st.DrawFn, shapes: list[Shape], functions: dict[str, tuple[Callable[..., Any], int]]
) -> Step:
    """One more node; where no node fits the op that was drawn, it is a sum of two."""
    name = draw(st.sampled_from([*BINARY, *UNARY, *REDUCING, "matmul", "transpose", *functions]))
    if not _inputs(name, shapes, functions):
        name = BINARY[0]
    inputs = draw(st.sampled_from(_inputs(name, shapes, functions)))
    if name not in REDUCING:
        return Step(name, inputs)
    ndim = len(shapes[inputs[0]])
    axis = draw(st.sampled_from([None, *range(-ndim, ndim)]))
    return Step(name, inputs, {"axis": axis, "keepdims": draw(st.booleans())})


def _alike(shapes: list[Shape], count: int) -> list[tuple[int, ...]]:
    """`count` nodes of one shape: one node again and again, or neighbours in a list of equals."""
    found = []
    for shape in dict.fromkeys(shapes):
        same = [i for i, other in enumerate(shapes) if other == shape]
        for start in range(len(same)):
            found.append((same[start],) * count)
            found.append(tuple(same[(start + k) % len(same)] for k in range(count)))
    return list(dict.fromkeys(found))


def _shape(step: Step, shapes: list[Shape]) -> Shape:
    """The shape of a step's output."""
    first = shapes[step.inputs[0]]
    if step.op in BINARY:
        return np.broadcast_shapes(first, shapes[step.inputs[1]])
    if step.op in REDUCING:
        axis, kept = step.kwargs["axis"], step.kwargs["keepdims"]
        return reduced_shape(first, normalize_axes(step.op, axis, len(first)), kept)
    if step.op == "matmul":
        return (first[0], shapes[step.inputs[1]][1])
    return first[::-1] if step.op == "transpose" else first


def _below(outputs: tuple[int, ...], steps: list[Step], leaves: int) -> set[int]:
    """The leaves that some output depends on."""
    reached, stack = set(), list(outputs)
    while stack:
        node = stack.pop()
        if node not in reached:
            reached.add(node)
            stack.extend(steps[node - leaves].inputs if node >= leaves else ())
    return {i for i in reached if i < leaves}
