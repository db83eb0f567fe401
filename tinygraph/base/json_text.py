"""JSON of what Python, numpy and tinygraph have, by one rule for all files; any program reads it.

    number, numpy scalar                  a number
    array, tensor                         a number where it has no axes, else a list of lists;
                                          a tensor of one element is a number
    NaN, inf, -inf                        the texts "NaN", "Infinity", "-Infinity", of which
                                          `from_json` makes numbers again; null in a log
    list, tuple, range                    a list
    mapping, dataclass                    an object
    a key that is a number, bool or None  its text, as the json module writes it
    Path, date, time                      its text
    what has `__json__`, as a Device has   what that returns
    dtype, enum                           its name; its value
    anything else                         an ArgumentError that says where it stands

JSON has no number that is not finite: what Python's json module writes for one, no other reader
takes.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, time
from enum import Enum
from numbers import Number
from typing import Any

import numpy as np

from tinygraph.base.errors import ArgumentError
from tinygraph.base.json_files import parse

_WORDS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_NUMBERS = {word: float(number) for number, word in _WORDS.items()}
_DATES = (date, time, np.datetime64)
_EXPECTED = "numbers, texts, arrays, lists and mappings"


def to_json(name: str, value: Any, *, gaps: bool = False, **layout: Any) -> str:
    """A value as JSON text.

    Parameters
    ----------
    name : str
        What it is, for the message of an error: the name of a file, mostly.
    value : Any
        See above.
    gaps : bool
        Write null for numbers that are not finite, as a log of metrics has them.
    **layout
        `indent`, `separators`, `sort_keys` and `ensure_ascii` of `json.dumps`.

    Raises
    ------
    ArgumentError
        There is something that has no place in JSON; the message says where.

    Examples
    --------
    >>> import numpy as np
    >>> to_json("a.json", {"lr": np.float32(0.5), "clip": np.inf, 3: (True, None)})
    '{"lr": 0.5, "clip": "Infinity", "3": [true, null]}'
    >>> from_json('{"lr": 0.5, "clip": "Infinity"}')
    {'lr': 0.5, 'clip': inf}
    >>> to_json("a.json", {"model": [{"act": max}]})
    Traceback (most recent call last):
    ...
    tinygraph.errors.ArgumentError: a.json: ['model'][0]['act']: expected numbers, texts, \
arrays, lists and mappings, got a builtin_function_or_method, <built-in function max>. \
Way out: write its name: x.__name__
    """
    try:
        text = json.dumps(_Plain(name, gaps).of(value, ()), allow_nan=False, **layout)
    except RecursionError:
        expected, got = "a nest that ends", "one that holds itself, or is too deep"
        raise ArgumentError(name, "the value", expected, got) from None
    except ArgumentError:
        raise
    except ValueError as error:  # Python has a limit for the digits of an integer
        way_out = "make a text of it: hex(x)"
        raise ArgumentError(name, "an integer", "fewer digits", error, way_out) from None
    # A name of a file that is no UTF-8 has halves of surrogates: as \udce9 they are JSON, too.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def from_json(text: str | bytes) -> Any:
    """What a JSON text says; numbers that are not finite come back from their texts.

    Raises ValueError where it is no JSON.
    """
    return _numbers_again(parse(text))


def _numbers_again(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers_again(x) for key, x in value.items()}
    if isinstance(value, list):
        return [_numbers_again(x) for x in value]
    return _NUMBERS.get(value, value) if isinstance(value, str) else value


class _Plain:
    """What `json.dumps` takes, of values that belong into a text of that name."""

    def __init__(self, name: str, gaps: bool) -> None:
        self.name, self.gaps = name, gaps

    def of(self, value: Any, way: tuple[Any, ...]) -> Any:
        """The plain value of one that stands at the end of a way of keys."""
        if isinstance(value, Enum):
            return self.of(value.value, way)
        if value is None or isinstance(value, (bool, str)):
            return str(value) if isinstance(value, str) else value
        if isinstance(value, (float, np.floating)):
            return self._number(float(value))
        if isinstance(value, int):
            return int(value)
        if isinstance(value, (np.dtype, type)):
            return self._type(value, way)
        if isinstance(value, _DATES):
            return str(value)
        if hasattr(type(value), "__json__"):  # a Device
            return self.of(value.__json__(), way)
        if isinstance(value, os.PathLike):
            return os.fsdecode(value)
        if isinstance(value, Mapping):
            return self._object(value, way)
        if is_dataclass(value):
            items = ((field.name, getattr(value, field.name)) for field in fields(value))
            return {name: self.of(inner, (*way, name)) for name, inner in items}
        if hasattr(value, "tolist"):
            return self._array(value, way)
        if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
            return [self.of(inner, (*way, i)) for i, inner in enumerate(value)]
        raise self._refused(value, way)

    def _number(self, value: float) -> float | str | None:
        if math.isfinite(value):
            return value
        return None if self.gaps else _WORDS[str(value)]

    def _type(self, value: Any, way: tuple[Any, ...]) -> str:
        if isinstance(value, type) and not issubclass(value, (np.generic, bool, int, float)):
            raise self._refused(value, way)
        return np.dtype(value).name

    def _array(self, value: Any, way: tuple[Any, ...]) -> Any:
        if hasattr(value, "filled") and np.any(value.mask):
            raise self._refused(value, way)
        if hasattr(value, "requires_grad") and math.prod(value.shape) == 1:
            return self.of(value.item(), way)
        if str(getattr(value, "dtype", "")).startswith("datetime64"):
            value = np.asarray(value).astype(str)  # its list would hold nanoseconds
        return self.of(value.tolist(), way)

    def _object(self, value: Mapping[Any, Any], way: tuple[Any, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, inner in value.items():
            name = self._key(key, way)
            if name in found:
                expected, got = "keys with texts of their own", f"{name!r} twice"
                raise ArgumentError(self.name, _place(way), expected, got, "rename one of them")
            found[name] = self.of(inner, (*way, key))
        return found

    def _key(self, key: Any, way: tuple[Any, ...]) -> str:
        plain = None if isinstance(key, tuple) else self.of(key, (*way, key))
        if isinstance(key, tuple) or isinstance(plain, (list, dict)):
            expected = "keys that are texts, numbers, bools or None"
            way_out = "make a text of it: str(key)"
            raise ArgumentError(self.name, _place(way), expected, f"the key {key!r:.80}", way_out)
        return plain if isinstance(plain, str) else json.dumps(plain)

    def _refused(self, value: Any, way: tuple[Any, ...]) -> ArgumentError:
        got = f"a {type(value).__name__}, {value!r:.60}"
        return ArgumentError(self.name, _place(way), _EXPECTED, got, _way_out(value))


def _place(way: tuple[Any, ...]) -> str:
    return "".join(f"[{key!r}]" for key in way) or "the value"


def _way_out(value: Any) -> str:
    """What can be written in the place of a value."""
    if hasattr(value, "filled"):  # a masked array
        return "fill its gaps first: x.filled(...)"
    if isinstance(value, (set, frozenset)):
        return "make a list of it: sorted(x)"
    if isinstance(value, Iterator):
        return "make a list of it: list(x)"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "make a text of it: bytes(x).hex()"
    if isinstance(value, Number) and not isinstance(value, complex):
        return "make a float of it: float(x)"
    return "write its name: x.__name__" if hasattr(value, "__name__") else "write its repr: repr(x)"
