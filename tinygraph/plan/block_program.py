"""Block programs: a few ufuncs that run over flat arrays block by block, in a core's cache.

A program is written down value by value (`Writer.emit`), and then compiled: values that lead to no
output are dropped, and each of the others gets a register.  An output's register is a part of an
array; all others are scratch blocks, which are taken again as soon as their value is not needed any
more, by the very ufunc that reads it last too: a ufunc may write over its operand.

Source: Poletto, Sarkar, "Linear scan register allocation", ACM TOPLAS 21(5), 1999.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tinygraph.engine import Array, Memory

BY_ARRAYS = (np.maximum, np.minimum)  # take a number at half the speed of an array
CACHE_BYTES = 4 << 20  # of all blocks of a program together: a share of the last-level cache


class Value(NamedTuple):
    """A value of a program: an input, or what a ufunc makes."""

    number: int
    is_bool: bool = False


class Filled(NamedTuple):
    """A block that holds one number: some ufuncs take a number at half the speed of an array."""

    number: float


class BlockCall(NamedTuple):
    """One ufunc; its operands are values, before compiling, or registers after it, and numbers."""

    ufunc: Callable[..., Any]
    operands: tuple[Any, ...]
    result: Any


class Writer:
    """Writes a program down.

    >>> writer = Writer(2)
    >>> x, y = writer.inputs
    >>> product = writer.emit(np.multiply, x, y)
    >>> program = writer.compiled([writer.emit(np.add, product, 1)])
    >>> for call in program.calls:  # registers 0 and 1: inputs; 2: the output; 3: a scratch block
    ...     print(call.operands, call.result)
    (Register(at=0), Register(at=1)) Register(at=3)
    (Register(at=3), 1) Register(at=2)
    """

    def __init__(self, inputs: int) -> None:
        self.inputs = tuple([Value(i) for i in range(inputs)])
        self.calls: list[BlockCall] = []

    def emit(self, ufunc: Any, *operands: Value | float, is_bool: bool = False) -> Value:
        """The value `ufunc(*operands)`, of the dtype of the inputs, or bool."""
        made = Value(len(self.inputs) + len(self.calls), is_bool)
        if ufunc in BY_ARRAYS:
            operands = tuple([Filled(x) if isinstance(x, (int, float)) else x for x in operands])  # type: ignore[misc]
        self.calls.append(BlockCall(ufunc, operands, made))
        return made

    def needed(self, outputs: Sequence[Value]) -> set[Value]:
        """The values, inputs among them, that the outputs are computed from."""
        found = set(outputs)
        for call in reversed(self.calls):
            if call.result in found:
                found.update(x for x in call.operands if isinstance(x, Value))
        return found

    def compiled(self, outputs: Sequence[Value]) -> BlockProgram:
        """The program that makes these outputs."""
        # An input, or a value that is asked for twice, is copied to where it is wanted.
        made = {call.result for call in self.calls}
        own = [
            v if v in made and v not in outputs[:i] else self.emit(np.positive, v)
            for i, v in enumerate(outputs)
        ]
        needed = self.needed(own)
        calls = [call for call in self.calls if call.result in needed]
        last = {x: at for at, call in enumerate(calls) for x in call.operands}
        filled = list(dict.fromkeys([x for x in last if isinstance(x, Filled)]))
        fixed: list[Any] = [*self.inputs, *own, *filled]
        registers = {x: Register(i) for i, x in enumerate(fixed)}
        free: dict[bool, list[Register]] = {False: [], True: []}
        kinds: list[bool] = []  # of the scratch blocks: whether they are of bools
        placed = []
        for at, call in enumerate(calls):
            operands = tuple([registers.get(x, x) for x in call.operands])
            for x in dict.fromkeys(call.operands):
                if isinstance(x, Value) and x not in fixed and last[x] == at:
                    free[x.is_bool].append(registers[x])
            result = call.result
            if result not in registers:
                if not free[result.is_bool]:
                    free[result.is_bool].append(Register(len(fixed) + len(kinds)))
                    kinds.append(result.is_bool)
                registers[result] = free[result.is_bool].pop()
            placed.append(BlockCall(call.ufunc, operands, registers[result]))
        return BlockProgram(
            len(self.inputs),
            len(outputs),
            tuple(placed),
            tuple([x.number for x in filled]),
            tuple(kinds),
        )


class Register(NamedTuple):
    at: int


@dataclass(frozen=True)
class BlockProgram:
    """What `Writer.compiled` makes.

    Its registers are those of inputs, then of outputs, then filled and scratch blocks.
    """

    inputs: int  # how many
    outputs: int
    calls: tuple[BlockCall, ...]
    filled: tuple[float, ...]  # the numbers that these blocks hold
    scratch: tuple[bool, ...]  # for each of these blocks, whether it holds bools

    def block(self, size: int, itemsize: int) -> int:
        """Elements of a block: all registers together fit in a core's cache."""
        blocks = self.inputs + self.outputs + len(self.filled) + len(self.scratch)
        most = max(1, CACHE_BYTES // (itemsize * blocks))
        number = max(1, -(-size // most))
        return max(1, -(-size // number))  # blocks of about the same size

    def run(self, mem: Memory, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Write the outputs, flat arrays of one size; an input may be a single number instead."""
        size = len(outputs[0])
        block = self.block(size, outputs[0].itemsize)
        dtype = outputs[0].dtype
        blocks = [mem.empty((block,), dtype) for _ in self.filled]
        for array, number in zip(blocks, self.filled, strict=True):
            array.fill(number)
        blocks += [mem.empty((block,), bool if is_bool else dtype) for is_bool in self.scratch]
        arrays = [*inputs, *outputs]
        cut = [i for i, array in enumerate(arrays) if array.ndim]
        registers: list[Any] = [*arrays, *blocks]
        for start in range(0, size, block):
            stop = min(start + block, size)
            for i in cut:
                registers[i] = arrays[i][start:stop]
            if stop - start < block:
                registers[len(arrays) :] = [array[: stop - start] for array in blocks]
            for ufunc, operands, result in self.calls:
                given = [registers[x.at] if isinstance(x, Register) else x for x in operands]
                ufunc(*given, out=registers[result.at])
