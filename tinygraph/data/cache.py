"""cached: a dataset that is costly to make, made once and kept in a file.

    KEY.npz    the arrays, and what they were made with; its last 32 bytes are the SHA-256 of
               everything before them

The file is replaced in one step: a crash leaves the old one or the new one, whole.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.base import AnyPath, ArgumentError, DatasetError, as_path, too_large
from tinygraph.base.disk import open_regular, replace_file
from tinygraph.base.json_files import parse
from tinygraph.base.json_text import to_json
from tinygraph.data.dataset import ArrayDataset

FORMAT = 2  # of the file; a cache of another number is made again

_KEY = re.compile(r"[A-Za-z0-9_-]{1,100}")
_DIGEST = 32  # bytes


class CacheWarning(UserWarning):
    """A cache that could not be used, and was made again; or one that could not be written."""


class _Stale(Exception):
    """Why a cache cannot be used."""


def cached(
    dataset_fn: Callable[[], ArrayDataset], key: str, cache_dir: AnyPath, settings: Any = None
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
    path = as_path("cached", "cache_dir", cache_dir) / f"{key}.npz"
    try:
        return _read(path, wanted)
    except FileNotFoundError:
        pass
    except _Stale as stale:
        warnings.warn(
            f"cached: {path}: {stale}; the dataset is made again", CacheWarning, stacklevel=2
        )
    dataset = dataset_fn()
    _check(dataset)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, _packed(dataset, wanted))
    except OSError as error:
        warnings.warn(
            f"cached: {path}: {error.strerror or error}; the dataset is not kept",
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


def _packed(dataset: ArrayDataset, settings: str) -> bytes:
    """The content of a file."""
    about = {"format": FORMAT, "settings": settings}
    about |= {"name": dataset.name, "classes": dataset.classes, "notes": dataset.notes}
    text = np.frombuffer(to_json("cached", about).encode(), np.uint8)
    file = io.BytesIO()
    np.savez(file, inputs=dataset.inputs, labels=dataset.labels, about=text)
    return file.getvalue() + hashlib.sha256(file.getbuffer()).digest()


def _read(path: Path, wanted: str) -> ArrayDataset:
    """The dataset of a valid cache; FileNotFoundError where there is none, _Stale otherwise."""
    try:
        with open_regular(path) as file:
            if why := too_large(3 * os.fstat(file.fileno()).st_size):
                raise _Stale(f"its arrays are larger than the memory that is free: {why}")
            content = memoryview(file.read())
        packed, digest = content[:-_DIGEST], content[-_DIGEST:]
        if hashlib.sha256(packed).digest() != digest:
            raise _Stale("its SHA-256 is another: it is damaged")
        with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
            about = parse(arrays["about"].tobytes())
            found, settings = about.pop("format"), about.pop("settings")
            if found != FORMAT:
                raise _Stale(f"format {found}, not {FORMAT}")
            if settings != wanted:
                raise _Stale(f"made with the settings {settings}, not {wanted}")
            return ArrayDataset(arrays["inputs"], arrays["labels"], **about)
    except FileNotFoundError:
        raise
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        EOFError,
        MemoryError,
        RecursionError,
        OverflowError,
        zipfile.BadZipFile,
    ) as error:
        raise _Stale(f"it cannot be read ({error})") from None
