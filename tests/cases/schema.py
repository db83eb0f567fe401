"""The schema of a case file, and its loader.  Every error names file, case and field.

A file holds the cases of one public function:

    {"op": "relu", "cases": [{"name": ..., "kind": ..., "source": ..., "args": {...}, ...}]}

An array is {"dtype", "shape", "data"}: data nested as the shape says, a bare number for shape [].
dtype "float" means the dtype under test; any other dtype is meant as it stands.  A float is a JSON
number, or a string: a decimal, a hex float ("0x1.8p+1"), "nan", "inf", "-inf".
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph import ops
from tinygraph.base.errors import TinygraphError, nearest

FOLDER = Path(__file__).parent

# What a case shows.  test_cases.py looks whether its arrays have that property.
EDGES = ("ties", "not finite", "signed zero", "empty", "0-d", "extreme")
KINDS = ("ordinary", "odd sizes", *EDGES)

MADE = ("expected", "gradients", "after")  # what the reference can fill in
FIELDS = (
    "name",
    "kind",
    "comment",
    "source",
    "made",
    "seed",
    "args",
    "kwargs",
    "upstream",
    "expected",
    "gradients",
    "after",
    "tolerance",
)

# Largest difference that is allowed, relative to the larger of 1 and the largest expected number.
TOLERANCE = {"float64": 1e-11, "float32": 2e-6}

DTYPES = (
    "float",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
)


class CaseError(TinygraphError, ValueError):
    """A case file that breaks the schema: which file, which case, which field, and why."""


@dataclass(frozen=True, eq=False)
class CaseArray:
    """An array of a case: floats in float64 (with dtype "float": whatever is under test)."""

    dtype: str
    values: np.ndarray[Any, Any]

    def as_dtype(self, dtype: str) -> np.ndarray[Any, Any]:
        """The numbers in the dtype under test, or in the array's own."""
        return self.values.astype(dtype if self.dtype == "float" else self.dtype)

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith("float")


@dataclass(frozen=True, eq=False)
class Case:
    """One call of a public function and what must come of it; see docs/cases.md."""

    file: str
    op: str
    name: str
    kind: str
    source: str
    args: dict[str, Any]
    kwargs: dict[str, Any] = field(default_factory=dict)
    comment: str = ""
    made: tuple[str, ...] = ()
    seed: int | None = None
    upstream: Any = None
    expected: Any = None
    gradients: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    tolerance: dict[str, float] = field(default_factory=lambda: dict(TOLERANCE))

    @property
    def depends_on_dtype(self) -> bool:
        """Whether any array is in the dtype under test."""
        return any(a.dtype == "float" for a in arrays_in([self.args, self.expected]))


class Place:
    """Where the reader is: the file, the case, the path of the field."""

    def __init__(self, file: str, case: str = "", path: str = "") -> None:
        self.file, self.case, self.path = file, case, path

    def at(self, key: str | int) -> Place:
        step = f"[{key}]" if isinstance(key, int) else f".{key}" if self.path else key
        return Place(self.file, self.case, self.path + step)

    def error(self, expected: str, got: object, way_out: str = "") -> CaseError:
        where = f"{self.file}: case {self.case!r}" if self.case else self.file
        return CaseError(where, self.path or "the file", expected, got, way_out)

    def require(self, condition: bool, expected: str, got: object, way_out: str = "") -> None:
        if not condition:
            raise self.error(expected, got, way_out)


# ---- numbers and arrays -------------------------------------------------------------------------


def read_number(value: Any, dtype: str, place: Place) -> float | int | bool:
    """One element of an array, or an error."""
    if dtype == "bool":
        place.require(isinstance(value, bool), "true or false", show(value))
        return bool(value)
    if dtype.startswith("float"):
        return read_float(value, place)
    is_int = isinstance(value, int) and not isinstance(value, bool)
    place.require(is_int, f"an integer, for the dtype is {dtype}", show(value))
    bounds = np.iinfo(dtype)
    place.require(bounds.min <= value <= bounds.max, f"a number that {dtype} holds", value)
    return int(value)


def read_float(value: Any, place: Place) -> float:
    words = 'a number, "nan", "inf", "-inf", a decimal or a hex float such as "0x1.8p+1"'
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    place.require(is_number or isinstance(value, str), words, show(value))
    try:
        return float.fromhex(value) if isinstance(value, str) and "0x" in value else float(value)
    except (ValueError, OverflowError):
        raise place.error(words, show(value)) from None


def read_array(raw: dict[str, Any], place: Place) -> CaseArray:
    """{"dtype", "shape", "data"} as an array."""
    require_fields(raw, ("dtype", "shape", "data"), ("dtype", "shape", "data"), place)
    dtype, shape = raw["dtype"], raw["shape"]
    at = place.at("dtype")
    way_out = nearest(dtype, DTYPES) if isinstance(dtype, str) else ""
    at.require(isinstance(dtype, str) and dtype in DTYPES, one_of(DTYPES), show(dtype), way_out)
    whole = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    place.at("shape").require(whole, "a list of sizes of 0 or more", show(shape))
    flat = list(elements(raw["data"], shape, dtype, place.at("data")))
    kind = np.float64 if dtype.startswith("float") else dtype
    return CaseArray(dtype, np.array(flat, kind).reshape(shape))


def elements(data: Any, shape: list[int], dtype: str, place: Place) -> Iterator[float]:
    """The numbers of nested lists, row by row, whose nesting must be that of the shape."""
    if not shape:
        yield read_number(data, dtype, place)
        return
    place.require(isinstance(data, list), f"a list of {shape[0]}, as shape says", show(data))
    place.require(len(data) == shape[0], f"{shape[0]} entries, as shape says", len(data))
    for i, part in enumerate(data):
        yield from elements(part, shape[1:], dtype, place.at(i))


def arrays_in(tree: Any) -> Iterator[CaseArray]:
    """All arrays in a tree of lists and objects."""
    if isinstance(tree, CaseArray):
        yield tree
    elif isinstance(tree, (list, dict)):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from arrays_in(part)


# ---- arguments ----------------------------------------------------------------------------------


def read_argument(raw: Any, place: Place) -> Any:
    """An array, a list of arrays, or a plain value: a number, a word, null, {"float": "inf"}."""
    if isinstance(raw, list):
        return [read_argument(part, place.at(i)) for i, part in enumerate(raw)]
    if isinstance(raw, dict) and "data" in raw:
        return read_array(raw, place)
    return read_hyperparameter(raw, place)


def read_hyperparameter(raw: Any, place: Place) -> Any:
    """A list becomes a tuple; slices, Ellipsis, infinities and index arrays are spelled."""
    if isinstance(raw, list):
        return tuple(read_hyperparameter(part, place.at(i)) for i, part in enumerate(raw))
    if not isinstance(raw, dict):
        return raw
    if "data" in raw:
        array = read_array(raw, place)
        return array.as_dtype("float64")
    if list(raw) == ["float"]:
        return read_float(raw["float"], place.at("float"))
    if list(raw) == ["slice"]:
        bounds = raw["slice"]
        is_three = isinstance(bounds, list) and len(bounds) == 3
        place.at("slice").require(is_three, "[start, stop, step], with null", show(bounds))
        return slice(*bounds)
    if raw == {"ellipsis": True}:
        return Ellipsis
    forms = 'an array, {"float": "inf"}, {"slice": [0, 2, null]} or {"ellipsis": true}'
    raise place.error(forms, show(raw))


# ---- cases --------------------------------------------------------------------------------------


def read_case(raw: dict[str, Any], op: str, place: Place) -> Case:
    """One entry of "cases" with all its fields, or an error."""
    place.require(isinstance(raw, dict), "an object", show(raw))
    if "name" in raw:
        place = Place(place.file, str(raw["name"]))
    require_fields(raw, ("name", "kind", "source", "args"), FIELDS, place)
    for key in ("name", "source", "comment"):
        text = raw.get(key, "-")
        place.at(key).require(isinstance(text, str) and bool(text), "words", show(text))
    way_out = nearest(str(raw["kind"]), KINDS)
    place.at("kind").require(raw["kind"] in KINDS, one_of(KINDS), show(raw["kind"]), way_out)
    made = raw.get("made", [])
    right = isinstance(made, list) and all(part in MADE for part in made)
    place.at("made").require(right, f"a list of some of {one_of(MADE)}", show(made))
    seed = raw.get("seed")
    place.at("seed").require(seed is None or type(seed) is int, "an integer", show(seed))
    place.at("expected").require(
        "expected" in raw,
        "an array, or a list of them",
        "nothing",
        "let the reference fill it in: python -m tests.cases.make",
    )
    parts = read_arrays(raw, op, place)
    return Case(
        place.file,
        op,
        raw["name"],
        raw["kind"],
        raw["source"],
        comment=raw.get("comment", ""),
        made=tuple(made),
        seed=seed,
        tolerance=read_tolerance(raw.get("tolerance", {}), place.at("tolerance")),
        **parts,
    )


def read_arrays(raw: dict[str, Any], op: str, place: Place) -> dict[str, Any]:
    """The fields that hold arrays; gradients and later values belong to arguments."""
    known = tuple(inspect.signature(getattr(ops, op)).parameters)
    parts: dict[str, Any] = {}
    readers = {"args": read_argument, "kwargs": read_hyperparameter}
    for key in ("args", "kwargs", "gradients", "after"):
        entries, at = raw.get(key, {}), place.at(key)
        names = known if key in readers else tuple(parts["args"])
        at.require(isinstance(entries, dict), "an object by names of arguments", show(entries))
        require_fields(entries, (), names, at)
        read = readers.get(key, read_result)
        parts[key] = {name: read(value, at.at(name)) for name, value in entries.items()}
    for key in ("expected", "upstream"):
        parts[key] = read_result(raw[key], place.at(key)) if key in raw else None
    twice = set(parts["args"]) & set(parts["kwargs"])
    place.at("kwargs").require(not twice, "names that args has not", ", ".join(sorted(twice)))
    needs_upstream = bool(parts["gradients"]) and "upstream" not in raw
    place.at("upstream").require(not needs_upstream, "an array, for there are gradients", "none")
    for key, other in (("gradients", "args"), ("after", "args")):
        for name, tree in parts[key].items():
            require_like(tree, parts[other][name], place.at(key).at(name), f"{other}.{name}")
    if parts["upstream"] is not None:
        require_like(parts["upstream"], parts["expected"], place.at("upstream"), "expected")
    return parts


def read_result(raw: Any, place: Place) -> Any:
    """An array, or a list of them where the function takes or gives several."""
    if isinstance(raw, list):
        return [read_result(part, place.at(i)) for i, part in enumerate(raw)]
    place.require(isinstance(raw, dict), "an array: dtype, shape, data", show(raw))
    return read_array(raw, place)


def require_like(tree: Any, like: Any, place: Place, name: str) -> None:
    """The same shapes in the same structure."""
    if isinstance(tree, list):
        count = len(like) if isinstance(like, list) else "no list"
        place.require(count == len(tree), f"as many arrays as {name} ({count})", len(tree))
        for i, (a, b) in enumerate(zip(tree, like, strict=True)):
            require_like(a, b, place.at(i), f"{name}[{i}]")
        return
    place.require(isinstance(like, CaseArray), f"nothing, for {name} is no array", "an array")
    shape, got = list(like.values.shape), list(tree.values.shape)
    place.at("shape").require(got == shape, f"{shape}, that of {name}", got)


def read_tolerance(raw: Any, place: Place) -> dict[str, float]:
    """One number for each dtype; 0 asks for equal numbers and equal signs of zeros."""
    place.require(isinstance(raw, dict), 'an object such as {"float32": 1e-5}', show(raw))
    require_fields(raw, (), tuple(TOLERANCE), place)
    given = {dtype: read_float(value, place.at(dtype)) for dtype, value in raw.items()}
    for dtype, value in given.items():
        place.at(dtype).require(0 <= value < 1, "a number from 0 to 1", value)
    return {**TOLERANCE, **given}


def require_fields(
    raw: Mapping[str, Any], needed: tuple[str, ...], known: tuple[str, ...], place: Place
) -> None:
    """No field is missing, none is misspelt."""
    place.require(isinstance(raw, dict), "an object", show(raw))
    for key in raw:
        if key not in known:
            place.at(key).require(False, f"one of {one_of(known)}", key, nearest(key, known))
    for key in needed:
        place.at(key).require(key in raw, "this field", "nothing")


def one_of(names: tuple[str, ...]) -> str:
    return ", ".join(names)


def show(value: object) -> str:
    return f"{json.dumps(value)}"[:80]


# ---- files --------------------------------------------------------------------------------------


def parse(text: str, file: str) -> dict[str, Any]:
    """JSON as Python values: -0 keeps its sign; bare NaN and a key written twice are refused."""
    place = Place(file)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            place.require(key not in found, "each key once in an object", f"{key!r} twice")
            found[key] = value
        return found

    def refuse(word: str) -> None:
        raise place.error('"nan", "inf" or "-inf" in quotes', word)

    try:
        raw = json.loads(
            text,
            object_pairs_hook=unique,
            parse_constant=refuse,
            parse_int=lambda digits: -0.0 if digits == "-0" else int(digits),
        )
    except json.JSONDecodeError as error:
        raise place.error("JSON", f"{error.msg} in line {error.lineno}") from None
    require_fields(raw, ("op", "cases"), ("op", "cases"), place)
    op, stem = raw["op"], Path(file).stem
    way_out = nearest(str(op), ops.EXPORTS)
    place.at("op").require(op in ops.EXPORTS, "a public function of tg.ops", show(op), way_out)
    place.at("op").require(op == stem, f"{stem}, the name of the file", show(op))
    place.at("cases").require(isinstance(raw["cases"], list), "a list", show(raw["cases"]))
    return raw


def read_cases(text: str, file: str) -> list[Case]:
    """All cases of one file's text."""
    raw = parse(text, file)
    place = Place(file).at("cases")
    cases = [read_case(entry, raw["op"], place.at(i)) for i, entry in enumerate(raw["cases"])]
    seen: set[str] = set()
    for case in cases:
        at = Place(file, case.name).at("name")
        at.require(case.name not in seen, "a name of its own", "a name that was used before")
        seen.add(case.name)
    return cases


def load(path: Path) -> list[Case]:
    """All cases of one file."""
    return read_cases(path.read_text(encoding="utf-8"), path.name)
