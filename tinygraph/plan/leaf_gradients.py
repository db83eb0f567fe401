"""Leaf gradients: the arrays in which a plan adds up the gradients of leaves, and how they leave.

    small    added up in an array that stays; what leaves is a copy in an array of the leaf's own
    large    added up in the array that leaves: a copy would take too long

An array that has left is taken up again in the next run, unless somebody still holds it.  So in the
steady state nothing is allocated, and no gradient that a user keeps is ever overwritten.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from tinygraph.device import Device
from tinygraph.memory import eager_memory
from tinygraph.plan.code import Code
from tinygraph.plan.replay import COPIED_BYTES
from tinygraph.plan.totals import Totals
from tinygraph.shapes import Array
from tinygraph.tensor import above


class LeafGradients:
    """The gradients of the leaves of one code.

    Attributes
    ----------
    leaves : list of int
        Those that want a gradient.
    of_arguments : dict of array
        After a run, by argument: gradients that leave as arrays, not as `.grad` of a tensor.
    """

    def __init__(self, code: Code) -> None:
        wanted, self.device = code.differentiated(), code.device
        self.leaves = [
            at for at, made in enumerate(code.instructions) if made.op is None and wanted[at]
        ]
        self.of_arguments: dict[int, Array] = {}
        self._specs = {at: code.instructions[at].spec for at in self.leaves}
        # Where kernels run, the first gradient that comes is copied: see `KernelProgram`.
        self._small = {
            at: np.empty(spec.shape, spec.dtype)
            for at, spec in self._specs.items()
            if not self.device.runs_kernels
            and math.prod(spec.shape) * spec.dtype.itemsize <= COPIED_BYTES
        }
        self._large = [at for at in self.leaves if at not in self._small]
        found = [(at, code.instructions[at]) for at in self.leaves]
        self._tensors = [(at, made.tensor) for at, made in found if made.tensor is not None]
        self._arguments = [(at, made.argument or 0) for at, made in found if made.tensor is None]
        self._left: dict[int, Array] = {}  # the arrays that left last

    def take_up(self, totals: Totals) -> None:
        """An array for each leaf: that of the last run, where nobody else holds it."""
        totals.forget()
        totals.arrays.update(self._small)
        for at in self._large:
            array = self._free(at)
            if array is not None:
                totals.arrays[at] = array

    def _free(self, at: int) -> Array | None:
        """The array that left last, or a new one; None where kernels make it."""
        array = self._left.pop(at, None)
        # Two references: this variable, and the argument of getrefcount.
        if array is not None and sys.getrefcount(array) == 2:
            return array
        if self.device.runs_kernels:
            return None
        spec = self._specs[at]
        return np.empty(spec.shape, spec.dtype)

    def take_back(self, totals: Totals) -> None:
        """Nothing leaves: the arrays serve another run."""
        for at in self._large:
            if at in totals.arrays:
                self._left[at] = totals.arrays.pop(at)

    def hand_out(self, totals: Totals) -> None:
        """Add what a run has found to `.grad` of the leaves."""
        small, reached = self._small, totals.reached
        for at, tensor in self._tensors:
            if at not in reached:
                continue
            if tensor.grad is None:
                array: Any = self._free(at) if at in small else totals.arrays.pop(at)
                if at in small:
                    np.copyto(array, small[at])
                tensor.grad = self._left[at] = array
            elif at in small:
                np.add(tensor.grad, small[at], out=tensor.grad)
            else:
                self._left[at] = array = totals.arrays.pop(at)
                tensor.grad = added(self.device, tensor.grad, array)
        if self._arguments:
            self.of_arguments = {
                argument: self._leaving(at, totals)
                for at, argument in self._arguments
                if at in reached
            }

    def take_new(self, totals: Totals) -> None:
        """An array for each leaf, and none that has left before."""
        self._left.clear()
        totals.arrays.clear()
        self.take_up(totals)

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
    result: Array = above.add_arrays(mem, device.contiguous(total), gradient)
    return result
