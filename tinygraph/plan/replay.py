"""Replay: a program whose calls are ufuncs, for graphs whose arrays are tiny.

    a program    for each op: find its operands, call its body, which asks for buffers, makes views
                 and calls ufuncs; pass its gradients on
    a replay     for call in calls: call()

All of that but the ufuncs is the same at every run, where arrays stay in their places.  Those of a
plan do.  A small argument is copied to a place of its own; parameters stay until somebody exchanges
their arrays, which is looked at before every replay.  Backward is replayed where the gradients of
leaves are small, and so are added up in arrays that stay.

The ufuncs are taken down while the program runs, op by op.  An op whose body cannot be bound to its
arrays (see bound_calls.py) keeps the call of its body, and so does one that takes what lies at
another place in every run.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tinygraph.engine import Array, Op, here
from tinygraph.plan.bound_calls import Binder
from tinygraph.plan.buffers import KeptMemory
from tinygraph.plan.declared import declared_of
from tinygraph.plan.fast import compiled_body
from tinygraph.plan.leaf_gradients import COPIED_BYTES
from tinygraph.plan.program import Call, Program

MOST_TIMES = 8  # that calls are taken down: where arrays change all the time it is of no use


class Replay(Program):
    """A program of a whole batch, replayed from its second run on."""

    alone = False

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.replayed: dict[str, list[Call]] = {}  # "forward" and "backward", once taken down
        self.bound: set[tuple[str, int]] = set()  # the (phase, op) that were taken down as ufuncs
        self._binder: Any = None
        self._taken = 0  # how many times
        self._replaying = False  # whether the last forward was a replay
        made = self.code.instructions
        leaves = [at for at, instruction in enumerate(made) if instruction.op is None]
        written = {i for each in made if each.op and each.op.updates for i in each.inputs}
        self._tensors = [at for at in leaves if made[at].tensor is not None]
        self._may_copy = [
            at for at in leaves if made[at].argument is not None and at not in written
        ]
        self._copies: dict[int, Array] = {}  # of small arguments
        self._arrays: list[Array] = []  # of tensors, in the last run that was taken down
        self._root_gradient: Array | None = None
        # Gradients that leave would be held by calls that are bound to them.
        self._leaves_are_large = any(
            made[at].nbytes > COPIED_BYTES for at in leaves if at in self._sums
        )

    def not_bound(self) -> list[int]:
        """The ops of which some body runs as it is written."""
        return sorted({at for phase, at in self._memories if (phase, at) not in self.bound})

    # ---- running --------------------------------------------------------------------------------

    def forward(self) -> None:
        self._replaying = self._lifetimes is None and here.top.replays
        if self._replaying and self._fits():
            self._fill_copies()
            for call in self.replayed["forward"]:
                call()
        elif self._replaying and self._taken < MOST_TIMES:
            self._taken += 1
            self.replayed = {}  # an error while they are taken down leaves none
            self.replayed["forward"] = self._taken_forward()
        else:
            self._replaying = False
            super().forward()

    def _fits(self) -> bool:
        """Whether parameters and constants have the arrays that they had."""
        values = self.values
        return "forward" in self.replayed and all(
            values[at] is array for at, array in zip(self._tensors, self._arrays, strict=True)
        )

    def backward(self, gradient: Array) -> None:
        if not self._replaying or self._leaves_are_large:
            super().backward(gradient)
        elif "backward" not in self.replayed:
            self.replayed["backward"] = self._taken_backward(gradient)
        else:
            if self._root_gradient is not None:
                np.copyto(self._root_gradient, gradient)
                gradient = self._root_gradient
            self._begin_backward(gradient)
            for call in self.replayed["backward"]:
                call()

    def _fill_copies(self) -> None:
        values = self.values
        for at, place in self._copies.items():
            np.copyto(place, values[at])
            values[at] = place

    # ---- taking down ----------------------------------------------------------------------------

    def _taken_forward(self) -> list[Call]:
        values, calls = self.values, []
        self._copies = {
            at: np.empty(values[at].shape, values[at].dtype)
            for at in self._may_copy
            if values[at].nbytes <= COPIED_BYTES
        }
        self._fill_copies()
        self._arrays = [values[at] for at in self._tensors]
        buffers = [array for memory in self._all_memories for array in memory.arrays]
        self._binder = Binder([*self._copies.values(), *self._arrays, *buffers])
        self.bound.clear()
        stay = {*self._copies, *self._tensors}  # values that lie at the same place in every run
        for at, plain in zip(self._forward, self._forward_calls, strict=True):
            op: Any = self.code.instructions[at].op
            operands, found = self._operands(at), None
            if stay.issuperset(self.code.instructions[at].inputs):
                if self.looks(op):
                    op.check(*operands)
                found = self._bound(op, op.forward, ("forward", at), *operands)
            if found is None:
                plain()
                calls.append(plain)
                if _is_own(op) and self._binder.knows(values[at]):
                    stay.add(at)
                continue
            if self.looks(op):
                calls.append(partial(op.check, *operands))
            values[at], self.saved[at] = found[1]
            calls += found[0]
            stay.add(at)
        return calls

    def _bound(self, op: Op, body: Any, phase: tuple[str, int], *given: Any) -> Any:
        """The calls of a body, which are made, and its result; None where it keeps its own."""
        memory: KeptMemory = self._memories[phase]
        if not _is_own(op) or op.updates or op.communicates or memory.draws_numbers:
            return None
        if memory.shares_work:  # one list of calls would leave it to one thread
            return None
        if compiled_body(op):  # for arrays, and for nothing that looks like one
            return None
        try:
            found = self._binder.calls_of(body, memory, *given)
        except Exception:  # NotBound, or an error, which will show when it runs as it is written
            return None
        self.bound.add(phase)
        return found

    def _taken_backward(self, gradient: Array) -> list[Call]:
        instructions, users, calls = self.code.instructions, self.code.users(), []
        # Users' ops may give a gradient in one run and none in another.
        sure = [all(_is_own(instructions[user].op) for user in takers) for takers in users]
        if gradient.nbytes <= COPIED_BYTES:
            self._root_gradient = gradient = np.array(gradient)
            self._binder.know(gradient)
        for array in self.totals.arrays.values():
            self._binder.know(array)
        self._begin_backward(gradient)
        for at, plain in zip(self._backward, self._backward_calls, strict=True):
            made, given, found = instructions[at], self.gradients[at], None
            op: Any = made.op
            fixed = self._binder.knows(given) and sure[at] and all(sure[i] for i in made.inputs)
            if fixed and ("forward", at) in self.bound:
                self._aim(at, True)
                phase = "backward", at
                found = self._bound(op, op.backward, phase, given, self.saved[at], made.needs)
            if found is None:
                calls.append(plain)
                plain()
                continue
            calls += found[0]
            for i, needed, g in zip(made.inputs, made.needs, found[1], strict=True):
                if needed and g is not None:
                    calls.append(partial(self.give, i, g))
                    self.give(i, g)
        return calls


def _is_own(op: Op | None) -> bool:
    """Whether an op makes the same calls at each run: users' ops may not, and do not say so."""
    return declared_of(type(op)) != ""
