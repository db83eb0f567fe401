"""gradcheck: is the backward of a function the derivative of its forward?

The function's output is multiplied with a random upstream gradient and summed, which makes it a
scalar f.  Each element of each input is moved by +h and -h in float64, and the slope of f is
compared with what backward says.  The upstream gradient is random because one of ones hides
mistakes: softmax's gradient under it is zero, right or wrong.

At a kink (ReLU at 0, a tie in max) there is no derivative to compare with.  There the slope to the
right differs from the slope to the left; such elements are left out, and where more than half are,
the verdict is "inconclusive" rather than "pass".

Source: Nocedal, Wright, "Numerical Optimization", 2nd edition, section 8.1 (finite differences).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tinygraph.errors import ArgumentError, GradcheckError, explain
from tinygraph.random import philox
from tinygraph.shapes import Array
from tinygraph.tensor import Tensor, no_grad

STEP = 1e-5  # central differences in float64 are then right to about 1e-10
TOLERANCE = 1e-6  # relative to the larger of 1, the slope, and what rounding can do to f


class Mismatch(NamedTuple):
    """One element of one input, with both derivatives."""

    input: int  # position of the input
    element: tuple[int, ...]
    analytic: float
    numeric: float
    error: float  # as a multiple of what is tolerated: above 1 is a failure


@dataclass(frozen=True)
class Report:
    """What gradcheck found.

    Attributes
    ----------
    verdict : {"pass", "fail", "inconclusive"}
    worst : Mismatch or None
        The element that differs most, whether or not that is tolerated.
    diagnosis : str
        What went wrong, in a sentence; empty for a pass.
    checked, kinks : int
        Elements that were compared, and those left out because they sit on a kink.
    """

    verdict: str
    worst: Mismatch | None
    diagnosis: str
    checked: int
    kinks: int

    @property
    def ok(self) -> bool:
        return self.verdict == "pass"


def gradcheck(
    fn: Callable[..., Tensor],
    inputs: Sequence[Any],
    wrt: Sequence[int] | None = None,
    seed: int = 0,
    raise_on_failure: bool = True,
) -> Report:
    """Compare the gradients of `fn` with finite differences, in float64.

    Parameters
    ----------
    fn : callable
        Takes one Tensor for each of `inputs`, returns one Tensor of any shape.
    inputs : sequence of array_like or Tensor
        Where to check.  Floats become float64; integers (labels, indices) are passed on.
    wrt : sequence of int, optional
        Positions of the inputs to differentiate; by default all floats.
    seed : int
        Seed of the random upstream gradient.
    raise_on_failure : bool
        Raise GradcheckError unless the verdict is "pass" or "inconclusive".

    Returns
    -------
    Report

    Raises
    ------
    GradcheckError
        A gradient is wrong; `.report` holds the Report.
    ArgumentError
        `wrt` names an input that is absent or not of a float dtype.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.testing.gradcheck(tg.relu, [[1.0, -2.0, 3.0]]).verdict
    'pass'
    """
    arrays = [_as_float64(x) for x in inputs]
    chosen = _differentiable(arrays) if wrt is None else list(wrt)
    for position in chosen:
        if not 0 <= position < len(arrays) or arrays[position].dtype.kind != "f":
            raise ArgumentError(
                explain("gradcheck", "wrt", f"one of {_differentiable(arrays)}", position)
            )
    leaves = [Tensor(a, requires_grad=i in chosen) for i, a in enumerate(arrays)]
    output = fn(*leaves)
    upstream = np.random.Generator(philox(seed, 0)).standard_normal(output.shape)
    output.backward(upstream)

    def projected(position: int, index: tuple[int, ...], moved: float) -> float:
        """f with one element of one input replaced."""
        shifted = arrays[position].copy()
        shifted[index] = moved
        with no_grad():
            values = [Tensor(shifted if i == position else a) for i, a in enumerate(arrays)]
            return float(np.sum(fn(*values).value * upstream))

    rounding = 1e-15 * float(np.sum(np.abs(output.value * upstream))) / STEP
    center = float(np.sum(output.value * upstream))
    worst, checked, kinks = None, 0, 0
    for position in chosen:
        gradient = leaves[position].grad
        for index in np.ndindex(arrays[position].shape):
            x = float(arrays[position][index])
            right = (projected(position, index, x + STEP) - center) / STEP
            left = (center - projected(position, index, x - STEP)) / STEP
            analytic = 0.0 if gradient is None else float(gradient[index])
            numeric = (right + left) / 2
            tolerated = TOLERANCE * max(1.0, abs(numeric), abs(analytic)) + rounding
            error = abs(analytic - numeric) / tolerated
            error = error if np.isfinite(error) else np.inf
            if error > 1 and abs(right - left) > 0.01 * max(abs(right), abs(left)) + 10 * rounding:
                kinks += 1
                continue
            checked += 1
            if worst is None or error > worst.error:
                worst = Mismatch(position, index, analytic, numeric, error)
    report = _judge(worst, checked, kinks)
    if report.verdict == "fail" and raise_on_failure:
        raise GradcheckError(f"gradcheck: {report.diagnosis}", report)
    return report


def _as_float64(x: Any) -> Array:
    value = x.numpy() if isinstance(x, Tensor) else np.asarray(x)
    return value.astype(np.float64) if value.dtype.kind == "f" else value


def _differentiable(arrays: list[Array]) -> list[int]:
    return [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]


def _judge(worst: Mismatch | None, checked: int, kinks: int) -> Report:
    """The verdict, and the sentence that goes with it."""
    if worst is not None and worst.error > 1:
        diagnosis = (
            f"the gradient of input {worst.input} at {list(worst.element)} is "
            f"{worst.analytic:.6g}, finite differences give {worst.numeric:.6g}"
        )
        return Report("fail", worst, diagnosis, checked, kinks)
    if kinks > checked:
        diagnosis = f"{kinks} of {checked + kinks} elements sit on a kink; move the inputs"
        return Report("inconclusive", worst, diagnosis, checked, kinks)
    return Report("pass", worst, "", checked, kinks)
