"""Suspicions about where numbers go: transposed, flipped, shifted, overwritten, one sample only.

Each yields what backward would give, and words that go on after "the gradient of input 0 ...".
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations, product

import numpy as np

from tinygraph.engine import Array, Shape
from tinygraph.testing.gradcheck_elements import Comparison, Guesses

MOST_AXES = 5  # permutations and flips of more axes are not tried


def transposed(e: Comparison) -> Guesses:
    """The right numbers in another order of axes: square inputs hide it from the shape."""
    for order in _orders(len(e.shape)):
        turned = e.numeric.transpose(order)
        yield turned, f"is transposed: its axes come in the order {order}"
        yield (
            turned.reshape(e.shape),
            f"is transposed and reshaped: numbers are read in the order of axes {order}; "
            "transpose before reshaping",
        )
        yield (
            _read_in_order(e.numeric, order),
            "is reshaped where it must be transposed: the numbers are right, their order of "
            f"axes is not (axes {order})",
        )


def _orders(ndim: int) -> list[Shape]:
    """All orders of the axes but their own."""
    return list(permutations(range(ndim)))[1:] if ndim <= MOST_AXES else []


def _read_in_order(a: Array, order: Shape) -> Array:
    return a.reshape([a.shape[k] for k in order]).transpose(np.argsort(order))


def factor_not_transposed(e: Comparison) -> Guesses:
    """gy @ b for gy @ b.T, or a @ gy for a.T @ gy: square factors hide it from the shape."""
    g = e.upstream
    for position, factor in enumerate(e.inputs):
        square = g.ndim == factor.ndim == 2 and factor.shape[0] == factor.shape[1]
        if not square or position == e.position:
            continue
        name = f"input {position}"
        if g.shape[1] == len(factor):
            yield g @ factor, f"is gy @ {name}: transpose that factor, gy @ {name}.T"
        if g.shape[0] == len(factor):
            yield factor @ g, f"is {name} @ gy: transpose that factor, {name}.T @ gy"


def flipped(e: Comparison) -> Guesses:
    """The kernel, or the gradient, runs backwards along some axes."""
    if len(e.shape) > MOST_AXES:
        return
    for axes in _subsets(len(e.shape)):
        yield np.flip(e.numeric, axes), f"is flipped along {_axes(axes)}: the order is reversed"
    image = len(e.shape) == 4 and len(e.inputs) > 1 and e.inputs[1].ndim == 4
    if image and "conv" in getattr(e.op, "name", "") and e.position == 0 and e.numeric.size <= 512:
        for axes in ((2, 3), (2,), (3,)):
            yield (
                _gradient_with_flipped_kernel(e, axes),
                f"comes from a kernel flipped along {_axes(axes)}: forward and backward must "
                "walk over the kernel in opposite directions",
            )


def _gradient_with_flipped_kernel(e: Comparison, axes: Shape) -> Array:
    """By differences, since the backward under test is wrong; a step of 1, for it is linear."""
    arrays = list(e.inputs)
    arrays[1] = np.flip(arrays[1], axes).copy()
    arrays[0] = arrays[0].copy()
    moved, base = arrays[0].reshape(-1), e.function.value(arrays)
    out = np.empty(moved.size)
    for i, x in enumerate(moved.copy()):
        moved[i] = x + 1
        out[i] = (e.function.value(arrays) - base) @ e.weights
        moved[i] = x
    return out.reshape(e.shape)


def only_one_sample(e: Comparison) -> Guesses:
    """Of an axis of the output, one index alone is counted (or one is left out)."""
    for axis, size in enumerate(e.upstream.shape if e.has_jacobian else ()):
        name = "sample" if axis == 0 else "index"
        where = f"axis {axis} of the output ({size})"
        for index in (0, size - 1) if size > 1 else ():
            one = np.take(e.upstream, [index], axis)
            weights = np.where(_only(e.upstream.shape, axis, index), e.upstream, 0)
            yield e.through(weights), f"counts {name} {index} only: sum over {where}"
            if size > 2:
                yield e.through(e.upstream - weights), f"leaves out {name} {index} of {where}"
            yield (
                e.through(np.broadcast_to(one, e.upstream.shape)),
                f"takes the upstream gradient of {name} {index} for all of {where}",
            )


def _only(shape: Shape, axis: int, index: int) -> Array:
    """Whether an element has that index along an axis."""
    return np.asarray(np.indices(shape, sparse=True)[axis] == index)


def shifted(e: Comparison) -> Guesses:
    """Each number lies some steps away from where it belongs."""
    axes = tuple(range(len(e.shape))[-2:])
    reach = [range(-min(3, e.shape[a] - 1), min(3, e.shape[a] - 1) + 1) for a in axes]
    for offsets in sorted(product(*reach), key=lambda o: sum(abs(s) for s in o))[1:]:
        moved = e.numeric
        for axis, offset in zip(axes, offsets, strict=True):
            moved = _shift(moved, axis, offset)
        yield moved, f"is shifted by {_steps(offsets)} along {_axes(axes)}{_padding(e)}"


def _shift(a: Array, axis: int, offset: int) -> Array:
    """a moved along an axis; what comes in is unknown (NaN)."""
    moved = np.roll(a, offset, axis)
    new = slice(0, offset) if offset > 0 else slice(a.shape[axis] + offset, None)
    if offset:
        moved[(slice(None),) * axis + (new,)] = np.nan
    return moved


def _padding(e: Comparison) -> str:
    for name in ("padding", "pad_width"):
        if e.settings.get(name):
            return f"; {name} is {e.settings[name]}: cut it off, or add it, on the right side"
    return ": an index is off"


def overwritten(e: Comparison) -> Guesses:
    """Where several outputs use one element, one of them alone is left of the sum."""
    if not e.has_jacobian or not e.upstream.ndim:
        return
    terms = (e.jacobian * e.upstream.reshape(-1)).reshape(-1, *e.upstream.shape)
    for axes in _groups(e.upstream.ndim):
        for which in ("last", "first"):
            yield (
                e.spread(_one_term(terms, axes, which == "last")),
                "is overwritten where windows overlap or an element is used more than once: "
                f"only the {which} use is left; add them up (+=, np.add.at)",
            )


def _groups(ndim: int) -> list[Shape]:
    """Axes of the output along which uses are told apart; the others are summed."""
    windows: dict[int, list[Shape]] = {4: [(2, 3)], 3: [(2,), (1, 2)]}
    return [*windows.get(ndim, []), tuple(range(ndim)), *((axis,) for axis in range(ndim))]


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
    return np.where(used.any(axis=1), parts[np.arange(len(parts)), where], 0)


def jacobian_not_transposed(e: Comparison) -> Guesses:
    """J @ gy for J^T @ gy: sums that run forwards where they must run backwards."""
    square = e.output.shape == e.shape and len(e.rows) == e.analytic.size
    if e.has_jacobian and square and not e.elementwise:
        yield (
            e.spread(e.jacobian.T @ e.weights),
            "runs in the direction of the forward: the Jacobian was not transposed; what the "
            "forward adds from the start, backward adds backwards, from the end",
        )


def upstream_misread(e: Comparison) -> Guesses:
    """The upstream gradient is read in another order."""
    if e.has_jacobian and e.upstream.ndim <= MOST_AXES and e.upstream.size > 1:
        for name, weights in _misreadings(e.upstream):
            yield e.through(weights), f"reads the upstream gradient {name}"


def _misreadings(g: Array) -> Iterator[tuple[str, Array]]:
    for axes in _subsets(g.ndim):
        yield f"backwards along {_axes(axes)}: it is flipped", np.flip(g, axes)
    for order in _orders(g.ndim):
        words = f"transposed: its axes in the order {order}; transpose, do not reshape"
        yield words, g.transpose(order).reshape(g.shape)
        yield words, _read_in_order(g, order)
    for axis, size in enumerate(g.shape):
        for offset in (-2, -1, 1, 2):
            if size > abs(offset):
                words = f"shifted by {_steps((offset,))} along axis {axis} of the output"
                yield words, np.nan_to_num(_shift(g, axis, offset))
                yield words + ", with wrap-around", np.roll(g, offset, axis)
    for axis, size in enumerate(g.shape):
        if size > 1:
            total = np.broadcast_to(g.sum(axis, keepdims=True), g.shape)
            yield f"summed over axis {axis} of the output", total
            yield f"averaged over axis {axis} of the output", total / size


def _subsets(ndim: int) -> list[Shape]:
    """All sets of axes but the empty one, trailing axes first."""
    axes = range(ndim - 1, -1, -1)
    sets = [tuple(sorted(s)) for n in range(1, ndim + 1) for s in combinations(axes, n)]
    return [(2, 3), *sets] if ndim == 4 else sets


def _axes(axes: Shape) -> str:
    return f"axis {axes[0]}" if len(axes) == 1 else "axes " + ", ".join(map(str, axes))


def _steps(offsets: tuple[int, ...]) -> str:
    return str(offsets[0] if len(offsets) == 1 else tuple(offsets))
