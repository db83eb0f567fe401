"""Layers that hold the settings of a function: the arguments that it takes after its arrays.

A class names them in the function's order, as a dataclass does; its constructor, what it computes
and its `repr` follow.  One that is None by default is shown where it is given.

>>> from tinygraph.ops.elementwise.elu import elu
>>> @layer(elu)
... class Bend(Function):
...     alpha: float = setting(default=1.0, above=0)
>>> Bend(2), Bend(alpha=2.0)([-1.0, 3.0]).value.round(2)
(Bend(alpha=2.0), array([-1.26,  3.  ], dtype=float32))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np

from tinygraph.base import number, one_of
from tinygraph.engine import Buffer, Operand, Tensor, as_tensor
from tinygraph.nn.module import Module

C = TypeVar("C", bound="type[Settings]")


def setting(
    *, default: Any = MISSING, rare: bool = False, words: Sequence[str] = (), **limits: Any
) -> Any:
    """A setting that is shown only where it is not the default, or has words or limits to keep to.

    Limits are those of `base.checks.number`; one that is a str is another setting, named before.
    """
    return field(default=default, metadata={"rare": rare, "words": words, "limits": limits})


class Settings(Module):
    """A function, whose arguments after its arrays are the settings of the layer."""

    function: ClassVar[Callable[..., Tensor]]
    _held: ClassVar[dict[str, Field[Any]]] = {}

    def __post_init__(self, *unused: Any) -> None:
        for name, known in self._held.items():
            setattr(self, name, self._read(known, getattr(self, name)))

    def _read(self, known: Field[Any], value: Any) -> Any:
        """A setting as the layer keeps it: an array as a buffer; or ArgumentError."""
        op, name, kind = type(self).__name__, known.name, known.type
        if words := known.metadata.get("words"):
            return one_of(op, name, value, words)
        if kind == "Operand | None" and value is not None:
            return Buffer(as_tensor(value).numpy())
        if kind in ("float", float):
            limits = known.metadata.get("limits", {}).items()
            own = {k: getattr(self, v) if isinstance(v, str) else v for k, v in limits}
            return number(op, name, value, **own)
        return bool(value) if kind in ("bool", bool) else value

    def of(self, *arrays: Operand) -> Tensor:
        """The function of some arrays, with the layer's settings."""
        return type(self).function(*arrays, *[getattr(self, name) for name in self._held])

    def extra_repr(self) -> str:
        shown = []
        for name, known in self._held.items():
            text = _text(getattr(self, name))
            rare = known.default is None or known.metadata.get("rare")
            shown += [] if rare and text == _text(known.default) else [f"{name}={text}"]
        return ", ".join(shown)


class Function(Settings):
    """A function of one array."""

    def forward(self, x: Operand) -> Tensor:
        return self.of(x)


@dataclass_transform(eq_default=False, field_specifiers=(setting,))
def layer(function: Callable[..., Tensor] | None = None) -> Callable[[C], C]:
    """Make a class that names the settings of a function a layer of this function."""

    def made(cls: C) -> C:
        complete: Any = dataclass(eq=False, repr=False)(cls)
        complete._held = {known.name: known for known in fields(complete)}
        if function is not None:
            complete.function = staticmethod(function)
        return complete

    return made


def _text(value: Any) -> str:
    """A setting as `repr` shows it: of an array its numbers, or the first and the last of many."""
    if not isinstance(value, Tensor):
        return repr(value)
    short: Any = {"float_kind": "{:g}".format}
    text = np.array2string(value.numpy(), separator=", ", formatter=short, threshold=8, edgeitems=2)
    return " ".join(text.split())
