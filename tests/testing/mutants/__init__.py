"""Planted mistakes: the real ops, each with one thing wrong in its backward.

A mutant is a subclass of the op.  `change` gets a Call, with the right gradients and everything
that made them, and returns the wrong ones; `words` is a pattern that the diagnosis must contain.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tests.testing.drawn import contracts, draw
from tinygraph.engine.graph import topological_order
from tinygraph.engine.op import Op
from tinygraph.engine.tensor import Tensor


class Call(NamedTuple):
    """One backward: the op, its inputs, its output, upstream, and the right gradients (lists)."""

    op: Op
    x: tuple[np.ndarray, ...]
    y: np.ndarray
    gy: np.ndarray
    g: list[Any]


class Mutant(NamedTuple):
    """A mistake in the backward of the op that the contract's function ends in."""

    contract: str  # of tests/ops, without "Test"
    mistake: str
    words: str  # a regular expression
    change: Callable[[Call], list[Any]]

    def of(self, op):
        """The op with this mistake: the same hyper-parameters, in a subclass."""
        real, change = type(op), self.change

        def forward(self, mem, *arrays):
            y, saved = real.forward(self, mem, *arrays)
            return y, (saved, arrays, y)

        def backward(self, mem, gy, kept, needs):
            saved, arrays, y = kept
            right = list(real.backward(self, mem, gy, saved, needs))
            return tuple(change(Call(self, arrays, y, gy, right)))

        body = {"forward": forward, "backward": backward, "name": real.name}
        wrong = object.__new__(type(real.__name__, (real,), body))
        vars(wrong).update(vars(op))
        return wrong


@functools.cache
def drawn(contract, count):
    """The contract, and problems of it that all its mutants share."""
    made = contracts()[contract]
    return made, draw(made.problems, count)


def problems_for(mutant, count):
    """(the mutant, inputs, which to differentiate) for drawn problems of its contract.

    Where an op has the contract's name, those alone that end in it: settings may add others.
    """
    contract, problems = drawn(mutant.contract, count)
    ends = []
    for problem in problems:
        outputs = contract.apply(problem, contract.leaves(problem))
        outputs = [outputs] if isinstance(outputs, Tensor) else outputs
        nodes = [node for node in topological_order(outputs) if node.op is not None]
        if nodes and any(nodes[-1].needs):
            ends.append(nodes[-1])
    for node in [n for n in ends if type(n.op).__name__ == mutant.contract] or ends:
        wrt = [i for i, needed in enumerate(node.needs) if needed]
        yield mutant.of(node.op), [x.value for x in node.inputs], wrt


def with_first(call, gx):
    """The right gradients, but for that of input 0."""
    return [gx, *call.g[1:]]


def with_input(call, position, g):
    """The right gradients, but for one."""
    return [g if i == position else right for i, right in enumerate(call.g)]
