"""Where a number comes from: the inputs of its op, each with its coefficient, the derivative.

An op says so itself: its backward, for an upstream gradient that is 1 at that number and 0 anywhere
else, gives the row of the Jacobian.  That holds for any op, users' own too.  The rows of a node:

    rows      of how many numbers of its corner, from the first one on, something is known
    start     u4: where the row of each begins among the entries, and where the last one ends
    place     u2: of each entry, SPAN * input + place of the element in the input's corner
    factor    f4: its coefficient
    hidden    how many of a row's coefficients are left out: small ones, and those of elements that
              the page does not have
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygraph.base import GraphError
from tinygraph.engine import CPU, Array, Op, Runner, Spec, Tensor, eager_memory
from tinygraph.engine.feeds import FREED
from tinygraph.show.stepping.arrays import MOST, corner, encoded, places

SPAN = 4096  # elements of an input that a place can name
INPUTS = 16  # inputs, likewise
LONGEST = 128  # entries of a row: the largest
ENTRIES = 16_000  # of a page
WORK = 4_000_000  # elements that the backwards of a node may go through
FEW = 4  # samples that an op is run on again, where the batch is large


class _Still(Runner):
    """No random numbers are drawn: an op would make others than it has made."""

    def stream(self, generator: Any, device: Any) -> Any:
        raise GraphError("random numbers were asked for")


def origins(node: Tensor, entries: int) -> dict[str, Any] | None:
    """The rows of a node, up to so many entries; None where its op cannot be asked."""
    op: Any = node.op
    if node.dtype.kind != "f":
        return None
    arrays = [x.device.to_numpy(x.value) for x in node.inputs]
    value = node.device.to_numpy(node.value)
    wanted = tuple([a.dtype.kind == "f" for a in arrays])
    elements = value.size + sum(a.size for a in arrays)
    try:
        if elements * 8 > WORK:  # too large for more than a few rows
            fewer = _first_samples(op, arrays, value)
            if fewer is not None:
                arrays, value = fewer
        elif node.device is CPU and node.saved is not FREED and wanted == node.needs:
            return jacobian(op, arrays, value, node.saved, entries)
        saved = _again(op, arrays, value)
        return jacobian(op, arrays, value, saved, entries)
    except Exception:  # an op of a user's may refuse in any way, and the page does without
        return None


def origins_of(op: Op, arrays: Sequence[Array], entries: int) -> tuple[Array, Any]:
    """The value of an op on some arrays, and its rows."""
    mem = eager_memory(tuple([a.dtype.kind == "f" for a in arrays]), CPU)
    value, saved = op.forward(mem, *arrays)
    return value, jacobian(op, arrays, value, saved, entries)


@np.errstate(all="ignore")
def jacobian(
    op: Op, arrays: Sequence[Array], value: Array, saved: Any, entries: int
) -> dict[str, Any]:
    """Row by row, until there are so many entries or too much work was done."""
    needs = tuple([a.dtype.kind == "f" for a in arrays])
    mem = eager_memory(needs, CPU)
    work = value.size + sum(a.size for a in arrays)
    kept = corner(value.shape, MOST)
    most = min(math.prod(kept), max(1, WORK // max(work, 1)))
    one = np.zeros(value.shape, value.dtype)
    starts, found, factors, hidden = [0], [], [], []
    for at in range(most):
        element = np.unravel_index(at, kept) if kept else ()
        one[element] = 1
        place, factor, left = _row(op.backward(mem, one.copy(), saved, needs), arrays)
        one[element] = 0
        if at and starts[-1] + len(place) > entries:
            break
        found.append(place)
        factors.append(factor)
        hidden.append(left)
        starts.append(starts[-1] + len(place))
    return {
        "rows": len(hidden),
        "start": encoded(np.array(starts, np.uint32)),
        "place": encoded(np.concatenate([np.zeros(0, np.uint16), *found])),
        "factor": encoded(np.concatenate([np.zeros(0, np.float32), *factors])),
        "hidden": hidden if any(hidden) else 0,
    }


def _row(gradients: Sequence[Any], arrays: Sequence[Array]) -> tuple[Array, Array, int]:
    """Places and coefficients that are not 0, and how many others there are."""
    found, factors, left = [], [], 0
    for k, (g, a) in enumerate(zip(gradients, arrays, strict=True)):
        if g is None:
            continue
        flat = np.asarray(g).reshape(-1)
        index = np.flatnonzero(flat)
        inside, at = places(index, a.shape, corner(a.shape, SPAN))
        if k >= INPUTS:
            inside, at = np.zeros(len(index), bool), at[:0]
        left += len(index) - len(at)
        found.append((at + k * SPAN).astype(np.uint16))
        factors.append(flat[index[inside]].astype(np.float32))
    place = np.concatenate([np.zeros(0, np.uint16), *found])
    factor = np.concatenate([np.zeros(0, np.float32), *factors])
    if len(place) > LONGEST:
        largest = np.sort(np.argsort(-np.abs(factor), kind="stable")[:LONGEST])
        left += len(place) - LONGEST
        place, factor = place[largest], factor[largest]
    return place, factor, left


def _again(op: Any, arrays: Sequence[Array], value: Array) -> Any:
    """What the op saves for the gradients of all inputs, on the host."""
    mem = eager_memory(tuple([a.dtype.kind == "f" for a in arrays]), CPU)
    own = [a.copy() if k in op.updates else a for k, a in enumerate(arrays)]
    with _Still(), np.errstate(all="ignore"):
        made, saved = op.forward(mem, *own)
    if not np.allclose(made, value, rtol=1e-3, atol=1e-5, equal_nan=True):
        raise GraphError("the op does not give the same again")
    return saved


def _first_samples(
    op: Any, arrays: Sequence[Array], value: Array
) -> tuple[list[Array], Array] | None:
    """The first samples alone, where the others have no part in their values."""
    batch = arrays[0].shape[:1]
    carries = (True,) + (False,) * (len(arrays) - 1)
    specs = tuple([Spec(a.shape, a.dtype) for a in arrays])
    if not batch or value.shape[:1] != batch or op.batch(specs, carries) != "map":
        return None
    return [arrays[0][:FEW], *arrays[1:]], value[:FEW]
