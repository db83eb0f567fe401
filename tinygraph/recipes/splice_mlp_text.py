"""Networks as text: one statement a line.

    version(1,2,0)
    name(NAME,0,0,0)
    networkTopology(layers;w0,w1,..)       number of layers; nodes in each, the inputs first
    learning(rate,momentum)
    comment(any text)
    link(layer,to,from,weight)             from node `from` of layer - 1 to node `to` of this layer
    node(layer,node,bias)

Layers count from 0, the inputs, so that links and biases begin with layer 1; nodes count from 0.
Every link and every bias stands there once.  They come after networkTopology; what is missing of
version, name and learning is taken as usual.

A weight is written with as many decimal digits as it takes to read the same bits again: 9 for
float32, 17 for float64.

Source: the network files of the project nnP, 2015 (github.com/nickoppen/nnP).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.base import AnyPath, ArgumentError, CheckpointError, as_path, nearest
from tinygraph.base.disk import followed, replace_file
from tinygraph.engine import Array
from tinygraph.recipes.splice_mlp_network import (
    LEARNING_RATE,
    MOMENTUM,
    SigmoidMLP,
    require_learning,
)

DIGITS = {"float32": 9, "float64": 17}
FORMS = {  # how a statement is written
    "version": "version(1,2,0)",
    "comment": "comment(any text)",
    "name": "name(NAME,0,0,0)",
    "networkTopology": "networkTopology(layers;w0,w1,..)",
    "learning": "learning(rate,momentum)",
    "link": "link(layer,to,from,weight)",
    "node": "node(layer,node,bias)",
}

_STATEMENT = re.compile(r"(\w+)\s*\((.*)\)")
_WHOLE = re.compile(r"[0-9]{1,9}")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_MAX_BYTES = 1 << 30


def write_network(network: SigmoidMLP, path: AnyPath) -> Path:
    """Write a network as text; an existing file is replaced, in one step.

    Raises
    ------
    ArgumentError
        A weight or bias is not finite, or the name holds a comma, a bracket or a line break.
    CheckpointError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from tinygraph.recipes.splice_mlp_network import SigmoidMLP
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_network(SigmoidMLP([2, 1]), f"{folder}/small.nn")
    ...     print(*path.read_text().split()[:4])
    version(1,2,0) name(network,0,0,0) networkTopology(2;2,1) learning(0.5,0.0)
    """
    if re.search(r"[,()\r\n]", network.name):
        expected = "no comma, bracket or line break"
        raise ArgumentError("write_network", "name", expected, repr(network.name))
    text = "\n".join(_statements(network)) + "\n"
    target = as_path("write_network", "path", path)
    try:
        replace_file(followed(target), text.encode())
        return target
    except OSError as error:
        got = error.strerror or error
        raise CheckpointError(
            "network file", str(path), "a place that can be written", got
        ) from None


def _statements(network: SigmoidMLP) -> Iterator[str]:
    """The lines of a network's file."""
    widths = ",".join(map(str, network.widths))
    yield "version(1,2,0)"
    yield f"name({network.name},0,0,0)"
    yield f"networkTopology({len(network.widths)};{widths})"
    yield f"learning({network.lr!r},{network.momentum!r})"
    yield "comment(link(layer, to node, from node, weight))"
    yield "comment(node(layer, node, bias))"
    for layer, (weight, bias) in enumerate(network.by_layer(), start=1):
        yield f"comment(layer {layer})"
        for to, (links, own) in enumerate(zip(weight.numpy(), bias.numpy(), strict=True)):
            for origin, number in enumerate(links):
                yield f"link({layer},{to},{origin},{_decimal(number)})"
            yield f"node({layer},{to},{_decimal(own)})"


def _decimal(number: Any) -> str:
    """A number in decimal, from which its bits can be restored."""
    if not math.isfinite(number):
        raise ArgumentError("write_network", "network", "finite weights", float(number))
    return f"{float(number):.{DIGITS[number.dtype.name]}g}"


def read_network(path: AnyPath, dtype: Any = np.float32) -> SigmoidMLP:
    """Read a network from text, with parameters of float32 or float64.

    Raises
    ------
    CheckpointError
        The file is absent or malformed; the message names the line, what was expected, and what
        stands there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> lines = ["networkTopology(2;1,1)", "learning(0.1,0)", "link(1,0,0,2.5)", "node(1,0,-1)"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "small.nn")
    ...     _ = path.write_text("\\n".join(lines))
    ...     network = read_network(path)
    >>> network.lr, [parameter.item() for parameter in network.parameters()]
    (0.1, [2.5, -1.0])
    """
    return _Reader(as_path("read_network", "path", path), np.dtype(dtype)).network()


class _Reader:
    """One pass through the lines of a file; `line` is where it stands."""

    def __init__(self, path: Path, dtype: np.dtype) -> None:
        self.path, self.dtype = path, dtype
        self.line: int | None = None
        self.widths: list[int] = []
        self.weights: list[Array] = []  # of layer 1, 2, ...: (to, from)
        self.biases: list[Array] = []  # (node,)
        self.lr, self.momentum, self.name = LEARNING_RATE, MOMENTUM, path.stem
        self.seen: set[str] = set()

    def network(self) -> SigmoidMLP:
        lines = self._lines()
        for self.line, line in lines:
            match = _STATEMENT.fullmatch(line)
            if match is None:
                raise self._fault(f"a statement such as {FORMS['node']}", repr(line[:60]))
            verb, text = match.groups()
            if verb not in FORMS:
                raise self._fault(f"one of {', '.join(FORMS)}", verb, nearest(verb, FORMS))
            if verb in ("name", "networkTopology", "learning"):
                if verb in self.seen:
                    raise self._fault(f"{verb} once", "a second one")
                self.seen.add(verb)
            if verb == "name":
                self.name = text.split(",")[0].strip()
            elif verb == "networkTopology":
                self._topology(text, len(lines))
            elif verb == "learning":
                self._learning(text)
            elif verb in ("link", "node"):
                self._number(verb, text)
        self._require_whole()
        network = SigmoidMLP(self.widths, self.lr, self.momentum, self.name, self.dtype)
        for (weight, bias), w, b in zip(network.by_layer(), self.weights, self.biases, strict=True):
            weight.value[...], bias.value[...] = w, b
        return network

    # ---- statements -------------------------------------------------------------------------

    def _topology(self, text: str, lines: int) -> None:
        count, _, widths = text.partition(";")
        what = "the number of nodes of a layer"
        self.widths = [self._whole(width, what, 1) for width in widths.split(",")]
        if self._whole(count, "the number of layers", 2) != len(self.widths):
            raise self._fault(f"{count.strip()} layers", f"the widths of {len(self.widths)}")
        shapes = list(zip(self.widths[1:], self.widths, strict=False))  # (to, from)
        needed = sum(to * (origin + 1) for to, origin in shapes)
        if needed > lines:  # looked at before memory is taken
            expected = f"{needed} links and nodes for this topology"
            raise self._fault(expected, f"a file of {lines} lines")
        self.weights = [np.full(shape, np.nan, self.dtype) for shape in shapes]
        self.biases = [np.full(shape[0], np.nan, self.dtype) for shape in shapes]

    def _learning(self, text: str) -> None:
        rates = [self._decimal(part, np.float64) for part in self._split("learning", text)]
        try:
            self.lr, self.momentum = require_learning("learning", *rates)
        except ArgumentError:
            raise self._fault("a rate above 0 and a momentum from 0 to below 1", text) from None

    def _number(self, verb: str, text: str) -> None:
        """The weight of a link or the bias of a node."""
        layer, *nodes, number = self._split(verb, text)
        if not self.widths:
            raise self._fault("networkTopology before links and nodes", "none so far")
        arrays = self.weights if verb == "link" else self.biases
        array = arrays[self._whole(layer, "the number of a layer", 0, 1, len(arrays)) - 1]
        place = tuple(
            self._whole(node, "the number of a node", 0, 0, size - 1)
            for node, size in zip(nodes, array.shape, strict=True)
        )
        if not np.isnan(array[place]):
            raise self._fault("each link and each node once", "it a second time")
        array[place] = self._decimal(number, self.dtype.type)

    # ---- parts of statements ----------------------------------------------------------------

    def _split(self, verb: str, text: str) -> list[str]:
        found = text.split(",")
        if len(found) != FORMS[verb].count(",") + 1:
            raise self._fault(FORMS[verb], f"{len(found)} values: {text[:60]!r}")
        return found

    def _whole(self, text: str, what: str, least: int, first: int = 0, last: int = 10**9) -> int:
        """A whole number, which names one of first, ..., last."""
        text = text.strip()
        if not _WHOLE.fullmatch(text) or int(text) < least:
            raise self._fault(f"{what}, at least {least}", repr(text))
        if not first <= int(text) <= last:
            raise self._fault(f"{what.removeprefix('the number of ')} from {first} to {last}", text)
        return int(text)

    def _decimal(self, text: str, dtype: type[np.floating]) -> float:
        """A number in decimal, rounded to a finite one of that dtype."""
        found = math.inf
        if _DECIMAL.fullmatch(text.strip()):
            with np.errstate(over="ignore"):
                found = float(dtype(float(text)))
        if not math.isfinite(found):
            raise self._fault(f"a finite {dtype.__name__} in decimal", repr(text.strip()))
        return found

    # ---- the file as a whole ----------------------------------------------------------------

    def _lines(self) -> list[tuple[int, str]]:
        """The lines that are not empty, with their numbers from 1."""
        try:
            with self.path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise self._fault("text in UTF-8", f"byte {data[error.start]:#04x}") from None
        except OSError as error:
            raise self._fault("a file that can be read", error.strerror or error) from None
        if len(data) > _MAX_BYTES:
            raise self._fault(f"at most {_MAX_BYTES} bytes", "more")
        lines = enumerate(text.split("\n"), start=1)
        return [(number, line.strip()) for number, line in lines if line.strip()]

    def _require_whole(self) -> None:
        """Every link and every node was there."""
        if not self.widths:
            raise self._fault(FORMS["networkTopology"], "the end of the file")
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True), 1):
            for form, array in (("link({},{},{},weight)", weight), ("node({},{},bias)", bias)):
                absent = np.argwhere(np.isnan(array))
                if len(absent):
                    first = form.format(layer, *absent[0])
                    expected = f"{first} and {len(absent) - 1} more like it"
                    raise self._fault(expected, "the end of the file")

    def _fault(self, expected: str, got: object, way_out: str = "") -> CheckpointError:
        where = str(self.path) if self.line is None else f"{self.path}, line {self.line}"
        return CheckpointError("network file", where, expected, got, way_out)
