"""kernel_table: which kernels a graph runs, and what each of them moves, before any of them runs.

    forward    each node's `forward_kernel`, in topological order
    backward   each node's `backward_kernel`, in reverse

Nothing is executed: twins of the nodes stand for them, with uninitialised arrays, and launches are
taken down instead of made.  So it needs no GPU, no compiler and next to no memory, and the values,
gradients and running statistics of the graph stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from tinygraph.base import TinygraphError, frozen
from tinygraph.cuda.devices import EMULATOR
from tinygraph.cuda.recording import ArrayUse, RecordedLaunch, recording
from tinygraph.engine import Array, Gradients, Op, Runner, Shape, Spec, Tensor, eager_memory, leaf
from tinygraph.engine.graph import Graph, run_backward
from tinygraph.engine.random import default_generator
from tinygraph.watch.costs import Cost, CostTable

_Marks = list[tuple[int, str, str]]


@frozen
class NamedArray:
    """An array that a kernel reads or writes.

    Attributes
    ----------
    name : str
        A leaf by its name, a node by its op, "grad of ..." a gradient; anything else by the op
        that asked for it.
    shape, dtype
    bytes : int
    """

    name: str
    shape: Shape
    dtype: str
    bytes: int

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}{list(self.shape)}"


def kernel_table(graph: Graph, gpu: str | None = None) -> CostTable:
    """The table of a graph; see `Graph.kernel_table`."""
    predicting = prediction_on(gpu)
    draws = default_generator.state_dict()
    names = _Names()
    marks: _Marks = []  # from launch number ... on: this phase, this op
    try:
        with recording(execute=False) as launches:
            twins = _forward(graph.nodes, launches, names, marks)
            ends = [twins[node] for node in graph.outputs if twins[node].requires_grad]
            if ends:
                with _Naming(launches, names, marks):
                    run_backward(ends, [np.empty(end.shape, end.dtype) for end in ends])
    finally:
        default_generator.load_state_dict(draws)
    rows = tuple(_rows(launches, marks, names, predicting))
    table = CostTable(rows)
    return CostTable(rows, predicting.notes(table)) if predicting else table


def _forward(
    nodes: Sequence[Tensor], launches: Sequence[RecordedLaunch], names: _Names, marks: _Marks
) -> dict[Tensor, Tensor]:
    """The twin of each node, evaluated in topological order."""
    twins: dict[Tensor, Tensor] = {}
    for node in nodes:
        if node.op is None:
            twins[node] = _leaf_twin(node)
            names.give(twins[node].value, node.name or names.numbered("leaf"))
        else:
            marks.append((len(launches), "forward", node.op.name))
            twins[node] = _twin(node, [twins[x] for x in node.inputs])
            names.give(twins[node].value, names.numbered(node.op.name))
    return twins


class _Naming(Runner):
    """Gives each whole gradient its name, and marks where the launches of its node begin."""

    def __init__(self, launches: Sequence[RecordedLaunch], names: _Names, marks: _Marks) -> None:
        self.launches, self.names, self.marks = launches, names, marks

    def backward(self, node: Tensor, mem: Any, grad: Array, saved: Any) -> Any:
        self.names.give(grad, f"grad of {self.names.of_array(node.value)}")
        self.marks.append((len(self.launches), "backward", node.op.name))
        return self.below.backward(node, mem, grad, saved)


class _Leaf(Op):
    """What a leaf is made by: so its gradient arrives where every other does."""

    def backward_kernel(
        self, mem: Any, grad: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        return ()


def _leaf_twin(node: Tensor) -> Tensor:
    """A leaf of the same shape and dtype."""
    twin = leaf(np.empty(node.shape, node.dtype), EMULATOR)
    twin.requires_grad = node.requires_grad
    twin.op = _Leaf()
    return twin


def _twin(node: Tensor, inputs: Sequence[Tensor]) -> Tensor:
    """The node, evaluated on uninitialised arrays: as `evaluate`, without looking at values."""
    needs = tuple([x.requires_grad for x in inputs])
    arrays = [EMULATOR.contiguous(x.value) for x in inputs]
    value, saved = node.op.forward_kernel(eager_memory(needs, EMULATOR), *arrays)
    twin = leaf(np.asarray(value), EMULATOR)
    twin.op, twin.inputs, twin.needs, twin.saved = node.op, tuple(inputs), needs, saved
    twin._requires_grad = True in needs and twin.dtype.kind == "f"
    return twin


class _Names:
    """What the arrays are called, by where their memory begins."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._counts: dict[str, int] = {}

    def numbered(self, name: str) -> str:
        """The name; the second time "name 2", and so on."""
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return name if count == 1 else f"{name} {count}"

    def give(self, array: Array, name: str) -> None:
        """Name an array, unless it is a view of one that has a name."""
        if array.size:
            self._names.setdefault(_begin(array), name)

    def of_array(self, array: Array) -> str:
        return self._names.get(_begin(array), "?")

    def of(self, use: ArrayUse, op: str) -> str:
        if use.address not in self._names:
            self._names[use.address] = self.numbered(f"{op}: {use.parameter}")
        return self._names[use.address]


def _begin(array: Any) -> int:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return int(array.__array_interface__["data"][0])


def _rows(
    launches: Sequence[RecordedLaunch], marks: _Marks, names: _Names, predicting: Any
) -> Iterator[Cost]:
    ends = [start for start, _, _ in marks[1:]] + [len(launches)]
    for (start, phase, op), end in zip(marks, ends, strict=True):
        for launch in launches[start:end]:
            uses = [(use, names.of(use, op)) for use in launch.arrays if use.bytes]
            found = [(use, NamedArray(n, use.shape, use.dtype.name, use.bytes)) for use, n in uses]
            yield cost_of(
                launch,
                phase=phase,
                op=op,
                grid=launch.grid,
                block=launch.block,
                shared=launch.shared,
                reads=tuple([buffer for use, buffer in found if use.reads]),
                writes=tuple([buffer for use, buffer in found if use.writes]),
                **(predicting.of(launch) if predicting else {}),
            )


def prediction_on(gpu: str | None) -> Any:
    """What predicts launches on a GPU; None without one.

    It asks NVIDIA's compiler, and is loaded where it is asked for.
    """
    prediction = gpu and import_module("tinygraph.watch.prediction")
    return prediction and prediction.predictions_on(gpu)


def cost_of(launch: RecordedLaunch, **more: Any) -> Cost:
    """What a launch says of itself, and what more is known of it."""
    return Cost(
        kernel=launch.kernel.name,
        macros=dict(launch.kernel.source.defines),
        bytes=launch.bytes,
        operations=launch.operations,
        **more,
    )


def operations_of(
    op: Op, specs: Sequence[Spec], needs: tuple[bool, ...]
) -> tuple[float | None, float | None]:
    """How many floating-point operations an op does forward and backward, from shapes alone.

    They are those that its kernels state: one statement serves the kernel and the numpy body
    beside it that computes the same.  None where there is no kernel, or where its file states
    none; None for backward where no gradient is wanted.

    >>> import tinygraph as tg
    >>> x, w = tg.zeros((64, 100)), tg.Parameter(tg.zeros((10, 100)))
    >>> node = tg.linear(x, w)
    >>> operations_of(node.op, [x.spec, w.spec], node.needs)  # 2 * 64 * 10 * 100 each
    (128000, 128000)
    """
    inputs = [leaf(np.empty(spec.shape, spec.dtype), EMULATOR) for spec in specs]
    for x, needed in zip(inputs, needs, strict=True):
        x.requires_grad = needed
    node = leaf(np.empty(()), EMULATOR)
    node.op, node.inputs = op, tuple(inputs)
    try:
        rows = kernel_table(Graph(node))
    except TinygraphError:  # no kernel, or none that states its operations in a way we can read
        return None, None
    forward, backward = (
        [row.operations for row in rows if row.phase == phase] for phase in ("forward", "backward")
    )
    return _sum(forward), _sum(backward) if True in needs else None


def _sum(numbers: Sequence[float | None]) -> float | None:
    return None if None in numbers else sum([number or 0 for number in numbers])
