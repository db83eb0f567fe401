"""cached: a dataset that is costly to make, made once and kept in files.

    KEY.SHA256.npz    the arrays; its name holds the first digits of its own SHA-256
    KEY.json          the record: the SHA-256 in full, and the settings; written last

The record is what makes a cache valid.  It is replaced in one step after the arrays are on disk, so
that a crash leaves the old pair or the new one, and two processes that make the same cache do not
mix theirs.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.data.dataset import ArrayDataset
from tinygraph.disk import new_file, sync_folder, temporary_beside
from tinygraph.errors import ArgumentError, DatasetError

FORMAT = 1  # of the files; a cache of another number is made again

_KEY = re.compile(r"[A-Za-z0-9_-]{1,100}")
_MAX_RECORD = 1 << 20


class CacheWarning(UserWarning):
    """A cache that could not be used, and was made again; or one that could not be written."""


class _Stale(Exception):
    """Why a cache cannot be used."""


def cached(
    dataset_fn: Callable[[], ArrayDataset], key: str, cache_dir: str | Path, settings: Any = None
) -> ArrayDataset:
    """What `dataset_fn` returns: read from the cache, or made and kept there.

    A cache that is damaged, or that was made with other settings, is made again, and a CacheWarning
    says why.  The function itself is not looked at: what it depends on belongs into `settings`.

    Parameters
    ----------
    dataset_fn : function without arguments
        Makes an ArrayDataset; called only if there is no valid cache.
    key : str
        The name of the cache: letters, digits, `-` and `_`.
    cache_dir : str or Path
        The folder of the files; made where it is missing.
    settings : value that JSON can hold
        What the dataset depends on, such as a scale, a size, a version number of the function.

    Returns
    -------
    ArrayDataset
        Equal whether it was read or made.

    Raises
    ------
    ArgumentError
        A bad key, or settings that JSON cannot hold.
    DatasetError
        `dataset_fn` returns something else, or arrays of Python objects, which only a pickle could
        hold.  Whatever else it raises is passed on, and nothing is kept.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> def squares():
    ...     print("made")
    ...     return tg.data.ArrayDataset([[1.0], [4.0]], [1, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = tg.data.cached(squares, "squares", folder, {"count": 2})
    ...     second = tg.data.cached(squares, "squares", folder, {"count": 2})
    made
    >>> second[:]
    (array([[1.],
           [4.]]), array([1, 2]))
    """
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise ArgumentError("cached", "key", "1 to 100 letters, digits, '-' and '_'", repr(key))
    wanted = _canonical(settings)
    folder = Path(cache_dir).expanduser()
    try:
        return _read(folder, key, wanted)
    except FileNotFoundError:
        pass
    except _Stale as stale:
        warnings.warn(
            f"cached: {folder / key}.json: {stale}; the dataset is made again",
            CacheWarning,
            stacklevel=2,
        )
    dataset = dataset_fn()
    _check(dataset)
    try:
        _write(folder, key, wanted, dataset)
    except OSError as error:
        warnings.warn(
            f"cached: {folder}: {error.strerror or error}; the dataset is not kept",
            CacheWarning,
            stacklevel=2,
        )
    return dataset


def _canonical(settings: Any) -> str:
    """Settings as the one JSON text that equal settings have."""
    try:
        return json.dumps(settings, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            "cached",
            "settings",
            "a value that JSON can hold",
            error,
            "use dicts, lists, strings and numbers",
        ) from None


def _check(dataset: Any) -> None:
    if not isinstance(dataset, ArrayDataset):
        raise DatasetError(
            "cached",
            "dataset_fn",
            "a function that returns an ArrayDataset",
            type(dataset).__name__,
        )
    for argument, array in (("inputs", dataset.inputs), ("labels", dataset.labels)):
        if array.dtype.hasobject:
            raise DatasetError(
                "cached",
                argument,
                "numbers or strings",
                "Python objects, which only a pickle could hold",
                "convert them",
            )


def _read(folder: Path, key: str, wanted: str) -> ArrayDataset:
    """The dataset of a valid cache; FileNotFoundError without a record, _Stale otherwise."""
    sha256 = _read_record(folder / f"{key}.json", wanted)
    path = _arrays(folder, key, sha256)
    try:
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                raise _Stale("the arrays have another SHA-256: they are damaged")
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                about = json.loads(arrays["about"].tobytes())
                return ArrayDataset(arrays["inputs"], arrays["labels"], **about)
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise _Stale(f"the arrays cannot be read ({error})") from None


def _read_record(path: Path, wanted: str) -> str:
    """The SHA-256 of the arrays."""
    try:
        with path.open("rb") as file:
            record = json.loads(file.read(_MAX_RECORD))
        fields = {"format", "sha256", "settings", "settings_sha256"}
        if not isinstance(record, dict) or fields - set(record):
            raise ValueError("fields are missing")
        settings = _canonical(record["settings"])
        sha256 = str(record["sha256"])
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise ValueError("the SHA-256 is none")
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise _Stale(f"the record cannot be read ({error})") from None
    if record["format"] != FORMAT:
        raise _Stale(f"format {record['format']}, not {FORMAT}")
    if record["settings_sha256"] != _sha256(settings):
        raise _Stale("the record is damaged")
    if settings != wanted:
        raise _Stale(f"made with the settings {settings}, not {wanted}")
    return sha256


def _write(folder: Path, key: str, settings: str, dataset: ArrayDataset) -> None:
    """Arrays first, then the record, then older arrays are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {"name": dataset.name, "classes": dataset.classes, "notes": dataset.notes}
    temporary = temporary_beside(folder / f"{key}.npz")
    with new_file(temporary) as file:
        np.savez(
            file,
            inputs=dataset.inputs,
            labels=dataset.labels,
            about=np.frombuffer(json.dumps(about).encode(), np.uint8),
        )
    with temporary.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    arrays = _arrays(folder, key, sha256)
    os.replace(temporary, arrays)
    record = {
        "format": FORMAT,
        "sha256": sha256,
        "settings": json.loads(settings),
        "settings_sha256": _sha256(settings),
    }
    temporary = temporary_beside(folder / f"{key}.json")
    with new_file(temporary) as file:
        file.write(f"{json.dumps(record, indent=2)}\n".encode())
    sync_folder(folder)
    os.replace(temporary, folder / f"{key}.json")
    sync_folder(folder)
    for old in folder.glob(f"{key}.*.npz"):  # a key has no dot: no other cache has such a name
        if old != arrays:
            with suppress(OSError):
                old.unlink()


def _arrays(folder: Path, key: str, sha256: str) -> Path:
    return folder / f"{key}.{sha256[:16]}.npz"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
