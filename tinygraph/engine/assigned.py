"""The attributes of a Tensor that are checked where they are assigned: in ops/leaves/given.py.

The engine, which knows what it writes, goes past the checks: it writes `_value`, `_grad` and
`_requires_grad`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tinygraph.base import above
from tinygraph.engine.spec import Array


class Assigned:
    """Value, gradient, and whether one is required."""

    if TYPE_CHECKING:  # slots of a Tensor
        __slots__ = ("grad", "requires_grad", "value")
        value: Array
        grad: Array | None
        requires_grad: bool
        _value: Array
        _grad: Array | None
        _requires_grad: bool
    else:  # attrgetter is written in C: a function of Python would take longer
        __slots__ = ()
        value = property(attrgetter("_value"), lambda x, new: above.set_value(x, new))
        grad = property(attrgetter("_grad"), lambda x, new: above.set_grad(x, new))
        requires_grad = property(
            attrgetter("_requires_grad"), lambda x, new: above.set_requires_grad(x, new)
        )

    @property
    def data(self) -> Any:
        """A leaf on the same memory that requires no gradient; to assign it writes that memory."""
        return self.detach()  # type: ignore[attr-defined]

    @data.setter
    def data(self, numbers: Any) -> None:
        above.set_data(self, numbers)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set whether `backward` shall leave a gradient in `.grad`; the leaf itself is returned."""
        self.requires_grad = requires_grad
        return self
