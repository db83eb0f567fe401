"""CompiledBody: the mark of an op whose forward and backward numba has compiled."""

from __future__ import annotations

from typing import Any

from tinygraph.op import Op


class CompiledBody(Op):
    """An op of a plan with such bodies: the same function as its other base class, in numpy."""

    def prepare(self, dtype: Any) -> None:
        """Compile all that the op will call, so that its first run does not wait."""


def compiled_body(op: Op | None) -> CompiledBody | None:
    """The op itself, or the product within it, that has compiled bodies; None if none has."""
    while op is not None and not isinstance(op, CompiledBody):
        op = getattr(op, "product", None)
    return op
