"""Suspicions about a part: a path or a mask that is missing, a border, a sign, a slice.

Each yields what backward would give, or None where it has judged by itself, and words that go on
after "the gradient of input 0 ...".
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from tinygraph.engine import Array, Shape
from tinygraph.testing.gradcheck_elements import ALIKE, Comparison, Guesses


def normalizer_path_missing(e: Comparison) -> Guesses:
    """x acts through a mean, a variance or a sum of exponentials too: that path was left out.

    Along the axes of the normaliser the difference to the right gradient is a constant (through the
    mean), a multiple of the output (through a sum of exponentials) or of the centred input.
    """
    alike = e.output.shape == e.shape and e.known.all() and e.analytic.size >= 6
    if not alike or e.elementwise:
        return
    x, axes_of_x = e.inputs[e.position], range(len(e.shape))
    sets = [s for n in range(1, len(e.shape) + 1) for s in combinations(axes_of_x, n)]
    for axes in sorted(sets, key=lambda s: s != (len(e.shape) - 1,)):  # the last axis first
        group = math.prod(e.shape[a] for a in axes)
        if group < 3:
            continue
        ones, centred = np.ones(e.shape), x - x.mean(axis=axes, keepdims=True)
        for words, basis in (
            ("the mean", [ones]),
            ("the variance", [centred]),
            ("the sum in the denominator", [e.output]),
            ("the sum of exponentials", [np.exp(np.minimum(e.output, 0))]),
            ("the mean and the variance", [ones, centred]),
            ("the sum in the denominator", [ones, e.output]),
        ):
            if group > len(basis) + 1 and _spans(e.numeric - e.analytic, basis, axes):
                which = "axis" if len(axes) == 1 else "axes"
                yield (
                    None,
                    f"lacks the path through {words}: each input acts on all outputs along "
                    f"{which} {', '.join(map(str, axes))}, not on its own alone",
                )


def _spans(difference: Array, basis: list[Array], axes: Shape) -> bool:
    """Whether the difference is, in each group along the axes, a combination of the basis."""
    size = np.abs(difference).max()
    ends = range(-len(axes), 0)
    target, *rows = (
        np.moveaxis(a, axes, ends).reshape(-1, math.prod(a.shape[k] for k in axes))
        for a in (difference, *basis)
    )  # each (groups, members)
    for k, members in enumerate(target):
        matrix = np.stack([r[k] for r in rows], axis=1)
        fit = matrix @ np.linalg.lstsq(matrix, members, rcond=None)[0]
        if not np.abs(fit - members).max() <= ALIKE * size:
            return False
    return bool(size)


def mask_missing(e: Comparison) -> Guesses:
    """Gradient where the forward blocks it, or none where the forward passes it."""
    at = e.known & np.isfinite(e.analytic)
    blocked = at & (np.abs(e.numeric) <= 1e-9 * np.max(np.abs(e.numeric[at]), initial=0))
    passing = at & ~blocked
    wrong_blocked = blocked & e.wrong & (e.analytic != 0)
    wrong_passing = passing & e.wrong
    dropped = wrong_passing & (e.analytic == 0)
    if wrong_blocked.any() and not wrong_passing.any():
        yield (
            None,
            f"is not zero where it must be ({wrong_blocked.sum()} elements do not act on the "
            "output): the mask of the forward is missing or wrong",
        )
    elif dropped.any() and np.array_equal(dropped, wrong_passing):
        region = _border_words(e, dropped) or _sign_words(e, dropped)
        where = f", {region}" if region else ""
        if wrong_blocked.any():
            words = "is masked the wrong way round: zero where the forward passes, not where it "
            yield None, words + "blocks"
        else:
            yield None, f"is zero where it must not be{where}: the mask lets too little through"
    elif wrong_blocked.any() and passing.any():
        with np.errstate(all="ignore"):
            ratio = e.analytic[passing] / e.numeric[passing]
        if np.ptp(ratio) <= ALIKE * np.abs(ratio).max():
            yield (
                None,
                "is not zero where it must be, and elsewhere "
                f"{ratio[0]:.4g} times too large: mask and scale of the forward are missing",
            )


def constant_term(e: Comparison) -> Guesses:
    """Off by the same number everywhere."""
    difference = (e.analytic - e.numeric)[e.known & np.isfinite(e.analytic)]
    if difference.size > 2:
        middle = float(np.median(difference))
        if np.abs(difference - middle).max() <= ALIKE * abs(middle):
            words = "too large everywhere: a term is added that does not belong there"
            yield None, f"is {middle:.6g} {words}"


def only_where_sign(e: Comparison) -> Guesses:
    """Wrong on one side of a number."""
    words = _sign_words(e, e.wrong)
    if words:
        yield None, f"is wrong only {words}: look at that branch of the function"


def _sign_words(e: Comparison, wrong: Array) -> str:
    """Whether exactly the elements on one side of a threshold are wrong."""
    x = e.inputs[e.position]
    found = _threshold(x, wrong, e.known)
    for position, other in enumerate(e.inputs):
        if not found and position != e.position and other.shape == x.shape:
            found = _threshold(x - other, wrong, e.known)
            found = found.replace("the input", f"its difference to input {position}")
    return found


def _threshold(x: Array, wrong: Array, at: Array) -> str:
    bad, good = x[at & wrong], x[at & ~wrong]
    if bad.size < 2 or good.size < 2:
        return ""
    for threshold in (0, 1, -1):
        if bad.max() < threshold <= good.min():
            return f"where the input is below {threshold}"
        if good.max() < threshold <= bad.min():
            return f"where the input is above {threshold}"
    if bad.max() < good.min():
        return f"where the input is small (at most {bad.max():.4g})"
    if good.max() < bad.min():
        return f"where the input is large (at least {bad.min():.4g})"
    bad, good = np.abs(bad), np.abs(good)
    if bad.max() < good.min():
        return f"where the input is close to 0 (at most {bad.max():.4g} away)"
    if good.max() < bad.min():
        return f"where the input is far from 0 (at least {bad.min():.4g} away)"
    return ""


def only_at_border(e: Comparison) -> Guesses:
    """Right inside, wrong at the first or the last index of some axes."""
    words = _border_words(e, e.wrong)
    if words:
        yield None, f"is wrong {words}: padding, or an end that is off by one"


def _border_words(e: Comparison, wrong: Array) -> str:
    if not (e.known & ~wrong).any():
        return ""
    sides: list[tuple[str, Array]] = []
    for axis, size in enumerate(e.shape):
        for name, index in (("first", 0), ("last", size - 1)):
            where: Array = np.indices(e.shape, sparse=True)[axis] == index
            if size > 2 and (wrong & where).any():
                sides.append((f"the {name} index of axis {axis} ({size})", where))
    for count in (1, 2, 3, 4):
        for chosen in combinations(sides, count):
            border = sum([where for _, where in chosen], start=np.zeros(e.shape, bool))
            if not (wrong & ~border).any():
                return "at the border only, at " + " and ".join(name for name, _ in chosen)
    return ""


def only_in_slice(e: Comparison) -> Guesses:
    """Right for some indices along an axis, wrong for the others."""
    for axis, size in enumerate(e.shape):
        bad = e.wrong.any(axis=tuple(k for k in range(len(e.shape)) if k != axis))
        right = np.flatnonzero(~bad)
        if size > 1 and len(right) == 1 and right[0] in (0, size - 1):
            words = f"is right for index {right[0]} of axis {axis} ({size}) and wrong for the"
            yield None, f"{words} others"
        if size > 1 and len(right):
            indices = ", ".join(map(str, np.flatnonzero(bad)[:6]))
            yield None, f"is wrong only for the indices {indices} of axis {axis} ({size})"


def one_term_missing(e: Comparison) -> Guesses:
    """The gradient of one output element, or of an element's own output, was left out."""
    if e.has_jacobian and e.output.shape == e.shape:
        own = e.spread(e.jacobian[np.arange(len(e.rows)), e.rows] * e.weights[e.rows])
        yield own, "takes each element's own output alone: it acts on the others too"
        yield e.numeric - own, "lacks the term of each element's own output"
