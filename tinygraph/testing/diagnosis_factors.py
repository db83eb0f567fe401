"""Suspicions about a factor: none, the wrong one, or one that was forgotten.

Each takes the Evidence of one input and returns a sentence that goes on after "the gradient of
input 0 ...", or "" where the mistake is another.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np

from tinygraph.shapes import Array, Shape
from tinygraph.testing.diagnosis_evidence import Evidence, hyper_parameters

SAME = 1e-5  # relative: two factors are one number
LEGENDS = {1: ("N",), 2: ("N", "features"), 4: ("N", "C", "H", "W")}


def all_zero(e: Evidence) -> str:
    """Nothing arrives."""
    if np.any(e.analytic[e.known]):
        return ""
    return (
        "is all zero: backward returns zeros or None for it, or the graph is cut before it "
        "(detach, no_grad, .value)"
    )


def ignores_upstream(e: Evidence) -> str:
    """The derivative is right, and not multiplied by gy, or by one number made of gy."""
    if e.has_jacobian:
        for name, weight in (
            ("ignores the upstream gradient", 1.0),
            ("takes the sum of the upstream gradient for each of its elements", e.upstream.sum()),
            ("takes the mean of the upstream gradient for each of its elements", e.upstream.mean()),
            ("takes the first element of the upstream gradient for all", e.upstream.reshape(-1)[0]),
        ):
            if e.upstream.size == 1 and name[0] == "t":
                continue
            if e.looks_like(e.through(np.full(e.upstream.shape, weight))):
                return f"{name}: multiply the derivative by gy, element by element"
    other = e.function.vjp(np.arange(1.0, e.function.size + 1))[e.position]
    if other is not None and np.array_equal(other, e.analytic):
        return (
            "ignores the upstream gradient: it is the same whatever comes from above; multiply "
            "the derivative by gy"
        )
    return ""


def scalar_factor(e: Evidence) -> str:
    """Every element is the same number of times too large."""
    at = e.known & (np.abs(e.numeric) > SAME * np.max(np.abs(e.numeric[e.known]), initial=0))
    return _factor(e) if at.sum() > 2 else ""


def factor_of_few(e: Evidence) -> str:
    """The same for one or two elements, where any mistake looks like a factor: asked last."""
    return _factor(e)


def _factor(e: Evidence) -> str:
    ratio = common_ratio(e)
    if ratio is None:
        return ""
    if abs(ratio + 1) < SAME:
        return "has the wrong sign: it is minus what it should be"
    sign = " and has the wrong sign" if ratio < 0 else ""
    size = abs(ratio)
    if abs(size - 1) < 0.02:
        return (
            f"is {100 * (size - 1):+.3g} % off everywhere{sign} (a factor of {size:.7g}): a "
            "constant in backward is not the one in forward"
        )
    setting = _setting(e, size)
    factor = size if size > 1 else 1 / size
    which = "too large" if size > 1 else "too small"
    dimension = _dimension(e, factor)
    if dimension and abs(factor - 2) > SAME:
        name, where = dimension
        reason = _mean_reason(e, name, size > 1)
        place = f" ({where})" if where != name else ""
        return f"is {name} = {round(factor)} times {which}{sign}{place}: {reason}{setting}"
    if abs(factor - 2) < SAME:
        also = f"; or a mean or a sum over {dimension[0]}, which is 2" if dimension else ""
        reason = (
            "is half of what it should be: a factor of 2 is missing (the derivative of a square), "
            "or one of two uses of the input (fan-out) overwrites the other instead of adding"
            if size < 1
            else "is twice what it should be: a factor of 2 too many, or a use counted twice"
        )
        return f"{reason}{also}{sign}{setting}"
    return f"is {size:.6g} times what it should be{sign}, in every element{setting}"


def common_ratio(e: Evidence) -> float | None:
    """analytic / numeric where it is one number for all elements, else None."""
    at = e.known & np.isfinite(e.analytic)
    numeric, analytic = e.numeric[at], e.analytic[at]
    total = float(numeric @ numeric)
    if not total:
        return None
    ratio = float(analytic @ numeric) / total
    size = max(float(np.max(np.abs(analytic))), float(np.max(np.abs(ratio * numeric))))
    if not ratio or np.max(np.abs(analytic - ratio * numeric)) > SAME * size:
        return None
    small = abs(ratio - 1)  # a thousandth off: the fit must be closer than that
    if small < 1e-2 and np.max(np.abs(analytic - ratio * numeric)) > 0.05 * small * size:
        return None
    return ratio


def _mean_reason(e: Evidence, name: str, too_large: bool) -> str:
    if too_large:
        return f"the forward takes the mean over {name}, the backward does not"
    return f"the backward divides by {name}, the forward does not"


def _dimension(e: Evidence, factor: float) -> tuple[str, str] | None:
    """A name for a factor among sizes, and where it stands: ("N", "N is axis 0 of input 0")."""
    for name, where, size in _dimensions(e):
        if size > 1 and abs(factor / size - 1) < SAME:
            return name, where
    return None


def _dimensions(e: Evidence) -> list[tuple[str, str, int]]:
    """Sizes that a factor may be, the likely ones first."""
    found: list[tuple[str, str, int]] = []
    shapes = [a.shape for a in e.inputs]
    order = [e.position, *[i for i in range(len(shapes)) if i != e.position]]
    order.sort(key=lambda i: i != 0)  # axis 0 of input 0 is the batch
    for i in order:
        legend = LEGENDS.get(len(shapes[i]), ()) if i == 0 else ()
        for axis, size in enumerate(shapes[i]):
            name = legend[axis] if axis < len(legend) else f"axis {axis} of input {i}"
            where = f"{name} is axis {axis} of input {i}" if axis < len(legend) else name
            found.append((name, where, size))
    whole = math.prod(shapes[0]) if shapes else 1
    meet = whole // max(e.output.size, 1)
    for name, size in (
        ("the number of elements of input 0", whole),
        ("the number of elements that meet in one output", meet),
        *_windows(e),
        *_pairs(shapes),
        ("the number of elements of the output", e.output.size),
    ):
        found.append((name, name, size))
    for axis, size in enumerate(e.output.shape):
        found.append((f"axis {axis} of the output", f"axis {axis} of the output", size))
    return found


def _windows(e: Evidence) -> list[tuple[str, int]]:
    """Products of hyper-parameters: the size of a window."""
    found = []
    for name, value in hyper_parameters(e.op).items():
        if isinstance(value, tuple) and value and all(isinstance(v, int) for v in value):
            found.append((f"the product of {name}", math.prod(value)))
    return found


def _pairs(shapes: list[Shape]) -> list[tuple[str, int]]:
    """Products of two or three sizes of one input."""
    found = []
    for i, shape in enumerate(shapes):
        legend = LEGENDS.get(len(shape), ()) if i == 0 else ()
        for count in (2, 3):
            for axes in combinations(range(len(shape)), count):
                sizes = math.prod([shape[a] for a in axes])
                if len(legend) == 4:
                    found.append((" * ".join(legend[a] for a in axes), sizes))
                else:
                    found.append((f"the product of axes {axes} of input {i}", sizes))
    return found


def _setting(e: Evidence, size: float) -> str:
    """A hyper-parameter that the factor comes from, as the end of a sentence."""
    for name, value in hyper_parameters(e.op).items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value in (0, 1):
            continue
        for formula, number in _formulas(name, float(value)):
            if number and abs(size / number - 1) < SAME:
                return f"; the factor is {formula}, where {name} = {value:g}"
    return ""


def _formulas(name: str, value: float) -> list[tuple[str, float]]:
    rest = 1 - value
    return [
        (name, value),
        (f"1 / {name}", 1 / value),
        (f"1 - {name}", rest),
        (f"1 / (1 - {name})", 1 / rest if rest else 0),
        (f"{name}^2", value * value),
        (f"{name} - 1", value - 1),
    ]


def passed_on(e: Evidence) -> str:
    """Upstream as it came, without the derivative, or with the value of forward for it."""
    if e.upstream.shape != e.shape:
        if e.analytic.size < 4:
            return ""
        repeated = any(e.looks_like(g) for g in _repeated(e.upstream, e.shape))
        why = "the derivative of the op is missing"
        return f"is the upstream gradient as it came, repeated: {why}" if repeated else ""
    x, y, g = e.inputs[e.position], e.output, e.upstream
    why = "the derivative of the op is missing"
    if e.has_jacobian and not e.elementwise:
        why = (
            "each input acts on several outputs, and it lacks the path through what they share "
            "(the sum or the mean of a normaliser)"
        )
    if e.looks_like(g):
        return f"is the upstream gradient as it came: {why}"
    if e.looks_like(-g):
        return f"is minus the upstream gradient: {why}"
    for name, factor in (("the output y", y), ("the input x", x)):
        if factor.shape == g.shape and e.looks_like(g * factor):
            if e.elementwise:
                why = "the value was taken in place of the derivative"
            return f"is gy times {name}: {why}"
    return ""


def _repeated(g: Array, shape: Shape) -> list[Array]:
    """A reduced array along the axes of its input, for each set of axes that may be reduced."""
    found = []
    for count in range(1, len(shape) + 1):
        for axes in combinations(range(len(shape)), count):
            kept = [1 if a in axes else n for a, n in enumerate(shape)]
            if math.prod(kept) == g.size:
                found.append(np.broadcast_to(g.reshape(kept), shape))
    return found


def swapped_with_another_input(e: Evidence) -> str:
    """The gradient of another input of the same shape."""
    for position, numeric in e.others.items():
        if numeric.shape != e.shape or numeric.size < 2:
            continue
        if e.looks_like(numeric):
            return f"is that of input {position}: the gradients are in the wrong order"
        if e.looks_like(-numeric):
            return f"is minus that of input {position}: wrong order, wrong sign"
        if e.looks_like(e.numeric + numeric):
            return f"also holds the gradient of input {position}"
    return ""


def missing_factor(e: Evidence) -> str:
    """numeric / analytic is an array that can be named: an input, the output, a power of one."""
    at = e.known & np.isfinite(e.analytic) & (np.abs(e.analytic) > 1e-9 * np.max(np.abs(e.numeric)))
    named: list[tuple[str, Any]] = []
    for i, a in enumerate(e.inputs):
        if a.dtype.kind == "f" and a.size:
            named.append((f"input {i}", a))
    named.append(("the output y", e.output))
    named.append(("1 - y", 1 - e.output))
    named.append(("1 + y", 1 + e.output))
    for name, array in named:
        for spread in _spread(array, e):
            with np.errstate(all="ignore"):
                powers = ((name, spread), (f"{name} squared", spread**2), (f"2 {name}", 2 * spread))
                for formula, factor in powers:
                    if at.any() and e.looks_like(np.where(at, e.numeric / factor, 0.0)):
                        return f"lacks the factor {formula}"
                    if e.looks_like(e.numeric * factor):
                        return f"has a factor too many: {formula}"
    return _varying_factor(e)


def _spread(array: Array, e: Evidence) -> list[Array]:
    """The array along the axes of the gradient: as it is, and for one number per channel."""
    found = []
    fits = array.ndim <= len(e.shape) and all(
        n in (1, m) for n, m in zip(array.shape[::-1], e.shape[::-1], strict=False)
    )
    if fits:
        found.append(np.broadcast_to(array, e.shape))
    if array.ndim == 1 and len(e.shape) > 1:
        for axis, size in enumerate(e.shape):
            if size == array.size:
                along = [1] * len(e.shape)
                along[axis] = size
                found.append(np.broadcast_to(array.reshape(along), e.shape))
    return found


def _varying_factor(e: Evidence) -> str:
    """A factor that depends on the index along a single axis."""
    if len(e.shape) < 2 or not e.known.all():
        return ""
    for axis, size in enumerate(e.shape):
        if size < 2 or e.analytic.size < 2 * size:
            continue
        n, a = (np.moveaxis(v, axis, 0).reshape(size, -1) for v in (e.numeric, e.analytic))
        with np.errstate(all="ignore"):
            ratio = (a * n).sum(1) / (n * n).sum(1)
        if not np.isfinite(ratio).all():
            continue
        suspicion = np.moveaxis(
            (ratio[:, None] * n).reshape(np.moveaxis(e.numeric, axis, 0).shape), 0, axis
        )
        if e.looks_like(suspicion) and np.abs(ratio - ratio[0]).max() > SAME:
            if np.isclose(ratio, 1, rtol=1e-4).any() or np.isclose(ratio, 0, atol=1e-6).any():
                continue  # right in some slices: told by where it is wrong
            return (
                f"has a wrong factor that depends on the index along axis {axis} alone: "
                f"{ratio[0]:.4g} for index 0, {ratio[1]:.4g} for index 1"
            )
    return ""
