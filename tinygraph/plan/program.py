"""Program: the forward and backward of one code as calls without arguments, with kept buffers.

A program runs on a whole batch, or on one tile of it.  It owns its values and buffers, so that two
programs may run in two threads at once.

Each op has one call of its body, forward and backward: where its operands lie is known.  The first
run makes them, op by op, and notes which array is in use from when to when; then the buffers are
laid out.  In a whole batch the ufuncs of a body may take the place of its call: see replay.py.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinygraph.engine import Array, Op, Spec, here
from tinygraph.plan.buffers import (
    Arena,
    KeptMemory,
    Lifetimes,
    Streams,
    arrays_in,
    into_arena,
    owner,
)
from tinygraph.plan.code import Code
from tinygraph.plan.leaf_gradients import Totals

Call = Callable[[], Any]


class _Node(NamedTuple):
    """What a runner sees in the place of a node."""

    op: Op
    inputs: tuple[Spec, ...]
    needs: tuple[bool, ...]


class Program:
    """One code with everything that its runs need; in numpy, see kernel_program.py for kernels.

    Fill in the leaves among `values`, run, and read the outputs there: what lies in buffers is
    overwritten by the next run.  Gradients of leaves go to `totals`, which has an array for each.
    Programs that run one after the other share an arena, those of one pass their random streams.
    """

    array_type: type = np.ndarray  # what a body returns; anything else is made one
    memory_type: type[KeptMemory] = KeptMemory
    alone = True  # whether other threads run other tiles meanwhile

    def __init__(self, code: Code, totals: Totals, draws: Streams, arena: Arena) -> None:
        instructions = code.instructions
        self.code, self.totals, self._arena = code, totals, arena
        self.bytes = self.requested = 0  # of the buffers, and if none shared its place with others
        self._no_gradients = (None,) * len(instructions)
        self.values: list[Any] = [None] * len(instructions)
        self.saved: list[Any] = [None] * len(instructions)  # by the forward of each op
        self.gradients: list[Any] = [None] * len(instructions)  # as far as backward has come
        wanted = code.differentiated()
        self._forward = [at for at, made in enumerate(instructions) if made.op is not None]
        self._backward = [at for at in reversed(self._forward) if wanted[at]]
        phases = [("forward", at) for at in self._forward]
        phases += [("backward", at) for at in self._backward]
        made = [(key, instructions[key[1]]) for key in phases]
        self._memories = {key: self._memory(key, x.label, x.needs, draws) for key, x in made}
        # Of gradients, where a value has several uses.
        reached = [at for at, is_wanted in enumerate(wanted) if is_wanted]
        self._sums = {at: self._memory(("sum", at), "sum", (), draws) for at in reached}
        self._all_memories = [*self._memories.values(), *self._sums.values()]
        carries = code.carrying()
        for memory in self._all_memories:
            memory.carries = carries[memory.at[1]]
        self._drawing = self._all_memories  # those that may draw random numbers
        self._lifetimes: Lifetimes | None = Lifetimes()  # None once buffers are laid out
        self._nodes: dict[int, _Node] = {}
        self._forward_calls: list[Call] = []
        self._backward_calls: list[Call] = []
        # For each op the buffers of its backward that are gradients of leaves: which, and whose.
        self._leaf_buffers: dict[int, list[tuple[int, int]]] = {}
        self._to_leaves: dict[int, list[tuple[int, int, Any]]] = {}  # the same, and the buffer

    # ---- what depends on the device ---------------------------------------------------------

    def _memory(self, at: Hashable, op: str, needs: tuple[bool, ...], draws: Streams) -> Any:
        memory = self.memory_type(at, op, needs, draws, self.code.device)
        memory.alone = self.alone
        return memory

    def looks(self, op: Op) -> bool:
        """Whether an op looks at the values of its operands before it runs."""
        return type(op).check is not Op.check

    # ---- running ----------------------------------------------------------------------------

    def begin_at(self, first_sample: int, samples: int, rows: Sequence[int]) -> None:
        """Where the tile of the next run begins in the batch; `rows` of each value has a sample."""
        for memory in self._drawing:
            memory.tile = (first_sample, samples) if rows[memory.at[1]] else None

    def forward(self) -> None:
        """Every op in order.  The leaves' values must be there."""
        if self._lifetimes is not None:
            self._first_forward()
        else:
            for call in self._forward_calls:
                call()

    def backward(self, gradient: Array) -> None:
        """Every op that a gradient reaches, in reverse; adds to `totals`."""
        if self.code.root is None:
            return
        self._begin_backward(gradient)
        if self._lifetimes is not None:
            self._first_backward(self._lifetimes)
        else:
            for call in self._backward_calls:
                call()

    def _begin_backward(self, gradient: Array) -> None:
        """No value has a gradient but the root."""
        self.gradients[:] = self._no_gradients
        self.give(self.code.root or 0, gradient)

    def look(self) -> None:
        """Nothing: every op has looked at its operands before it ran."""

    def settle(self) -> None:
        """After the first whole run: lay the buffers out."""
        if self._lifetimes is None:
            return
        memories = self._all_memories
        self.requested = sum(array.nbytes for memory in memories for array in memory.arrays)
        self.bytes = into_arena(memories, self._lifetimes, self._arena, self._elsewhere())
        self._lifetimes = None
        self._to_leaves = {
            at: [(k, i, self._memories["backward", at].arrays[k]) for k, i in found]
            for at, found in self._leaf_buffers.items()
        }
        self._drawing = [memory for memory in memories if memory.draws_numbers]
        self._let_go()

    def _elsewhere(self) -> set[int]:
        """The ids of buffers that no later run writes: another tile may have reached each leaf."""
        return set()

    def _let_go(self) -> None:
        """Free the arrays of the first run, before the buffers take memory too."""
        for at in self._forward:
            self.values[at] = self.saved[at] = self.gradients[at] = None

    def give(self, at: int, gradient: Array) -> None:
        """A gradient reaches a value: the first one is borrowed, the others are added to it."""
        if self.code.instructions[at].op is None:
            self.totals.add(at, gradient)
            return
        before = self.gradients[at]
        if before is None:
            self.gradients[at] = gradient
            return
        memory = self._sums[at]
        if not memory.arrays or before is not memory.arrays[0]:
            memory.position = 0
            self.gradients[at] = memory.empty(gradient.shape, gradient.dtype)
        np.add(before, gradient, out=self.gradients[at])

    # ---- the first run ----------------------------------------------------------------------

    def _first_forward(self) -> None:
        """Events 0, 1, ...: one for each op; the last event of all is when outputs are read."""
        self._lifetimes = lifetimes = Lifetimes()  # an earlier one may have ended in an error
        for memory in self._all_memories:
            memory.arrays, memory.position = [], 0
        self._forward_calls, self._backward_calls = [], []
        end = len(self._forward) + len(self._backward)
        for event, at in enumerate(self._forward):
            made, memory = self.code.instructions[at], self._memories["forward", at]
            arrays = self._operands(at)
            specs = tuple([Spec(x.shape, x.dtype) for x in arrays])
            self._nodes[at] = _Node(made.op, specs, made.needs)  # type: ignore[arg-type]
            self._forward_calls.append(self._forward_call(at))
            self._forward_calls[-1]()
            lifetimes.born(memory.arrays, event)
            for array in (*arrays, self.values[at]):
                lifetimes.used(array, event)
            if at in self.code.outputs:
                lifetimes.used(self.values[at], end)
            if at in self._backward:
                self._keep_saved(lifetimes, at, memory)

    def _keep_saved(self, lifetimes: Lifetimes, at: int, memory: KeptMemory) -> None:
        """What an op has saved lives until its backward."""
        event = len(self._forward) + self._backward.index(at)
        for array in arrays_in(self.saved[at]):
            if array is None:  # something unknown, which may hold any array of this op
                for held in (*memory.arrays, *self._operands(at)):
                    lifetimes.used(held, event)
            else:
                lifetimes.used(array, event)

    def _operands(self, at: int) -> list[Array]:
        return [self.values[i] for i in self.code.instructions[at].inputs]

    def _first_backward(self, lifetimes: Lifetimes) -> None:
        for event, at in enumerate(self._backward, len(self._forward)):
            made, memory = self.code.instructions[at], self._memories["backward", at]
            gradient, before = self.gradients[at], [self.gradients[i] for i in made.inputs]
            self._backward_calls.append(self._backward_call(at))
            received = self._backward_calls[-1]()
            if gradient is None:
                continue
            lifetimes.born(memory.arrays, event)
            self._leaf_buffers[at] = self._gradients_of_leaves(at, received)
            for array in (gradient, *received, *before):
                lifetimes.used(array, event)
            for i, needed, g in zip(made.inputs, made.needs, received, strict=True):
                if needed and g is not None:
                    self._note_given(lifetimes, i, event)

    def _note_given(self, lifetimes: Lifetimes, at: int, event: int) -> None:
        """The gradient of a value lives until the backward of that value."""
        lifetimes.born([a for a in self._sums[at].arrays if id(a) not in lifetimes.first], event)
        if self.code.instructions[at].op is not None:
            lifetimes.used(self.gradients[at], len(self._forward) + self._backward.index(at))

    def _gradients_of_leaves(self, at: int, received: Any) -> list[tuple[int, int]]:
        """(buffer, leaf) for each buffer of a backward that is the gradient of one leaf and of
        nothing else: in later runs the op writes into the leaf's total at once."""
        inputs, buffers = self.code.instructions[at].inputs, self._memories["backward", at].arrays
        owners = [owner(g) for g in received]
        return [
            (k, i)
            for i, g in zip(inputs, received, strict=True)
            if self.code.instructions[i].op is None and inputs.count(i) == 1
            for k, buffer in enumerate(buffers)
            if buffer is g and sum(other is g for other in owners) == 1
        ]

    # ---- the calls --------------------------------------------------------------------------

    def _aim(self, at: int, at_leaves: bool) -> None:
        """Let the backward of an op write the gradients of leaves where they go, not in buffers: of
        several terms the first one, which needs no copy.  Afterwards hold none of the arrays that
        leave: one that is held is not taken up again."""
        arrays, totals = self._memories["backward", at].arrays, self.totals
        for k, i, buffer in self._to_leaves.get(at, ()):
            arrays[k] = totals.arrays[i] if at_leaves and i not in totals.reached else buffer

    def _forward_call(self, at: int) -> Call:
        instruction, memory = self.code.instructions[at], self._memories["forward", at]
        op: Op = instruction.op  # type: ignore[assignment]
        node, inputs = self._nodes[at], instruction.inputs
        values, saved, array_type = self.values, self.saved, self.array_type

        def call() -> None:
            memory.position = 0
            value, saved[at] = here.top.forward(node, memory, [values[i] for i in inputs])
            values[at] = value if isinstance(value, array_type) else np.asarray(value)

        def look_and_call() -> None:
            op.check(*[values[i] for i in inputs])
            call()

        return look_and_call if self.looks(op) else call

    def _backward_call(self, at: int) -> Call:
        instruction, memory = self.code.instructions[at], self._memories["backward", at]
        node, give = self._nodes[at], self.give
        needs, saved, gradients = instruction.needs, self.saved, self.gradients
        aim = self._aim
        wanted = [(slot, i) for slot, i in enumerate(instruction.inputs) if needs[slot]]

        def call() -> Any:
            gradient = gradients[at]
            if gradient is None:
                return None
            memory.position = 0
            aim(at, True)
            top = here.top
            received = top.backward(node, memory, gradient, saved[at])
            for slot, i in wanted:
                g = received[slot]
                if g is not None:
                    top.add_up(give, i, g)
            aim(at, False)
            return received

        return call
