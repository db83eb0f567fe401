"""Values and gradients of a case from the naive loops of tests/reference, in float64.

Nothing here asks tinygraph for a number.  A gradient is the derivative of the reference: central
differences of eighth order, exact for polynomials up to degree eight but for rounding.

    f'(x) ~ (4/5 d1 - 1/5 d2 + 4/105 d3 - 1/280 d4) / h,   dk = f(x + kh) - f(x - kh)

Source: Fornberg, "Generation of finite difference formulas on arbitrarily spaced grids",
Mathematics of Computation 51 (1988), table 1.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests import reference
from tests.cases.schema import Case, CaseArray

WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
STEP = 2.0**-8  # a power of two: inputs that are short in binary are moved exactly

# The reference of most functions has the function's name; of these it has another.
NAMES = {
    "abs": "absolute",
    "pow": "power",
    "sum": "sum_over",
    "mean": "mean_over",
    "amax": "max_over",
    "amin": "min_over",
}

# Arguments that never require a gradient.
CONSTANTS = {"batch_norm": ("running_mean", "running_var")}

Values = dict[str, Any]  # arguments by name: arrays, lists of arrays, numbers


class NotDifferentiable(ValueError):
    """The reference has a kink or a jump near an element: its gradient is a convention."""


def on_host(tree: Any) -> Any:
    """A case's arguments as numpy arrays, floats in float64."""
    if isinstance(tree, CaseArray):
        return tree.as_dtype("float64")
    if isinstance(tree, dict):
        return {name: on_host(part) for name, part in tree.items()}
    return [on_host(part) for part in tree] if isinstance(tree, list) else tree


def outputs(case: Case, args: Values) -> list[Any]:
    """What the reference gives, as a list: split has several outputs, all others one."""
    if case.op == "split":
        return split(**args, **case.kwargs)
    if case.op == "dropout":
        return [dropout(case, **args, **case.kwargs)]
    function = getattr(reference, NAMES.get(case.op, case.op))
    kwargs = dict(case.kwargs)
    if case.op in ("concatenate", "stack"):
        return [np.asarray(function(*args["tensors"], **kwargs))]
    if case.op == "conv2d":
        kwargs.pop("algorithm", None)  # two ways to the same numbers
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return [np.asarray(function(*map(np.asarray, args.values()), **kwargs))]
    return [np.asarray(function(**args, **kwargs))]


def split(x: Any, axis: int = 0, **sizes: Any) -> list[Any]:
    """Part after part, until nothing is left."""
    parts: list[Any] = []
    while sum(part.shape[axis] for part in parts) < x.shape[axis]:
        parts.append(reference.part_of_split(x, len(parts), axis=axis, **sizes))
    return parts


def dropout(case: Case, x: Any, p: float = 0.5, training: bool = True) -> Any:
    return reference.seeded_dropout(case.seed)(x, p) if training else x


def later_values(case: Case) -> Values:
    """What the arguments hold afterwards that the function writes: running statistics."""
    args = on_host(case.args)
    if case.op != "batch_norm" or not case.kwargs.get("training") or "running_mean" not in args:
        return {}
    names = ("running_mean", "running_var")
    moved = reference.running_statistics(
        args["x"], *(args[name] for name in names), case.kwargs.get("momentum", 0.1)
    )
    return {name: np.array(values) for name, values in zip(names, moved, strict=True)}


def gradient(case: Case, name: str, part: int | None, upstream: list[Any]) -> Any:
    """The gradient of sum(upstream * outputs) by one argument (or one array of a list)."""
    args = on_host(case.args)
    x = args[name] if part is None else args[name][part]
    out = np.zeros(x.shape)
    for index in np.ndindex(x.shape):

        @functools.cache  # both step lengths share points
        def moved(distance: float, index: tuple[int, ...] = index) -> float:
            there = x.copy()
            there[index] += distance
            changed = there
            if part is not None:
                changed = [*args[name][:part], there, *args[name][part + 1 :]]
            made = outputs(case, {**args, name: changed})
            return weighted_sum(upstream, made)

        out[index] = derivative(moved)
    return out


def weighted_sum(weights: list[Any], values: list[Any]) -> float:
    """sum(weights * values), rounded once."""
    pairs = zip(weights, values, strict=True)
    return math.fsum(term for g, y in pairs for term in (g * y).ravel().tolist())


def derivative(f: Callable[[float], float]) -> float:
    """f'(0), or an error where f has no derivative within reach."""
    coarse, fine = slope(f, STEP), slope(f, STEP / 2)
    scale = max(1.0, abs(fine))
    jumps = [(f(h) + f(-h) - 2 * f(0.0)) / h for h in (STEP, STEP / 2)]  # slope right - slope left
    if abs(jumps[1] - jumps[0] / 2) > 1e-4 * scale or abs(coarse - fine) > 1e-10 * scale:
        raise NotDifferentiable(f"slopes {coarse!r} and {fine!r}, bends {jumps}")
    return fine


def slope(f: Callable[[float], float], h: float) -> float:
    return math.fsum(c * (f(k * h) - f(-k * h)) for k, c in enumerate(WEIGHTS, 1)) / h
