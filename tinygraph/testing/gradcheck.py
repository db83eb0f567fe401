"""gradcheck: is the backward of a function the derivative of its forward?

    f(x) = sum of gy * fn(x)         gy random: one of ones hides mistakes (softmax's gradient
                                     under it is zero, right or wrong)
    analytic = backward(gy)          numeric = slope of f, by five points in float64

First come what backward returns (shapes, dtypes) and what must hold whatever it computes
(properties.py), then the numbers.  Elements on a kink (ReLU at 0, a tie in max) have no derivative
to compare with and are left out; where more than half are, the verdict is "inconclusive".

Of a large input some elements are drawn, and random directions through all elements are added.  A
direction that is wrong is halved until the element is found.

float32, and kernels, are not differenced: float32 has too few digits.  They are compared with the
float64 gradient of the same function on the cpu, under a bound that grows with the depth of sums.

Source: Nocedal, Wright, "Numerical Optimization", 2nd edition, section 8.1 (finite differences);
Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, section 4.2 (sums).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, DeviceError, GradcheckError, GraphError, unmasked
from tinygraph.engine import CPU, Array, Device, Op, Tensor, default_generator, philox
from tinygraph.engine.promises import BrokenOpError
from tinygraph.testing.diagnosis import diagnose
from tinygraph.testing.gradcheck_elements import Comparison, compare, hidden_kinks, worst_of
from tinygraph.testing.gradcheck_function import PointFunction
from tinygraph.testing.gradcheck_rounding import compare_rounded
from tinygraph.testing.properties import broken_linearity, broken_property
from tinygraph.testing.report import Mismatch, Report

__all__ = ["Mismatch", "Report", "check_problems", "gradcheck"]


def gradcheck(
    fn: Callable[..., Any],
    inputs: Sequence[Any],
    wrt: Sequence[int] | None = None,
    seed: int = 0,
    raise_on_failure: bool = True,
    *,
    max_elements: int = 512,
) -> Report:
    """Compare the gradients of `fn` with finite differences, and say what is wrong with them.

    Parameters
    ----------
    fn : callable
        An op, or any function that takes one Tensor for each of `inputs` and returns a Tensor of
        floats of any shape, or a sequence of them.
    inputs : sequence of array_like or Tensor
        Where to check.  Tensors of float32 are checked in float32, on their device; everything else
        that is not an integer in float64.  Integers (labels, indices) are passed on.
    wrt : sequence of int, optional
        Positions of the inputs to differentiate; by default all floats.
    seed : int
        Seed of the random upstream gradient, and of the elements drawn from large inputs.
    raise_on_failure : bool
        Raise GradcheckError unless the verdict is "pass" or "inconclusive".
    max_elements : int
        Of an input with more elements, a quarter as many are drawn, and directions are added.

    Returns
    -------
    Report

    Raises
    ------
    GradcheckError
        A gradient is wrong; `.report` holds the Report, the message is its text.
    ArgumentError
        `wrt` names an input that is absent or not of a float dtype; `fn` returns no floats.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.testing.gradcheck(tg.relu, [[1.0, -2.0, 3.0]]).verdict
    'pass'
    >>> class Mean(tg.Op):
    ...     def infer(self, x):
    ...         return tg.Spec((), x.dtype)
    ...     def forward(self, mem, x):
    ...         return x.mean(), x.shape
    ...     def backward(self, mem, gy, shape, needs):
    ...         return (gy * np.ones(shape),)
    >>> import numpy as np
    >>> print(tg.testing.gradcheck(Mean(), [np.arange(8.0)], raise_on_failure=False).diagnosis)
    the gradient of input 0 is N = 8 times too large (N is axis 0 of input 0): the forward takes \
the mean over N, the backward does not
    """
    arrays, device = _arrays_of(inputs)
    chosen = _differentiable(arrays) if wrt is None else [int(p) for p in wrt]
    for position in chosen:
        if not 0 <= position < len(arrays) or arrays[position].dtype.kind != "f":
            raise ArgumentError("gradcheck", "wrt", f"one of {_differentiable(arrays)}", position)
    state = default_generator.state_dict()
    try:
        report = _checked(fn, arrays, chosen, device, seed, max_elements)
    finally:
        default_generator.load_state_dict(state)
    if report.verdict == "fail" and raise_on_failure:
        raise GradcheckError(str(report), report)
    return report


def _arrays_of(inputs: Sequence[Any]) -> tuple[list[Array], Device]:
    """Arrays on the host, and the device of the first Tensor; float32 is kept for Tensors only."""
    device = next((x.device for x in inputs if isinstance(x, Tensor)), CPU)
    arrays = []
    for x in inputs:
        value = np.asarray(
            x.numpy() if isinstance(x, Tensor) else unmasked("gradcheck", "inputs", x)
        )
        keeps = isinstance(x, Tensor) or value.dtype.kind != "f"
        arrays.append(value if keeps else value.astype(np.float64))
    return arrays, device


def _differentiable(arrays: list[Array]) -> list[int]:
    return [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]


def _checked(
    fn: Callable[..., Any],
    arrays: list[Array],
    wrt: list[int],
    device: Device,
    seed: int,
    max_elements: int,
) -> Report:
    function = PointFunction(fn, arrays, wrt, device)
    passed = Report("pass", function=_name_of(function), shapes=tuple([a.shape for a in arrays]))

    def failed(diagnosis: str, stage: str, worst: Mismatch | None = None) -> Report:
        return replace(passed, verdict="fail", diagnosis=diagnosis, stage=stage, worst=worst)

    upstream = np.random.Generator(philox(seed, 0)).standard_normal(function.size)
    where = ""
    try:
        analytic = function.vjp(upstream)
        found = broken_property(function, upstream)
        if found:
            return failed(found, "properties")
        function.written = set(function.updates)
        exact, precise, where = _reference(function), analytic, "in float64 on the cpu: "
        if exact is not function:
            precise = exact.vjp(upstream)
    except BrokenOpError as broken:
        return failed(f"{where}{broken}", broken.stage)
    compared = compare(exact, precise, upstream, seed, max_elements)
    if any(one.wrong.any() for one in compared) and hidden_kinks(compared, seed):
        for one in compared:
            one.leave_out_mismatches()
    worst, checked = worst_of(compared), sum([one.checked for one in compared])
    kinks = sum([int(np.count_nonzero(one.masked)) for one in compared])
    passed = replace(passed, checked=checked, kinks=kinks, worst=worst)
    if worst is not None and worst.error > 1:
        return failed(_diagnosis(function, compared, worst, seed), "gradient", worst)
    if exact is not function:
        rounded = compare_rounded(function, exact, analytic, precise, upstream, compared)
        if rounded is not None:
            where = f"in {arrays[wrt[0]].dtype} on {device}"
            return failed(_rounding_diagnosis(rounded, where), "gradient", rounded)
    found = broken_linearity(function, upstream)
    if found:
        return failed(found, "properties")
    if kinks > checked:
        words = f"{kinks} of {checked + kinks} elements sit on a kink; move the inputs"
        return replace(passed, verdict="inconclusive", diagnosis=words, stage="gradient")
    return passed


def _reference(function: PointFunction) -> PointFunction:
    """The function whose forward is differenced: in float64, in numpy where it runs there."""
    floats = [function.arrays[i].dtype for i in function.wrt]
    exact = all(dtype == np.float64 for dtype in floats)
    if exact and not function.device.runs_kernels:
        return function
    arrays = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in function.arrays]
    try:
        twin = PointFunction(function.fn, arrays, function.wrt, CPU)
        twin.vjp(np.zeros(twin.size))
        return twin
    except (DeviceError, GraphError):  # an op that is only a kernel
        return function if exact else function.with_arrays(arrays, function.wrt)


def _diagnosis(
    function: PointFunction, compared: list[Comparison], worst: Mismatch, seed: int
) -> str:
    """What is wrong with a gradient; of several nodes, the guilty one is looked for.

    Each op of the graph is checked by itself, at the values that its inputs had.
    """
    nodes = function.evaluate().nodes
    if len(nodes) > 1 and not isinstance(function.fn, Op):
        for node in reversed(nodes):
            wrt = [i for i, needed in enumerate(node.needs) if needed]
            alone = gradcheck(node.op, node.inputs, wrt, seed, False) if wrt else None
            if alone is not None and alone.verdict == "fail":
                return f"in {node.op.name}: {alone.diagnosis}"
    elif nodes:
        for one in compared:
            one.op = nodes[-1].op
    return diagnose(compared, worst)


def _rounding_diagnosis(worst: Mismatch, where: str) -> str:
    return (
        f"{where} the gradient of input {worst.input} at {list(worst.element)} is "
        f"{worst.analytic:.9g}, in float64 on the cpu it is {worst.numeric:.9g}: the difference is "
        f"{worst.error:.3g} times what rounding and the length of the sums allow"
    )


def _name_of(function: PointFunction) -> str:
    """The name of an op or a function; of one without a name, the ops that it applies."""
    fn = function.fn
    name = str(fn.name if isinstance(fn, Op) else getattr(fn, "__name__", type(fn).__name__))
    if name != "<lambda>":
        return name
    return ", ".join(node.op.name for node in function.evaluate().nodes) or name


# ---- many problems: one report that shows the smallest failure -----------------------------------

# On an input of one element every mistake looks like a factor.  So the diagnoses of failures
# vote, each with as many votes as elements were compared, and the smallest problem of that
# which won is shown.
MOST_VOTES = 24  # elements of one problem that count
UNEXPLAINED = "finite differences give"
Call = tuple[Callable[..., Any], Sequence[Any], "Sequence[int] | None"]  # fn, inputs, wrt


def check_problems(problems: Iterable[Call], seed: int = 0, enough: int = 6) -> Report:
    """gradcheck on each problem, until `enough` of them failed.

    The report is the smallest failure with the diagnosis that explains most; else a pass with the
    elements of all problems, or "inconclusive" where most of them sit on kinks.

    >>> import numpy as np, tinygraph as tg
    >>> shapes = [(1,), (2, 3), (4, 4)]
    >>> check_problems((tg.tanh, [np.ones(shape)], None) for shape in shapes).checked
    23
    """
    failures: list[tuple[Report, int]] = []
    checked = kinks = 0
    last = Report("inconclusive", diagnosis="no problem was given")
    for fn, inputs, wrt in problems:
        last = gradcheck(fn, inputs, wrt, seed, raise_on_failure=False)
        checked, kinks = checked + last.checked, kinks + last.kinks
        if last.verdict == "fail":
            failures.append((last, sum([int(np.size(x)) for x in inputs])))
            if len(failures) >= enough:
                break
    if failures:
        return _elected(failures)
    verdict = "inconclusive" if kinks > checked else last.verdict if not checked else "pass"
    diagnosis = last.diagnosis if verdict == "inconclusive" else ""
    return replace(last, verdict=verdict, diagnosis=diagnosis, checked=checked, kinks=kinks)


def _elected(failures: list[tuple[Report, int]]) -> Report:
    """The smallest failure of the kind of diagnosis that has most votes."""
    votes: dict[str, float] = defaultdict(float)
    for report, _ in failures:
        votes[_kind(report)] += min(max(report.checked, 1), MOST_VOTES)
    for kind in votes:
        if UNEXPLAINED in kind:
            votes[kind] *= 0.01  # any explanation is better
    best = max(votes, key=lambda kind: votes[kind])
    chosen = [(size, k) for k, (report, size) in enumerate(failures) if _kind(report) == best]
    return failures[min(chosen)[1]][0]


def _kind(report: Report) -> str:
    """The diagnosis without its numbers and names."""
    if report.stage == "properties":
        return report.diagnosis
    return re.sub(r"[-+]?[\d.]+(e[-+]?\d+)?|\(.*?\)|\[.*?\]", "#", report.diagnosis)[:48]
