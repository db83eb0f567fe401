"""plan: a graph that is there already, as a plan to read and to run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tinygraph.base import GraphError
from tinygraph.engine import Array, Device, Graph, Tensor
from tinygraph.engine.feeds import fed
from tinygraph.plan.code import code_of
from tinygraph.plan.rewrites import rewrite
from tinygraph.plan.runner import Plan
from tinygraph.plan.table import describe


class GraphPlan:
    """What `tg.plan` returns: the graph's forward and backward in buffers laid out once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        differentiable = [node for node in graph.outputs if node.requires_grad]
        single = len(graph.outputs) == 1 and graph.outputs[0].size == 1
        root = graph.outputs[0] if single and differentiable else None
        device = _only_device(graph)
        self.plan = Plan(rewrite(code_of(graph.nodes, graph.outputs, root, device=device)))

    def run(self, feeds: Mapping[Tensor | str, Any] | None = None) -> tuple[Array, ...]:
        """Forward, and backward where there is one output of one element to differentiate.

        Parameters
        ----------
        feeds : mapping from leaf (or its name) to array, optional
            New values of leaves, of the shapes that they had.

        Returns
        -------
        tuple of array
            The outputs.  Gradients are added to `.grad` of the leaves, as by `Graph.backward`.

        Raises
        ------
        GraphError
            A feed names no leaf, or has another shape: a plan is made for one set of shapes.
        """
        for node, array in fed(self.graph.nodes, feeds):
            if array.shape != node.shape:
                raise GraphError(
                    "plan",
                    f"feed of {node.name or 'a leaf'}",
                    str(node.shape),
                    array.shape,
                    "make another plan for another batch size",
                )
            node.value = array
        return tuple(self.plan.run([]))

    def explain(self) -> str:
        """The plan as a table."""
        return describe(self.plan)

    def __str__(self) -> str:
        return self.explain()


def _only_device(graph: Graph) -> Device:
    devices = list({node.device.name: node.device for node in graph.nodes}.values())
    if len(devices) > 1:
        raise GraphError(
            "plan",
            "graph",
            "nodes on one device",
            " and ".join(map(str, devices)),
            "move leaves before the graph is made: Tensor(..., device=...), module.to(...)",
        )
    return devices[0]


def plan(graph: Graph) -> GraphPlan:
    """A graph as a plan: what would be fused, in which order it runs, what its buffers take.

    Parameters
    ----------
    graph : Graph
        On one device.  On the emulator and on a GPU the plan runs through the kernels.

    Raises
    ------
    GraphError
        Its nodes lie on several devices.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> x = tg.Tensor(np.ones((1, 1, 6, 6), np.float32), name="x")
    >>> w = tg.Parameter(np.ones((2, 1, 3, 3), np.float32), name="w")
    >>> graph = tg.Graph(tg.max_pool2d(tg.relu(tg.conv2d(x, w)), 2).sum())
    >>> print(tg.plan(graph).explain())
    value  op                      takes  shape                backward
    %2     conv2d_relu_max_pool2d  x, w   float32[1, 2, 2, 2]  yes
    %3     sum                     %2     float32[]            yes
    the batch is not cut: no argument carries several samples
    """
    return GraphPlan(graph)
