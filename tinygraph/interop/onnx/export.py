"""`tg.onnx.save`: a network as a file that other libraries run.

    model(example)  -->  nodes  -->  operators and constants  -->  model.onnx
       tracing.py       exporters/     drafts.py, batch.py

The file is of opset 20, which runtimes of 2024 and later read.  It is whole or not there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import tinygraph
from tinygraph.base import AnyPath, OnnxError, as_path
from tinygraph.base.disk import followed, replace_file
from tinygraph.engine import Array
from tinygraph.files.sealed import unnameable
from tinygraph.interop.onnx.batch import carrying, open_draft
from tinygraph.interop.onnx.drafts import Draft, draft
from tinygraph.interop.onnx.library import onnx
from tinygraph.interop.onnx.tracing import Call, call_of
from tinygraph.interop.onnx.writer import element_type
from tinygraph.nn.module import Module

OPSET, IR = 20, 9  # of the operators, and of the file
MOST_BYTES = 2**31 - 2**20  # of a file that is one message; larger arrays lie beside it
_DIGITS = 32  # of the SHA-256 of a second file, in its name
LARGE = 1024  # bytes from which an array lies beside the file, where some have to


def save(
    model: Any,
    path: AnyPath,
    example: Any,
    *,
    batch: bool | Collection[str] = True,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
) -> Path:
    """Write a network as an ONNX file, opset 20, which onnxruntime and many others run.

    Parameters
    ----------
    model : Module or function
        In evaluation: `model.eval()`.  It is called with the example a few times, and what it
        computes is written down; what Python decides on the way is decided for good.
    path : str or os.PathLike
        An existing file is replaced, in one step; it keeps its mode.  A link is followed.
    example : array, Tensor, tuple or dict
        The arguments: one, several, or some by name.  Arrays and Tensors are inputs of the file;
        anything else, a flag or None, is passed on as it is.
    batch : bool or names of inputs
        Whose axis 0 is the batch, of any size in the file: of all inputs, of none, or of these.
    input_names, output_names : sequence of str, optional
        By default inputs have the names of the arguments; outputs are "output", "output_0" and so
        on, or the keys of a dict.

    Returns
    -------
    Path
        The file.  Parameters and buffers have the names of `model.state_dict()` there.  Of more
        than 2 GiB, large arrays lie in a second file beside it, which is named after its SHA-256:
        a file never finds the numbers of another one.

    Raises
    ------
    OnnxError
        An op cannot be written, as dropout in training; the network is one for a fixed number of
        samples; the file cannot be written; or there is no package onnx.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> model = tg.nn.Sequential(tg.nn.Linear(4, 8), tg.nn.ReLU(), tg.nn.Linear(8, 2)).eval()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = tg.onnx.save(model, f"{folder}/model.onnx", tg.ones(1, 4))
    ...     path.name
    'model.onnx'

    References
    ----------
    ONNX, "Open neural network exchange", https://onnx.ai/onnx/repo-docs/IR.html.
    """
    target = as_path("tg.onnx.save", "path", path)
    written = followed(target)
    proto = to_proto(
        model, example, batch=batch, input_names=input_names, output_names=output_names
    )
    try:
        if sum(len(each.raw_data) for each in proto.graph.initializer) > MOST_BYTES:
            _save_in_two(proto, written)
        else:
            replace_file(written, proto.SerializeToString(deterministic=True))
        return target
    except OSError as error:
        got = error.strerror or error
        raise OnnxError("tg.onnx.save", str(target), "a place for a file", got) from None


def to_proto(
    model: Any,
    example: Any,
    *,
    batch: bool | Collection[str] = True,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
) -> Any:
    """The network as an `onnx.ModelProto`; the arguments are those of `save`.

    Returns
    -------
    onnx.ModelProto
        That `onnx.checker` has looked at.

    Raises
    ------
    OnnxError
        As for `save`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> proto = tg.onnx.to_proto(tg.nn.Linear(4, 2), tg.ones(1, 4))
    >>> [(node.op_type, list(node.input)) for node in proto.graph.node]
    [('Gemm', ['x', 'weight', 'bias'])]
    """
    for names in (input_names, output_names, *map(dict, _leaves(model))):
        _require_names([names] if isinstance(names, str) else names or ())
    call = call_of(model, example, input_names)
    carried = carrying(call, batch)
    renamed = _renamed(call, output_names)
    if carried:
        made = open_draft(call, carried, renamed)
    else:
        made = draft(call.run(call.arrays), renamed)
        made.writer.share_constants(made.state)
    proto = _proto(made, type(model).__name__ if hasattr(model, "forward") else "function")
    if {each.domain for each in proto.opset_import} == {""}:
        _require_valid(proto)
    return proto


def _leaves(model: Any) -> list[Any]:
    """Parameters and buffers with their names, where the model has any."""
    return [model.named_parameters(), model.named_buffers()] if isinstance(model, Module) else []


def _require_names(names: Iterable[Any]) -> None:
    """Raise for names that no file can have; those of parameters may be empty, as in a Module."""
    for each in names:
        if not isinstance(each, str) or unnameable(each):
            way_out = "rename it"
            raise OnnxError("tg.onnx.save", "names", "names that are text", ascii(each), way_out)


def _proto(made: Draft, name: str) -> Any:
    """Operators, constants, inputs and outputs as a message."""
    helper = onnx.helper
    if any(each == "" for each in (*made.inputs, *made.outputs)):
        names = [*made.inputs, *made.outputs]
        raise OnnxError("tg.onnx.save", "names", "inputs and outputs with names", names)
    inputs, outputs = (
        [
            helper.make_tensor_value_info(n, element_type(dtype), shape)
            for n, (shape, dtype) in each.items()
        ]
        for each in (made.inputs, made.outputs)
    )
    # What reads a file may train its floats, but for those that are operators.
    numbers = {
        n for n in made.writer.asked if n in made.constants and made.constants[n].dtype.kind == "f"
    }
    arrays = {n: _initialiser(array, n) for n, array in made.constants.items()}
    fixed = [helper.make_node("Constant", [], [n], n, value=arrays.pop(n)) for n in sorted(numbers)]
    graph = helper.make_graph([*fixed, *made.nodes], name, inputs, outputs, arrays.values())
    opsets = {"": OPSET} | dict.fromkeys(sorted({node.domain for node in made.nodes} - {""}), 1)
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(domain, n) for domain, n in opsets.items()],
        ir_version=IR,
        producer_name="tinygraph",
        producer_version=tinygraph.__version__,
    )


def _initialiser(array: Array, name: str) -> Any:
    return onnx.numpy_helper.from_array(array, name)


def _require_valid(proto: Any) -> None:
    """onnx.checker, with the shapes of all values: what it refuses, an exporter has done."""
    if sum(len(each.raw_data) for each in proto.graph.initializer) > MOST_BYTES:
        return  # the checker takes no message of that size
    try:
        onnx.checker.check_model(proto, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        got = str(error).strip().splitlines()[0]
        expected, way_out = "a graph that onnx.checker takes", "look at the exporters of your own"
        raise OnnxError("tg.onnx.save", "model", expected, got, way_out) from error


def _renamed(call: Call, names: Sequence[str] | None) -> Any:
    """What outputs are called, by what they would be."""
    if names is None:
        return {}
    given = [names] if isinstance(names, str) else list(names)
    usual = list(call.run(call.arrays).outputs)
    if len(given) != len(usual) or {*given} & {*call.arrays} or len({*given}) < len(given):
        expected = f"{len(usual)} names, each another one, and none of an input"
        raise OnnxError("tg.onnx.save", "output_names", expected, given)
    return dict(zip(usual, given, strict=True))


def _save_in_two(proto: Any, path: Path) -> None:
    """Large arrays into a second file, which is whole before the first one names it.

    Its name is that of its content, so that between the two, and for ever if the process dies
    there, the old file keeps its old numbers.  What that one had beside it is removed at the end.
    """
    begin, parts = 0, []
    for each in proto.graph.initializer:
        size = len(each.raw_data)
        if size < LARGE:
            continue
        parts.append(each.raw_data)
        each.ClearField("raw_data")
        each.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", ""), ("offset", begin), ("length", size)):
            each.external_data.add(key=key, value=str(value))
        begin += size
    data = b"".join(parts)
    beside = path.with_name(f"{path.name}.{sha256(data).hexdigest()[:_DIGITS]}.data")
    for each in proto.graph.initializer:
        if len(each.external_data):
            each.external_data[0].value = beside.name
    was_there, old = beside.exists(), _beside(path)
    try:
        replace_file(beside, data)
        replace_file(path, proto.SerializeToString(deterministic=True))
    except BaseException:
        if not was_there:
            beside.unlink(missing_ok=True)
        raise
    for other in old - {beside}:
        with suppress(OSError):
            other.unlink()


def _beside(path: Path) -> set[Path]:
    """The second files of ours that the file of this name has, as far as it can be read."""
    ours = re.compile(rf"{re.escape(path.name)}\.[0-9a-f]{{{_DIGITS}}}\.data")
    try:
        proto = onnx.load(path, load_external_data=False)
    except Exception:  # none, or one of another format, which is about to be replaced
        return set()
    said = [
        e.value for t in proto.graph.initializer for e in t.external_data if e.key == "location"
    ]
    return {path.with_name(name) for name in said if ours.fullmatch(name)}
