"""Arrays that lie in a file, as `np.load(path, mmap_mode="r")` gives them: sent by their place.

What is sent says what the file was then: its length, what stands before the array, and, where
nobody here may write into it, when it was last written.  Of another file nothing is mapped.
"""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np

from tinygraph.data.files import fault
from tinygraph.engine import Array

State = tuple[int, int, bytes]


def as_place(array: Array) -> tuple[Any, ...] | None:
    """How to map the same part of the same file again; None where the array lies in memory.

    What is mapped copy-on-write may differ from its file, and is not sent by its place; nor is what
    was mapped of a file that has another one's header now.
    """
    mapped: Any = None
    below: Any = array
    while isinstance(below, np.ndarray):  # a view of a view of ... what was mapped
        if isinstance(below, np.memmap):
            mapped = below
        below = below.base
    if mapped is None or mapped.filename is None or mapped.mode == "c":
        return None
    if not array.size or not array.flags.c_contiguous:
        return None
    first, start = (a.__array_interface__["data"][0] for a in (array, mapped))
    begin = mapped.offset - mapped.offset % mmap.ALLOCATIONGRANULARITY  # of what is mapped
    try:
        state = _state(mapped.filename, begin, mapped.offset, mapped.mode == "r")
    except OSError:
        return None  # the file has gone; what was mapped is still there
    if state[2] != mapped._mmap[: mapped.offset - begin]:
        return None
    offset = mapped.offset + first - start
    mode = "c" if array.flags.writeable else "r"  # writes of a worker stay its own
    about = mapped.filename, begin, mapped.offset, mapped.mode == "r"
    return _mapped, (about, state, array.dtype, mode, offset, array.shape)


def _mapped(
    about: tuple[Any, int, int, bool], state: State, dtype: Any, mode: Any, offset: int, shape: Any
) -> Array:
    """The array in the process that it is sent to; DatasetError where the file is another one."""
    path, *_ = about
    try:
        found = _state(*about)
        if found == state:
            return np.memmap(path, dtype, mode, offset, shape)
        got: object = "one that was written since"
    except (OSError, ValueError) as error:
        got = error
    way_out = "map it again, and make the dataset anew"
    raise fault("DataLoader", path, "the file that was mapped", got, way_out)


def _state(path: Any, begin: int, end: int, still: bool) -> State:
    with open(path, "rb") as file:
        about = os.fstat(file.fileno())
        file.seek(begin)
        return about.st_size, about.st_mtime_ns if still else 0, file.read(end - begin)
