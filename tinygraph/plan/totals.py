"""Totals: where a program adds up the gradients of leaves."""

from __future__ import annotations

import numpy as np

from tinygraph.shapes import Array


class Totals:
    """The gradients of leaves, added up over tiles in arrays that somebody provides.

    Attributes
    ----------
    arrays : dict of array by leaf
    reached : set of int
        The leaves that a gradient has reached since `forget`; the other arrays mean nothing.
    """

    def __init__(self) -> None:
        self.arrays: dict[int, Array] = {}
        self.reached: set[int] = set()

    def forget(self) -> None:
        self.reached.clear()

    def add(self, leaf: int, gradient: Array) -> None:
        total = self.arrays[leaf]
        if leaf in self.reached:
            np.add(total, gradient, out=total)
            return
        if gradient is not total:  # else the op has written it there itself
            np.copyto(total, gradient)
        self.reached.add(leaf)
