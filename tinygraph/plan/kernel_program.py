"""KernelProgram: a program whose ops run as kernels, on the emulator or on a GPU.

    code, order, lifetimes, arena    those of every program
    the body of an op                `forward_kernel` and `backward_kernel`, on contiguous arrays
    gradients of several uses        added by the kernel of `add`, each sum in a buffer of its own

Kernels promise not to write what they read (`__restrict__`), so that nothing is added in place.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tinygraph.base.precision import get_float32_matmul_precision
from tinygraph.engine import Array, Memory, Op, Shape, here
from tinygraph.ops.elementwise.arithmetic import Add
from tinygraph.plan.buffers import KeptMemory, Lifetimes
from tinygraph.plan.code import Code
from tinygraph.plan.program import Program


class KernelMemory(KeptMemory):
    """A KeptMemory in the memory of a device that runs kernels.

    On the emulator every request is told to the checker, as one for a new array would be: what the
    last run has left in a buffer counts as uninitialised.
    """

    __slots__ = ()

    # The batch is whole, so that each request has a stream of its own.
    random, words = Memory.random, Memory.words

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.contiguous = self._contiguous

    def _contiguous(self, array: Array) -> Array:
        """The array in row-major order, as kernels read it; a copy is one of the kept arrays."""
        if array.flags.c_contiguous:
            return array
        return self._filled(array.shape, array.dtype, array)

    def add(self, x: Array, y: Array) -> Array:
        """x + y, in an array that is neither of them."""
        return Add().launch(self, self.contiguous(x), self.contiguous(y))

    def _empty(self, shape: Shape, dtype: Any) -> Array:
        array = super()._empty(shape, dtype)
        if self.kept:
            here.top.fresh(array)
        return array

    def _zeros(self, shape: Shape, dtype: Any) -> Array:
        return self._filled(shape, dtype, 0)

    def _filled(self, shape: Shape, dtype: Any, contents: Any) -> Array:
        """An array that no kernel has to write, for it is filled at once."""
        if self.kept:
            array = super()._empty(shape, dtype)
        else:
            array = self.device.zeros(shape, dtype)
            self.arrays.append(array)
            self.position += 1
        if array.size:
            array[...] = contents
        return array


def late_checks(code: Code) -> list[int]:
    """The instructions whose ops look at values (`Op.check`) too late to refuse them: on a GPU."""
    if code.device.on_host:
        return []
    return [
        at
        for at, made in enumerate(code.instructions)
        if made.op is not None and type(made.op).check is not Op.check
    ]


class KernelProgram(Program):
    """A Program for a code whose device runs kernels; the batch is whole."""

    array_type = object  # kernels give arrays of their device, whatever their class
    memory_type = KernelMemory
    _products: str | None = None  # their precision in the last run

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._leaving: dict[int, Array] = {}  # new arrays of the backward that runs, by leaf

    def looks(self, op: Op) -> bool:
        return self.code.device.on_host and super().looks(op)

    def forward(self) -> None:
        """Every op in order; buffers are laid out anew where products ask for others.

        How a product is computed, and so which memory it needs, depends on its precision.
        """
        products = get_float32_matmul_precision()
        if products != self._products and self._lifetimes is None:
            self._lifetimes, self._to_leaves = Lifetimes(), {}
            for memory in self._all_memories:
                memory.kept = False
        self._products = products
        super().forward()

    # ---- a GPU is not waited for: ops look at their operands when somebody reads a NaN ----------

    def look(self) -> None:
        """Let those ops look at the operands of the last run; ArgumentError from one of them."""
        for at in late_checks(self.code):
            op: Any = self.code.instructions[at].op
            op.check(*self.code.device.to_host(*self._operands(at)))

    def _first_forward(self) -> None:
        super()._first_forward()
        lifetimes: Any = self._lifetimes
        for at in late_checks(self.code):
            for operand in self._operands(at):
                lifetimes.used(operand, len(self._forward) + len(self._backward))

    def _let_go(self) -> None:
        """Nothing: `look` may come later."""

    # ---- gradients --------------------------------------------------------------------------

    def give(self, at: int, gradient: Array) -> None:
        memory = self._sums[at]
        if self.code.instructions[at].op is None:
            self._give_leaf(at, gradient, memory)
            return
        before = self.gradients[at]
        if before is None:
            memory.position = 0
            self.gradients[at] = gradient
        else:
            self.gradients[at] = memory.add(before, gradient)

    def _elsewhere(self) -> set[int]:
        """Those of leaves with one use, whose gradients lie in new arrays at every run."""
        uses = Counter([i for made in self.code.instructions for i in made.inputs])
        return {
            id(self._memories["backward", at].arrays[k])
            for at, found in self._leaf_buffers.items()
            for k, i in found
            if uses[i] == 1
        }

    def _aim(self, at: int, at_leaves: bool) -> None:
        """Let the backward of an op write the first gradient of a leaf into a new array: it leaves
        the plan, where the next run may not write to it."""
        arrays = self._memories["backward", at].arrays
        self._leaving = {}
        for k, i, buffer in self._to_leaves.get(at, ()):
            arrays[k] = buffer
            if at_leaves and i not in self.totals.reached:
                arrays[k] = self._leaving[i] = self.code.device.empty(
                    *self.code.instructions[i].spec
                )

    def _give_leaf(self, at: int, gradient: Array, memory: KernelMemory) -> None:
        """What leaves the plan is an array of its own: one that `_aim` has made, or a copy."""
        totals = self.totals
        if at in totals.reached:
            gradient = memory.add(totals.arrays[at], gradient)
        else:
            memory.position = 0
            totals.reached.add(at)
            if self._leaving.get(at) is gradient:
                totals.arrays[at] = gradient
                return
        array = totals.arrays.get(at)
        if array is None:
            totals.arrays[at] = self.code.device.copy(gradient)
        elif array.size:
            array[...] = gradient
