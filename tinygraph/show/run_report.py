"""The report of a training: one page with everything, in one file.

run_report.py what a report is made of, and in which order
sections.py   the sections
charts.py     curves and histograms as SVG          png.py    images
page.py       escaping, tables, the document        report.css
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tinygraph.base import AnyPath, ArgumentError, writable
from tinygraph.base.page import (
    Section,
    document,
    escape,
    facts_table,
    flatten,
    folded,
    log_table,
    value_text,
)
from tinygraph.base.page_paths import write
from tinygraph.ops.common import documented
from tinygraph.show.curves import is_number
from tinygraph.show.figures import PICTURE
from tinygraph.show.labels import as_array, checked_pair
from tinygraph.show.samples import checked_images
from tinygraph.show.sections import (
    comparison_html,
    confusion_html,
    curves_html,
    filters_html,
    graph_html,
    samples_html,
    texts_html,
    weights_html,
)

LONG_LOG = 40  # rows; a longer table is folded


@dataclass(frozen=True, kw_only=True)
class ReportContents:
    """What a report shows.  Every part is optional; what is None is left out.

    Parameters
    ----------
    title : str
        The heading.
    verdict : str, optional
        A sentence under the heading: whether it worked.
    result : mapping, optional
        Final figures, such as `{"test": {"loss": 0.1, "accuracy": 0.97}}`.
    rows : sequence of mappings, optional
        The log, one row for each epoch, as for `show.curves`.
    config, environment : mapping, optional
        Settings, and what the run depended on; mappings within are flattened.
    state : mapping from name to array, optional
        The parameters, as `model.state_dict()` gives them: filters and histograms.
    images : array (N, H, W), (N, 1, H, W) or (N, 3, H, W), optional
        What was tested, as for `show.samples`; needs labels and predictions.
    labels, predictions : array of int (N,), optional
        True and predicted classes, numbered from 0; both or neither.
    classes : sequence of str, optional
        Their names.
    comparison : mapping from caption to array (H, W), optional
        Images to stand side by side, as for `show.samples`, each with its caption.
    texts : mapping from caption to str, or to a sequence of (str, float), optional
        Texts to read; the parts of one are coloured by their numbers, from 0 to 1.
    graph : Tensor, Graph or sequence of Tensor, optional
        What to draw, such as the loss of one batch.
    """

    title: str = "Training report"
    verdict: str | None = None
    result: Mapping[str, Any] | None = None
    rows: Sequence[Mapping[str, Any]] | None = None
    config: Mapping[str, Any] | None = None
    environment: Mapping[str, Any] | None = None
    state: Mapping[str, Any] | None = None
    images: Any = None
    labels: Any = None
    predictions: Any = None
    classes: Sequence[Any] | None = None
    comparison: Mapping[str, Any] | None = None
    texts: Mapping[str, Any] | None = None
    graph: Any = None


@documented(PICTURE)
def report(contents: ReportContents, path: AnyPath = "report.html") -> Path:
    """Write a page about a training: figures, curves, samples, confusion matrix, filters,
    histograms of the weights, graph, settings, environment and log.

    The page is one file, which loads nothing and runs nothing.  It can be read on a phone and in
    the dark, and needs no library to be made.

    Parameters
    ----------
    contents : ReportContents
        The parts; all of them may be absent but one.
    path : str or os.PathLike
        `.html`; written over if it is there.

    Raises
    ------
    ArgumentError
        Nothing to show, parts that need one another, a class without a name, no such folder.
    ShapeError, DtypeError
        Images, labels or predictions that do not fit: see `show.samples`.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> model = tg.nn.Linear(2, 1)
    >>> contents = tg.show.ReportContents(
    ...     title="first run",
    ...     rows=[{"epoch": 1, "loss": 2.3}, {"epoch": 2, "loss": 0.4}],
    ...     state=model.state_dict(),
    ...     graph=model(tg.zeros(1, 2)),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tg.show.report(contents, f"{folder}/report.html").name
    'report.html'
    """
    target = writable("show.report", path, (".html",))
    if not isinstance(contents, ReportContents):
        raise ArgumentError(
            "show.report",
            "contents",
            "ReportContents",
            type(contents).__name__,
            "show.ReportContents(rows=..., state=..., ...)",
        )
    _check(contents)
    sections = [Section(anchor, title, body) for anchor, title, body in _sections(contents) if body]
    verdict = f'<p class="verdict">{escape(contents.verdict)}</p>\n' if contents.verdict else ""
    page = document(contents.title, verdict + _figures(contents), sections)
    return write("show.report", target, page)


def _check(contents: ReportContents) -> None:
    """Parts of the right kind, and those that need one another together."""
    parts = {field.name: getattr(contents, field.name) for field in fields(contents)}
    given = {name for name, part in parts.items() if part is not None} - {"title", "classes"}
    if not given:
        raise ArgumentError("show.report", "contents", "at least one part", "none")
    for name in ("result", "config", "environment", "state", "comparison", "texts"):
        if name in given and not isinstance(parts[name], Mapping):
            raise ArgumentError("show.report", name, "a mapping", type(parts[name]).__name__)
    if "rows" in given and not all(isinstance(row, Mapping) for row in parts["rows"]):
        raise ArgumentError("show.report", "rows", "a mapping for each epoch", "others")
    needs = {"images": "labels", "labels": "predictions", "predictions": "labels"}
    for name, needed in needs.items():
        if name in given and needed not in given:
            raise ArgumentError(
                "show.report",
                needed,
                f"to be given with {name}",
                "None",
                "give images, labels and predictions, or the last two, or none",
            )


def _figures(contents: ReportContents) -> str:
    """The final figures as tiles, with what follows from the other parts."""
    figures = [(n, v) for n, v in flatten(contents.result or {}) if not _is_table(v)]
    rows, state = contents.rows or [], contents.state or {}
    if rows:
        figures.append(("epochs", len(rows)))
        seconds = [row["seconds"] for row in rows if is_number(row.get("seconds"))]
        if seconds:
            figures.append(("training time", f"{sum(seconds):.3g} s"))
    if state:
        numbers = sum(as_array(values).size for values in state.values())
        figures.append(("parameters and buffers", f"{numbers:,}"))
    tiles = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(_short(value))}</dd></div>\n"
        for name, value in figures
    )
    return f'<dl class="tiles">\n{tiles}</dl>' if tiles else ""


def _is_table(value: Any) -> bool:
    """Whether a part of the result is rows, such as one for each picture."""
    return isinstance(value, list) and all(isinstance(row, Mapping) for row in value)


def _tables_html(result: Mapping[str, Any]) -> str | None:
    """The rows that are in the result, as tables."""
    tables = [(name, rows) for name, rows in flatten(result) if _is_table(rows) and rows]
    return "\n".join(folded(name, log_table(rows), True) for name, rows in tables) or None


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else value_text(value)


def _sections(contents: ReportContents) -> list[tuple[str, str, str | None]]:
    """(anchor, title, HTML or nothing), in the order of the page."""
    samples = confusion = filters = weights = log = None
    if contents.labels is not None:
        truth, predicted, names = checked_pair(
            "show.report", contents.labels, contents.predictions, contents.classes
        )
        confusion = confusion_html(truth, predicted, names)
        if contents.images is not None:
            images = checked_images("show.report", contents.images, truth.size)
            samples = samples_html(images, truth, predicted, names)
    if contents.state:
        filters, weights = filters_html(contents.state), weights_html(contents.state)
    rows = list(contents.rows or [])
    if rows:
        log = folded(f"{len(rows)} epochs", log_table(rows), len(rows) <= LONG_LOG)
    compared = comparison_html(contents.comparison) if contents.comparison else None
    return [
        ("comparison", "Comparison", compared),
        ("figures", "Figures", _tables_html(contents.result or {})),
        ("curves", "Curves", curves_html(rows)),
        ("texts", "Text", texts_html(contents.texts) if contents.texts else None),
        ("samples", "Samples", samples),
        ("confusion", "Confusion matrix", confusion),
        ("filters", "Filters", filters),
        ("weights", "Weights", weights),
        ("graph", "Graph", None if contents.graph is None else graph_html(contents.graph)),
        ("config", "Settings", facts_table(contents.config) if contents.config else None),
        (
            "environment",
            "Environment",
            facts_table(contents.environment) if contents.environment else None,
        ),
        ("log", "Log", log),
    ]
