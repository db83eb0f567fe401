"""Settings from text: `--set NAME=VALUE`, read by the type of the field of a recipe's config.

int, float, str, bool       3    0.1    xor    true or false
X | None                    none, or as X
Literal["a", "b"]           one of the words
tuple[X, ...], list[X]      0.1,0.1,0.01; of a fixed length where the type says so
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tinygraph.errors import ArgumentError, nearest


def require_settings(recipe: str, config: type[Any], names: Mapping[str, Any]) -> None:
    """ArgumentError for the first name that is no setting of the recipe, with the nearest one."""
    known = [field.name for field in fields(config) if field.init]
    for name in names:
        if name not in known:
            raise ArgumentError(
                recipe,
                name,
                f"one of its settings ({', '.join(known)})",
                "no such setting",
                nearest(name, known),
            )


def require_choices(recipe: str, config: Any) -> None:
    """ArgumentError for the first setting that is none of the words which its type allows."""
    for name, wanted in get_type_hints(type(config)).items():
        words = _words(wanted)
        value = getattr(config, name)
        if words and value not in words and not (value is None and type(None) in get_args(wanted)):
            hint = nearest(str(value), words)
            raise ArgumentError(recipe, name, describe_type(wanted), repr(value), hint)


def require_at_least(recipe: str, config: Any, **limits: float) -> None:
    """ArgumentError for a setting below its limit.

    A limit of at least 1 is for counts, which must be ints; a limit of 0 is itself refused.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> require_at_least("demo", SimpleNamespace(epochs=0), epochs=1)
    Traceback (most recent call last):
        ...
    tinygraph.errors.ArgumentError: demo: epochs: expected a whole number of at least 1, got 0.
    """
    for name, least in limits.items():
        value, kinds = getattr(config, name), (int,) if least >= 1 else (int, float)
        number = isinstance(value, kinds) and not isinstance(value, bool) and math.isfinite(value)
        if not number or value < least or value == least == 0:
            words = f"a whole number of at least {least}" if least else "a finite number above 0"
            raise ArgumentError(recipe, name, words, repr(value))


def read_setting(recipe: str, config: type[Any], name: str, text: str) -> Any:
    """The value that a text means for a setting.

    Parameters
    ----------
    recipe : str
        Named in errors.
    config : type
        The dataclass of the recipe's settings.
    name, text : str
        The setting, and what was given for it.

    Raises
    ------
    ArgumentError
        No such setting, or a text that does not fit its type.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Config:
    ...     rates: tuple[float, ...] = (0.1, 0.1)
    ...     epochs: int | None = None
    >>> read_setting("demo", Config, "rates", "0.1,0.01")
    (0.1, 0.01)
    >>> read_setting("demo", Config, "epochs", "none") is None
    True
    """
    require_settings(recipe, config, {name: text})
    wanted = get_type_hints(config)[name]
    try:
        return _read(wanted, text)
    except ValueError:
        raise ArgumentError(
            recipe, name, describe_type(wanted), repr(text), _hint(wanted, text)
        ) from None
    except TypeError:
        raise ArgumentError(
            recipe,
            name,
            "a setting that a text can give",
            describe_type(wanted),
            "set it from Python",
        ) from None


def plain_type(config: type[Any], name: str) -> tuple[Any, bool]:
    """The type of a setting without its None, and whether None is allowed: `int | None` is int."""
    wanted = get_type_hints(config)[name]
    choices = _choices(wanted)
    return (choices[0] if len(choices) == 1 else wanted), type(None) in get_args(wanted)


def describe_type(wanted: Any) -> str:
    """A type in words.

    >>> describe_type(int | None), describe_type(tuple[float, ...]), describe_type(bool)
    ('a whole number or none', 'numbers with commas between them', 'true or false')
    """
    words = {
        int: "a whole number",
        float: "a finite number",
        bool: "true or false",
        str: "a text",
        Path: "a path",
    }
    if wanted in words:
        return words[wanted]
    origin, args = get_origin(wanted), get_args(wanted)
    if origin is Literal:
        return f"one of {', '.join(map(str, args))}"
    if origin in (tuple, list) and args:
        item = {int: "whole numbers", float: "numbers"}.get(args[0], "texts")
        fixed = origin is tuple and args[-1] is not Ellipsis
        return f"{f'{len(args)} ' if fixed else ''}{item} with commas between them"
    if origin in (Union, types.UnionType):
        parts = [describe_type(choice) for choice in _choices(wanted)]
        return " or ".join([*parts, *(["none"] if type(None) in args else [])])
    return getattr(wanted, "__name__", str(wanted))


def _choices(wanted: Any) -> tuple[Any, ...]:
    """The members of a union but None; the type itself where it is no union."""
    if get_origin(wanted) in (Union, types.UnionType):
        return tuple(choice for choice in get_args(wanted) if choice is not type(None))
    return (wanted,)


def _read(wanted: Any, text: str) -> Any:
    """ValueError: the text does not fit.  TypeError: no text fits such a type."""
    origin, args = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        if type(None) in args and text.lower() == "none":
            return None
        return _read_first(_choices(wanted), text)
    if origin is Literal:
        return {str(choice): choice for choice in args}[_among(text, map(str, args))]
    if origin in (tuple, list) and args:
        return _read_sequence(origin, args, text)
    if wanted is bool:
        return _among(text.lower(), ("false", "true")) == "true"
    if wanted is float:
        number = float(text)
        if not math.isfinite(number):
            raise ValueError
        return number
    if wanted in (int, str, Path):
        return wanted(text)
    raise TypeError


def _read_first(choices: tuple[Any, ...], text: str) -> Any:
    """As the first of several types that the text fits."""
    for choice in choices[:-1]:
        try:
            return _read(choice, text)
        except ValueError:
            continue
    return _read(choices[-1], text)


def _read_sequence(origin: Any, args: tuple[Any, ...], text: str) -> Any:
    parts = [part.strip() for part in text.split(",")] if text else []
    if origin is tuple and args[-1] is not Ellipsis:
        return tuple(_read(item, part) for item, part in zip(args, parts, strict=True))
    return origin(_read(args[0], part) for part in parts)


def _among(text: str, known: Any) -> str:
    if text not in tuple(known):
        raise ValueError
    return text


def _hint(wanted: Any, text: str) -> str:
    """The nearest word, where words are wanted."""
    words = _words(wanted)
    return nearest(text, words) if words else ""


def _words(wanted: Any) -> list[str]:
    """The words that a type allows; none where it is not about words."""
    return [
        word
        for choice in _choices(wanted)
        if get_origin(choice) is Literal
        for word in map(str, get_args(choice))
    ]
