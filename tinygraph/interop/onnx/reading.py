"""A file of the format ONNX as a checked model, and its tensors as numpy arrays.

A file may come from anywhere, so that nothing in it is believed.  A size is held against the bytes
that are there before memory is taken; data beside the file are read only from the folder of the
file; what `onnx.checker` finds, names used twice and nodes out of order among it, is an OnnxError.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.base import OnnxError, too_large
from tinygraph.engine import Array
from tinygraph.interop.onnx.library import onnx

MOST_BYTES = 2**33  # of all tensors of a file, where the caller does not say otherwise
_MOST_OF_A_FILE = 2**31  # protobuf has no longer ones
_UNREAD = ("STRING", "COMPLEX64", "COMPLEX128", "UNDEFINED")


class Budget:
    """The bytes that the tensors of a file may still take."""

    def __init__(self, most: int) -> None:
        self.left = self.most = most

    def take(self, count: int, what: str) -> None:
        """Reserve some, or raise OnnxError."""
        if count > self.left:
            expected = f"at most {self.most:,} bytes in all tensors"
            raise OnnxError("load", what, expected, f"{count:,} more", "load(path, max_bytes=...)")
        if why := too_large(count):
            raise OnnxError("load", what, "a size that there is memory for", why)
        self.left -= count


def read_model(path: str | os.PathLike[str]) -> tuple[Any, list[Any]]:
    """The ModelProto of a file, checked by `onnx.checker`, and its initialisers, not read yet."""
    place = Path(path)
    try:
        size = place.stat().st_size
        if not place.is_file() or size > _MOST_OF_A_FILE:
            expected = f"a file of at most {_MOST_OF_A_FILE:,} bytes"
            raise OnnxError("load", "path", expected, f"{place}, {size:,} bytes")
        if why := too_large(2 * size):
            raise OnnxError("load", "path", f"memory for {place}, twice", why)
        data = place.read_bytes()
    except OSError as error:
        raise OnnxError("load", "path", "a file that can be read", error) from error
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
        _require_text(model)
        tensors = list(model.graph.initializer)
        _leave_to_us(model.graph)
        onnx.checker.check_model(model)
    except Exception as error:  # protobuf and the checker have many, and none of them is ours
        words = " ".join(str(error).split())[:400] or type(error).__name__
        raise OnnxError("load", str(place), "a valid ONNX model", words) from error
    return model, tensors


def _require_text(message: Any) -> None:
    """Raise where a string is not UTF-8: protobuf gives bytes in its place."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            for each in [value] if isinstance(value, (str, bytes)) else value:
                if not isinstance(each, str):
                    raise OnnxError("load", field.name, "text in UTF-8", each)
        elif field.type == field.TYPE_MESSAGE:
            for inner in [value] if hasattr(value, "ListFields") else value:
                _require_text(inner)


def _leave_to_us(graph: Any) -> None:
    """Make a graph one that the checker takes though it knows less than we do.

    It looks for data outside in the working directory, so that initialisers are empty ones of their
    names; and it demands a shape of tensors whose rank is unknown.
    """
    names = [tensor.name for tensor in graph.initializer]
    del graph.initializer[:]
    for name in names:
        graph.initializer.add(name=name, data_type=onnx.TensorProto.FLOAT, dims=[0])
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape"):
            value.type.tensor_type.shape.SetInParent()


def dtype_of(code: int, what: str) -> np.dtype[Any]:
    """The numpy dtype of a TensorProto's, or an error that names it."""
    try:
        name = onnx.TensorProto.DataType.Name(code)
    except ValueError:
        name = f"dtype number {code}"
    if name in _UNREAD or name.startswith("dtype"):
        raise OnnxError("load", what, "numbers or bools", name, "write the model without them")
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code))


def read_tensor(tensor: Any, folder: Path | None, budget: Budget) -> Array:
    """A TensorProto as an array.

    `folder` is where its data may lie; None: nowhere but in the file.
    """
    what = f"tensor {tensor.name!r}"
    dtype, shape = dtype_of(tensor.data_type, what), tuple(tensor.dims)
    if any(n < 0 for n in shape) or len(shape) > 64:
        raise OnnxError("load", what, "up to 64 sizes of 0 or more", shape)
    count = math.prod(shape)
    stored = _stored_bytes(tensor.data_type, count, dtype)
    budget.take(max(stored, count * dtype.itemsize), what)
    outside = tensor.data_location == onnx.TensorProto.EXTERNAL
    if outside:
        copy = onnx.TensorProto()
        copy.CopyFrom(tensor)
        copy.ClearField("external_data")
        copy.data_location = onnx.TensorProto.DEFAULT
        copy.raw_data = _read_outside(tensor, folder, stored)
        tensor = copy
    elif tensor.HasField("raw_data"):
        if len(tensor.raw_data) != stored:
            expected = f"{stored:,} bytes for shape {shape}"
            raise OnnxError("load", what, expected, f"{len(tensor.raw_data):,}")
    else:
        _require_numbers(tensor, count, what)
    try:
        array = onnx.numpy_helper.to_array(tensor)
    except Exception as error:
        raise OnnxError("load", what, "data of its dtype and shape", error) from error
    return np.array(array, order="C")  # of its own: one that can be written


def _stored_bytes(code: int, count: int, dtype: np.dtype[Any]) -> int:
    """How many bytes `raw_data` has; elements of less than a byte are packed."""
    name = onnx.TensorProto.DataType.Name(code)
    bits = 4 if name.endswith(("INT4", "E2M1")) else 2 if name.endswith("INT2") else 0
    return -(-count * bits // 8) if bits else count * dtype.itemsize


def _require_numbers(tensor: Any, count: int, what: str) -> None:
    """Raise unless the typed field of a tensor has as many numbers as its shape says."""
    field = onnx.helper.tensor_dtype_to_field(tensor.data_type)
    found = len(getattr(tensor, field))
    name = onnx.TensorProto.DataType.Name(tensor.data_type)
    packed = 2 if name.endswith(("INT4", "E2M1")) else 4 if name.endswith("INT2") else 1
    if found not in (count, -(-count // packed)):
        raise OnnxError("load", what, f"{count:,} numbers", f"{found:,}")


def _read_outside(tensor: Any, folder: Path | None, size: int) -> bytes:
    """Bytes of a file that lies in the folder of the model."""
    what = f"tensor {tensor.name!r}"
    said = {entry.key: entry.value for entry in tensor.external_data}
    location = said.get("location", "")
    if folder is None:
        raise OnnxError("load", what, "data in the file", f"data in {location!r}")
    try:
        offset, length = int(said.get("offset") or 0), int(said.get("length") or size)
    except ValueError:
        raise OnnxError("load", what, "a whole offset and length", said) from None
    root = folder.resolve()
    expected = "a file in the folder of the model"
    try:
        if not location or "\0" in location or Path(location).is_absolute():
            raise OnnxError("load", what, expected, repr(location))
        place = (root / location).resolve(strict=True)  # where links lead
        if ".." in Path(location).parts or not place.is_relative_to(root) or not place.is_file():
            raise OnnxError("load", what, expected, repr(location))
        if length != size or offset < 0 or offset + size > place.stat().st_size:
            got = f"{length:,} from {offset:,} of {place.stat().st_size:,} in {location!r}"
            raise OnnxError("load", what, f"{size:,} bytes", got)
        with place.open("rb") as file:
            file.seek(offset)
            data = file.read(size)
    except OSError as error:
        raise OnnxError("load", what, expected, error) from error
    if len(data) != size:
        raise OnnxError("load", what, f"{size:,} bytes of {location!r}", f"{len(data):,}")
    return data
