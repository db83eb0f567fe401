"""Feeds: which leaf of a graph each of them means, and the array that it gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinygraph.errors import DtypeError, GraphError, nearest
from tinygraph.shapes import Array
from tinygraph.tensor import Tensor


def fed(
    nodes: Sequence[Tensor], feeds: Mapping[Tensor | str, Any] | None
) -> list[tuple[Tensor, Array]]:
    """The leaves that are fed with the arrays that they get, checked; nothing is changed.

    Raises
    ------
    GraphError
        A feed names no leaf among the nodes, or a name that several leaves have.
    DtypeError
        A feed has another kind of number than the leaf.
    """
    leaves = [node for node in nodes if node.op is None]
    matched = [(_leaf(leaves, key), array) for key, array in (feeds or {}).items()]
    return [(leaf, _cast(leaf, array)) for leaf, array in matched]


def _leaf(leaves: list[Tensor], key: Tensor | str) -> Tensor:
    """The leaf that a key means: itself, or the only one of that name."""
    found = [x for x in leaves if (x.name == key if isinstance(key, str) else x is key)]
    if len(found) != 1:
        names = sorted({x.name for x in leaves if x.name})
        what = "more than one leaf has that name" if found else "no leaf of this graph"
        label = repr(key) if isinstance(key, str) else f"a {type(key).__name__}"
        raise GraphError(
            "Graph.forward",
            "feeds",
            f"one of the leaves {names}",
            f"{label}: {what}",
            nearest(str(key), names) or "feed the leaf itself",
        )
    return found[0]


def _cast(leaf: Tensor, data: Any) -> Array:
    """The fed array with the leaf's dtype, where no value is lost by that."""
    array = data if leaf.device.owns(data) else np.asarray(data)
    if array.dtype != leaf.dtype:
        if not np.can_cast(array.dtype, leaf.dtype, "same_kind"):
            raise DtypeError(
                "Graph.forward",
                f"feed of {leaf.name or 'a leaf'}",
                str(leaf.dtype),
                array.dtype,
                "convert the array with .astype",
            )
        array = array.astype(leaf.dtype)
    return leaf.device.from_numpy(array)
