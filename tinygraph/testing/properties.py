"""What must hold for every backward, whatever it computes.

    nothing is changed     inputs (but for an op's `updates`), upstream gradient, outputs
    nothing is kept        the same bits twice, over the same graph, over a new one, and after the
                           function was applied to other arrays, with another upstream gradient
    nothing is shared      stored gradients have memory of their own
    linear in upstream     vjp(0) = 0 and vjp(2 g) = 2 vjp(g)

Each function returns a sentence for a learner, or "" where the property holds.
"""

from __future__ import annotations

import numpy as np

from tinygraph.engine import Array
from tinygraph.testing.gradcheck_function import Evaluation, PointFunction, flat

LINEAR = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-10}


def broken_property(function: PointFunction, upstream: Array) -> str:
    """The first property but linearity that does not hold, in a sentence; "" if all do."""
    run = function.evaluate()
    found = _changed_inputs(function, run, "forward") or _same_values(function, run)
    if found:
        return found
    gradients = function.upstream(run, upstream)
    given, values = [g.copy() for g in gradients], _values(function, run)
    on_device = [function.device.from_numpy(g) for g in gradients]
    first = _copies(function.backward(run, on_device, retain_graph=True))
    found = (
        _changed_inputs(function, run, "backward")
        or _changed(
            given,
            [function.device.to_numpy(g) for g in on_device],
            "the upstream gradient in place: other nodes may use the same array; write the result "
            "to an array of its own (mem.empty)",
        )
        or _changed(
            values, _values(function, run), "the output of forward: later nodes use that array"
        )
        or _shared_memory(function, run, on_device)
    )
    if found:
        return found
    for x in run.leaves:
        x.grad = None
    again = _copies(function.backward(run, gradients))
    found = _kept_state(first, again, function.vjp(upstream))
    return found or _disturbed(function, upstream, first)


def broken_linearity(function: PointFunction, upstream: Array) -> str:
    """Whether vjp(0) = 0 and vjp(2 g) = 2 vjp(g) wherever vjp(g) is finite."""
    once, twice = function.vjp(upstream), function.vjp(2 * upstream)
    nothing = function.vjp(np.zeros_like(upstream))
    for position, (g, doubled, zero) in enumerate(zip(once, twice, nothing, strict=True)):
        if g is None or doubled is None or zero is None:
            continue
        finite = np.isfinite(g)
        size = float(np.max(np.abs(g[finite]), initial=0))
        bound = LINEAR.get(g.dtype, 1e-4) * size
        if np.any(np.abs(zero[finite]) > bound):
            return (
                f"an upstream gradient of zeros gives a gradient of input {position} that is not "
                "zero: backward adds something that is not multiplied by the upstream gradient"
            )
        if np.any(np.abs(doubled[finite] - 2 * g[finite]) > 4 * bound):
            return (
                f"twice the upstream gradient does not give twice the gradient of input {position}"
                ": backward must be linear in the upstream gradient"
            )
    return ""


def _changed_inputs(function: PointFunction, run: Evaluation, who: str) -> str:
    for position, (node, array) in enumerate(zip(run.leaves, function.arrays, strict=True)):
        if position in function.updates:
            continue
        if not _same_bits(function.device.to_numpy(node.value), array):
            return (
                f"{who} changes input {position}: other nodes use the same array; write the "
                "result to an array of its own (mem.empty)"
            )
    return ""


def _changed(before: list[Array], after: list[Array], what: str) -> str:
    same = all(_same_bits(a, b) for a, b in zip(before, after, strict=True))
    return "" if same else f"backward changes {what}"


def _shared_memory(function: PointFunction, run: Evaluation, upstream: list[Array]) -> str:
    if not function.device.on_host:
        return ""  # the engine copies what it stores; host arrays alone can be looked at
    stored = [(i, x.grad) for i, x in enumerate(run.leaves) if x.grad is not None]
    for k, (position, g) in enumerate(stored):
        others = [(f"the gradient of input {j}", h) for j, h in stored[:k]]
        others += [(f"input {j}", x.value) for j, x in enumerate(run.leaves)]
        others += [("the upstream gradient", h) for h in upstream]
        others += [("an output", y.value) for y in run.outputs]
        for name, other in others:
            if g.size and np.shares_memory(g, other):
                return f"the stored gradient of input {position} shares its memory with {name}"
    return ""


def _same_values(function: PointFunction, run: Evaluation) -> str:
    """A second evaluation, and one without gradients, give the same numbers."""
    expected = flat(_values(function, run))
    second = flat(_values(function, function.evaluate()))
    if not _same_bits(expected, second):
        return (
            "two evaluations of the same inputs give different outputs: forward keeps state, or "
            "draws random numbers of its own; take them from mem.random"
        )
    alone = function.value()
    close = np.isclose(expected, alone, rtol=1e-4, atol=1e-6, equal_nan=True)
    if not close.all():
        return "forward gives other values under no_grad, where mem.needs is all False"
    return ""


def _kept_state(
    first: list[Array | None], again: list[Array | None], fresh: list[Array | None]
) -> str:
    position = _other(first, fresh)
    if position >= 0:
        return (
            f"keeps state: the same backward gives another gradient of input {position} the "
            "second time; compute everything from the upstream gradient and what was saved"
        )
    position = _other(first, again)
    if position >= 0:
        return (
            f"a second backward over the same graph gives another gradient of input {position}: "
            "backward changes what forward saved"
        )
    return ""


def _disturbed(function: PointFunction, upstream: Array, first: list[Array | None]) -> str:
    """The function is applied to other arrays between its forward and its backward."""
    run = function.evaluate()
    settings = [repr(vars(node.op)) for node in run.nodes]
    other = np.roll(upstream, 1) + 1
    try:
        function.vjp(other, [a.ravel()[::-1].reshape(a.shape) for a in function.arrays])
    except (ArithmeticError, ValueError):  # the function does not take them
        function.vjp(other)
    position = _other(first, function.backward(run, function.upstream(run, upstream)))
    if position >= 0:
        return (
            f"keeps state: the gradient of input {position} changes when forward and backward "
            "run on other arrays in between; return what backward needs from forward"
        )
    if [repr(vars(node.op)) for node in run.nodes] != settings:
        return "keeps state: forward or backward changes attributes of the op"
    return ""


def _other(gradients: list[Array | None], later: list[Array | None]) -> int:
    """The first input whose gradient has other bits later, or -1."""
    for position, (g, h) in enumerate(zip(gradients, later, strict=True)):
        if g is not None and not _same_bits(g, h):
            return position
    return -1


def _values(function: PointFunction, run: Evaluation) -> list[Array]:
    """Copies of the outputs on the host."""
    return [np.array(function.device.to_numpy(y.value)) for y in run.outputs]


def _copies(gradients: list[Array | None]) -> list[Array | None]:
    return [None if g is None else g.copy() for g in gradients]


def _same_bits(a: Array, b: Array | None) -> bool:
    return b is not None and a.shape == b.shape and a.tobytes() == b.tobytes()
