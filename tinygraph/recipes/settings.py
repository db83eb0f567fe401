"""Settings: the type of a field says what a value may be, from Python, from JSON and from a text.

int, float, str, bool       3    0.1    xor    true or false
X | None                    none, or as X
Literal["a", "b"]           one of the words
tuple[X, ...], list[X]      0.1,0.1,0.01; of a fixed length where the type says so
a TypedDict                 an object of these keys; no text gives one
Annotated[X, Limit(...)]    an X within limits, such as Count and Positive below

Settings that many recipes have are held to limits by their name, see USUAL, and stand here, once:

PlanSettings        of a recipe that learns by gradients: seed, device, compile, tune
TrainerSettings     of one whose steps are those of a Trainer: capture too
TrainingSettings    of one that may take long: epochs, duration, backup_every, shards too
"""

from __future__ import annotations

import inspect
import math
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from tinygraph.base import ArgumentError, nearest
from tinygraph.training import parse_duration

DEVICES = ("cpu", "emulator", "cuda")
LARGEST = 2**31 - 1
COMMENTED = re.compile(r"    (?P<name>\w+): [^#]* = [^#]*  # (?P<meaning>.*)")
UNIONS = (Union, types.UnionType)


class Limit(NamedTuple):
    """What a value must be beyond its type: in words, as a test; and how a text is read."""

    words: str
    holds: Callable[[Any], bool]
    read: Callable[[str], Any] | None = None


Count = Annotated[int, Limit(f"a whole number from 1 to {LARGEST}", lambda n: 1 <= n <= LARGEST)]
# Layers are made one by one: more are a slip of the pen, and would take memory until there is none.
Layers = Annotated[int, Limit("a whole number from 1 to 1000", lambda n: 1 <= n <= 1000)]
Several = Annotated[int, Limit(f"a whole number from 2 to {LARGEST}", lambda n: 2 <= n <= LARGEST)]
Seed = Annotated[int, Limit(f"a whole number from 0 to {2**64 - 1}", lambda n: 0 <= n < 2**64)]
Positive = Annotated[float, Limit("a finite number above 0", lambda x: x > 0)]
NotNegative = Annotated[float, Limit("a finite number of at least 0", lambda x: x >= 0)]
Share = Annotated[float, Limit("a number from 0 to below 1", lambda x: 0 <= x < 1)]
Seconds = Annotated[
    float, Limit("seconds above 0, such as 30, 90s, 10m or 1.5h", lambda x: x > 0, parse_duration)
]
DeviceName = Annotated[str, Limit(f"one of {', '.join(DEVICES)}", lambda name: name in DEVICES)]

# What a plain int, float or str of these names is in every recipe.
USUAL: dict[str, Any] = {
    "filters": Count,
    "batch_size": Count,
    "epochs": Count,
    "seed": Seed,
    "lr": Positive,
    "clip_norm": Positive,
    "shards": Count,
    "duration": Seconds,
    "backup_every": Seconds,
    "device": DeviceName,
}


@dataclass(kw_only=True)
class PlanSettings:
    """Settings of a recipe that learns by gradients; a config inherits them."""

    seed: int = 0  # of all random numbers
    device: str = "cpu"  # emulator: the CUDA kernels on the CPU
    compile: bool | None = False  # forward and backward through a plan
    tune: bool = False  # of a plan: measure tiles and threads, and keep the fastest


@dataclass(kw_only=True)
class TrainerSettings(PlanSettings):
    """Those of a recipe whose steps are those of a Trainer."""

    compile: bool | None = None  # forward and backward through a plan; none: on the cpu
    capture: bool = True  # on a GPU: each step as one CUDA graph, where it can be one


@dataclass(kw_only=True)
class TrainingSettings(TrainerSettings):
    """Those of a training that may take long."""

    epochs: int | None = None  # passes over the training data
    duration: float | None = None  # seconds, in the place of epochs
    backup_every: float | None = None  # seconds between checkpoints within an epoch
    shards: int | None = None  # parts of a batch, which ranks share

    # Where neither is given; of 0, the recipe knows how long to go on.
    usual_epochs: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if self.usual_epochs and self.epochs is None and self.duration is None:
            self.epochs = self.usual_epochs


def names_of(config: type[Any]) -> list[str]:
    """The settings that a recipe has: its own, then those that it inherits.

    >>> names_of(TrainerSettings)
    ['seed', 'device', 'compile', 'tune', 'capture']
    """
    known = [field for field in fields(config) if field.init]
    return [field.name for field in sorted(known, key=lambda field: bool(field.kw_only))]


def meanings(config: type[Any]) -> dict[str, str]:
    """What each setting means: the comment beside it, of the class or of one that it inherits.

    A class whose source is not at hand, such as one that was typed in, has none.

    >>> meanings(TrainerSettings)["seed"]
    'of all random numbers'
    """
    found: dict[str, str] = {}
    for kind in config.__mro__[:-1]:
        try:
            lines = inspect.getsource(kind).splitlines()
        except (OSError, TypeError):
            continue
        for match in filter(None, map(COMMENTED.match, lines)):
            found.setdefault(match["name"], match["meaning"])
    return {name: found.get(name, "") for name in names_of(config)}


def require_settings(recipe: str, config: type[Any], names: Mapping[str, Any]) -> None:
    """ArgumentError for the first name that is no setting of the recipe, with the nearest one."""
    known = names_of(config)
    for name in names:
        if name not in known:
            expected = f"one of its settings ({', '.join(known)})"
            raise ArgumentError(recipe, name, expected, "no such setting", nearest(name, known))


def type_of(config: type[Any], name: str) -> Any:
    """The type of a setting; of those in USUAL with their limits."""
    wanted = get_type_hints(config, include_extras=True)[name]
    if name in USUAL and set(choices(wanted)) <= {int, float, str}:
        return USUAL[name] | None if types.NoneType in get_args(wanted) else USUAL[name]
    return wanted


def read_setting(recipe: str, config: type[Any], name: str, text: str, option: str = "") -> Any:
    """The value that a text means for a setting; `option` is what errors call it.

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
    return fit(recipe, option or name, type_of(config, name), text, text=True)


def as_text(value: Any) -> str:
    """A value as the text that `read_setting` takes for it.

    >>> as_text(None), as_text(True), as_text((0.1, 0.01))
    ('none', 'true', '0.1,0.01')
    """
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(as_text, value)) if isinstance(value, (tuple, list)) else str(value)


def fit(op: str, argument: str, wanted: Any, value: Any, *, text: bool = False) -> Any:
    """A value as its type has it, read from a text where `text`; ArgumentError if it does not fit.

    >>> fit("demo", "rate", Positive, 0)
    Traceback (most recent call last):
        ...
    tinygraph.errors.ArgumentError: demo: rate: expected a finite number above 0, got 0.
    """
    try:
        return _fitted(wanted, value, text)
    except (ValueError, OverflowError):
        words = [str(w) for c in choices(wanted) if get_origin(c) is Literal for w in get_args(c)]
        hint = nearest(str(value), words)
        raise ArgumentError(op, argument, describe_type(wanted), repr(value), hint) from None
    except TypeError:
        expected = "a setting that a text can give"
        got = describe_type(wanted)
        raise ArgumentError(op, argument, expected, got, "set it from Python") from None


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
    if origin is Annotated:
        return str(args[1].words)
    if origin is Literal:
        return f"one of {', '.join(map(str, args))}"
    if origin in (tuple, list) and args:
        item = {int: "whole numbers", float: "numbers"}.get(_plain(args[0]), "texts")
        fixed = origin is tuple and args[-1] is not Ellipsis
        each = f", each {describe_type(args[0])}" if get_origin(args[0]) is Annotated else ""
        return f"{f'{len(args)} ' if fixed else ''}{item} with commas between them{each}"
    if origin in UNIONS:
        parts = [describe_type(choice) for choice in choices(wanted)]
        return " or ".join([*parts, *(["none"] if types.NoneType in args else [])])
    if is_typeddict(wanted):
        hints = get_type_hints(wanted, include_extras=True)
        return f"an object of {', '.join(f'{k} ({describe_type(t)})' for k, t in hints.items())}"
    return getattr(wanted, "__name__", str(wanted))


def _plain(wanted: Any) -> Any:
    """The type without its limits."""
    return get_args(wanted)[0] if get_origin(wanted) is Annotated else wanted


def choices(wanted: Any) -> tuple[Any, ...]:
    """The members of a union but None; the type itself where it is no union."""
    if get_origin(wanted) in UNIONS:
        return tuple(choice for choice in get_args(wanted) if choice is not types.NoneType)
    return (wanted,)


def _fitted(wanted: Any, value: Any, text: bool) -> Any:
    """ValueError: the value does not fit.  TypeError: no text fits such a type."""
    origin, args = get_origin(wanted), get_args(wanted)
    if origin is Annotated:
        limit: Limit = args[1]
        found = limit.read(value) if text and limit.read else _fitted(args[0], value, text)
        _require(limit.holds(found))
        return found
    if origin in UNIONS:
        if types.NoneType in args and (value.lower() == "none" if text else value is None):
            return None
        return _first_fitted(choices(wanted), value, text)
    if origin is Literal:
        found = [word for word in args if (str(word) if text else word) == value]
        _require(bool(found))
        return found[0]
    if origin in (tuple, list) and args:
        return _fitted_sequence(origin, args, value, text)
    if is_typeddict(wanted) and not text:
        hints = get_type_hints(wanted, include_extras=True)
        _require(isinstance(value, Mapping) and set(value) == set(hints))
        return {name: _fitted(kind, value[name], False) for name, kind in hints.items()}
    return _plain_value(wanted, value, text)


def _first_fitted(kinds: tuple[Any, ...], value: Any, text: bool) -> Any:
    """As the first of several types that the value fits."""
    for kind in kinds[:-1]:
        try:
            return _fitted(kind, value, text)
        except ValueError:
            continue
    return _fitted(kinds[-1], value, text)


def _fitted_sequence(origin: Any, args: tuple[Any, ...], value: Any, text: bool) -> Any:
    if text:
        value = [part.strip() for part in value.split(",")] if value else []
    _require(isinstance(value, (tuple, list)))
    if origin is tuple and args[-1] is not Ellipsis:
        return tuple(_fitted(item, part, text) for item, part in zip(args, value, strict=True))
    return origin(_fitted(args[0], part, text) for part in value)


def _plain_value(wanted: Any, value: Any, text: bool) -> Any:
    """Of a type without parts; one that is not known is taken as it stands, but from no text."""
    kinds: dict[Any, Any] = {int: Integral, float: Real, bool: bool, str: str, Path: (str, Path)}
    if wanted not in kinds:
        if text:
            raise TypeError
        return value
    if text:
        _require(wanted is not bool or value.lower() in ("false", "true"))
        value = value.lower() == "true" if wanted is bool else wanted(value)
    _require(isinstance(value, kinds[wanted]) and (wanted is bool or not isinstance(value, bool)))
    _require(wanted is not float or math.isfinite(value))
    return wanted(value)


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError
