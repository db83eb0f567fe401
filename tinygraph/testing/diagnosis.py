"""From wrong numbers to a sentence: the usual mistakes of a backward, looked for one by one.

A suspicion is a generator over one input.  It yields what backward would give if it made a mistake,
with the words for that mistake; None in the place of the array where it has judged by itself.  The
first that explains the numbers wins; where none does, the worst element is told.  The order goes
from the mistakes that explain everything to those that explain a part.
"""

from __future__ import annotations

from collections.abc import Callable

from tinygraph.testing import diagnosis_factors as factors
from tinygraph.testing import diagnosis_layout as layout
from tinygraph.testing import diagnosis_parts as parts
from tinygraph.testing.gradcheck_elements import Comparison, Guesses
from tinygraph.testing.report import Mismatch

SUSPICIONS: tuple[Callable[[Comparison], Guesses], ...] = (
    factors.all_zero,
    factors.ignores_upstream,
    factors.scalar_factor,
    factors.swapped_with_another_input,
    layout.factor_not_transposed,
    layout.jacobian_not_transposed,
    layout.transposed,
    layout.flipped,
    layout.only_one_sample,
    layout.shifted,
    layout.overwritten,
    parts.mask_missing,
    parts.normalizer_path_missing,
    factors.passed_on,
    factors.missing_factor,
    factors.varying_factor,
    layout.upstream_misread,
    parts.constant_term,
    parts.only_where_sign,
    parts.only_at_border,
    parts.only_in_slice,
    parts.one_term_missing,
    factors.factor_of_few,
)


def diagnose(found: list[Comparison], worst: Mismatch) -> str:
    """The first suspicion that explains the numbers of an input, or its worst element.

    >>> from tinygraph.testing.report import Mismatch
    >>> diagnose([], Mismatch(0, (2, 1), 1.5, 2.0, 1e6))
    'the gradient of input 0 at [2, 1] is 1.5, finite differences give 2'
    """
    wrong = [one for one in found if one.wrong.any()]
    for one in sorted(wrong, key=lambda one: one.position != worst.input):
        for suspicion in SUSPICIONS:
            for supposed, words in suspicion(one):
                if supposed is None or one.looks_like(supposed):
                    return f"the gradient of input {one.position} {words}"
    return (
        f"the gradient of input {worst.input} at {list(worst.element)} is "
        f"{worst.analytic:.6g}, finite differences give {worst.numeric:.6g}"
    )
