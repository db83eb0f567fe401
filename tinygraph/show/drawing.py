"""The picture of a graph.

boxes.py says what is drawn and layout.py where; svg.py writes it down, or dot.py and Graphviz do.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from tinygraph.errors import ArgumentError, GraphError, install
from tinygraph.graph import Graph
from tinygraph.show.boxes import collect
from tinygraph.show.dot import render, to_dot
from tinygraph.show.paths import writable
from tinygraph.show.svg import to_svg
from tinygraph.tensor import Tensor

MAX_NODES_DOT = 300  # dot takes minutes for thousands

Engine: TypeAlias = Literal["auto", "dot", "builtin"]


def graph(
    outputs: Tensor | Graph | Sequence[Tensor],
    path: str | Path = "graph.svg",
    *,
    depth: int | None = None,
    engine: Engine = "auto",
) -> Path:
    """Draw the graph below some tensors: every leaf, op and edge, in forward order from the top.

    Data, constants, parameters and ops differ in outline and colour.  A box holds the node's number
    in forward order, its name, and its dtype and shape.

    Parameters
    ----------
    outputs : Tensor, Graph or sequence of Tensor
        What to draw.
    path : str or Path
        Where to; the suffix decides.  `.svg` and `.dot` always work, `.png` and `.pdf` need the
        program `dot` of Graphviz.
    depth : int, optional
        Draw only nodes at most this many edges above the outputs.  A box whose inputs are left out
        shows that by an ellipsis.
    engine : {"auto", "dot", "builtin"}
        Who lays it out: Graphviz, or tinygraph itself, which needs no program.  "auto" takes
        Graphviz where it is installed, for up to 300 nodes.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    GraphError
        More than 5000 nodes are to be drawn.
    ArgumentError
        An unknown suffix, a folder that does not exist, a negative depth.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> y = tg.relu(tg.Tensor([1.0, -1.0], name="x"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tg.show.graph(y, f"{folder}/relu.svg").name
    'relu.svg'
    """
    target = writable("show.graph", path, (".svg", ".dot", ".png", ".pdf"))
    if engine not in ("auto", "dot", "builtin"):
        raise ArgumentError("show.graph", "engine", "'auto', 'dot' or 'builtin'", engine)
    boxes = collect(as_outputs("show.graph", outputs), depth)
    suffix = target.suffix.lower()
    if suffix == ".dot":
        target.write_text(to_dot(boxes), encoding="utf-8")
    elif _uses_dot(suffix, engine, len(boxes)):
        target.write_bytes(render(boxes, suffix[1:]))
    else:
        target.write_text(to_svg(boxes), encoding="utf-8")
    return target


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


def _uses_dot(suffix: str, engine: Engine, number: int) -> bool:
    """Whether Graphviz draws.  Our own writer makes SVG only."""
    program, package = shutil.which("dot"), find_spec("graphviz")
    if suffix == ".svg" and engine != "dot":
        return engine == "auto" and bool(program and package) and number <= MAX_NODES_DOT
    if engine == "builtin":
        raise ArgumentError(
            "show.graph", "path", "the suffix .svg or .dot", suffix, "leave out engine='builtin'"
        )
    if not package:
        raise ArgumentError(
            f"show.graph: {suffix} through Graphviz needs its Python package. Way out: "
            f"{install('plot')}, or draw an .svg with engine='builtin'"
        )
    if not program:
        raise ArgumentError(
            f"show.graph: {suffix} through Graphviz needs its program 'dot', which is not on the "
            "PATH. Way out: install Graphviz, or draw an .svg with engine='builtin'"
        )
    return True
