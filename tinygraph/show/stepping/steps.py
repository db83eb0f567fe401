"""show.steps: a page on which one step of a graph is gone through, with every number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tinygraph.base import AnyPath, DeviceError, GraphError, writable
from tinygraph.base.page import escape
from tinygraph.base.page_paths import write
from tinygraph.base.stepped_page import page
from tinygraph.engine import Graph, Tensor, run_backward, topological_order
from tinygraph.plan import plan
from tinygraph.show.boxes import Box
from tinygraph.show.graph_picture import as_outputs
from tinygraph.show.stepping.recorder import Recorder
from tinygraph.show.svg import to_svg


def steps(
    what: Tensor | Graph | Sequence[Tensor] | Callable[[], Any],
    path: AnyPath = "steps.html",
    *,
    title: str = "Step by step",
) -> Path:
    """Write a page on which one step can be gone through: forward, backward, update.

    Each op shows the formula of its docstring, its inputs, output and what it saves for backward;
    then the gradient that reaches it, what it gives its inputs, and how gradients from several uses
    add up.  The plan of the graph stands beside it.  Over a number one sees what it comes from: the
    numbers that its op has read, each with its coefficient.

    The page is one file, which loads nothing.  Keys: arrows, Home, End, space.  `steps.html#step=7`
    opens at step 7.  Of an array with more than 4096 elements the leading axes are cut, and an
    image to its upper left corner; of all of them where there are many.  The page says so.

    Parameters
    ----------
    what : Tensor, Graph, sequence of Tensor, or function
        A loss: its graph is walked backwards, and nothing is changed, no `.grad` either.  Where it
        has several elements or needs no gradient, forward alone is shown.  A function without
        arguments is called once, and makes a step of a training as it does: forward, `backward`,
        `optimizer.step()`; a function that `tg.compile` has made runs as it stands.
    path : str or os.PathLike
        `.html`; written over if it is there.
    title : str
        The heading.

    Returns
    -------
    Path

    Raises
    ------
    GraphError
        What ops saved was freed by an earlier backward, more than 2500 nodes, or a function that
        has run no op.
    ArgumentError
        An unknown suffix, or a folder that does not exist.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> w = tg.Parameter([1.0, 2.0], name="w")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tg.show.steps((w * w).sum(), f"{folder}/steps.html").name
    'steps.html'
    """
    target = writable("show.steps", path, (".html",))
    if callable(what) and not isinstance(what, (Tensor, Graph)):
        recorder = record(what)
    else:
        recorder = record_graph(as_outputs("show.steps", what))
    return write("show.steps", target, to_html(recorder, title))


def record(step: Callable[[], Any]) -> Recorder:
    """What a function does when it makes a step."""
    with Recorder() as recorder:
        step()
    recorder.close()
    if not recorder.steps:
        raise GraphError("show.steps", "what", "a function that runs ops", "one that ran none")
    return recorder


def record_graph(outputs: tuple[Tensor, ...]) -> Recorder:
    """Forward and backward of a graph that is there."""
    into: dict[Tensor, Any] = {
        x: None for x in topological_order(outputs) if x.op is None and x.requires_grad
    }
    with Recorder(into) as recorder:
        if all(y.size == 1 and y.requires_grad for y in outputs):
            run_backward(outputs, [None] * len(outputs), retain_graph=True, into=into)
        else:
            recorder.take(outputs)
    return recorder


def to_html(recorder: Recorder, title: str) -> str:
    """The page of what was recorded."""
    planned, beside = _planned(recorder)
    data = {
        "nodes": recorder.nodes,
        "steps": recorder.steps,
        "arrays": recorder.arrays.to_json(),
        "formulas": recorder.formulas,
        "plan": beside,
    }
    graph = f'<div id="graph">{to_svg(recorder.boxes)}</div>'
    return page(
        title,
        data,
        script=_read("maps.js") + _read("graph.js"),
        style=_read("graph.css"),
        figure=f"{MARKERS}{graph}{planned}",
    )


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


MARKERS = (
    '<svg width="0" height="0" aria-hidden="true"><defs>'
    + "".join(
        f'<marker id="{name}" viewBox="0 0 8 8" refX="{at}" refY="4" markerWidth="{size}" '
        f'markerHeight="{size}" markerUnits="userSpaceOnUse" orient="{way}">'
        f'<path class="{name}" d="M0 0.5 L8 4 L0 7.5 z"/></marker>'
        for name, at, size, way in (
            ("plain", 7, 10, "auto"),
            ("ahead", 7, 14, "auto"),
            ("reversed", 7, 14, "auto-start-reverse"),
        )
    )
    + "</defs></svg>"
)


def _planned(recorder: Recorder) -> tuple[str, dict[str, list[int]]]:
    """The plan of the graph as a picture and a table; and which nodes each of its boxes is."""
    try:
        found = plan(Graph(*recorder.outputs))
    except (GraphError, DeviceError):  # on several devices
        return "", {}
    boxes: list[Box] = []
    of: dict[str, list[int]] = {}
    for at, made in enumerate(found.plan.code.instructions):
        detail = f"{made.spec.dtype} {tuple(made.spec.shape)}"
        if made.op is None:
            number = recorder.numbers.get(made.tensor) if made.tensor is not None else None
            own = next((box for box in recorder.boxes if box.number == number), None)
            box = Box(at, "data", made.label or "data", detail, "", ())
            boxes.append(box if own is None else replace(own, number=at, inputs=()))
            of[str(at)] = [] if number is None else [number]
        else:
            title = made.op.name if len(made.nodes) == 1 else f"{made.op.name}, fused"
            boxes.append(Box(at, "op", title, detail, repr(made.op), made.inputs))
            of[str(at)] = [node + 1 for node in made.nodes]
    lines = "\n".join(escape(line) for line in found.explain().splitlines())
    table = f'<pre tabindex="0">{lines}</pre>'
    return f'<div id="plan"><h3>as tg.compile runs it</h3>{to_svg(boxes)}{table}</div>', of
