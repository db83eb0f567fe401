"""How a node is copied and pickled, which few programs ask for: copies.py does it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Copied:
    """How a node is copied, which few programs ask for: copies.py."""

    __slots__ = ()

    def __copy__(self) -> Any:
        return _copies().shallow(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return _copies().deep(self, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _copies().reduced(self, protocol)

    def __setstate__(self, state: Any) -> None:
        _copies().restore(self, state)


def _copies() -> Any:
    return import_module("tinygraph.engine.copies")
