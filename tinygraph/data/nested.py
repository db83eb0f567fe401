"""The arrays in a batch, which is a nest of tuples, lists and dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinygraph.engine import Array, Tensor


def mapped(change: Callable[[Any], Any], batch: Any) -> Any:
    """The batch with each of its arrays and Tensors changed; what else is in it stays.

    >>> mapped(len, {"x": np.zeros((2, 3)), "names": ["a", "b"]})
    {'x': 2, 'names': ['a', 'b']}
    """
    if isinstance(batch, (np.ndarray, Tensor)):
        return change(batch)
    if isinstance(batch, dict):
        return {key: mapped(change, part) for key, part in batch.items()}
    if isinstance(batch, (tuple, list)):
        return like(batch, [mapped(change, part) for part in batch])
    return batch


def parts(batch: Any) -> list[Array | Tensor]:
    """The arrays and Tensors of a batch."""
    found: list[Array | Tensor] = []
    mapped(found.append, batch)
    return found


def like(sequence: Any, items: list[Any]) -> Any:
    """The items as a tuple, a named tuple or a list, as `sequence` is one."""
    if hasattr(sequence, "_fields"):
        return type(sequence)(*items)
    return tuple(items) if isinstance(sequence, tuple) else items
