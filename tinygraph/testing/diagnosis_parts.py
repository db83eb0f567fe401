"""Suspicions about a part: a path or a mask that is missing, a border, a sign, a slice.

Each takes the Evidence of one input and returns a sentence that goes on after "the gradient of
input 0 ...", or "" where the mistake is another.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from tinygraph.shapes import Array, Shape
from tinygraph.testing.diagnosis_evidence import ALIKE, Evidence


def normalizer_path_missing(e: Evidence) -> str:
    """x acts through a mean, a variance or a sum of exponentials too: that path was left out.

    Along the axes of the normaliser the difference to the right gradient is a constant (through the
    mean), a multiple of the output (through a sum of exponentials) or of the centred input.
    """
    if e.output.shape != e.shape or not e.known.all() or e.analytic.size < 6:
        return ""
    difference = e.numeric - e.analytic
    x = e.inputs[e.position]
    for axes in _axis_sets(len(e.shape)):
        group = _product(e.shape, axes)
        if group < 3 or e.elementwise:
            continue
        centred = x - x.mean(axis=axes, keepdims=True)
        ones = np.ones(e.shape)
        for words, basis in (
            ("the mean", [ones]),
            ("the variance", [centred]),
            ("the sum in the denominator", [e.output]),
            ("the sum of exponentials", [np.exp(np.minimum(e.output, 0))]),
            ("the mean and the variance", [ones, centred]),
            ("the sum in the denominator", [ones, e.output]),
        ):
            if group > len(basis) + 1 and _spans(difference, basis, axes):
                which = "axis" if len(axes) == 1 else "axes"
                return (
                    f"lacks the path through {words}: each input acts on all outputs along "
                    f"{which} {', '.join(map(str, axes))}, not on its own alone"
                )
    return ""


def _spans(difference: Array, basis: list[Array], axes: Shape) -> bool:
    """Whether the difference is, in each group along the axes, a combination of the basis."""
    rows = [_grouped(b, axes) for b in basis]  # (groups, members)
    target = _grouped(difference, axes)
    size = np.abs(target).max()
    if not size:
        return False
    for k in range(len(target)):
        matrix = np.stack([r[k] for r in rows], axis=1)
        fit = matrix @ np.linalg.lstsq(matrix, target[k], rcond=None)[0]
        if np.abs(fit - target[k]).max() > ALIKE * size:
            return False
    return True


def _grouped(a: Array, axes: Shape) -> Array:
    kept = [k for k in range(a.ndim) if k not in axes]
    return a.transpose(*kept, *axes).reshape(-1, _product(a.shape, axes))


def mask_missing(e: Evidence) -> str:
    """Gradient where the forward blocks it, or none where the forward passes it."""
    at = e.known & np.isfinite(e.analytic)
    size = np.max(np.abs(e.numeric[at]), initial=0)
    blocked = at & (np.abs(e.numeric) <= 1e-9 * size)
    passing = at & ~blocked
    wrong_blocked = blocked & e.wrong & (e.analytic != 0)
    if wrong_blocked.any() and not (passing & e.wrong).any():
        return (
            f"is not zero where it must be ({wrong_blocked.sum()} elements do not act on the "
            "output): the mask of the forward is missing or wrong"
        )
    dropped = passing & e.wrong & (e.analytic == 0)
    if dropped.any() and np.array_equal(dropped, passing & e.wrong):
        if not wrong_blocked.any():
            words = _region(e, dropped)
            return f"is zero where it must not be{words}: the mask lets too little through"
        return "is masked the wrong way round: zero where the forward passes, not where it blocks"
    if wrong_blocked.any() and passing.any():
        with np.errstate(all="ignore"):
            ratio = e.analytic[passing] / e.numeric[passing]
        if np.ptp(ratio) <= ALIKE * np.abs(ratio).max():
            return (
                "is not zero where it must be, and elsewhere "
                f"{ratio[0]:.4g} times too large: mask and scale of the forward are missing"
            )
    return ""


def _region(e: Evidence, at: Array) -> str:
    """Words for a set of elements that a border, a slice or a sign describes; "" for none."""
    border = _border_words(e, at)
    if border:
        return f", {border}"
    sign = _sign_words(e, at)
    return f", {sign}" if sign else ""


def constant_term(e: Evidence) -> str:
    """Off by the same number everywhere."""
    at = e.known & np.isfinite(e.analytic)
    difference = (e.analytic - e.numeric)[at]
    if difference.size < 3:
        return ""
    middle = float(np.median(difference))
    if np.abs(difference - middle).max() <= ALIKE * abs(middle):
        return f"is {middle:.6g} too large everywhere: a term is added that does not belong there"
    return ""


def only_where_sign(e: Evidence) -> str:
    """Wrong on one side of a number."""
    words = _sign_words(e, e.wrong)
    return f"is wrong only {words}: look at that branch of the function" if words else ""


def _sign_words(e: Evidence, wrong: Array) -> str:
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
    for name, threshold in (("0", 0.0), ("1", 1.0), ("-1", -1.0)):
        if bad.max() < threshold <= good.min():
            return f"where the input is below {name}"
        if good.max() < threshold <= bad.min():
            return f"where the input is above {name}"
    if bad.max() < good.min():
        return f"where the input is small (at most {bad.max():.4g})"
    if good.max() < bad.min():
        return f"where the input is large (at least {bad.min():.4g})"
    if np.abs(bad).max() < np.abs(good).min():
        return f"where the input is close to 0 (at most {np.abs(bad).max():.4g} away)"
    if np.abs(good).max() < np.abs(bad).min():
        return f"where the input is far from 0 (at least {np.abs(bad).min():.4g} away)"
    return ""


def only_at_border(e: Evidence) -> str:
    """Right inside, wrong at the first or the last index of some axes."""
    words = _border_words(e, e.wrong)
    return f"is wrong {words}: padding, or an end that is off by one" if words else ""


def _border_words(e: Evidence, wrong: Array) -> str:
    known = e.known
    if not (known & ~wrong).any() or not e.shape:
        return ""
    sides = []
    for axis in range(len(e.shape)):
        for name, index in (("first", 0), ("last", e.shape[axis] - 1)):
            if e.shape[axis] > 2:
                sides.append((f"{name} index of axis {axis} ({e.shape[axis]})", axis, index))
    for count in (1, 2, 3, 4):
        for chosen in combinations(sides, count):
            border = np.zeros(e.shape, bool)
            for _, axis, index in chosen:
                border[(slice(None),) * axis + (index,)] = True
            touched = all(wrong[(slice(None),) * a + (i,)].any() for _, a, i in chosen)
            if touched and not (wrong & ~border).any():
                return "at the border only, at the " + " and the ".join(s[0] for s in chosen)
    return ""


def only_in_slice(e: Evidence) -> str:
    """Right for some indices along an axis, wrong for the others."""
    for axis, size in enumerate(e.shape):
        if size < 2:
            continue
        others = tuple(k for k in range(len(e.shape)) if k != axis)
        bad = e.wrong.any(axis=others)
        if bad.all():
            continue
        right = np.flatnonzero(~bad)
        if len(right) == 1 and right[0] in (0, size - 1):
            return f"is right for index {right[0]} of axis {axis} ({size}) and wrong for the others"
        indices = ", ".join(map(str, np.flatnonzero(bad)[:6]))
        return f"is wrong only for the indices {indices} of axis {axis} ({size})"
    return ""


def one_term_missing(e: Evidence) -> str:
    """The gradient of one output element, or of an element's own output, was left out."""
    if not e.has_jacobian or e.output.shape != e.shape:
        return ""
    diagonal = np.full(e.analytic.size, np.nan)
    diagonal[e.rows] = e.jacobian[np.arange(len(e.rows)), e.rows]
    own = (diagonal * e.upstream.reshape(-1)).reshape(e.shape)
    if e.looks_like(own):
        return "takes each element's own output alone: it acts on the others too"
    if e.looks_like(e.numeric - own):
        return "lacks the term of each element's own output"
    return ""


def _axis_sets(ndim: int) -> list[Shape]:
    last = [(ndim - 1,)] if ndim else []
    rest = [s for n in range(1, ndim + 1) for s in combinations(range(ndim), n) if s not in last]
    return last + rest


def _product(shape: Shape, axes: Shape) -> int:
    return int(np.prod([shape[a] for a in axes]))
