"""What a diagnosis may look at: one input whose gradient is wrong, and what it could have been.

The Jacobian is known from the differences, so that a suspicion can be computed and compared: what
the gradient would be if the upstream gradient were ignored (weights of ones), if only sample 0 were
counted (weights that are zero elsewhere), and so on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.op import Op
from tinygraph.shapes import Array, Shape
from tinygraph.testing.gradcheck_elements import Comparison
from tinygraph.testing.gradcheck_function import PointFunction

ALIKE = 2e-5  # relative to the largest element: a suspicion is confirmed


@dataclass
class Evidence:
    """One input with a wrong gradient.

    Attributes
    ----------
    position : int
        Of the input.
    analytic, numeric : array
        What backward says, and the slopes; NaN where an element was not compared.
    wrong : array of bool
        The elements that differ.
    upstream, output : array
        Of the first output.
    inputs : list of array
        All inputs.
    others : dict of int to array
        The slopes of the other inputs.
    """

    position: int
    analytic: Array
    numeric: Array
    wrong: Array
    upstream: Array
    output: Array
    inputs: list[Array]
    others: dict[int, Array]
    rows: list[int]
    jacobian: Array  # (rows, outputs)
    function: PointFunction
    op: Op | None = None

    @property
    def known(self) -> Array:
        return np.isfinite(self.numeric)

    @property
    def shape(self) -> Shape:
        return self.analytic.shape

    def looks_like(self, suspicion: Array) -> bool:
        """Whether backward computes `suspicion`; elements that are NaN there are passed over."""
        if suspicion.shape != self.shape:
            return False
        at = self.known & np.isfinite(suspicion) & np.isfinite(self.analytic)
        if not at.any() or at.sum() * 2 < self.known.sum() or not (at & self.wrong).any():
            return False
        size = max(float(np.max(np.abs(suspicion[at]))), float(np.max(np.abs(self.analytic[at]))))
        difference = float(np.max(np.abs(suspicion[at] - self.analytic[at])))
        # The suspicion must explain what the true gradient does not.
        truth = float(np.max(np.abs(self.numeric[at] - self.analytic[at])))
        return difference <= ALIKE * size and difference < 0.1 * truth

    def through(self, weights: Array) -> Array:
        """The gradient of sum(weights * output): what an upstream gradient of `weights` gives."""
        out = np.full(self.analytic.size, np.nan)
        if len(self.rows) and weights.size == self.jacobian.shape[1]:
            out[self.rows] = self.jacobian @ np.asarray(weights, np.float64).reshape(-1)
        return out.reshape(self.shape)

    @property
    def elementwise(self) -> bool:
        """Whether each output is known to depend on one input element alone."""
        if not self.has_jacobian:
            return False
        size = np.abs(self.jacobian)
        return bool(((size > 1e-9 * size.max(initial=0)).sum(axis=1) <= 1).all())

    @property
    def has_jacobian(self) -> bool:
        """Whether the Jacobian is known for the compared elements, and there is one output."""
        return len(self.rows) > 0 and self.upstream.size == self.jacobian.shape[1]


def evidence_of(
    function: PointFunction, analytic: list[Array | None], upstream: Array, found: Comparison
) -> list[Evidence]:
    """One piece of evidence for each input that has wrong elements, the worst input first."""
    if not found.wrong or found.worst is None:
        return []
    output = function.split(function.value())[0]
    weights = function.split(upstream)[0]
    positions = [p for p in function.wrt if found.wrong_at[p].any()]
    positions.sort(key=lambda p: (p != found.worst.input, p))  # type: ignore[union-attr]
    size = math.prod(function.shapes[0]) if len(function.shapes) == 1 else 0
    made = []
    for p in positions:
        known_rows = [
            (index, row)
            for index, row in zip(found.rows[p], found.jacobian[p], strict=True)
            if np.isfinite(row).all()
        ]
        rows = [index for index, _ in known_rows] if size else []
        jacobian = np.array([row for _, row in known_rows]) if rows else np.zeros((0, 0))
        made.append(
            Evidence(
                p,
                np.asarray(analytic[p], np.float64),
                found.numeric[p],
                found.wrong_at[p],
                weights,
                output,
                function.arrays,
                {q: found.numeric[q] for q in function.wrt if q != p},
                rows,
                jacobian,
                function,
            )
        )
    return made


def hyper_parameters(op: Op | None) -> dict[str, Any]:
    """The fields of an op by name."""
    return dict(vars(op)) if op is not None else {}
