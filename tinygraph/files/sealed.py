"""Parameters in a file that is either whole or not there, and says when it is broken.

The format is safetensors, which other programs read too.  It has no checksum: a flipped bit would
load as a wrong number.  The metadata of our files therefore hold a seal: the SHA-256 of the whole
file, taken with 64 zeros in the place of the seal.  The name of the entry is ours alone: other
programs write hashes of their own.

Files are written as disk.py does it: after a crash there is the old file or the new one, whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import safetensors.numpy

from tinygraph.base import AnyPath, ArgumentError, CheckpointError, as_path, too_large, unmasked
from tinygraph.base.disk import followed, open_regular, reason, write_atomically
from tinygraph.base.disk import writing as writing
from tinygraph.base.free_memory import SMALL
from tinygraph.base.json_text import to_json
from tinygraph.engine import Array

_BLANK = b"0" * 64
_MOST_HEADER = 100_000_000  # bytes; safetensors reads no longer ones
_DTYPES = "bools, ints, or floats of 16 to 64 bits"
_NAME = "tinygraph.sha256"
# Of earlier versions, who called it "sha256", as others do: only looked for where one is needed.
_SEAL = re.compile(rb'"(?:tinygraph\.)?sha256":"([0-9a-f]{64})"')
# Whatever one byte of the name has become: a file of ours that is damaged is not one of others.
_TRACE = re.compile(
    b"|".join(
        re.escape(_NAME[:i].encode()) + b"." + re.escape(_NAME[i + 1 :].encode()) for i in range(16)
    ),
    re.DOTALL,
)


AGAIN = "restore it from a copy, or train again"
OTHERS = "load a file of another program with sealed=False"


def save_arrays(path: AnyPath, arrays: Mapping[str, Any]) -> Path:
    """Write arrays by name into a sealed safetensors file.

    Parameters
    ----------
    path : str or os.PathLike
        An existing file is replaced, in one step; it keeps its mode.  A link is followed.
    arrays : mapping from str to array_like
        Such as `model.state_dict()`.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    CheckpointError
        The file cannot be written: no right, disk full.
    ArgumentError
        A name or a dtype of which nothing could read the file; an old file is untouched.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = tg.training.save_arrays(f"{folder}/a.safetensors", {"w": [1.0, 2.0]})
    ...     tg.training.load_arrays(path)
    {'w': array([1., 2.])}
    """
    path = as_path("save_arrays", "path", path)
    if not path.name:
        raise ArgumentError("save", "path", "the name of a file", repr(str(path)))
    if not isinstance(arrays, Mapping):
        got = f"a {type(arrays).__name__}"
        raise ArgumentError("save_arrays", "arrays", "a mapping from names to arrays", got)
    plain = {}
    for name, array in arrays.items():
        if why := unnameable(name):
            raise ArgumentError("save_arrays", f"arrays[{name!a}]", "a name in UTF-8", why)
        try:
            plain[str(name)] = np.array(unmasked("save", name, array), order="C")
        except ValueError as error:
            got = str(error).rstrip(".")
            raise ArgumentError("save_arrays", f"arrays[{name!r}]", "an array", got) from None
        if why := unwritable(plain[name]):
            expected = f"an array of {_DTYPES}"
            raise ArgumentError("save_arrays", f"arrays[{name!r}]", expected, why)
    blank = safetensors.numpy.save(plain, metadata={_NAME: _BLANK.decode()})
    if (size := _header_size(path, blank)) > _MOST_HEADER:
        expected = f"names that take up to {_MOST_HEADER:,} bytes with their shapes"
        raise ArgumentError("save_arrays", "arrays", expected, f"{size:,}")
    place = _find_seal(path, blank)
    seal = hashlib.sha256(blank).hexdigest().encode()
    write_atomically(followed(path), blank[: place.start] + seal + blank[place.stop :])
    return path


def unnameable(name: Any) -> str:
    """Why a file that has an array of this name can be read by nothing; "" where it can."""
    if not isinstance(name, str):
        return f"a name of type {type(name).__name__}"
    if name == "__metadata__":
        return "a name that safetensors needs itself"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "half of a surrogate pair, which no text has"
    return ""


def unwritable(array: Any) -> str:
    """Why a file with this array cannot be written, or not be read back; "" where it can."""
    plain = array.dtype.kind in "fiub" and array.dtype.itemsize <= 8
    return "" if plain or array.dtype == np.complex64 else str(array.dtype)


def load_arrays(path: AnyPath, sealed: bool | None = True) -> dict[str, Array]:
    """Read a safetensors file, and refuse it where its seal does not match.

    Parameters
    ----------
    path : str or os.PathLike
    sealed : bool or None
        False reads a file that another program wrote, without looking for a seal; None looks at the
        seal where there is one.

    Returns
    -------
    dict of str to array

    Raises
    ------
    CheckpointError
        The file is absent, truncated, changed since it was written, or lacks a seal that it needs.
    """
    path = as_path("load_arrays", "path", path)
    try:
        data = _read(path)
    except OSError as error:
        raise CheckpointError(
            "load_arrays", str(path), "a file that can be read", reason(error), "check the path"
        ) from error  # of which a checkpoint asks whether it is damaged
    if sealed or (sealed is None and _TRACE.search(data, 8, 8 + _header_size(path, data))):
        _check_seal(path, data)
    try:
        found = safetensors.numpy.load(data)  # in another order each time
        header = json.loads(data[8 : 8 + _header_size(path, data)])
        return {name: found[name] for name in header if name in found}
    except MemoryError:
        raise
    except Exception as error:  # SafetensorError derives from Exception alone
        raise CheckpointError(
            "load_arrays", str(path), "a safetensors file of numbers", error
        ) from None


def _read(path: Path) -> bytes:
    """The bytes of a file, if they are as many as its header says, and there is memory for them."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        begin = file.read(8)
        header = int.from_bytes(begin, "little")
        if size > SMALL and header <= min(size - 8, _MOST_HEADER):
            begin += file.read(header)
            said = _said_size(begin)
            if said != size:
                expected = "as many bytes as its header says, {said:,}" if said else "a header"
                _refuse(path, expected.format(said=said), f"{size:,} bytes in all")
        elif size > SMALL:
            _refuse(path, f"a header of up to {_MOST_HEADER:,} bytes", f"one of {header:,}")
        if why := too_large(2 * size):  # the file, and the arrays
            _refuse(path, "a file that there is memory for, twice", why, "free some memory")
        return begin + file.read()


def _said_size(begin: bytes) -> int:
    """How long a file is by its header; 0 where that is none."""
    try:
        header = json.loads(begin[8:])
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name[:2] != "__"]
        return len(begin) + int(max(ends, default=0))
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return 0


def _refuse(
    path: Path, expected: str, got: str, way_out: str = "restore it from a copy"
) -> NoReturn:
    raise CheckpointError("load_arrays", str(path), expected, got, way_out)


def _check_seal(path: Path, data: bytes) -> None:
    """Raise CheckpointError unless the file is as it was written."""
    place = _find_seal(path, data)
    found = hashlib.sha256(data[: place.start])
    found.update(_BLANK)
    found.update(memoryview(data)[place.stop :])
    if found.hexdigest().encode() != data[place]:
        raise CheckpointError(
            "load_arrays",
            str(path),
            "the SHA-256 that its seal names",
            "another: the file was damaged or changed",
            AGAIN if _TRACE.search(data, 8, place.start) else f"{AGAIN}; {OTHERS}",
        )


def _header_size(path: Path, data: bytes) -> int:
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > len(data) - 8:
        raise CheckpointError(
            "load_arrays",
            str(path),
            "a whole safetensors file",
            f"{len(data)} bytes: it is truncated or of another format",
        )
    return size


def _find_seal(path: Path, data: bytes) -> slice:
    """Where the 64 digits of the seal stand in a file."""
    match = _SEAL.search(data, 8, 8 + _header_size(path, data))
    if match is None:
        raise CheckpointError(
            "load_arrays",
            str(path),
            "a seal in its metadata",
            "none",
            AGAIN if _TRACE.search(data, 8, 8 + _header_size(path, data)) else OTHERS,
        )
    return slice(*match.span(1))


def write_json(path: Path, content: Any) -> Path:
    """Write a JSON file in one step; ArgumentError, and the old file, where it has no text."""
    text = to_json(str(path), content, indent=2, ensure_ascii=False)
    return write_atomically(path, f"{text}\n".encode())
