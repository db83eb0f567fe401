"""Writer: an ONNX graph under way, to which exporters add operators and constants.

Values are known by their names.  A graph's constants are arrays until the file is made, so that
those of two batch sizes can be compared (batch.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tinygraph.engine import Array, Spec, Tensor
from tinygraph.interop.onnx.library import onnx

Named = tuple[str, Spec]  # an input or an output of a graph

DEFAULT_DOMAIN = ""
SMALL = 256  # bytes of a constant that is looked up among the others


def element_type(dtype: Any) -> int:
    """ONNX's number for a dtype of numpy."""
    return int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


class Writer:
    """The operators and constants of a graph, in the order in which they are added.

    Attributes
    ----------
    nodes : list of onnx.NodeProto
    constants : dict from name to array
        Parameters, and what exporters ask for.
    asked : set of str
        The names of the latter, which no training changes.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}
        self.asked: set[str] = set()
        self._taken = set(taken)
        self._counts: Counter[str] = Counter()
        self._readers: dict[Tensor, list[Tensor]] = {}
        self._names: dict[Tensor, str] = {}
        self._outputs: set[str] = set()

    # ---- what exporters call ----------------------------------------------------------------

    def node(self, kind: str, *inputs: str, domain: str = DEFAULT_DOMAIN, **attributes: Any) -> str:
        """Add an operator with one output, and return its name.

        An input that is left out is "".  Attributes that are None are left out.
        """
        return self.nodes_of(kind, 1, *inputs, domain=domain, **attributes)[0]

    def nodes_of(
        self, kind: str, outputs: int, *inputs: str, domain: str = DEFAULT_DOMAIN, **attributes: Any
    ) -> list[str]:
        """Add an operator with several outputs, and return their names."""
        names = [self.fresh(kind.lower()) for _ in range(outputs)]
        given = {name: value for name, value in attributes.items() if value is not None}
        made = onnx.helper.make_node(kind, inputs, names, names[0], domain=domain, **given)
        self.nodes.append(made)
        return names

    def constant(self, array: Any, dtype: Any = None, name: str = "constant") -> str:
        """Add an array, and return its name."""
        name = self.fresh(name)
        self.asked.add(name)
        self.constants[name] = np.array(array, dtype, order="C")
        return name

    def ints(self, *values: int) -> str:
        """Add an array (n,) of int64: axes, a shape, bounds of slices."""
        return self.constant(values, np.int64)

    def cast(self, x: str, dtype: Any) -> str:
        """The same numbers in another dtype."""
        return self.node("Cast", x, to=element_type(dtype))

    def as_dtype(self, x: str, spec: Any, dtype: Any) -> str:
        """`x`, whose dtype `spec` (a Tensor or Spec) has, in a dtype: itself where it is that."""
        return x if spec.dtype == dtype else self.cast(x, dtype)

    def readers(self, node: Tensor) -> Sequence[Tensor]:
        """The nodes of the graph that have a node as an input; an output is read by itself."""
        return self._readers.get(node, ())

    def name_of(self, node: Tensor) -> str:
        """The name of a value that is in the file already."""
        return self._names[node]

    def inner(self) -> Writer:
        """A writer of the body of an operator such as Scan: its constants are those of this one."""
        made = Writer()
        made.constants, made.asked = self.constants, self.asked
        made._taken, made._counts = self._taken, self._counts
        return made

    # ---- what the room calls ----------------------------------------------------------------

    def name(self, node: Tensor, name: str) -> None:
        """Say under which name the value of a node is in the file."""
        self._names[node] = name

    def fresh(self, stem: str) -> str:
        """A name that nothing else has."""
        while True:
            self._counts[stem] += 1
            name = f"{stem}_{self._counts[stem]}"
            if name not in self._taken:
                self._taken.add(name)
                return name

    def note_readers(self, order: Iterable[Tensor], outputs: Iterable[Tensor]) -> None:
        """Remember who reads what."""
        for node in order:
            for x in dict.fromkeys(node.inputs):
                self._readers.setdefault(x, []).append(node)
        for node in outputs:
            self._readers.setdefault(node, []).append(node)

    def output(self, node: Tensor, name: str) -> None:
        """Let a value be an output: it gets that name, or a copy that has it, where it is an input
        or another output too."""
        made = self._names[node]
        if made in self._outputs or not any(made in maker.output for maker in self.nodes):
            self.nodes.append(onnx.helper.make_node("Identity", [made], [name], name))
        else:
            for each in walk(self.nodes):
                each.input[:] = [name if old == made else old for old in each.input]
                each.output[:] = [name if old == made else old for old in each.output]
            self._names = {x: name if old == made else old for x, old in self._names.items()}
        self._outputs.add(name)

    def drop_unread(self, outputs: Iterable[str]) -> None:
        """Remove operators and constants that no output depends on."""
        read, kept = set(outputs), []
        for node in reversed(self.nodes):
            if read.intersection(node.output):
                kept.append(node)
                read.update(*[inner.input for inner in walk([node])])
        self.nodes = kept[::-1]
        self.constants = {name: a for name, a in self.constants.items() if name in read}

    def share_constants(self, kept: Collection[str]) -> None:
        """Keep one of several small constants that are equal; those of `kept` names stay."""
        first: dict[Any, str] = {}
        same: dict[str, str] = {}
        for name, a in self.constants.items():
            if a.nbytes <= SMALL and name not in kept:
                same[name] = first.setdefault((a.dtype, a.shape, a.tobytes()), name)
        for each in walk(self.nodes):
            each.input[:] = [same.get(name, name) for name in each.input]
        left = [name for name in self.constants if same.get(name, name) == name]
        self.constants = {name: self.constants[name] for name in left}


def walk(nodes: Iterable[Any]) -> Iterator[Any]:
    """Operators, and those in the bodies of operators."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from walk(attribute.g.node)
