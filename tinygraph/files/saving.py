"""`tg.save` and `tg.load`: dicts, lists and tuples of arrays and plain values, in one sealed file.

    {"model": {"0.weight": array}, "epoch": 3}

    model/0.weight       the array
    tinygraph.document   {"model": {"0.weight": {"$": "array", "name": "model/0.weight"}},
                          "epoch": 3}

The file is a safetensors file (sealed.py) of arrays by name.  One of them is the document: the
bytes of a JSON text, with a reference in the place of each array.  A mapping from names to arrays,
such as a module's state_dict, needs no document, and is what any program that reads safetensors
expects.  Nothing in a file is code: to load one runs none, unlike a pickle.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.base import AnyPath, ArgumentError, CheckpointError, as_path, unmasked
from tinygraph.base.disk import open_regular
from tinygraph.engine import Array, Tensor
from tinygraph.files.sealed import load_arrays, save_arrays, unnameable, unwritable

_TAG = "$"  # the key of what stands for something that JSON has not
_DOCUMENT = "tinygraph.document"
_DEEPEST = 200  # dicts, lists and tuples in one another: what is written can be read from anywhere
_LARGEST = 10**4300  # of an int: Python reads no longer ones
_OF_TORCH = b"PK\x03\x04", b"\x80\x02"  # how torch.save begins a file: a zip, before 1.6 a pickle


def save(obj: Any, path: AnyPath) -> Path:
    """Write what `state_dict()` gives, or any nest of dicts, lists and tuples of arrays and values.

    Parameters
    ----------
    obj : dict, list, tuple, array, Tensor, number, str, bool or None
        Dicts have keys of str, int, float or bool.  Arrays and Tensors may lie on any device.
    path : str or os.PathLike
        An existing file is replaced, in one step: after a crash there is the old one or the new.
        A link is followed, and the file keeps its mode.

    Returns
    -------
    Path
        The file: safetensors, with a checksum in its metadata, which `load` looks at.

    Raises
    ------
    ArgumentError
        There is something else in `obj`, or a key or a dtype of which nothing could read the file;
        the message says where, and an old file is untouched.
    CheckpointError
        The file cannot be written: no right, disk full.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> model = tg.nn.Linear(2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = tg.save({"model": model.state_dict(), "epoch": 3}, f"{folder}/a.safetensors")
    ...     found = tg.load(path)
    >>> model.load_state_dict(found["model"]), found["epoch"]
    (IncompatibleKeys(missing_keys=[], unexpected_keys=[]), 3)
    """
    target = as_path("save", "path", path)
    if _is_plain(obj):
        for name, array in obj.items():
            _require_readable((name,), name, array)
        return save_arrays(target, obj)
    return save_arrays(target, packed(obj))


def load(path: AnyPath, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Read what `save` wrote, or another program as safetensors; PyTorch's files by PyTorch.

    Parameters
    ----------
    path : str or os.PathLike
        A file of `torch.save` is read where torch is installed, by
        `torch.load(..., weights_only=True)`; its tensors come as arrays.
    map_location, weights_only
        Change nothing: arrays come to the host, and nothing in a file is ever run.

    Returns
    -------
    object
        As it was saved.  Arrays are numpy arrays; a Tensor lies on the cpu.

    Raises
    ------
    CheckpointError
        The file is absent, damaged, or of another format.
    ArgumentError
        `path` is no path, or `weights_only` is False.

    Examples
    --------
    >>> import tempfile, numpy as np, tinygraph as tg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tg.load(tg.save([np.float64(0.5), (1, None)], f"{folder}/a.safetensors"))
    [np.float64(0.5), (1, None)]
    """
    if not weights_only:
        way_out = "leave it out; of a pickle save model.state_dict() there, in PyTorch"
        raise ArgumentError("load", "weights_only", "True: no file is run", weights_only, way_out)
    source = as_path("load", "path", path)
    if _is_of_torch(source):
        return _read_by_torch(source)
    arrays = load_arrays(source, sealed=None)
    if _DOCUMENT not in arrays:
        return arrays
    try:
        return unpacked(arrays)
    except BAD_DOCUMENT as error:
        expected = "a document whose arrays are in the file"
        raise CheckpointError("load", str(source), expected, repr(error)) from None


# ---- a nest as a document and arrays ------------------------------------------------------------

BAD_DOCUMENT = (KeyError, TypeError, ValueError, RecursionError)  # of one that nobody packed


def packed(obj: Any) -> dict[str, Array]:
    """The arrays of a nest by name, the document among them."""
    arrays: dict[str, Array] = {}
    try:
        document = json.dumps(_packed(obj, (), arrays), allow_nan=False)
    except RecursionError:
        raise _too_deep(()) from None
    return {**arrays, _DOCUMENT: np.frombuffer(document.encode(), np.uint8)}


def unpacked(arrays: Mapping[str, Array]) -> Any:
    """The nest that `packed` made these of; one of `BAD_DOCUMENT` where it made others."""
    left = dict(arrays)
    obj = _unpacked(json.loads(left.pop(_DOCUMENT).tobytes()), left)
    if left:
        raise ValueError(f"{min(left)} stands nowhere in the document")
    return obj


def _is_plain(obj: Any) -> bool:
    """Whether it is arrays by name and nothing else."""
    return isinstance(obj, Mapping) and all(
        isinstance(name, str) and name != _DOCUMENT and _is_of_numbers(value)
        for name, value in obj.items()
    )


def _is_of_numbers(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiub"


def _require_readable(way: tuple[Any, ...], name: str, array: Any) -> None:
    """Raise where nothing could read a file with this array under this name."""
    if why := unnameable(name):
        raise _cannot(way, "keys of which a file can have an array", why, "give it another key")
    if why := unwritable(unmasked("save", name, array)):
        raise _cannot(way, "an array that a file can hold", why, "convert it, or save its parts")


def _packed(value: Any, way: tuple[Any, ...], arrays: dict[str, Array]) -> Any:
    """What the document holds for a value; the arrays below it are put into `arrays`."""
    if len(way) > _DEEPEST:
        raise _too_deep(way[:1])
    if isinstance(value, float) and not math.isfinite(value) and not isinstance(value, np.generic):
        return {_TAG: "float", "text": str(value)}  # JSON has no number for it
    if value is None or type(value) in (bool, int, float, str):
        _require_short(value, way)
        return value
    if isinstance(value, Mapping):
        for key in value:
            if type(key) not in (bool, int, float, str):
                raise _cannot(way, "keys of str, int, float or bool", f"{key!r}")
            _require_short(key, way)
        items = [(key, _packed(x, (*way, key), arrays)) for key, x in value.items()]
        if all(isinstance(key, str) and key != _TAG for key in value):
            return dict(items)
        return {_TAG: "dict", "items": [(_packed(key, way, arrays), x) for key, x in items]}
    if isinstance(value, (list, tuple)):
        items = [_packed(x, (*way, i), arrays) for i, x in enumerate(value)]
        return items if isinstance(value, list) else {_TAG: "tuple", "items": items}
    kind, array = _as_array(value)
    if not _is_of_numbers(array):
        got = f"an array of {array.dtype}" if kind == "array" else type(value).__name__
        raise _cannot(way, "dicts, lists, tuples, arrays of numbers and plain values", got)
    name = "/".join(map(str, way)) or "value"
    while name in arrays or name == _DOCUMENT:
        name += "'"
    _require_readable(way, name, array)
    arrays[name] = array
    return {_TAG: kind, "name": name}


def _as_array(value: Any) -> tuple[str, Any]:
    """What kind of array a value is, and the array on the host."""
    if isinstance(value, Tensor):
        return "tensor", value.numpy()
    if isinstance(value, np.generic):
        return "number", np.asarray(value)
    if hasattr(value, "__cuda_array_interface__"):
        return "array", value.get()
    unmasked("save", "obj", value)
    return "array" if isinstance(value, np.ndarray) else "", value


def _require_short(number: Any, way: tuple[Any, ...]) -> None:
    if type(number) is int and abs(number) >= _LARGEST:
        raise _cannot(way, "ints of up to 4300 digits", "a longer one", "save it as a str in hex")


def _too_deep(way: tuple[Any, ...]) -> ArgumentError:
    return _cannot(way, "a nest that ends", "one that holds itself, or is too deep")


def _cannot(
    way: tuple[Any, ...],
    expected: str,
    got: str,
    way_out: str = "save state_dict() of modules and optimisers",
) -> ArgumentError:
    place = "obj" + "".join(f"[{key!a}]" for key in way)
    return ArgumentError("save", place, expected, got, way_out)


def _unpacked(entry: Any, arrays: dict[str, Array]) -> Any:
    """The value that `_packed` made this of; its arrays are taken out."""
    if isinstance(entry, list):
        return [_unpacked(x, arrays) for x in entry]
    if not isinstance(entry, dict):
        return entry
    match entry.get(_TAG):
        case None:
            return {key: _unpacked(x, arrays) for key, x in entry.items()}
        case "dict":
            pairs = entry["items"]
            return {_unpacked(key, arrays): _unpacked(x, arrays) for key, x in pairs}
        case "tuple":
            return tuple(_unpacked(x, arrays) for x in entry["items"])
        case "float":
            return float(entry["text"])
        case "array":
            return arrays.pop(entry["name"])
        case "number":
            return arrays.pop(entry["name"])[()]
        case "tensor":
            return Tensor(arrays.pop(entry["name"]))
        case other:
            raise ValueError(f"{other!r} is of another version")


# ---- files of PyTorch ---------------------------------------------------------------------------


def _is_of_torch(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return file.read(4).startswith(_OF_TORCH)
    except OSError:
        return False  # who reads it says why


def _read_by_torch(path: Path) -> Any:
    """What `torch.save` wrote, its tensors as arrays; only tensors and plain values are taken."""
    try:
        torch = import_module("torch")
    except ImportError:
        raise CheckpointError(
            "load",
            str(path),
            "a safetensors file",
            "one of torch.save, which only PyTorch reads, and it is not installed",
            "pip install torch, or write the file with safetensors.torch.save_file there",
        ) from None
    try:
        with path.open("rb") as file:  # of a path it would believe the suffix
            return _from_torch(torch, torch.load(file, map_location="cpu", weights_only=True))
    except Exception as error:  # torch lets through whatever its unpickler raises
        raise CheckpointError(
            "load",
            str(path),
            "a file of tensors and plain values, which torch.load(weights_only=True) takes",
            str(error).partition("\n")[0].partition(". ")[0],  # what follows is coloured, and long
            "save model.state_dict() there, not the model",
        ) from None


def _from_torch(torch: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        plain = value.detach()
        return (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy()
    if isinstance(value, Mapping):
        return {key: _from_torch(torch, x) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_from_torch(torch, x) for x in value)
    return value
