"""Replay: a program as one flat list of calls, for graphs whose arrays are tiny.

    a run of a program     for each op: find its operands, call its body, which asks for buffers,
                           makes views and calls ufuncs; pass its gradients on
    a replay               for call in calls: call()

All of that but the ufuncs is the same at every run, where arrays stay in their places.  Those of a
plan do.  A small argument is copied to a place of its own; parameters stay until somebody exchanges
their arrays, which is looked at before every replay.  Backward is replayed where the gradients of
leaves are small, and so are added up in arrays that stay.

A replay is taken down while the program runs, op by op.  An op whose body cannot be bound (see
bound_calls.py) keeps the call that the program makes of it, and so does one that takes what lies at
another place in every run.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tinygraph.op import Op
from tinygraph.plan.bound_calls import Call, Recorder
from tinygraph.plan.buffers import KeptMemory
from tinygraph.plan.fast.jit import compiled_body
from tinygraph.plan.program import Program
from tinygraph.shapes import Array

COPIED_BYTES = 64 << 10  # of an argument: a copy of so many takes less than the body of its op


class Replay:
    """The calls of a program, taken down while it runs forward and backward once.

    Parameters
    ----------
    program : Program
        Its buffers are laid out and its leaves are filled; it is run forward here.

    Attributes
    ----------
    forward, backward : list of Call
    bound : set of (phase, int)
        The ops whose bodies are bound.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.forward: list[Call] = []
        self.backward: list[Call] = []
        self.bound: set[tuple[str, int]] = set()
        instructions, values = program.code.instructions, program.values
        leaves = [at for at, made in enumerate(instructions) if made.op is None]
        tensors = [at for at in leaves if instructions[at].tensor is not None]
        written = {i for made in instructions if made.op and made.op.updates for i in made.inputs}
        small = [
            at
            for at in leaves
            if instructions[at].argument is not None
            and values[at].nbytes <= COPIED_BYTES
            and at not in written
        ]
        self._copied = [(at, np.empty(values[at].shape, values[at].dtype)) for at in small]
        self._fill_copied()
        self._tensors = [(at, values[at]) for at in tensors]
        self.recorder = Recorder([*[values[at] for at in (*small, *tensors)], *program.buffers()])
        self._stays = {*small, *tensors}  # values that lie at the same place in every run
        self._differentiated = {at for at, _ in program.backward_calls()}
        self._root_gradient: Array | None = None
        self._backward_taken = False
        self._take_down_forward()

    def not_bound(self) -> list[int]:
        """The ops of which some body runs as it is written."""
        return [
            at
            for at, _ in self.program.forward_calls()
            if ("forward", at) not in self.bound
            or (at in self._differentiated and ("backward", at) not in self.bound)
        ]

    # ---- running --------------------------------------------------------------------------------

    def fits(self) -> bool:
        """Whether parameters and constants have the arrays that they had."""
        values = self.program.values
        return all(values[at] is array for at, array in self._tensors)

    def run_forward(self) -> None:
        self._fill_copied()
        for call in self.forward:
            call()

    def run_backward(self, gradient: Array) -> bool:
        """After a forward of this replay; False where backward is to run without it."""
        program = self.program
        if not self._backward_taken:
            if any(array.nbytes > COPIED_BYTES for array in program.totals.arrays.values()):
                return False  # it leaves, and calls that are bound to it would hold it
            self._take_down_backward(gradient)
            self._backward_taken = True
            return True
        if self._root_gradient is not None:
            np.copyto(self._root_gradient, gradient)
            gradient = self._root_gradient
        program.begin_backward(gradient)
        for call in self.backward:
            call()
        return True

    def _fill_copied(self) -> None:
        values = self.program.values
        for at, place in self._copied:
            np.copyto(place, values[at])
            values[at] = place

    # ---- taking down ----------------------------------------------------------------------------

    def _take_down_forward(self) -> None:
        program = self.program
        for at, plain in program.forward_calls():
            made = program.code.instructions[at]
            op: Any = made.op
            bound = None
            if all(i in self._stays for i in made.inputs):
                operands = [program.values[i] for i in made.inputs]
                if program.looks(op):
                    op.check(*operands)
                bound = self._bound(op, op.forward, program.memory_of("forward", at), *operands)
            if bound is None:
                plain()
                self.forward.append(plain)
                if _is_own(op) and self.recorder.knows(program.values[at]):
                    self._stays.add(at)
                continue
            calls, (program.values[at], program.saved[at]) = bound
            if program.looks(op):
                self.forward.append(partial(op.check, *operands))
            self.forward += calls
            self._stays.add(at)
            self.bound.add(("forward", at))

    def _bound(self, op: Op, body: Any, memory: KeptMemory, *given: Any) -> Any:
        """The calls of a body, which are made, and its result; None where it cannot be bound."""
        if not _is_own(op) or op.updates or memory.draws_numbers:
            return None
        if compiled_body(op):  # for arrays, and for nothing that looks like one
            return None
        try:
            return self.recorder.bound(body, memory, *given)
        except Exception:  # NotBound, or an error, which will show when it runs as it is written
            return None

    def _take_down_backward(self, gradient: Array) -> None:
        program, knows = self.program, self.recorder.knows
        instructions, users = program.code.instructions, program.code.users()
        # Users' ops may give a gradient in one run and none in another.
        sure = [all(_is_own(instructions[user].op) for user in takers) for takers in users]
        self.backward.clear()
        if gradient.nbytes <= COPIED_BYTES:
            self._root_gradient = gradient = np.array(gradient)
            self.recorder.know(gradient)
        for array in program.totals.arrays.values():
            self.recorder.know(array)
        program.begin_backward(gradient)
        for at, plain in program.backward_calls():
            made, given = instructions[at], program.gradients[at]
            op: Any = made.op
            bound = None
            fixed = knows(given) and sure[at] and all(sure[i] for i in made.inputs)
            if fixed and ("forward", at) in self.bound:
                memory, saved = program.memory_of("backward", at), program.saved[at]
                program.write_to_leaves(at)
                bound = self._bound(op, op.backward, memory, given, saved, made.needs)
            if bound is None:
                self.backward.append(plain)
                plain()
                continue
            calls, received = bound
            self.backward += calls
            self.bound.add(("backward", at))
            for i, needed, g in zip(made.inputs, made.needs, received, strict=True):
                if needed and g is not None:
                    self.backward.append(partial(program.give, i, g))
                    program.give(i, g)


def _is_own(op: Op | None) -> bool:
    """Whether an op is tinygraph's: users' ops may do otherwise in another run."""
    return type(op).__module__.startswith("tinygraph.")
