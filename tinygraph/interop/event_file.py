"""EventFile: a file that TensorBoard reads, written through tensorboardX.

A file is a sequence of events, each with a step, a time, and one of

    scalar, histogram, image    a value under a tag; what stands before its first `/` is its group
    graph                       nodes with the names of their inputs; each `/` in a name is a scope
    session START at a step     what is there already of that step and of later ones is not shown

What was written is on the disk once `flush` returns.  Readers leave a last event out that is cut
off.
"""

from __future__ import annotations

import re
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.base import explain, install
from tinygraph.base.disk import OwnPath, real_folder
from tinygraph.engine import Array, Parameter, Tensor, topological_order
from tinygraph.files.sealed import writing
from tinygraph.show.figures import MissingLibraryError
from tinygraph.show.modules import homes
from tinygraph.show.png import png

BINS = 64  # of a histogram
GREY, RGB = 1, 3  # colour spaces


def require_library() -> None:
    """MissingLibraryError where tensorboardX is not installed."""
    try:
        import tensorboardX  # noqa: F401
    except ImportError as error:
        text = explain("TensorBoard", "tensorboardX", "the package", error, install("tensorboard"))
        raise MissingLibraryError(text) from error


class EventFile:
    """A new file in a folder, which is made.

    Parameters
    ----------
    folder : Path
    done : int
        Steps that are done: what earlier files have of later ones is no longer shown.
    suffix : str
        How the file's name ends.  Readers go by the name: it begins with the time in seconds, and
        before the suffix stand how many files there are already, for those of one second, and a
        word that nobody can know beforehand.
    """

    def __init__(self, folder: Path, done: int, suffix: str) -> None:
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event, SessionLog

        with writing(folder):
            if isinstance(folder, OwnPath):  # of a run
                real_folder(folder)
            folder.mkdir(parents=True, exist_ok=True)
            before = sum(1 for _ in folder.glob("events.*"))
            ending = f".{before:06}.{secrets.token_hex(8)}.{suffix}"  # nobody can have put a link
            self._file = EventsWriter(str(folder / "events"), ending)
        self._event = Event
        self._write(done + 1, session_log=SessionLog(status=SessionLog.START))

    def scalar(self, tag: str, value: float, step: int) -> None:
        """A number."""
        from tensorboardX.summary import scalar

        self._write(step, summary=scalar(tag, value))

    def histogram(self, tag: str, values: Array, step: int) -> None:
        """How often which values occur; those that are not finite are left out."""
        from tensorboardX.summary import histogram

        finite = values[np.isfinite(values)]
        if finite.size:
            self._write(step, summary=histogram(tag, finite, BINS))

    def image(self, tag: str, pixels: Array, step: int) -> None:
        """Bytes (H, W, 1) of greys or (H, W, 3) of red, green, blue."""
        from tensorboardX.proto.summary_pb2 import Summary

        height, width, channels = pixels.shape
        image = Summary.Image(
            height=height,
            width=width,
            colorspace=RGB if channels == 3 else GREY,
            encoded_image_string=png(pixels),
        )
        self._write(step, summary=Summary(value=[Summary.Value(tag=tag, image=image)]))

    def graph(self, output: Tensor) -> None:
        """The graph below a node; modules are scopes, known by the names of their parameters."""
        from tensorboardX.proto.graph_pb2 import GraphDef
        from tensorboardX.proto.versions_pb2 import VersionDef

        made = GraphDef(node=_nodes(output), versions=VersionDef(producer=22))
        self._write(0, graph_def=made.SerializeToString())

    def flush(self) -> None:
        """Bring everything to the disk."""
        with writing(Path(self._file._file_name)):
            self._file.flush()

    def close(self) -> None:
        """The last flush; nothing can be written any more."""
        with writing(Path(self._file._file_name)):
            self._file.close()

    def _write(self, step: int, **what: Any) -> None:
        event = self._event(wall_time=time.time(), step=step, **what)
        with writing(Path(self._file._file_name)):
            self._file.write_event(event)


def _nodes(output: Tensor) -> Iterator[Any]:
    """A NodeDef for each node of a graph, inputs before users."""
    from tensorboardX.proto.attr_value_pb2 import AttrValue
    from tensorboardX.proto.node_def_pb2 import NodeDef
    from tensorboardX.proto.tensor_shape_pb2 import TensorShapeProto

    order = topological_order([output])
    home, names, taken = homes(order), dict[Tensor, str](), Counter[str]()
    for node in order:
        kind, name = _kind_and_name(node)
        path = "/".join([_plain(part) for part in (*home[node].path, name)])
        taken[path] += 1
        names[node] = path if taken[path] == 1 else f"{path}_{taken[path]}"
        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in node.shape])
        attributes = {
            "_output_shapes": AttrValue(list=AttrValue.ListValue(shape=[shape])),
            "dtype": AttrValue(s=str(node.dtype).encode()),
        }
        if node.op is not None:
            attributes["settings"] = AttrValue(s=repr(node.op).encode())
        inputs = [names[x] for x in node.inputs]
        yield NodeDef(name=names[node], op=kind, input=inputs, attr=attributes)


def _kind_and_name(node: Tensor) -> tuple[str, str]:
    """What a node is, and what it is called in its module."""
    if node.op is not None:
        return node.op.name, node.op.name
    name = str(node.name or "constant").split(".")[-1]
    return "parameter" if isinstance(node, Parameter) else "data", name


def _plain(name: str) -> str:
    """A name of the characters that a graph's names may have."""
    return re.sub(r"[^A-Za-z0-9_.\-]+", "_", name).lstrip("_-") or "node"
