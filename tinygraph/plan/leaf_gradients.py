"""Leaf gradients: the arrays in which a plan adds up the gradients of leaves, and how they leave.

    small    added up in an array that stays; what leaves is a copy
    large    added up in the array that leaves: a copy would take too long

The memory of a large one comes back when its last user lets go of it, be that a view, a buffer or
an object that holds one of them: the array is `Lent`, which all of them keep alive, and which hands
the memory back when it dies.  So in the steady state nothing large is allocated, and no
gradient that a user keeps is ever overwritten.
"""

from __future__ import annotations

import numpy as np

from tinygraph.engine import Array, Device, eager_memory, here
from tinygraph.ops.elementwise.arithmetic import Add
from tinygraph.plan.buffers import Lent
from tinygraph.plan.code import Code

COPIED_BYTES = 64 << 10  # a copy of so many takes less than the body of an op


class Totals:
    """The gradients of leaves, added up over tiles in arrays that somebody provides."""

    def __init__(self) -> None:
        self.arrays: dict[int, Array] = {}  # by leaf
        self.reached: set[int] = set()  # the leaves whose arrays mean something

    def add(self, leaf: int, gradient: Array) -> None:
        total = self.arrays[leaf]
        if leaf in self.reached:
            np.add(total, gradient, out=total)
            return
        if gradient is not total:  # else the op has written it there itself
            np.copyto(total, gradient)
        self.reached.add(leaf)


class LeafGradients:
    """The gradients of the leaves of one code."""

    def __init__(self, code: Code) -> None:
        wanted, self.device = code.differentiated(), code.device
        found = [
            (at, made)
            for at, made in enumerate(code.instructions)
            if made.op is None and wanted[at]
        ]
        self.leaves = [at for at, _ in found]  # those that want a gradient
        # After a run, by argument: those that leave as arrays, not as `.grad` of a tensor.
        self.of_arguments: dict[int, Array] = {}
        # Where kernels run, the first gradient comes in an array of its own: see `KernelProgram`.
        here = [] if self.device.runs_kernels else found
        self._small = {
            at: np.empty(made.spec.shape, made.spec.dtype)
            for at, made in here
            if made.nbytes <= COPIED_BYTES
        }
        self._large = {at: made.spec for at, made in here if at not in self._small}
        self._free: dict[int, list[Array]] = {at: [] for at in self._large}
        self._tensors = [(at, made.tensor) for at, made in found if made.tensor is not None]
        self._arguments = [(at, made.argument or 0) for at, made in found if made.tensor is None]

    def take_up(self, totals: Totals) -> None:
        """An array for each leaf in which nobody has anything."""
        totals.reached.clear()
        totals.arrays = dict(self._small)
        for at, spec in self._large.items():
            free = self._free[at]
            memory = free.pop() if free else np.empty(spec.shape, spec.dtype)
            totals.arrays[at] = np.asarray(Lent(memory, free))

    def hand_out(self, totals: Totals) -> None:
        """Add what a run has found to `.grad` of the leaves."""
        for at, tensor in self._tensors:
            if at not in totals.reached:
                continue
            if tensor.grad is None:
                tensor.grad = self._leaving(at, totals)
            elif at in self._small:
                np.add(tensor.grad, self._small[at], out=tensor.grad)
            else:
                tensor.grad = added(self.device, tensor.grad, totals.arrays.pop(at))
            here.top.complete(tensor)
        if self._arguments:
            self.of_arguments = {
                argument: self._leaving(at, totals)
                for at, argument in self._arguments
                if at in totals.reached
            }

    def leave(self, totals: Totals) -> dict[int, Array]:
        """The gradients that a run has found, by leaf, in arrays of their own."""
        return {at: self._leaving(at, totals) for at in totals.reached}

    def _leaving(self, at: int, totals: Totals) -> Array:
        return totals.arrays[at].copy() if at in self._small else totals.arrays.pop(at)


def added(device: Device, total: Array, gradient: Array) -> Array:
    """total + gradient: in place, but where kernels run in a new array."""
    if not device.runs_kernels:
        return np.add(total, gradient, out=total)
    mem = eager_memory((False, False), device)
    return Add().launch(mem, device.contiguous(total), gradient)
