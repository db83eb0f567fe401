"""Draft: a call as operators and constants, before it is a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tinygraph.engine import Array, Kept, Spec, Tensor, topological_order
from tinygraph.interop.onnx.exporters import exporter_of
from tinygraph.interop.onnx.tracing import Traced
from tinygraph.interop.onnx.writer import Writer


@dataclass
class Draft:
    """What a file will hold.

    Attributes
    ----------
    writer : Writer
        Operators and constants.
    inputs, outputs : dict from name to Spec
    state : set of str
        The constants that are parameters and buffers of the model.
    """

    writer: Writer
    inputs: dict[str, Spec]
    outputs: dict[str, Spec]
    state: set[str]

    @property
    def nodes(self) -> list[Any]:
        return self.writer.nodes

    @property
    def constants(self) -> dict[str, Array]:
        return self.writer.constants


def draft(traced: Traced, output_names: Mapping[str, str]) -> Draft:
    """Write the nodes of a call down, inputs before users."""
    names = [output_names.get(name, name) for name in traced.outputs]
    order = topological_order(traced.outputs.values())
    leaves = {x: name for name, x in traced.inputs.items()}
    named = names_of_leaves([x for x in order if x.op is None and x not in leaves], traced, names)
    w = Writer([*names, *traced.inputs, *named.values()])
    for node, name in {**leaves, **named}.items():
        w.name(node, name)
    w.note_readers(order, traced.outputs.values())
    for node in order:
        if node.op is not None:
            w.name(node, exporter_of(node.op)(w, node, *[w.name_of(x) for x in node.inputs]))
        elif node not in leaves:
            w.constants[w.name_of(node)] = node.numpy()
            if not isinstance(node, Kept) and not node.requires_grad:
                w.asked.add(w.name_of(node))
    for name, node in zip(names, traced.outputs.values(), strict=True):
        w.output(node, name)
    w.drop_unread(names)
    state = {name for node, name in named.items() if node in traced.leaves}
    inputs = {name: x.spec for name, x in traced.inputs.items()}
    specs = [node.spec for node in traced.outputs.values()]
    return Draft(w, inputs, dict(zip(names, specs, strict=True)), state)


def names_of_leaves(found: list[Tensor], traced: Traced, outputs: list[str]) -> dict[Tensor, str]:
    """Names for the leaves that are no inputs: the model's own, that of the leaf, or a number."""
    taken, made = {*traced.inputs, *outputs}, {}
    for node in sorted(found, key=lambda x: x not in traced.leaves):
        stem = traced.leaves.get(node) or node.name or "constant"
        name, count = stem, 1
        while name in taken or name == "constant":
            name, count = f"{stem}_{count}", count + 1
        taken.add(name)
        made[node] = name
    return made
