"""What a walk begins with: arrays of leaves, forward; of outputs, and what ops saved, backward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinygraph.base import DtypeError, GraphError, ShapeError, above, nearest, unmasked
from tinygraph.engine.running import here
from tinygraph.engine.spec import Array
from tinygraph.engine.tensor import Tensor

FREED = object()  # stands in Tensor.saved after a backward that did not retain the graph


def fed(
    nodes: Sequence[Tensor], feeds: Mapping[Tensor | str, Any] | None
) -> list[tuple[Tensor, Array]]:
    """The leaves that are fed with the arrays that they get, checked; nothing is changed.

    Raises
    ------
    GraphError
        A feed names no leaf among the nodes, or a name that several leaves have.
    DtypeError
        A feed has another kind of number than the leaf.
    """
    leaves = [node for node in nodes if node.op is None]
    matched = [(_leaf(leaves, key), array) for key, array in (feeds or {}).items()]
    return [(leaf, _cast(leaf, array)) for leaf, array in matched]


def _leaf(leaves: list[Tensor], key: Tensor | str) -> Tensor:
    """The leaf that a key means: itself, or the only one of that name."""
    found = [x for x in leaves if (x.name == key if isinstance(key, str) else x is key)]
    if len(found) != 1:
        names = sorted({x.name for x in leaves if x.name})
        what = "more than one leaf has that name" if found else "no leaf of this graph"
        label = repr(key) if isinstance(key, str) else f"a {type(key).__name__}"
        expected = f"one of the leaves {names}"
        way_out = nearest(str(key), names) or "feed the leaf itself"
        raise GraphError("Graph.forward", "feeds", expected, f"{label}: {what}", way_out)
    return found[0]


def _cast(leaf: Tensor, data: Any) -> Array:
    """The fed array with the leaf's dtype, where no value is lost by that."""
    unmasked("Graph.forward", f"feed of {leaf.name or 'a leaf'}", data)
    array = data if leaf.device.owns(data) else np.asarray(data)
    if array.dtype != leaf.dtype:
        if not np.can_cast(array.dtype, leaf.dtype, "same_kind"):
            raise DtypeError(
                "Graph.forward",
                f"feed of {leaf.name or 'a leaf'}",
                str(leaf.dtype),
                array.dtype,
                "convert the array with .astype",
            )
        array = array.astype(leaf.dtype)
    return leaf.device.from_numpy(array)


def gradients_of(outputs: Sequence[Tensor], gradients: Any) -> Sequence[Any]:
    """One upstream gradient for each output, None where none was given."""
    if gradients is None:
        return [None] * len(outputs)
    if len(outputs) == 1 and not isinstance(gradients, (list, tuple)):
        return [gradients]
    if len(gradients) != len(outputs):
        expected = f"{len(outputs)}, one for each output"
        way_out = "pass None for an output of a single element"
        raise GraphError("Graph.backward", "gradients", expected, len(gradients), way_out)
    found: Sequence[Any] = gradients
    return found


def upstream_of(
    outputs: Sequence[Tensor], gradients: Sequence[Any], create_graph: bool
) -> list[Array]:
    """The upstream gradients of some outputs, checked; gradients have no graph of their own."""
    if create_graph:
        raise GraphError(
            "backward: there are no second derivatives (create_graph=True): the backward of an op "
            "computes with arrays, not with nodes. Way out: write the first derivative as ops of "
            "the graph, and differentiate that"
        )
    return [_upstream(node, given) for node, given in zip(outputs, gradients, strict=True)]


def _upstream(node: Tensor, gradient: Any) -> Array:
    """The upstream gradient of an output: what was given, checked, or 1 for a single element."""
    if not node.requires_grad:
        raise GraphError(
            "backward: nothing below this node requires a gradient. Way out: make a leaf with "
            "requires_grad=True or use tg.Parameter, and compute outside of tg.no_grad()"
        )
    if gradient is None:
        if node.size != 1:
            expected = f"an upstream gradient of shape {node.shape}"
            way_out = "pass one, or reduce the output first, for example with .sum()"
            raise ShapeError("backward", "gradient", expected, "none", way_out)
        return node.device.full(node.shape, node.dtype, 1)
    if not node.device.owns(unmasked("backward", "gradient", gradient)):
        gradient = np.asarray(gradient)
    if gradient.dtype != node.dtype:
        gradient = gradient.astype(node.dtype)
    array = node.device.from_numpy(gradient)
    if array.shape != node.shape:
        raise ShapeError("backward", "gradient", f"shape {node.shape}", array.shape)
    return array


def weighted(outputs: Sequence[Tensor], upstream: list[Array]) -> list[Array]:
    """The upstream gradients as they count: those of a part of a batch less than 1."""
    weight = here.top.weight
    if weight == 1:
        return upstream
    return [
        above.times(node.device, gradient, weight)
        for node, gradient in zip(outputs, upstream, strict=True)
    ]


def refuse_freed(order: Sequence[Tensor]) -> None:
    """Before anything is changed: every node must still have what its op saved."""
    for node in order:
        if node.saved is FREED:
            raise GraphError(
                f"backward: what {node.op.name} saved was freed by an earlier backward (or never "
                "saved, under no_grad). Way out: backward(retain_graph=True) the first time, or "
                "compute the graph again"
            )
