"""Calls of losses: predictions with targets of the same shape, and logits with labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tinygraph.base import ArgumentError
from tinygraph.testing.problem import Problem
from tinygraph.testing.strategies.arrays import numbers, seeds, shapes

reductions = st.sampled_from(["mean", "sum", "none"])


@st.composite
def class_label_problems(draw: st.DrawFn) -> Problem:
    """Logits with integer labels, some of them perhaps ignored, or with probabilities."""
    n, c = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    rest = draw(shapes(max_dims=2, max_side=3))
    rng = np.random.default_rng(draw(seeds))
    logits = 3 * rng.standard_normal((n, c, *rest))
    kwargs: dict[str, Any] = {"reduction": draw(reductions)}
    if draw(st.booleans()):
        shares = rng.dirichlet(np.ones(c), (n, *rest))  # (N, ..., C)
        shares *= rng.uniform(0.5, 2, (n, *rest, 1))  # weights need not have sum 1
        return Problem((logits, np.moveaxis(shares, -1, 1)), kwargs, (True, True))
    labels = rng.integers(0, c, (n, *rest))
    if draw(st.booleans()):
        kwargs["ignore_index"] = -1
        labels[rng.random(labels.shape) < 0.3] = -1
        labels[(0,) * labels.ndim] = 0  # the mean of no label at all is NaN: tested by itself
    return Problem((logits, labels), kwargs, (True, True))


@st.composite
def same_shape_problems(draw: st.DrawFn) -> Problem:
    """Two arrays of one shape, and a reduction."""
    shape = draw(shapes(min_dims=1))
    arrays = numbers(draw(seeds), shape), numbers(draw(seeds), shape)
    return Problem(arrays, {"reduction": draw(reductions)}, (True, True))


@st.composite
def _probabilities(draw: st.DrawFn) -> Problem:
    """Probabilities, away from 0 and 1, with labels between them."""
    shape = draw(shapes(min_dims=1))
    arrays = numbers(draw(seeds), shape, 0.05, 0.95), numbers(draw(seeds), shape, 0.02, 0.98)
    return Problem(arrays, {"reduction": draw(reductions)}, (True, True))


_KINDS = {
    "regression": same_shape_problems,
    "probabilities": _probabilities,
    "classes": class_label_problems,
}


def loss_problems(kind: str = "regression") -> st.SearchStrategy[Problem]:
    """Calls of a loss, with the keyword `reduction`: "mean", "sum" or "none".

    Parameters
    ----------
    kind : {"regression", "probabilities", "classes"}
        Predictions and targets of one shape; probabilities and labels from 0 to 1; logits (N, C,
        ...) with integer labels (N, ...), some perhaps of `ignore_index`, or with a weight for each
        class.

    Raises
    ------
    ArgumentError
        There is no such kind.

    Examples
    --------
    >>> from hypothesis import find
    >>> logits, labels = find(loss_problems("classes"), lambda p: p.args[1].dtype.kind == "i").args
    >>> logits.shape, labels
    ((1, 1), array([0]))
    """
    if kind not in _KINDS:
        raise ArgumentError("loss_problems", "kind", f"one of {[*_KINDS]}", repr(kind))
    return _KINDS[kind]()
