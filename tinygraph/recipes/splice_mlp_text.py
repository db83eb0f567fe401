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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.disk import replace_file
from tinygraph.errors import ArgumentError, CheckpointError, nearest
from tinygraph.recipes.splice_mlp_network import (
    LEARNING_RATE,
    MOMENTUM,
    SigmoidMLP,
    require_learning,
)
from tinygraph.shapes import Array

DIGITS = {"float32": 9, "float64": 17}

_STATEMENT = re.compile(r"(\w+)\s*\((.*)\)")
_WHOLE = re.compile(r"[0-9]{1,9}")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_MAX_BYTES = 1 << 30


def write_network(network: SigmoidMLP, path: str | Path) -> Path:
    """Write a network as text; an existing file is replaced, in one step.

    Parameters
    ----------
    network : SigmoidMLP
        On the CPU or elsewhere.
    path : str or Path

    Returns
    -------
    Path
        The file.

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
        raise ArgumentError(
            "write_network", "name", "no comma, bracket or line break", repr(network.name)
        )
    text = "\n".join(_statements(network)) + "\n"
    try:
        return replace_file(Path(path), text.encode())
    except OSError as error:
        raise _fault(path, "a place that can be written", error.strerror or error) from None


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


def read_network(path: str | Path, dtype: Any = np.float32) -> SigmoidMLP:
    """Read a network from text.

    Parameters
    ----------
    path : str or Path
    dtype : dtype
        Of the parameters, float32 or float64.

    Returns
    -------
    SigmoidMLP

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
    return _Reader(Path(path), np.dtype(dtype)).network()


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
        verbs: dict[str, Callable[[str], None]] = {
            "version": lambda _: None,
            "comment": lambda _: None,
            "name": self._name,
            "networkTopology": lambda text: self._topology(text, len(lines)),
            "learning": self._learning,
            "link": self._link,
            "node": self._node,
        }
        for self.line, line in lines:
            match = _STATEMENT.fullmatch(line)
            if match is None:
                raise self._fault("a statement such as node(layer,node,bias)", repr(line[:60]))
            verb, arguments = match.groups()
            if verb not in verbs:
                raise self._fault(f"one of {', '.join(verbs)}", verb, nearest(verb, verbs))
            verbs[verb](arguments)
        self._require_whole()
        network = SigmoidMLP(self.widths, self.lr, self.momentum, self.name, self.dtype)
        read = zip(self.weights, self.biases, strict=True)
        for parameters, arrays in zip(network.by_layer(), read, strict=True):
            for parameter, array in zip(parameters, arrays, strict=True):
                parameter.value[...] = array
        return network

    # ---- statements -------------------------------------------------------------------------

    def _name(self, text: str) -> None:
        self._once("name")
        self.name = text.split(",")[0].strip()

    def _topology(self, text: str, lines: int) -> None:
        self._once("networkTopology")
        count, _, widths = text.partition(";")
        self.widths = [
            self._whole(w, "the number of nodes of a layer", 1) for w in widths.split(",")
        ]
        if self._whole(count, "the number of layers", 2) != len(self.widths):
            raise self._fault(f"{count.strip()} layers", f"the widths of {len(self.widths)}")
        shapes = list(zip(self.widths[1:], self.widths, strict=False))  # (to, from)
        needed = sum(to * (origin + 1) for to, origin in shapes)
        if needed > lines:  # looked at before memory is taken
            raise self._fault(
                f"{needed} links and nodes for this topology", f"a file of {lines} lines"
            )
        self.weights = [np.full(shape, np.nan, self.dtype) for shape in shapes]
        self.biases = [np.full(shape[0], np.nan, self.dtype) for shape in shapes]

    def _learning(self, text: str) -> None:
        self._once("learning")
        rate, momentum = self._split(text, "learning(rate,momentum)", 2)
        try:
            self.lr, self.momentum = require_learning(
                "learning", self._decimal(rate, np.float64), self._decimal(momentum, np.float64)
            )
        except ArgumentError:
            raise self._fault("a rate above 0 and a momentum from 0 to below 1", text) from None

    def _link(self, text: str) -> None:
        layer, to, origin, weight = self._split(text, "link(layer,to,from,weight)", 4)
        weights = self.weights[self._layer(layer)]
        place = self._index(to, len(weights)), self._index(origin, weights.shape[1])
        self._put(weights, place, weight)

    def _node(self, text: str) -> None:
        layer, node, bias = self._split(text, "node(layer,node,bias)", 3)
        biases = self.biases[self._layer(layer)]
        self._put(biases, (self._index(node, len(biases)),), bias)

    # ---- parts of statements ----------------------------------------------------------------

    def _once(self, verb: str) -> None:
        if verb in self.seen:
            raise self._fault(f"{verb} once", "a second one")
        self.seen.add(verb)

    def _split(self, text: str, form: str, parts: int) -> list[str]:
        found = text.split(",")
        if len(found) != parts:
            raise self._fault(form, f"{len(found)} values: {text[:60]!r}")
        return found

    def _layer(self, text: str) -> int:
        """The place of a layer in `weights` and `biases`."""
        if not self.widths:
            raise self._fault("networkTopology before links and nodes", "none so far")
        layer = self._whole(text, "the number of a layer", 0)
        if not 1 <= layer < len(self.widths):
            raise self._fault(f"a layer from 1 to {len(self.widths) - 1}", layer)
        return layer - 1

    def _index(self, text: str, nodes: int) -> int:
        node = self._whole(text, "the number of a node", 0)
        if node >= nodes:
            raise self._fault(f"a node from 0 to {nodes - 1}", node)
        return node

    def _put(self, array: Array, place: tuple[int, ...], text: str) -> None:
        if not np.isnan(array[place]):
            raise self._fault("each link and each node once", "it a second time")
        array[place] = self._decimal(text, self.dtype.type)

    def _whole(self, text: str, what: str, least: int) -> int:
        if not _WHOLE.fullmatch(text.strip()) or int(text) < least:
            raise self._fault(f"{what}, at least {least}", repr(text.strip()))
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
            text = data.decode()
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
            raise self._fault("networkTopology(layers;w0,w1,..)", "the end of the file")
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True), 1):
            for form, array in (("link({},{},{},weight)", weight), ("node({},{},bias)", bias)):
                absent = np.argwhere(np.isnan(array))
                if len(absent):
                    statement = form.format(layer, *absent[0])
                    raise self._fault(
                        f"{statement} and {len(absent) - 1} more like it", "the end of the file"
                    )

    def _fault(self, expected: str, got: object, way_out: str = "") -> CheckpointError:
        return _fault(self.path, expected, got, self.line, way_out)


def _fault(
    path: str | Path, expected: str, got: object, line: int | None = None, way_out: str = ""
) -> CheckpointError:
    where = str(path) if line is None else f"{path}, line {line}"
    return CheckpointError("network file", where, expected, got, way_out)
