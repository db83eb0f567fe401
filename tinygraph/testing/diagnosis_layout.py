"""Suspicions about where numbers go: transposed, flipped, shifted, overwritten, one sample only.

Each takes the Evidence of one input and returns a sentence that goes on after "the gradient of
input 0 ...", or "" where the mistake is another.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations, product

import numpy as np

from tinygraph.shapes import Array, Shape
from tinygraph.testing.diagnosis_evidence import Evidence, hyper_parameters

MOST_AXES = 5  # permutations and flips of more axes are not tried


def transposed(e: Evidence) -> str:
    """The right numbers in another order of axes: square inputs hide it from the shape."""
    if not 1 < len(e.shape) <= MOST_AXES:
        return ""
    identity = tuple(range(len(e.shape)))
    for order in permutations(identity):
        if order == identity:
            continue
        turned = e.numeric.transpose(order)
        if e.looks_like(turned):
            return f"is transposed: its axes come in the order {order}"
        if e.looks_like(turned.reshape(e.shape)):
            return (
                f"is transposed and reshaped: numbers are read in the order of axes {order}; "
                "transpose before reshaping"
            )
        swapped = e.numeric.reshape([e.shape[a] for a in order]).transpose(np.argsort(order))
        if e.looks_like(swapped):
            return (
                "is reshaped where it must be transposed: the numbers are right, their order of "
                f"axes is not (axes {order})"
            )
    return ""


def factor_not_transposed(e: Evidence) -> str:
    """gy @ b for gy @ b.T, or a @ gy for a.T @ gy: square factors hide it from the shape."""
    g = e.upstream
    if g.ndim != 2 or len(e.shape) != 2:
        return ""
    for position, factor in enumerate(e.inputs):
        if position == e.position or factor.ndim != 2 or factor.shape[0] != factor.shape[1]:
            continue
        name = f"input {position}"
        if g.shape[1] == len(factor) and e.looks_like(g @ factor):
            return f"is gy @ {name}: transpose that factor, gy @ {name}.T"
        if g.shape[0] == len(factor) and e.looks_like(factor @ g):
            return f"is {name} @ gy: transpose that factor, {name}.T @ gy"
    return ""


def flipped(e: Evidence) -> str:
    """The kernel, or the gradient, runs backwards along some axes."""
    if not e.shape or len(e.shape) > MOST_AXES:
        return ""
    for axes in _subsets(len(e.shape)):
        if e.looks_like(np.flip(e.numeric, axes)):
            return f"is flipped along {_axes(axes)}: the order is reversed"
    image = len(e.shape) == 4 and len(e.inputs) > 1 and e.inputs[1].ndim == 4
    image = image and "conv" in getattr(e.op, "name", "")
    return _kernel_flipped(e) if image else ""


def _kernel_flipped(e: Evidence) -> str:
    """What a convolution with the flipped kernel would give; only for input 0."""
    if e.position != 0 or e.analytic.size > 512:
        return ""
    for axes in ((2, 3), (2,), (3,)):
        if e.looks_like(_gradient_with_flipped_kernel(e, axes)):
            return (
                f"comes from a kernel flipped along {_axes(axes)}: forward and backward must "
                "walk over the kernel in opposite directions"
            )
    return ""


def _gradient_with_flipped_kernel(e: Evidence, axes: Shape) -> Array:
    """By differences, since the backward under test is wrong; a step of 1, for it is linear."""
    arrays = list(e.inputs)
    arrays[1] = np.flip(arrays[1], axes).copy()
    arrays[0] = moved = arrays[0].copy()
    base, gy = e.function.value(arrays), e.upstream.reshape(-1)
    if base.size != gy.size:
        return np.full(e.shape, np.nan)
    out = np.empty(e.analytic.size)
    for i in range(out.size):
        x = moved.reshape(-1)[i]
        moved.reshape(-1)[i] = x + 1
        out[i] = (e.function.value(arrays) - base) @ gy
        moved.reshape(-1)[i] = x
    return out.reshape(e.shape)


def only_one_sample(e: Evidence) -> str:
    """Of an axis of the output, one index alone is counted (or one is left out)."""
    if not e.has_jacobian:
        return ""
    for axis, size in enumerate(e.upstream.shape):
        if size < 2:
            continue
        name = "sample" if axis == 0 else "index"
        for index in (0, size - 1):
            weights = np.zeros(e.upstream.shape)
            at = (slice(None),) * axis + (index,)
            weights[at] = e.upstream[at]
            one = np.take(e.upstream, [index], axis)
            where = f"axis {axis} of the output ({size})"
            if e.looks_like(e.through(weights)):
                return f"counts {name} {index} only: sum over {where}"
            if size > 2 and e.looks_like(e.through(e.upstream - weights)):
                return f"leaves out {name} {index} of {where}"
            if e.looks_like(e.through(np.broadcast_to(one, e.upstream.shape))):
                return f"takes the upstream gradient of {name} {index} for all of {where}"
    return ""


def shifted(e: Evidence) -> str:
    """Each number lies some steps away from where it belongs."""
    if not e.shape:
        return ""
    axes = range(len(e.shape))[-2:]
    reach = [range(-min(3, e.shape[a] - 1), min(3, e.shape[a] - 1) + 1) for a in axes]
    for offsets in sorted(product(*reach), key=lambda o: sum(abs(s) for s in o)):
        if not any(offsets):
            continue
        moved = e.numeric
        for axis, offset in zip(axes, offsets, strict=True):
            moved = _shift(moved, axis, offset)
        if e.looks_like(moved):
            return f"is shifted by {_steps(offsets)} along {_axes(tuple(axes))}{_padding(e)}"
    return ""


def _shift(a: Array, axis: int, offset: int) -> Array:
    """a moved along an axis; what comes in is unknown (NaN)."""
    moved = np.roll(a, offset, axis)
    new = slice(0, offset) if offset > 0 else slice(a.shape[axis] + offset, None)
    if offset:
        moved[(slice(None),) * axis + (new,)] = np.nan
    return moved


def _padding(e: Evidence) -> str:
    settings = hyper_parameters(e.op)
    for name in ("padding", "pad_width"):
        if settings.get(name):
            return f"; {name} is {settings[name]}: cut it off, or add it, on the right side"
    return ": an index is off"


def overwritten(e: Evidence) -> str:
    """Where several outputs use one element, one of them alone is left of the sum."""
    if not e.has_jacobian or not e.upstream.ndim:
        return ""
    terms = (e.jacobian * e.upstream.reshape(-1)).reshape(-1, *e.upstream.shape)
    for axes in _groups(e.upstream.ndim):
        for last in (True, False):
            one = _one_term(terms, axes, last)
            suspicion = np.full(e.analytic.size, np.nan)
            suspicion[e.rows] = one
            if e.looks_like(suspicion.reshape(e.shape)):
                which = "last" if last else "first"
                return (
                    "is overwritten where windows overlap or an element is used more than once: "
                    f"only the {which} use is left; add them up (+=, np.add.at)"
                )
    return ""


def _groups(ndim: int) -> list[Shape]:
    """Axes of the output along which uses are told apart; the others are summed."""
    found = [tuple(range(ndim))]
    if ndim == 4:
        found.insert(0, (2, 3))
    if ndim == 3:
        found.insert(0, (2,))
        found.append((1, 2))
    return found + [(axis,) for axis in range(ndim)]


def _one_term(terms: Array, axes: Shape, last: bool) -> Array:
    """For each row the last (or first) sum that is not zero, over positions along `axes`."""
    rest = tuple(a + 1 for a in range(terms.ndim - 1) if a not in axes)
    parts = terms.sum(axis=rest).reshape(len(terms), -1)
    used = np.abs(terms).sum(axis=rest).reshape(len(terms), -1)
    used = used > 1e-9 * np.max(used, axis=1, keepdims=True, initial=0)
    if last:
        where = parts.shape[1] - 1 - np.argmax(used[:, ::-1], axis=1)
    else:
        where = np.argmax(used, axis=1)
    one: Array = np.where(used.any(axis=1), parts[np.arange(len(parts)), where], 0)
    return one


def jacobian_not_transposed(e: Evidence) -> str:
    """J @ gy for J^T @ gy: sums that run forwards where they must run backwards."""
    if not e.has_jacobian or e.output.shape != e.shape or len(e.rows) != e.analytic.size:
        return ""
    if e.elementwise or not e.looks_like((e.jacobian.T @ e.upstream.reshape(-1)).reshape(e.shape)):
        return ""
    return (
        "runs in the direction of the forward: the Jacobian was not transposed; what the forward "
        "adds from the start, backward adds backwards, from the end"
    )


def upstream_misread(e: Evidence) -> str:
    """The upstream gradient is read in another order."""
    if not e.has_jacobian or e.upstream.ndim > MOST_AXES or e.upstream.size < 2:
        return ""
    for name, weights in _misreadings(e.upstream):
        if e.looks_like(e.through(weights)):
            return f"reads the upstream gradient {name}"
    return ""


def _misreadings(g: Array) -> Iterator[tuple[str, Array]]:
    identity = tuple(range(g.ndim))
    for axes in _subsets(g.ndim):
        yield f"backwards along {_axes(axes)}: it is flipped", np.flip(g, axes)
    for order in permutations(identity):
        if order != identity:
            turned = g.transpose(order)
            yield (
                f"transposed: its axes in the order {order}; transpose, do not reshape",
                turned.reshape(g.shape),
            )
            yield (
                f"transposed: its axes in the order {order}; transpose, do not reshape",
                g.reshape([g.shape[a] for a in order]).transpose(np.argsort(order)),
            )
    for axis, size in enumerate(g.shape):
        for offset in (-2, -1, 1, 2):
            if size > abs(offset):
                words = f"shifted by {_steps((offset,))} along axis {axis} of the output"
                yield words, np.nan_to_num(_shift(g, axis, offset))
                yield words + ", with wrap-around", np.roll(g, offset, axis)
    for axis in identity:
        if g.shape[axis] > 1:
            total = np.broadcast_to(g.sum(axis, keepdims=True), g.shape)
            yield f"summed over axis {axis} of the output", total
            yield f"averaged over axis {axis} of the output", total / g.shape[axis]


def _subsets(ndim: int) -> list[Shape]:
    """All sets of axes but the empty one, trailing axes first."""
    axes = range(ndim - 1, -1, -1)
    sets = [tuple(sorted(s)) for n in range(1, ndim + 1) for s in combinations(axes, n)]
    if ndim == 4:
        sets.insert(0, (2, 3))
    return sets


def _axes(axes: Shape) -> str:
    return f"axis {axes[0]}" if len(axes) == 1 else "axes " + ", ".join(map(str, axes))


def _steps(offsets: tuple[int, ...]) -> str:
    return str(offsets[0] if len(offsets) == 1 else tuple(offsets))
