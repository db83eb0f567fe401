"""Host memory that copies may read and write in the background."""

from cupy import _memory


def empty_pinned(shape, dtype=float, order="C"):
    return _memory.empty_pinned(shape, dtype)
