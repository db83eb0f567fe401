"""Graph: forward in topological order, backward in reverse.  There is nothing else in the engine.

Forward visits a node after all of its inputs.  Backward visits it after everything that used it, so
that the gradients from all uses have been added up before the node passes them on:

    gradient of a node = sum over its uses of (gradient of the use) * d use / d node
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tinygraph.errors import DtypeError, GraphError, ShapeError, nearest
from tinygraph.kernel_table import KernelTable, tabulate
from tinygraph.memory import eager_memory
from tinygraph.op import Op, differentiate, evaluate
from tinygraph.shapes import Array
from tinygraph.stopwatch import SUMS, adding
from tinygraph.tensor import Tensor, above, grad_mode

FREED = object()  # stands in Tensor.saved after a backward that did not retain the graph


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
        if node in seen or (only_differentiable and not node.requires_grad):
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
        for node, array in self.fed(feeds):  # all feeds are good before the first leaf changes
            node.value = array
        for node in self.nodes:
            if node.op is not None:
                node.value, node.saved, needs = evaluate(node.op, node.inputs, node.made_at)
                if grad_mode.enabled:
                    node.needs, node.requires_grad = needs, True in needs
                else:
                    node.saved = FREED
        return self.outputs

    def fed(self, feeds: Mapping[Tensor | str, Any] | None) -> list[tuple[Tensor, Array]]:
        """The leaves that are fed with the arrays that they get, checked; nothing is changed."""
        return [(node, self._cast_feed(node, array)) for node, array in self._match(feeds or {})]

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
        if gradients is None:
            gradients = [None] * len(self.outputs)
        elif len(self.outputs) == 1 and not isinstance(gradients, (list, tuple)):
            gradients = [gradients]
        if len(gradients) != len(self.outputs):
            raise GraphError(
                "Graph.backward",
                "gradients",
                f"{len(self.outputs)}, one for each output",
                len(gradients),
                "pass None for an output of a single element",
            )
        run_backward(self.outputs, gradients, retain_graph)

    def kernel_table(self) -> KernelTable:
        """Which kernels this graph runs on a device that has them: forward, then backward.

        Nothing is executed and nothing changes; the graph may be on any device, the cpu too.

        Returns
        -------
        KernelTable
            A row for each launch, with grid, block, what it reads and writes, bytes and operations.

        Raises
        ------
        DeviceError
            If an op of the graph has no kernel.

        Examples
        --------
        >>> import numpy as np, tinygraph as tg
        >>> x = tg.Parameter(np.zeros((1000, 500), np.float32), name="x")
        >>> table = tg.Graph(tg.relu(x)).kernel_table()
        >>> for row in table:
        ...     print(row.phase, row.kernel, row.bytes)
        forward unary_forward<float, Relu> 4000000
        backward unary_backward<float, Relu> 6000000
        >>> str(table[1].writes[0])
        'grad of x float32[1000, 500]'
        """
        return tabulate(self.nodes, self.outputs, run_backward)

    def _match(self, feeds: Mapping[Tensor | str, Any]) -> list[tuple[Tensor, Any]]:
        """The leaf that each key of `feeds` means."""
        leaves = [node for node in self.nodes if node.op is None]
        matched = []
        for key, array in feeds.items():
            found = [x for x in leaves if (x.name == key if isinstance(key, str) else x is key)]
            if len(found) != 1:
                names = sorted({x.name for x in leaves if x.name})
                what = "more than one leaf has that name" if found else "no leaf of this graph"
                label = repr(key) if isinstance(key, str) else f"a {type(key).__name__}"
                raise GraphError(
                    "Graph.forward",
                    "feeds",
                    f"one of the leaves {names}",
                    f"{label}: {what}",
                    nearest(str(key), names) or "feed the leaf itself",
                )
            matched.append((found[0], array))
        return matched

    def _cast_feed(self, leaf: Tensor, data: Any) -> Array:
        """The fed array with the leaf's dtype, where no value is lost by that."""
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


@np.errstate(all="ignore")  # inf and nan are results, not accidents
def run_backward(
    outputs: Sequence[Tensor],
    gradients: Sequence[Any],
    retain_graph: bool,
    visit: Callable[[Tensor, Array], None] | None = None,
) -> None:
    """The reverse walk.  `pending` holds the gradients of nodes that are not visited yet.

    `visit` is told each node and its whole gradient, before the node passes it on.
    """
    if grad_mode.trace is not None:
        for node, gradient in zip(outputs, gradients, strict=True):
            _upstream(node, gradient)
        grad_mode.trace.backward(outputs, gradients)
        return
    pending: dict[Tensor, Array] = {}
    ours: set[Tensor] = set()  # nodes whose pending array the engine made, and may add into
    add = adding(_add, lambda pending, ours, node, grad: pending.get(node), SUMS)
    store = adding(_store, lambda node, grad: node.grad, SUMS)
    order = topological_order(outputs, only_differentiable=True)
    _refuse_freed(order)
    for node, gradient in zip(outputs, gradients, strict=True):
        add(pending, ours, node, _upstream(node, gradient))
    for node in reversed(order):
        grad = pending.pop(node, None)
        if grad is None:  # no path that carries a gradient reaches it
            continue
        if visit is not None:
            visit(node, grad)
        if node.op is None or node.keeps_grad:
            store(node, grad)
        if node.op is None:
            continue
        received = differentiate(node, grad)
        if not retain_graph:
            node.saved = FREED
        for x, needed, g in zip(node.inputs, node.needs, received, strict=True):
            if needed and g is not None:
                add(pending, ours, x, g)


def _upstream(node: Tensor, gradient: Any) -> Array:
    """The upstream gradient of an output: what was given, checked, or 1 for a single element."""
    if not node.requires_grad:
        raise GraphError(
            "backward: nothing below this node requires a gradient. Way out: make a leaf with "
            "requires_grad=True or use tg.Parameter, and compute outside of tg.no_grad()"
        )
    if gradient is None:
        if node.size != 1:
            raise ShapeError(
                "backward",
                "gradient",
                f"an upstream gradient of shape {node.shape}",
                "none",
                "pass one, or reduce the output first, for example with .sum()",
            )
        return node.device.full(node.shape, node.dtype, 1)
    if not node.device.owns(gradient):
        gradient = np.asarray(gradient)
    if gradient.dtype != node.dtype:
        gradient = gradient.astype(node.dtype)
    array = node.device.from_numpy(gradient)
    if array.shape != node.shape:
        raise ShapeError("backward", "gradient", f"shape {node.shape}", array.shape)
    return array


def _refuse_freed(order: list[Tensor]) -> None:
    """Before anything is changed: every node must still have what its op saved."""
    for node in order:
        if node.saved is FREED:
            raise GraphError(
                f"backward: what {node.op.name} saved was freed by an earlier backward (or never "
                "saved, under no_grad). Way out: backward(retain_graph=True) the first time, or "
                "compute the graph again"
            )


def _add(pending: dict[Tensor, Array], ours: set[Tensor], node: Tensor, grad: Array) -> None:
    """Fan-out sums.  The first gradient is only borrowed, so the second makes a new array."""
    if node not in pending:
        pending[node] = grad
    elif node.device.runs_kernels:
        pending[node] = _sum(node, pending[node], grad)
    elif node in ours:
        np.add(pending[node], grad, out=pending[node])
    else:
        pending[node] = np.asarray(pending[node] + grad)
        ours.add(node)


def _store(node: Tensor, grad: Array) -> None:
    """Accumulate in `.grad`, which shares its memory with nothing else."""
    if node.grad is None:
        node.grad = node.device.copy(grad)
    elif node.device.runs_kernels:
        node.grad = _sum(node, node.grad, grad)
    else:
        np.add(node.grad, grad, out=node.grad)


def _sum(node: Tensor, x: Array, y: Array) -> Array:
    """x + y by the kernel of `add`, in a new array."""
    device = node.device
    mem = eager_memory((False, False), device)
    total: Array = above.add_arrays(mem, device.contiguous(x), device.contiguous(y))
    return total


def raise_for_bad_values(node: Tensor) -> None:
    """Let every op below a node look at its inputs, where no op has: a device without `on_host`.

    Raises
    ------
    ArgumentError
        From the first op, in topological order, that was given what it does not take.
    """
    if node.device.on_host:
        return
    for made in topological_order([node]):
        if made.op is not None and type(made.op).check is not Op.check:
            made.op.check(*[x.numpy() for x in made.inputs])


def _tensor_backward(node: Tensor, gradient: Any, retain_graph: bool) -> None:
    run_backward([node], [gradient], retain_graph)


above.backward = _tensor_backward
above.raise_for_bad_values = raise_for_bad_values
