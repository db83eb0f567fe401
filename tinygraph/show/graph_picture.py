"""The picture of a graph.

boxes.py says what is drawn and layout.py where; svg.py writes it down.  For other formats dot.py
does, and Graphviz.  modules.py finds the module of each node, and folding.py makes one box of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tinygraph.base import AnyPath, GraphError, whole, writable
from tinygraph.base.page_paths import write
from tinygraph.engine import Graph, Tensor
from tinygraph.ops.common import documented
from tinygraph.show.boxes import collect
from tinygraph.show.dot import render
from tinygraph.show.figures import PICTURE
from tinygraph.show.folding import FITS, fitted
from tinygraph.show.folding import fold as folded
from tinygraph.show.svg import to_svg


@documented(PICTURE)
def graph(
    outputs: Tensor | Graph | Sequence[Tensor],
    path: AnyPath = "graph.svg",
    *,
    depth: int | None = None,
    fold: int | None = None,
    values: bool = False,
) -> Path:
    """Draw the graph below some tensors: leaves, ops and edges, in forward order from the top.

    Data, constants, parameters and ops differ in outline and colour.  A box holds the node's number
    in forward order, its name, and its dtype and shape.  In a large graph each module is one box,
    with the number and the shape of its last op.

    Parameters
    ----------
    outputs : Tensor, Graph or sequence of Tensor
        What to draw.
    path : str or os.PathLike
        Where to; the suffix decides.  `.svg` is drawn here and needs no program, `.png` and `.pdf`
        are drawn by the program `dot` of Graphviz.
    depth : int, optional
        Draw only nodes at most this many edges above the outputs.  A box whose inputs are left out
        shows that by an ellipsis.
    fold : int, optional
        Draw a module as one box where its path has this many names: 1 makes one of `layer1`, 2 of
        `layer1.0`; 0 draws every node.  By default a graph of more than 40 nodes is folded, no
        more than it takes to fit on a page.  Modules are known by the names of their parameters;
        an op that takes none stands with the layer before it, or between two of one module.
    values : bool
        Show numbers too: of each value, and of each gradient that there is.  Up to four are shown
        as they are; of more, the smallest, the mean and the largest.

    Raises
    ------
    GraphError
        More than 5000 nodes are to be drawn.
    ArgumentError
        An unknown suffix, a folder that does not exist, a negative depth or fold, no Graphviz.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> y = tg.relu(tg.Tensor([1.0, -1.0], name="x"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tg.show.graph(y, f"{folder}/relu.svg").name
    'relu.svg'
    """
    target = writable("show.graph", path, (".svg", ".png", ".pdf"))
    boxes = collect(as_outputs("show.graph", outputs), depth, values)
    if fold is None:
        boxes = fitted(boxes)
    elif whole("show.graph", "fold", fold, least=0):
        boxes = folded(boxes, fold)
    suffix = target.suffix.lower()
    if suffix == ".svg":
        return write("show.graph", target, to_svg(boxes))
    return write("show.graph", target, render(boxes, suffix))


def small_picture(node: Tensor) -> str | None:
    """The graph below a node as SVG, for a notebook; None where it would fill more than a page."""
    boxes = collect((node,), FITS)
    return to_svg(boxes) if len(boxes) <= FITS else None


def as_outputs(op: str, outputs: Tensor | Graph | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors below which a graph is drawn."""
    if isinstance(outputs, Graph):
        return outputs.outputs
    tensors = (outputs,) if isinstance(outputs, Tensor) else outputs
    if not isinstance(tensors, (tuple, list)) or not all(isinstance(t, Tensor) for t in tensors):
        raise GraphError(
            op,
            "outputs",
            "a Tensor, a Graph or a list of Tensors",
            type(outputs).__name__,
            "call the model first: model(x)",
        )
    if not tensors:
        raise GraphError(op, "outputs", "at least one Tensor", "none")
    return tuple(tensors)
