"""frozen: `@dataclass(frozen=True)` that does its work when the first instance is made.

A dataclass writes and compiles its methods: 0.5 ms for each class, which for all the ops came to
half of the time that `import tinygraph` took.

>>> @frozen
... class Window:
...     size: int
...     stride: int = 1
>>> Window(3), Window(3) == Window(3, stride=1)
(Window(size=3, stride=1), True)
"""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field, fields, make_dataclass
from threading import RLock
from typing import Any, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)
_making = RLock()


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: _Class) -> _Class:
    """The class as a frozen dataclass, once it is needed; see `complete`."""
    cls.__init__ = _first_init  # type: ignore[misc]
    return cls


def _first_init(self: Any, *values: Any, **named: Any) -> None:
    complete(type(self))
    self.__init__(*values, **named)


def complete(cls: type) -> None:
    """Make dataclasses of a class and its bases, where they still wait for it.

    Needed before a plain `dataclass` inherits from one, for it looks at the fields of its bases.
    """
    if cls.__init__ is not _first_init:  # type: ignore[misc]
        return
    with _making:
        for base in reversed(cls.__mro__):
            if vars(base).get("__init__") is _first_init:
                dataclass(frozen=True, init=False)(base)
                own = [(f.name, f.type, _again(f)) for f in fields(base)]
                # Set last: a thread that finds it finds all the rest.
                base.__init__ = _init_of(base.__name__, own)  # type: ignore[misc]


def _again(known: Field[Any]) -> Any:
    """The same default for the same argument, in another class."""
    if known.default_factory is not MISSING:
        return field(default_factory=known.default_factory, kw_only=known.kw_only)
    return field(default=known.default, kw_only=known.kw_only)


def _init_of(name: str, own: list[tuple[str, Any, Any]]) -> Any:
    if not own:
        return object.__init__
    made: Any = make_dataclass(name, own, frozen=True, eq=False, repr=False)
    return made.__init__
