"""NpyDataset: arrays on disk, in one .npy file or in many; what is asked for is read, and no more.

    train-images-0000.npy   (50000, 3, 32, 32) uint8     train-labels-0000.npy   (50000,) int64
    train-images-0001.npy   (50000, 3, 32, 32) uint8     train-labels-0001.npy   (50000,) int64
    train-images-*.npy                                   train-labels-*.npy

The rows of a file lie one after the other.  They are read, not mapped: a file that has lost its end
is then an error and no fault of the process, and no file stays open, however many there are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import AnyPath, ArgumentError, DatasetError, as_path, too_large
from tinygraph.base.disk import open_regular
from tinygraph.data.dataset import BatchedDataset, Samples, chosen
from tinygraph.data.files import fault
from tinygraph.engine import Array

_NAME = "NpyDataset"


class NpyDataset(BatchedDataset):
    """Inputs and labels in .npy files, of which only the rows that are asked for are read.

    Files that a `*` stands for are one dataset, in the order of their names.  The labels of a file
    are in the file that has the same text in the place of its star.

    Parameters
    ----------
    inputs : str or Path
        A file of `np.save`, of an array (N, ...); or a name with a `*` in it for several of them.
    labels : str or Path
        Likewise, of arrays as long as those of the inputs.
    name : str
        Shown in messages.

    Attributes
    ----------
    shape, dtype : tuple of int, numpy.dtype
        Of the inputs of one sample.

    Raises
    ------
    DatasetError
        There is no such file, or none for the labels of some inputs; a file is no .npy file, holds
        Python objects, an array in Fortran's order, of another dtype or shape than the first one,
        or is truncated; there are not as many labels as inputs.  When samples are asked for: a
        file was written since the dataset was made.
    ArgumentError
        More than one star, or one in the name of a folder.

    Examples
    --------
    >>> import os, tempfile, numpy as np, tinygraph as tg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for shard in range(3):
    ...         np.save(f"{folder}/x-{shard:04}.npy", np.full((4, 2), shard, np.uint8))
    ...         np.save(f"{folder}/y-{shard:04}.npy", np.arange(4) + 4 * shard)
    ...     data = tg.data.NpyDataset(f"{folder}/x-*.npy", f"{folder}/y-*.npy")
    ...     inputs, labels = data[[11, 0, 5]]
    >>> data
    NpyDataset(unnamed: 12 samples of uint8 (2,) in 3 files)
    >>> inputs.tolist(), labels
    ([[2, 2], [0, 0], [1, 1]], array([11,  0,  5]))
    """

    def __init__(self, inputs: AnyPath, labels: AnyPath, name: str = "") -> None:
        self.name = name
        of_inputs, of_labels = _files("inputs", inputs), _files("labels", labels)
        _require_pairs(of_inputs, of_labels)
        self._inputs = _Rows([_File.open(path) for path in of_inputs.values()])
        self._labels = _Rows([_File.open(of_labels[star]) for star in of_inputs])
        for one, other in zip(self._inputs.files, self._labels.files, strict=True):
            if one.rows != other.rows:
                expected = f"{one.rows} rows, as {one.path.name} has"
                way_out = "write the labels of the same samples"
                raise fault(_NAME, other.path, expected, other.rows, way_out)
        self.shape, self.dtype = self._inputs.files[0].shape, self._inputs.files[0].dtype

    def __len__(self) -> int:
        return len(self._inputs)

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        """(inputs, labels) at an int, a slice or an array of ints: read from the files."""
        rows = chosen(index, len(self))
        inputs, labels = (part.read(np.atleast_1d(rows)) for part in (self._inputs, self._labels))
        return (inputs, labels) if rows.ndim else (inputs[0], labels[0])

    def __getitems__(self, indices: Any) -> Samples:
        """The samples at these ints, read at once."""
        return _Together(self, indices)

    def __repr__(self) -> str:
        files = len(self._inputs.files)
        where = f"{files} files" if files > 1 else "one file"
        kind = f"{self.dtype} {self.shape}"
        return f"NpyDataset({self.name or 'unnamed'}: {len(self)} samples of {kind} in {where})"


class _Together(Samples):
    """Samples that are read at once, also where they are wanted one by one."""

    def __iter__(self) -> Iterator[Any]:
        return zip(*self.batch(), strict=True)


class _File(NamedTuple):
    """Where the rows of one file lie in it, and what the file was when that was found out."""

    path: Path
    offset: int
    rows: int
    shape: tuple[int, ...]  # of a row
    dtype: Any
    state: tuple[int, int]  # its bytes, and when it was last written
    header: bytes

    @classmethod
    def open(cls, path: Path) -> _File:
        """What the header says, or DatasetError."""
        try:
            with open_regular(path) as stream:
                state = _state(stream)
                array: Any = np.lib.format.open_memmap(path, mode="r")  # checks the length too
                header = stream.read(array.offset)
        except Exception as error:  # numpy reads a header as Python: of anything, anything comes
            expected, got = "a .npy file of an array of numbers, whole", f"{error}".rstrip(".")
            got = got or type(error).__name__
            raise fault(_NAME, path, expected, got, "np.save it again") from None
        if not array.ndim:
            raise fault(_NAME, path, "at least one axis", "none", "save an array (N, ...)")
        if why := too_large(8 * len(array)):
            raise fault(_NAME, path, "as many samples as there is memory for indices", why)
        if not array.flags.c_contiguous:
            way_out = "np.save(path, np.ascontiguousarray(array))"
            raise fault(_NAME, path, "samples that lie one after the other", "columns", way_out)
        shape = array.shape[1:]
        return cls(path, array.offset, len(array), shape, array.dtype, state, header)

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """The file to read from, where it is the one that was opened first; else DatasetError."""
        try:
            stream = self.path.open("rb", buffering=0)
        except OSError as error:
            way_out = "put it back, or begin anew without it"
            raise fault(_NAME, self.path, "a file that can be read", error, way_out) from None
        with stream:
            if _state(stream) != self.state or stream.read(self.offset) != self.header:
                expected = "the file that the dataset was made of"
                got = "one that was written since: its numbers may mean something else"
                raise fault(_NAME, self.path, expected, got, "make the NpyDataset anew")
            yield stream


def _state(stream: Any) -> tuple[int, int]:
    found = os.fstat(stream.fileno())
    return found.st_size, found.st_mtime_ns


class _Rows:
    """The rows of several files, one file after the other."""

    def __init__(self, files: list[_File]) -> None:
        self.files = files
        self.ends = np.array(list(accumulate(file.rows for file in files)))
        first = files[0]
        for file in files:
            if (file.dtype, file.shape) != (first.dtype, first.shape):
                expected = f"samples of {first.dtype} {first.shape}, as in {first.path.name}"
                way_out = "write files of one dtype and one shape of samples"
                got = f"{file.dtype} {file.shape}"
                raise fault(_NAME, file.path, expected, got, way_out)

    def __len__(self) -> int:
        return int(self.ends[-1])

    def read(self, rows: Array) -> Array:
        """These rows, of any order: int64 (M,) -> (M, ...).

        Neighbours in a file are read at once, and each file from its front to its end.
        """
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        shape, dtype = self.files[0].shape, self.files[0].dtype
        found = np.empty((len(rows), *shape), dtype)
        size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))  # bytes of a row
        content = found.reshape(-1).view(np.uint8)
        which = np.searchsorted(self.ends, ascending, side="right")
        borders = np.flatnonzero((np.diff(ascending) != 1) | (np.diff(which) != 0)) + 1
        runs = pairwise([0, *borders.tolist(), len(rows)]) if size and len(rows) else ()
        for number, inside in groupby(runs, lambda run: which[run[0]]):
            file = self.files[number]
            before = int(self.ends[number]) - file.rows
            with file.opened() as stream:
                for start, stop in inside:
                    stream.seek(file.offset + (int(ascending[start]) - before) * size)
                    _fill(content[start * size : stop * size], stream, file.path)
        together = np.empty_like(found)
        together[order] = found
        return together


def _fill(place: Array, stream: Any, path: Path) -> None:
    """Read as many bytes as there is place for."""
    done = 0
    while done < len(place):
        count = stream.readinto(place[done:])
        if not count:
            got = "its end: it has become shorter"
            raise fault(_NAME, path, f"{len(place) - done} bytes more", got, "np.save it again")
        done += count


def _files(argument: str, pattern: AnyPath) -> dict[str, Path]:
    """The files that a name stands for, sorted, by the text in the place of its star."""
    path = as_path(_NAME, argument, pattern).absolute()
    before, *after = path.name.split("*")
    if len(after) > 1 or "*" in str(path.parent):
        expected = "one * at most, in the name of the file"
        raise ArgumentError(_NAME, argument, expected, repr(str(pattern)))
    if not after:
        return {"": path}
    length = len(before) + len(after[0])
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())
    except OSError as error:
        got = error.strerror or str(error)
        raise fault(_NAME, path.parent, "a folder", got, "check the path") from None
    found = {
        name[len(before) : len(name) - len(after[0])]: path.parent / name
        for name in names
        if name.startswith(before) and name.endswith(after[0]) and len(name) >= length
    }
    if not found:
        raise fault(_NAME, path, "files of such names", "none", "check the path")
    return found


def _require_pairs(inputs: dict[str, Path], labels: dict[str, Path]) -> None:
    """Inputs and labels for each text in the place of the star."""
    for star in sorted({*inputs} ^ {*labels}):
        absent = "inputs" if star in labels else "labels"
        beside = (labels if star in labels else inputs)[star].name
        expected = f"a file with {star!r} in the place of the star, beside {beside}"
        raise DatasetError(_NAME, absent, expected, "none", "write it, or move the other one")
