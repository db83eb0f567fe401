"""What keeps a saved state from being a module's: names, shapes, dtypes, told all at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import CheckpointError, nearest, unmasked
from tinygraph.engine import Array, Kept


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict(strict=False)` passed over."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def fitting(
    module: str, state: Any, leaves: Mapping[str, Kept], names: Mapping[str, Kept], strict: bool
) -> tuple[dict[str, Array], IncompatibleKeys]:
    """The arrays of a state by name, where they fit; CheckpointError with all that does not.

    `leaves` has each leaf under its first name, `names` under all of them.
    """
    if not isinstance(state, Mapping):
        raise CheckpointError(
            "load_state_dict",
            "state",
            "a mapping from names to arrays",
            type(state).__name__,
            "pass what state_dict() returned",
        )
    given = {names[name] for name in state if name in names}
    missing = [name for name, leaf in leaves.items() if leaf not in given]
    unexpected = [str(name) for name in state if name not in names]
    arrays = {name: _as_array(state[name]) for name in names if name in state}
    diff = _differences(names, arrays)
    if strict:
        diff += [f"  missing     {name}: {_spec(leaves[name])}" for name in missing]
        for name in unexpected:
            diff.append(f"  unexpected  {name}  {nearest(name, missing)}".rstrip())
    if diff:
        head = f"load_state_dict: the state does not fit this {module}:"
        raise CheckpointError("\n".join([head, *diff, _way_out(strict)]))
    return arrays, IncompatibleKeys(missing, unexpected)


def _differences(names: Mapping[str, Kept], arrays: Mapping[str, Array]) -> list[str]:
    """Arrays that do not fit their leaf, or that differ for two names of one leaf."""
    diff, first = [], {}
    for name, array in arrays.items():
        leaf = names[name]
        expected, got = _spec(leaf), f"{array.dtype} {array.shape}"
        if got != expected:
            diff.append(f"  wrong       {name}: expected {expected}, got {got}")
        elif leaf not in first:
            first[leaf] = name
        elif not np.array_equal(array, arrays[first[leaf]], equal_nan=True):
            diff.append(f"  wrong       {name}: expected what {first[leaf]} is, got other numbers")
    return diff


def _as_array(value: Any) -> Array:
    """An array of whatever a state holds; of objects where it is not rectangular."""
    try:
        return np.asarray(unmasked("load_state_dict", "state", value))
    except ValueError:
        return np.asarray(value, dtype=object)


def _spec(leaf: Kept) -> str:
    return f"{leaf.dtype} {leaf.whole_shape}"


def _way_out(strict: bool) -> str:
    ignore = " strict=False passes over missing and unexpected names." if strict else ""
    return f"Nothing was changed. Way out: build the model that the state was saved from.{ignore}"
