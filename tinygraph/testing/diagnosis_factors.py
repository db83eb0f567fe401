"""Suspicions about a factor: none, the wrong one, or one that was forgotten.

Each yields what backward would give, and words that go on after "the gradient of input 0 ...".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from tinygraph.engine import Array, Shape
from tinygraph.testing.gradcheck_elements import Comparison, Guesses

SAME = 1e-5  # relative: two factors are one number
LEGENDS = {1: ("N",), 2: ("N", "features"), 4: ("N", "C", "H", "W")}


def all_zero(e: Comparison) -> Guesses:
    """Nothing arrives."""
    if not np.any(e.analytic[e.known]):
        yield (
            None,
            "is all zero: backward returns zeros or None for it, or the graph is cut before it "
            "(detach, no_grad, .value)",
        )


def ignores_upstream(e: Comparison) -> Guesses:
    """The derivative is right, and not multiplied by gy, or by one number made of gy."""
    weights = {"ignores the upstream gradient": 1.0}
    if e.upstream.size > 1:
        weights |= {
            "takes the sum of the upstream gradient for each of its elements": e.upstream.sum(),
            "takes the mean of the upstream gradient for each of its elements": e.upstream.mean(),
            "takes the first element of the upstream gradient for all": e.upstream.flat[0],
        }
    for name, weight in weights.items() if e.has_jacobian else ():
        words = f"{name}: multiply the derivative by gy, element by element"
        yield e.through(np.full(e.upstream.shape, weight)), words
    other = e.function.vjp(np.arange(1.0, e.function.size + 1))[e.position]
    if other is not None and np.array_equal(other, e.analytic):
        yield (
            None,
            "ignores the upstream gradient: it is the same whatever comes from above; multiply "
            "the derivative by gy",
        )


def scalar_factor(e: Comparison) -> Guesses:
    """Every element is the same number of times too large."""
    at = e.known & (np.abs(e.numeric) > SAME * np.max(np.abs(e.numeric[e.known]), initial=0))
    if at.sum() > 2:
        yield from factor_of_few(e)


def factor_of_few(e: Comparison) -> Guesses:
    """The same for one or two elements, where any mistake looks like a factor: asked last."""
    ratio = common_ratio(e)
    if ratio is not None:
        yield None, _factor_words(e, ratio)


def _factor_words(e: Comparison, ratio: float) -> str:
    if abs(ratio + 1) < SAME:
        return "has the wrong sign: it is minus what it should be"
    sign = " and has the wrong sign" if ratio < 0 else ""
    size = abs(ratio)
    if abs(size - 1) < 0.02:
        return (
            f"is {100 * (size - 1):+.3g} % off everywhere{sign} (a factor of {size:.7g}): a "
            "constant in backward is not the one in forward"
        )
    setting, factor = _setting(e, size), max(size, 1 / size)
    fits = [d for d in _dimensions(e) if d[2] > 1 and abs(factor / d[2] - 1) < SAME]
    name, place, _ = fits[0] if fits else ("", "", 0)
    if abs(factor - 2) < SAME:
        also = f"; or a mean or a sum over {name}, which is 2" if name else ""
        reason = (
            "is half of what it should be: a factor of 2 is missing (the derivative of a square), "
            "or one of two uses of the input (fan-out) overwrites the other instead of adding"
            if size < 1
            else "is twice what it should be: a factor of 2 too many, or a use counted twice"
        )
        return f"{reason}{also}{sign}{setting}"
    if name:
        which, reason = (
            ("too large", f"the forward takes the mean over {name}, the backward does not")
            if size > 1
            else ("too small", f"the backward divides by {name}, the forward does not")
        )
        return f"is {name} = {round(factor)} times {which}{sign}{place}: {reason}{setting}"
    return f"is {size:.6g} times what it should be{sign}, in every element{setting}"


def common_ratio(e: Comparison) -> float | None:
    """analytic / numeric where it is one number for all elements, else None."""
    at = e.known & np.isfinite(e.analytic)
    numeric, analytic = e.numeric[at], e.analytic[at]
    total = float(numeric @ numeric)
    ratio = float(analytic @ numeric) / total if total else 0.0
    if not ratio:
        return None
    size = max(float(np.max(np.abs(analytic))), float(np.max(np.abs(ratio * numeric))))
    small = abs(ratio - 1)  # a thousandth off: the fit must be closer than that
    bound = min(SAME, 0.05 * small) if small < 1e-2 else SAME
    return ratio if np.max(np.abs(analytic - ratio * numeric)) <= bound * size else None


def _dimensions(e: Comparison) -> Iterator[tuple[str, str, int]]:
    """Sizes that a factor may be, the likely ones first: (name, " (where it stands)", size)."""
    shapes = [a.shape for a in e.inputs]
    legend = LEGENDS.get(len(shapes[0]), ())
    # Axis 0 of input 0 is the batch.
    for i in sorted(range(len(shapes)), key=lambda i: (i != 0, i != e.position)):
        for axis, size in enumerate(shapes[i]):
            place = f"axis {axis} of input {i}"
            if i == 0 and axis < len(legend):
                yield legend[axis], f" ({legend[axis]} is {place})", size
            else:
                yield place, "", size
    whole = math.prod(shapes[0])
    yield "the number of elements of input 0", "", whole
    yield "the number of elements that meet in one output", "", whole // max(e.output.size, 1)
    for name, value in e.settings.items():
        if isinstance(value, tuple) and value and all(isinstance(v, int) for v in value):
            yield f"the product of {name}", "", math.prod(value)
    for i, shape in enumerate(shapes):
        for axes in [c for count in (2, 3) for c in combinations(range(len(shape)), count)]:
            name = f"the product of axes {axes} of input {i}"
            if i == 0 and len(legend) == 4:
                name = " * ".join(legend[a] for a in axes)
            yield name, "", math.prod(shape[a] for a in axes)
    yield "the number of elements of the output", "", e.output.size
    for axis, size in enumerate(e.output.shape):
        yield f"axis {axis} of the output", "", size


def _setting(e: Comparison, size: float) -> str:
    """A hyper-parameter that the factor comes from, as the end of a sentence."""
    for name, value in e.settings.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value in (0, 1):
            continue
        formulas = {
            name: value,
            f"1 / {name}": 1 / value,
            f"1 - {name}": 1 - value,
            f"1 / (1 - {name})": 1 / (1 - value),
            f"{name}^2": value * value,
            f"{name} - 1": value - 1,
        }
        for formula, number in formulas.items():
            if number and abs(size / number - 1) < SAME:
                return f"; the factor is {formula}, where {name} = {value:g}"
    return ""


def passed_on(e: Comparison) -> Guesses:
    """Upstream as it came, without the derivative, or with the value of forward for it."""
    g, why = e.upstream, "the derivative of the op is missing"
    if g.shape != e.shape:
        if e.analytic.size >= 4:
            words = f"is the upstream gradient as it came, repeated: {why}"
            yield from ((repeated, words) for repeated in _repeated(g, e.shape))
        return
    if e.has_jacobian and not e.elementwise:
        why = (
            "each input acts on several outputs, and it lacks the path through what they share "
            "(the sum or the mean of a normaliser)"
        )
    yield g, f"is the upstream gradient as it came: {why}"
    yield -g, f"is minus the upstream gradient: {why}"
    if e.elementwise:
        why = "the value was taken in place of the derivative"
    for name, factor in (("the output y", e.output), ("the input x", e.inputs[e.position])):
        if factor.shape == g.shape:
            yield g * factor, f"is gy times {name}: {why}"


def _repeated(g: Array, shape: Shape) -> Iterator[Array]:
    """A reduced array along the axes of its input, for each set of axes that may be reduced."""
    for count in range(1, len(shape) + 1):
        for axes in combinations(range(len(shape)), count):
            kept = [1 if a in axes else n for a, n in enumerate(shape)]
            if math.prod(kept) == g.size:
                yield np.broadcast_to(g.reshape(kept), shape)


def swapped_with_another_input(e: Comparison) -> Guesses:
    """The gradient of another input of the same shape."""
    for other in e.others:
        if other.shape == e.shape and other.numeric.size > 1:
            which, numeric = f"that of input {other.position}", other.numeric
            yield numeric, f"is {which}: the gradients are in the wrong order"
            yield -numeric, f"is minus {which}: wrong order, wrong sign"
            yield e.numeric + numeric, f"also holds the gradient of input {other.position}"


def missing_factor(e: Comparison) -> Guesses:
    """numeric / analytic is an array that can be named: an input, the output, a power of one."""
    at = e.known & np.isfinite(e.analytic) & (np.abs(e.analytic) > 1e-9 * np.max(np.abs(e.numeric)))
    named = [(f"input {i}", a) for i, a in enumerate(e.inputs) if a.dtype.kind == "f" and a.size]
    named += [("the output y", e.output), ("1 - y", 1 - e.output), ("1 + y", 1 + e.output)]
    for name, array in named:
        for spread in _spread(array, e.shape):
            with np.errstate(all="ignore"):
                powers = ((name, spread), (f"{name} squared", spread**2), (f"2 {name}", 2 * spread))
                for formula, factor in powers:
                    if at.any():
                        quotient = np.where(at, e.numeric / factor, 0.0)
                        yield quotient, f"lacks the factor {formula}"
                    yield e.numeric * factor, f"has a factor too many: {formula}"


def _spread(array: Array, shape: Shape) -> Iterator[Array]:
    """The array along the axes of a gradient: as it is, and for one number per channel."""
    sizes = zip(array.shape[::-1], shape[::-1], strict=False)
    if array.ndim <= len(shape) and all(n in (1, m) for n, m in sizes):
        yield np.broadcast_to(array, shape)
    if array.ndim == 1 and len(shape) > 1:
        for axis, size in enumerate(shape):
            if size == array.size:
                along = [1] * len(shape)
                along[axis] = size
                yield np.broadcast_to(array.reshape(along), shape)


def varying_factor(e: Comparison) -> Guesses:
    """A factor that depends on the index along a single axis."""
    if len(e.shape) < 2 or not e.known.all():
        return
    for axis, size in enumerate(e.shape):
        if size < 2 or e.analytic.size < 2 * size:
            continue
        others = tuple(a for a in range(len(e.shape)) if a != axis)
        with np.errstate(all="ignore"):
            along = (e.analytic * e.numeric).sum(axis=others, keepdims=True)
            along = along / (e.numeric**2).sum(axis=others, keepdims=True)
        ratio = along.reshape(-1)
        # Right in some slices: told by where it is wrong.
        right = np.isclose(ratio, 1, rtol=1e-4) | np.isclose(ratio, 0, atol=1e-6)
        if np.isfinite(ratio).all() and np.ptp(ratio) > SAME and not right.any():
            yield (
                along * e.numeric,
                f"has a wrong factor that depends on the index along axis {axis} alone: "
                f"{ratio[0]:.4g} for index 0, {ratio[1]:.4g} for index 1",
            )
