"""The tape of an elementwise op: the ufuncs that its own numpy body calls, forward and backward.

The calls are taken down as for a replay (bound_calls.py), on arrays of two elements, and then the
arrays are forgotten: each call makes a value of values.  So chains need no second form of an op,
and an op that is added joins them by itself.  A body that does more than call ufuncs on whole
arrays has no tape.

    np.negative(x, out=y)              v2 = negative(v0)        v0: x, v1: the gradient that comes
    np.exp(y, out=y)                   v3 = exp(v2)
    y += 1                             v4 = add(v3, 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from tinygraph.op import Op
from tinygraph.ops.arithmetic import Arithmetic
from tinygraph.ops.shared.unary import Unary
from tinygraph.plan.block_program import Value, Writer
from tinygraph.plan.bound_calls import Binder, NotBound
from tinygraph.plan.buffers import KeptMemory, Streams, owner
from tinygraph.shapes import Array

COSTLY = (np.exp, np.expm1, np.log, np.log1p, np.tanh)  # longer than reading a result from memory


class Step(NamedTuple):
    """The next value: a ufunc of earlier ones, which are ints, and of numbers, which are floats."""

    ufunc: Any
    operands: tuple[int | float, ...]
    is_bool: bool


class Tape(NamedTuple):
    """Values 0, 1, ... are the inputs, then comes the upstream gradient, then the steps'."""

    forward: tuple[Step, ...]
    value: int  # the output
    backward: tuple[Step, ...]
    gradients: tuple[int | None, ...]  # for each input

    def write(self, writer: Writer, values: list[Value], steps: Sequence[Step]) -> None:
        """Write steps down in a program; `values` are those of the tape so far, and get longer."""
        for step in steps:
            operands = [values[x] if isinstance(x, int) else x for x in step.operands]
            values.append(writer.emit(step.ufunc, *operands, is_bool=step.is_bool))


@lru_cache(maxsize=256)
def tape_of(op: Op, are_numbers: tuple[bool, ...], dtype: Any, needs: Any = None) -> Tape | None:
    """The tape of an op whose inputs are arrays of one shape or numbers; None where it has none."""
    if not isinstance(op, (Unary, Arithmetic)):
        return None  # the bodies of other ops are not run for nothing
    try:
        with np.errstate(all="ignore"):
            return _taken(
                op,
                are_numbers,
                np.dtype(dtype),
                (True,) * len(are_numbers) if needs is None else needs,
            )
    except Exception:  # NotBound, or an error of a body that asks for something else
        return None


def _taken(op: Any, are_numbers: tuple[bool, ...], dtype: Any, needs: tuple[bool, ...]) -> Tape:
    given = [np.ones(() if number else 2, dtype) for number in are_numbers]
    gradient = np.ones(2, dtype)

    def forward(mem: Any, *arrays: Array) -> Any:
        if not isinstance(op, Unary):
            return op.forward(mem, *arrays)
        y = mem.empty((2,), dtype)
        op.function(mem, arrays[0], y)  # its mathematics; `forward` may cut it into blocks
        return y, y if op.keeps == "y" else arrays[0]

    def backward(mem: Any, gy: Array, saved: Any) -> Any:
        if not isinstance(op, Unary):
            return op.backward(mem, gy, saved, needs)
        gx = mem.empty((2,), dtype)
        op.gradient(mem, gy, saved, gx)
        return (gx,)

    taker = _Taker([*given, gradient], op.name, needs)
    first, (y, saved) = taker.steps(forward, *given)
    value = taker.value(y)
    if y.dtype != dtype:
        raise NotBound(f"a result of {y.dtype}")
    if True not in needs:
        return Tape(first, value, (), (None,) * len(needs))
    last, found = taker.steps(backward, gradient, saved)
    of_inputs = [taker.value(g) if needed else None for g, needed in zip(found, needs, strict=True)]
    return Tape(first, value, last, tuple(of_inputs))


class _Taker:
    """Knows which value each array holds."""

    def __init__(self, arrays: Sequence[Array], name: str, needs: tuple[bool, ...]) -> None:
        self._name, self._needs, self._binder = name, needs, Binder(arrays)
        self._values = {id(array): at for at, array in enumerate(arrays)}
        self._count = len(arrays)
        self._held: list[Any] = [*arrays]  # an id is good while its array is there

    def steps(self, body: Any, *arrays: Any) -> tuple[tuple[Step, ...], Any]:
        """The steps of a body, and what it returns."""
        memory = KeptMemory("tape", self._name, self._needs, Streams())
        body(memory, *arrays)  # asks for its arrays
        memory.kept = True
        self._held.append(memory)
        for array in memory.arrays:
            self._binder.know(array)
        calls, result = self._binder.calls_of(body, memory, *arrays)
        self._held.append(calls)
        return tuple([self._step(call) for call in calls]), result

    def _step(self, call: partial[Any]) -> Step:
        """A bound call as a step."""
        ufunc, operands, options = call.func, call.args, call.keywords
        if ufunc is np.copyto:  # y[...] = 0
            ufunc, operands, options = np.positive, (operands[1],), {"out": operands[0]}
        if not isinstance(ufunc, np.ufunc) or ufunc.nout != 1 or ufunc.signature:
            raise NotBound(f"{ufunc} is no ufunc of elements")
        out = options.get("out", operands[-1])
        if not options.keys() <= {"out"} or not isinstance(out, np.ndarray):
            raise NotBound(f"{ufunc.__name__} with options")
        step = Step(ufunc, tuple(map(self._operand, operands[: ufunc.nin])), out.dtype == bool)
        _require_whole(out)
        self._values[id(owner(out))] = self._count
        self._count += 1
        return step

    def _operand(self, x: Any) -> int | float:
        if isinstance(x, np.ndarray) and (x.ndim or id(x) in self._values):
            return self.value(x)
        return float(x)

    def value(self, x: Array) -> int:
        _require_whole(x)
        return self._values[id(owner(x))]


def _require_whole(x: Array) -> None:
    whole = owner(x)
    place = x.__array_interface__["data"] == whole.__array_interface__["data"]
    if not place or (x.shape, x.strides, x.dtype) != (whole.shape, whole.strides, whole.dtype):
        raise NotBound("a part of an array")


def is_costly(op: Op, inputs: int, dtype: Any) -> bool:
    """Whether computing the op a second time takes longer than reading its output from memory."""
    tape = tape_of(op, (False,) * inputs, dtype)
    return tape is not None and any(step.ufunc in COSTLY for step in tape.forward)
