"""Arrays that lie in a file, as `np.load(path, mmap_mode="r")` gives them: sent by their place."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.shapes import Array


def as_place(array: Array) -> tuple[Any, ...] | None:
    """How to map the same part of the same file again; None where the array lies in memory.

    What is mapped copy-on-write may differ from its file, and is not sent by its place.
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
    offset = mapped.offset + first - start
    mode = "c" if array.flags.writeable else "r"  # writes of a worker stay its own
    return np.memmap, (mapped.filename, array.dtype, mode, offset, array.shape)
