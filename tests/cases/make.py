"""Fill in the case files what they leave to the reference.

    python -m tests.cases.make                     every file
    python -m tests.cases.make tests/cases/relu.json
    python -m tests.cases.make --check             change nothing; exit code 1 where a file would

The inputs in a file are never changed.  {"draw": {"seed": 1}} in the place of "data" becomes
numbers, once.  A case without "expected" gets both values and gradients from tests/reference
(oracles.py); "made" says which parts are the reference's, and these are made anew
each time.  Where new numbers agree with those in the file, the file keeps its digits, so that
another machine's last bit makes no diff.
"""

from __future__ import annotations

import argparse
import math
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from tests.cases import oracles
from tests.cases.schema import (
    FIELDS,
    FOLDER,
    Case,
    CaseArray,
    CaseError,
    Place,
    parse,
    read_array,
    read_case,
)
from tests.cases.writing import layout, nested

DIGITS = 13  # of made numbers, counted from the largest in the array
SAME = 2e-12  # of the largest number, or of 1: new numbers that differ less keep the old digits

Raw = dict[str, Any]


def made_text(text: str, file: str) -> str:
    """The text of a case file with all its parts filled in."""
    raw = parse(text, file)
    cases = []
    for i, entry in enumerate(raw["cases"]):
        place = Place(file, path=f"cases[{i}]")
        place.require(isinstance(entry, dict), "an object", entry)
        if "name" in entry:
            place = Place(file, str(entry["name"]))
        cases.append(made_case(entry, raw["op"], place))
    return layout({"op": raw["op"], "cases": cases}) + "\n"


def made_case(raw: Raw, op: str, place: Place) -> Raw:
    """One case: draws become numbers, made parts are computed, fields stand in their order."""
    raw = {key: drawn(value, place.at(key)) for key, value in raw.items()}
    if "expected" not in raw:
        raw.setdefault("made", ["expected", "gradients"])
    if raw.get("made"):
        bare = {k: v for k, v in raw.items() if k not in (*raw["made"], "upstream", "made")}
        # Only the arguments are read here; what is made or belongs to it follows.
        asked = read_case(
            {**bare, "expected": raw.get("expected") or [], "gradients": {}, "after": {}}, op, place
        )
        raw = filled_in(raw, asked, place)
    read_case(raw, op, place)
    return {key: raw[key] for key in FIELDS if key in raw}


def filled_in(raw: Raw, case: Case, place: Place) -> Raw:
    """The case with what the reference gives."""
    args = oracles.on_host(case.args)
    values = oracles.outputs(case, args)
    several = case.op == "split"
    if "expected" in raw["made"]:
        new = [as_raw(value, made_dtype(case, value), case) for value in values]
        raw["expected"] = kept(raw.get("expected"), new if several else new[0])
    if all(value.dtype.kind == "f" for value in values) and floats_of(case):
        if "upstream" not in raw:
            seed = zlib.crc32(f"{case.op} {case.name}".encode())
            drawn_now = [draw(value.shape, {"seed": seed + i}) for i, value in enumerate(values)]
            new = [as_raw(g, "float", case) for g in drawn_now]
            raw["upstream"] = new if several else new[0]
        if "gradients" in raw["made"]:
            raw["gradients"] = made_gradients(raw, case, place)
    else:  # an output of integers or bools, or an input that has no derivative
        raw["made"] = [part for part in raw["made"] if part != "gradients"]
    if "after" in raw["made"]:
        later = oracles.later_values(case)
        new = {name: as_raw(value, "float", case) for name, value in later.items()}
        raw["after"] = {name: kept(raw.get("after", {}).get(name), new[name]) for name in new}
    return raw


def floats_of(case: Case) -> list[str]:
    """The arguments that get a gradient: arrays of the dtype under test."""
    constants = oracles.CONSTANTS.get(case.op, ())

    def is_variable(tree: Any) -> bool:
        if isinstance(tree, list):
            return bool(tree) and all(map(is_variable, tree))
        return isinstance(tree, CaseArray) and tree.dtype == "float"

    return [name for name, tree in case.args.items() if name not in constants and is_variable(tree)]


def made_gradients(raw: Raw, case: Case, place: Place) -> Raw:
    """The gradient of each float argument, from the reference."""
    raw_upstream = raw["upstream"] if isinstance(raw["upstream"], list) else [raw["upstream"]]
    upstream = [from_raw(g) for g in raw_upstream]
    gradients = {}
    for name in floats_of(case):
        arg, old = case.args[name], raw.get("gradients", {}).get(name)
        try:
            parts = range(len(arg)) if isinstance(arg, list) else [None]
            found = [oracles.gradient(case, name, part, upstream) for part in parts]
        except oracles.NotDifferentiable as error:
            raise (
                place.at("gradients")
                .at(name)
                .error(
                    "an argument that the reference is differentiable at",
                    error,
                    'take "gradients" out of "made" and write down what the convention says',
                )
            ) from None
        new = [as_raw(g, "float", case) for g in found]
        gradients[name] = kept(old, new if isinstance(arg, list) else new[0])
    return gradients


def made_dtype(case: Case, value: np.ndarray[Any, Any]) -> str:
    """The dtype of an output: that under test, unless the function's name or arguments say else."""
    if "dtype" in case.kwargs:
        return str(np.dtype(case.kwargs["dtype"]))
    if value.dtype.kind == "f":
        return "float"
    return str(value.dtype)


# ---- numbers ------------------------------------------------------------------------------------


def drawn(raw: Any, place: Place) -> Any:
    """The tree with numbers where "draw" stood."""
    if isinstance(raw, list):
        return [drawn(part, place.at(i)) for i, part in enumerate(raw)]
    if not isinstance(raw, dict):
        return raw
    if "draw" not in raw:
        return {key: drawn(part, place.at(key)) for key, part in raw.items()}
    place.require(set(raw) <= {"dtype", "shape", "draw"}, "dtype, shape and draw", list(raw))
    dtype, shape, options = raw.get("dtype", "float"), raw.get("shape", []), raw["draw"]
    known = {"seed", "low", "high", "step", "distinct"}
    right = isinstance(options, dict) and "seed" in options and set(options) <= known
    place.at("draw").require(right, f"seed, and some of {sorted(known)}", options)
    values = draw(tuple(shape), options)
    if not dtype.startswith("float"):
        values = values.astype(dtype)
    return {"dtype": dtype, "shape": shape, "data": nested(values.tolist())}


def draw(shape: tuple[int, ...], options: Raw) -> np.ndarray[Any, Any]:
    """Random multiples of a step of 1/8: short to read, and the same number in every float dtype.

    "high" is not included; "distinct" draws no number twice, so that nothing ties.
    """
    low, high = options.get("low", -3), options.get("high", 3)
    step = options.get("step", 0.125)
    count, size = round((high - low) / step), math.prod(shape)
    rng = np.random.default_rng(options["seed"])
    if options.get("distinct"):
        chosen = rng.choice(count, size, replace=False)
    else:
        chosen = rng.integers(0, count, size)
    return (low + step * chosen).reshape(shape)


def as_raw(values: np.ndarray[Any, Any], dtype: str, case: Case) -> Raw:
    """An array as the file writes it; where equal bits are asked for, to the last digit."""
    if values.dtype.kind == "f" and case.tolerance["float64"] > 0:
        values = values.astype(np.float64)
        largest = float(np.max(np.abs(values[np.isfinite(values)]), initial=1.0))
        values = np.round(values, DIGITS - 1 - math.floor(math.log10(largest))) + 0.0
    if not dtype.startswith("float"):
        values = values.astype(dtype)
    return {"dtype": dtype, "shape": list(values.shape), "data": nested(values.tolist())}


def from_raw(raw: Raw) -> np.ndarray[Any, Any]:
    """The numbers of an array in a file."""
    return read_array(raw, Place("made part")).values


def kept(old: Any, new: Any) -> Any:
    """The old array where it holds the same numbers, else the new one; and so for lists."""
    if isinstance(new, list):
        olds = old if isinstance(old, list) and len(old) == len(new) else [None] * len(new)
        return [kept(a, b) for a, b in zip(olds, new, strict=True)]
    if not isinstance(old, dict) or any(old.get(key) != new[key] for key in ("dtype", "shape")):
        return new
    try:
        a, b = from_raw(old), from_raw(new)
    except CaseError:
        return new
    if not new["dtype"].startswith("float"):
        return old if np.array_equal(a, b) else new
    allowed = SAME * float(np.max(np.abs(b[np.isfinite(b)]), initial=1.0))
    return old if np.allclose(a, b, rtol=0, atol=allowed, equal_nan=True) else new


# ---- the command --------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cases.make", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="case files; without any, all of them")
    parser.add_argument("--check", action="store_true", help="write nothing, say what would change")
    options = parser.parse_args(arguments)
    changed = 0
    for path in options.files or sorted(FOLDER.glob("*.json")):
        before = path.read_text(encoding="utf-8")
        try:
            after = made_text(before, path.name)
        except CaseError as error:
            print(error, file=sys.stderr)
            return 2
        if after != before:
            changed += 1
            print(f"{path}: {'differs' if options.check else 'written'}")
            if not options.check:
                path.write_text(after, encoding="utf-8")
    return 1 if options.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
