"""kernel_table: which kernels a graph runs, and what each of them moves, before any of them runs.

    forward    each node's `forward_kernel`, in topological order
    backward   each node's `backward_kernel`, in reverse

Nothing is executed: twins of the nodes stand for them, with uninitialised arrays, and launches are
taken down instead of made.  So it needs no GPU, no compiler and next to no memory, and the values,
gradients and running statistics of the graph stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tinygraph.cuda.recording import ArrayUse, RecordedLaunch, recording
from tinygraph.device import EMULATOR
from tinygraph.frozen import frozen
from tinygraph.graph import Graph, run_backward
from tinygraph.memory import eager_memory
from tinygraph.op import Gradients, Op
from tinygraph.random import default_generator
from tinygraph.running import Runner
from tinygraph.shapes import Array, Shape
from tinygraph.tensor import Tensor, leaf
from tinygraph.text_table import aligned

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


@frozen
class KernelRow:
    """One launch of a graph.

    Attributes
    ----------
    phase : str
        "forward" or "backward".
    op : str
        The name of the node's op.
    kernel : str
        With template arguments.
    macros : dict of str
    grid, block : (x, y, z)
    shared : int
        Bytes of dynamic shared memory.
    reads, writes : tuple of NamedArray
    bytes : int
        Bytes that must move between the kernel and global memory: each array once for reading,
        once for writing.  What a kernel fetches again and again is not counted.
    operations : int or None
        Floating-point operations; None where the kernel's file does not state them.
    """

    phase: str
    op: str
    kernel: str
    macros: dict[str, str]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    reads: tuple[NamedArray, ...]
    writes: tuple[NamedArray, ...]
    bytes: int
    operations: int | None


class KernelTable(Sequence[KernelRow]):
    """The rows of a graph in the order in which they would run; `print` shows them.

    Attributes
    ----------
    bytes, operations : int
        Sums over all rows.
    """

    def __init__(self, rows: Sequence[KernelRow]) -> None:
        self.rows = tuple(rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def bytes(self) -> int:
        return sum([row.bytes for row in self.rows])

    @property
    def operations(self) -> int:
        return sum([row.operations or 0 for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts, as JSON takes them."""
        return {
            "bytes": self.bytes,
            "operations": self.operations,
            "kernels": [asdict(row) for row in self.rows],
        }

    def __str__(self) -> str:
        header = ("phase", "op", "kernel", "grid", "block", "MB", "MFLOP", "reads -> writes")
        cells = [header, *[_cells(row) for row in self.rows]]
        total = ("", "", f"{len(self)} launches", "", "", *_millions(self.bytes, self.operations))
        # The last column is as wide as it likes, and the two before it are numbers.
        return "\n".join(aligned([*cells, (*total, "")], left=(0, 1, 2, 3, 4, 7)))


def _cells(row: KernelRow) -> tuple[str, ...]:
    macros = "".join([f" {name}={value}" for name, value in row.macros.items()])
    moved = (", ".join(map(str, row.reads)), ", ".join(map(str, row.writes)))
    return (
        row.phase,
        row.op,
        row.kernel + macros,
        _extent(row.grid),
        _extent(row.block),
        *_millions(row.bytes, row.operations),
        " -> ".join(moved),
    )


def _millions(moved: int, operations: int | None) -> tuple[str, str]:
    return f"{moved / 1e6:.3f}", "-" if operations is None else f"{operations / 1e6:.3f}"


def _extent(sizes: tuple[int, int, int]) -> str:
    used = max([1, *[i + 1 for i in range(3) if sizes[i] > 1]])
    return "x".join(map(str, sizes[:used]))


def tabulate(graph: Graph) -> KernelTable:
    """The table of a graph; see `Graph.kernel_table`."""
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
    return KernelTable(list(_rows(launches, marks, names)))


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
    twin.requires_grad = True in needs and twin.dtype.kind == "f"
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


def _rows(launches: Sequence[RecordedLaunch], marks: _Marks, names: _Names) -> Iterator[KernelRow]:
    ends = [start for start, _, _ in marks[1:]] + [len(launches)]
    for (start, phase, op), end in zip(marks, ends, strict=True):
        for launch in launches[start:end]:
            uses = [(use, names.of(use, op)) for use in launch.arrays if use.bytes]
            found = [(use, NamedArray(n, use.shape, use.dtype.name, use.bytes)) for use, n in uses]
            yield KernelRow(
                phase,
                op,
                launch.kernel.name,
                dict(launch.kernel.source.defines),
                launch.grid,
                launch.block,
                launch.shared,
                tuple([buffer for use, buffer in found if use.reads]),
                tuple([buffer for use, buffer in found if use.writes]),
                launch.bytes,
                launch.operations,
            )
