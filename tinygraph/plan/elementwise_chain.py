"""A chain of elementwise ops as one op that works block by block.

One after the other, each op writes its whole output to memory, and the next one reads it again.
Here all of them do a block that stays in a core's cache, then the next block; backward likewise.
Kept for backward are the operands and what takes long to compute (an exponential, a logarithm);
everything else is computed again, block by block, as far as the derivatives need it.

Every operand has the shape of the output, or is a single number that needs no gradient.

Source: Chen, Xu, Zhang, Guestrin, "Training deep nets with sublinear memory cost",
arXiv:1604.06174, for computing values again in backward.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygraph.engine import Array, Gradients, Memory, Op, Shape, Spec
from tinygraph.plan.block_program import BlockProgram, Value, Writer
from tinygraph.plan.code import Code
from tinygraph.plan.elementwise_tape import Tape, is_costly, tape_of


class ElementwiseChain(Op):
    """Ops that have tapes (elementwise_tape.py), each with a value of the output's shape and dtype.

    `code` has a leaf for each operand, in order, then the ops; the last one is the output.  Which
    operands want a gradient is known from it, and the same whenever the op is applied.
    """

    name = "elementwise_chain"

    def __init__(self, code: Code) -> None:
        self.code = code
        self.name = _name([made.op.name for made in code.instructions if made.op])  # type: ignore[misc]
        self._operands = sum(made.op is None for made in code.instructions)
        self._wanted = code.differentiated()
        self._backward, self._kept, self._places = self._differentiated()
        self._forward = self._computed(any(self._wanted))
        self._inference = self._computed(False)

    # ---- the op as block programs ----------------------------------------------------------------

    def _computed(self, keeping: bool) -> BlockProgram:
        """Operands -> the output, and what backward needs of the values between."""
        writer = Writer(self._operands)
        values, _ = self._values(writer, {})
        kept = [values[at] for at in self._kept if keeping and at < len(values) - 1]
        return writer.compiled([values[-1], *kept])

    def _differentiated(self) -> tuple[BlockProgram, list[int], list[int | None]]:
        """Operands, kept values and upstream gradient -> gradients.

        Besides the program: which values are kept, and which of the outputs is the gradient of each
        operand: -1 means the upstream gradient itself, None that it wants none.
        """
        instructions = self.code.instructions
        end = len(instructions) - 1  # the output is there in any case
        kept = [
            at
            for at, made in enumerate(instructions)
            if made.op and (is_costly(made.op, len(made.inputs), made.spec.dtype) or at == end)
        ]
        while True:
            writer = Writer(self._operands + len(kept) + 1)
            *given, g = writer.inputs
            known = dict(zip(kept, given[self._operands :], strict=True))
            gradients = self._gradients(writer, known, g)
            outputs = list(dict.fromkeys(v for v in gradients if v is not None and v != g))
            needed = writer.needed(outputs)
            used = [at for at, value in known.items() if value in needed]
            if used == kept:
                places = [
                    None if v is None else -1 if v == g else outputs.index(v) for v in gradients
                ]
                return writer.compiled(outputs), kept, places
            kept = used

    def _values(
        self, writer: Writer, kept: dict[int, Value]
    ) -> tuple[list[Value], dict[int, tuple[Tape, list[Any]]]]:
        """The value of each instruction, and for each op its tape with the values of that."""
        values, tapes = list(writer.inputs[: self._operands]), {}
        for at in range(self._operands, len(self.code.instructions)):
            made = self.code.instructions[at]
            numbers = [self.code.instructions[i].spec.shape != made.spec.shape for i in made.inputs]
            tape: Any = tape_of(made.op, tuple(numbers), made.spec.dtype, made.needs)
            of_tape = [*[values[i] for i in made.inputs], None]  # None: its gradient comes later
            tape.write(writer, of_tape, tape.forward)
            of_tape[tape.value] = kept.get(at, of_tape[tape.value])
            values.append(of_tape[tape.value])
            tapes[at] = tape, of_tape
        return values, tapes

    def _gradients(self, writer: Writer, kept: dict[int, Value], g: Value) -> list[Value | None]:
        """For each operand its gradient, where it wants one."""
        instructions = self.code.instructions
        _, tapes = self._values(writer, kept)
        gradients = {len(instructions) - 1: g}
        for at in range(len(instructions) - 1, self._operands - 1, -1):
            made = instructions[at]
            if not self._wanted[at] or at not in gradients:
                continue
            tape, values = tapes[at]
            values[len(made.inputs)] = gradients[at]
            tape.write(writer, values, tape.backward)
            for i, place in zip(made.inputs, tape.gradients, strict=True):
                if place is not None:
                    before, term = gradients.get(i), values[place]
                    gradients[i] = term if before is None else writer.emit(np.add, before, term)
        return [gradients.get(at) for at in range(self._operands)]

    def ufuncs(self) -> set[Any]:
        """All that its programs call."""
        return {call.ufunc for run in (self._forward, self._backward) for call in run.calls}

    # ---- the contract ----------------------------------------------------------------------------

    def infer(self, *specs: Spec) -> Spec:
        found = list(specs)
        for made in self.code.instructions[self._operands :]:
            found.append(made.op.infer(*[found[i] for i in made.inputs]))  # type: ignore[union-attr]
        return found[-1]

    def forward(self, mem: Memory, *arrays: Array) -> tuple[Array, Any]:
        shape = np.broadcast_shapes(*[x.shape for x in arrays])
        program = self._forward if any(mem.needs) else self._inference
        outputs = [mem.empty(shape, arrays[0].dtype) for _ in range(program.outputs)]
        self._run(program, mem, [_flat(x, shape) for x in arrays], [y.reshape(-1) for y in outputs])
        return outputs[0], (arrays, outputs)

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        arrays, (y, *kept) = saved
        if self._kept and self._kept[-1] == len(self.code.instructions) - 1:
            kept = [*kept, y]
        gradients = [mem.empty(gy.shape, gy.dtype) for _ in range(self._backward.outputs)]
        if gradients:
            inputs = [_flat(x, gy.shape) for x in (*arrays, *kept, gy)]
            self._run(self._backward, mem, inputs, [g.reshape(-1) for g in gradients])
        found = [*gradients, gy]  # the last one stands for places of -1
        wanted = zip(self._places, needs, strict=True)
        return tuple([found[at] if needed and at is not None else None for at, needed in wanted])

    def _run(self, program: BlockProgram, *given: Any) -> None:
        program.run(*given)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        """Sample by sample, where every operand but single numbers carries samples."""
        common = [x for x, carried in zip(specs, carries, strict=True) if not carried]
        apart = all(math.prod(spec.shape) == 1 for spec in common)
        return "map" if apart and any(carries) else None


def _flat(x: Array, shape: Shape) -> Array:
    """A vector of the elements, or one number; a view wherever that can be."""
    if x.shape != shape:
        return x.reshape(())
    if x.size > 1 and not any(x.strides):  # one number, broadcast: a vector of them costs a copy
        return x[(0,) * x.ndim].reshape(())
    return x.reshape(-1)


def _name(steps: list[str]) -> str:
    """Of all steps, or of the first two and the last.

    >>> _name(["sigmoid", "mul"]), _name(["sub", "mul", "add", "exp", "log"])
    ('sigmoid_mul', 'sub_mul_and_2_more_log')
    """
    if len(steps) <= 4:
        return "_".join(steps)
    return f"{steps[0]}_{steps[1]}_and_{len(steps) - 3}_more_{steps[-1]}"
