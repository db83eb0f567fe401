"""Graph: forward in topological order, backward in reverse.  There is nothing else in the engine.

Forward visits a node after all of its inputs.  Backward visits it after everything that used it, so
that the gradients from all uses have been added up before the node passes them on:

    gradient of a node = sum over its uses of (gradient of the use) * d use / d node
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tinygraph.base import GraphError, above
from tinygraph.engine.device import Device
from tinygraph.engine.feeds import FREED, fed, gradients_of, refuse_freed, upstream_of, weighted
from tinygraph.engine.hooks import through_hooks
from tinygraph.engine.memory import eager_memory
from tinygraph.engine.op import differentiate, evaluate
from tinygraph.engine.promises import let_go
from tinygraph.engine.running import here
from tinygraph.engine.spec import Array
from tinygraph.engine.tensor import Tensor


def topological_order(outputs: Iterable[Tensor], only_differentiable: bool = False) -> list[Tensor]:
    """All nodes that the outputs depend on, inputs before users.

    Depth first, with a stack of our own: a node goes down once to queue its inputs and is written
    down when they are all done.  A recursion would overflow on a deep graph.
    """
    order: list[Tensor] = []
    seen: set[Tensor] = set()
    stack = [(node, False) for node in reversed(list(outputs))]
    while stack:
        node, inputs_done = stack.pop()
        if inputs_done:
            order.append(node)
            continue
        if node in seen or (only_differentiable and not node._requires_grad):
            continue
        seen.add(node)
        if node.inputs:
            stack.append((node, True))
            stack.extend([(x, False) for x in reversed(node.inputs) if x not in seen])
        else:
            order.append(node)
    return order


class Graph:
    """The graph below some outputs, as a thing that can be run again and walked backwards.

    Parameters
    ----------
    *outputs : Tensor
        At least one node.

    Attributes
    ----------
    nodes : list of Tensor
        Every node that the outputs depend on, in topological order, leaves included.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> x = tg.Tensor([1.0, 2.0], name="x")
    >>> w = tg.Parameter([3.0, 4.0], name="w")
    >>> graph = tg.Graph((x * w).sum())
    >>> [node.op.name if node.op else node.name for node in graph.nodes]
    ['x', 'w', 'mul', 'sum']
    >>> (loss,) = graph.forward({"x": np.array([10.0, 0.0], np.float32)})
    >>> loss.item()
    30.0
    >>> graph.backward()
    >>> w.grad
    array([10.,  0.], dtype=float32)
    """

    def __init__(self, *outputs: Tensor) -> None:
        if not outputs or not all(isinstance(node, Tensor) for node in outputs):
            got = [type(node).__name__ for node in outputs]
            raise GraphError("Graph", "outputs", "Tensors, at least one", got)
        self.outputs = outputs
        self.nodes = topological_order(outputs)

    def forward(self, feeds: Mapping[Tensor | str, Any] | None = None) -> tuple[Tensor, ...]:
        """Evaluate every node again, in topological order, and return the outputs.

        Parameters
        ----------
        feeds : mapping from leaf (or its name) to array, optional
            New values.  A shape may differ from the old one as long as the ops allow it: another
            batch size, say.  Leaves that are not fed keep their value.

        Returns
        -------
        tuple of Tensor
            The same output nodes, with new values.

        Raises
        ------
        GraphError
            A feed names no leaf of this graph, or a name that several leaves have.
        DtypeError
            A feed has another kind of number than the leaf: floats for labels, say.
        """
        for node, array in fed(self.nodes, feeds):  # all are good before the first leaf changes
            node._value = array
        for node in self.nodes:
            if node.op is not None:
                evaluate(node)
                if not here.top.remembers:
                    node.saved = FREED
        return self.outputs

    def backward(self, gradients: Any = None, retain_graph: bool = False) -> None:
        """Add the gradients of the outputs to `.grad` of every leaf that requires one.

        Parameters
        ----------
        gradients : array_like or sequence of them, optional
            The upstream gradient of each output; a single array where there is a single output.
            An output with one element can do without: 1.
        retain_graph : bool
            Keep what the ops saved, so that backward can be called again.

        Raises
        ------
        GraphError, ShapeError
            As for `Tensor.backward`.
        """
        run_backward(self.outputs, gradients_of(self.outputs, gradients), retain_graph)

    def kernel_table(self, gpu: str | None = None) -> Any:
        """Which kernels this graph runs on a device that has them, before any of them runs.

        Parameters
        ----------
        gpu : str, optional
            "h200", ...: predict what each launch takes there; see cuda/data_sheets.py.

        Returns
        -------
        CostTable
            A row for each launch, forward and backward; see `tinygraph.watch.costs`.
        """
        return above.kernel_table(self, gpu)


def run_backward(
    outputs: Sequence[Tensor],
    gradients: Sequence[Any],
    retain_graph: bool = False,
    create_graph: bool = False,
    into: dict[Tensor, Any] | None = None,
) -> None:
    """The reverse walk from some outputs; None stands for an upstream gradient of 1.

    The gradients of the nodes in `into` go there, and nothing into any `.grad`.
    """
    upstream = weighted(outputs, upstream_of(outputs, gradients, create_graph))
    walk = partial(_walk_back, outputs, upstream, retain_graph, into)
    here.top.walk_back(walk, outputs, gradients)


@np.errstate(all="ignore")  # inf and nan are results, not accidents
def _walk_back(
    outputs: Sequence[Tensor], upstream: Sequence[Array], retain_graph: bool, into: Any
) -> None:
    """`pending` holds the gradients of nodes that are not visited yet; nothing else holds them."""
    receive = here.top.receive
    pending: dict[Tensor, Array] = {}
    ours: set[Tensor] = set()  # nodes whose pending array was made here, and may be added into

    def more(node: Tensor, grad: Array) -> Array:
        """A second gradient reaches a node, or a third.  The first one was only borrowed."""
        total: Array = here.top.add_up(_added, pending[node], grad, node.device, node in ours)
        ours.add(node)
        return total

    def pass_on(node: Tensor, grad: Array) -> None:
        for x, g in differentiate(node, grad):
            pending[x] = receive(node, x, g, pending.get(x), more)
        if not retain_graph:
            node.saved = FREED

    order = topological_order(outputs, only_differentiable=True)
    refuse_freed(order)
    for node, given in zip(outputs, upstream, strict=True):
        pending[node] = receive(None, node, given, pending.get(node), more)
    for node in reversed(order):
        if node not in pending:  # no path that carries a gradient reaches it
            continue
        if node.hooks:
            pending[node] = through_hooks(node, pending[node])
        if into is not None:
            if node in into:
                into[node] = node.device.copy(pending[node])
        elif node.op is None or node.keeps_grad:
            if node._grad is None and let_go(pending, node):
                node._grad = pending[node]
            else:
                node._grad = here.top.add_up(_added, node._grad, pending[node], node.device, True)
            if node.op is None:
                here.top.complete(node)
        if node.op is not None:
            pass_on(node, pending.pop(node))
        else:
            del pending[node]


def _added(total: Array | None, term: Array, device: Device, into: bool) -> Array:
    """total + term, in the total's array if `into` it, but not by kernels; no total yet: a copy."""
    if total is None:
        return device.copy(term)
    if device.runs_kernels:
        mem = eager_memory((False, False), device)
        return above.add_arrays(mem, device.contiguous(total), device.contiguous(term))
    return np.asarray(np.add(total, term, out=total if into and total.flags.writeable else None))
