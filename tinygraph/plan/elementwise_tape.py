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
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tinygraph.engine import Array, Op
from tinygraph.ops.elementwise.arithmetic import Arithmetic
from tinygraph.ops.elementwise.unary import Unary
from tinygraph.plan.block_program import Value, Writer
from tinygraph.plan.bound_calls import Binder, BoundCall, NotBound
from tinygraph.plan.buffers import KeptMemory, Streams, owner

# Longer than reading a result from memory.
COSTLY = (np.exp, np.expm1, np.log, np.log1p, np.log2, np.tanh, np.sin, np.cos)


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
    every = tuple([not number for number in are_numbers])
    try:
        with np.errstate(all="ignore"):
            if needs is None or any(needs):
                return _taken(op, are_numbers, np.dtype(dtype), needs or every)
            whole = _taken(op, are_numbers, np.dtype(dtype), every)
            return whole._replace(backward=(), gradients=(None,) * len(needs))
    except Exception:  # NotBound, or an error of a body that asks for something else
        return None


def _taken(op: Any, are_numbers: tuple[bool, ...], dtype: Any, needs: tuple[bool, ...]) -> Tape:
    gradient, *given = [np.ones(() if number else 2, dtype) for number in (False, *are_numbers)]
    binder, memory = Binder([*given, gradient]), KeptMemory("tape", op.name, needs, Streams())

    def body(mem: Any, gy: Array, *arrays: Array) -> Any:
        if isinstance(op, Unary):  # its mathematics; `forward` may cut it into blocks
            y, gx = mem.empty((2,), dtype), mem.empty((2,), dtype)
            op.function(mem, arrays[0], y)
            of_forward = len(binder.calls)
            op.gradient(mem, gy, y if op.keeps == "y" else arrays[0], gx)
            return y, of_forward, (gx,)
        y, saved = op.forward(mem, *arrays)
        return y, len(binder.calls), op.backward(mem, gy, saved, needs)

    body(memory, gradient, *given)  # it asks for its arrays
    memory.kept = True
    for array in memory.arrays:
        binder.know(array)
    calls, (y, of_forward, found) = binder.calls_of(body, memory, gradient, *given)
    if y.dtype != dtype:
        raise NotBound(f"a result of {y.dtype}")
    values = {id(array): at for at, array in enumerate([*given, gradient])}
    steps = [_step(call, values, at) for at, call in enumerate(calls, len(values))]
    wanted = zip(found, needs, strict=True)
    return Tape(
        tuple(steps[:of_forward]),
        _value(y, values),
        tuple(steps[of_forward:]),
        tuple([_value(g, values) if needed else None for g, needed in wanted]),
    )


def _step(call: BoundCall, values: dict[int, int], at: int) -> Step:
    """A bound call as a step that makes value `at`; `values` tells what the arrays hold, by id."""
    ufunc, operands, options = call.func, call.args, call.keywords
    if ufunc is np.copyto:  # y[...] = 0
        ufunc, operands, options = np.positive, operands[1:2], {"out": operands[0]}
    if not isinstance(ufunc, np.ufunc) or ufunc.nout != 1 or ufunc.signature:
        raise NotBound(f"{ufunc} is no ufunc of elements")
    out = options.get("out", operands[-1])
    if not options.keys() <= {"out"} or not isinstance(out, np.ndarray):
        raise NotBound(f"{ufunc.__name__} with options")
    of_values = [
        _value(x, values) if isinstance(x, np.ndarray) and (x.ndim or id(x) in values) else float(x)
        for x in operands[: ufunc.nin]
    ]
    values[id(_whole(out))] = at
    return Step(ufunc, tuple(of_values), out.dtype == bool)


def _value(x: Array, values: dict[int, int]) -> int:
    return values[id(_whole(x))]


def _whole(x: Array) -> Array:
    """The array that owns the memory, all of which `x` is."""
    whole: Array = owner(x)
    same = x.__array_interface__["data"] == whole.__array_interface__["data"]
    if not same or (x.shape, x.strides, x.dtype) != (whole.shape, whole.strides, whole.dtype):
        raise NotBound("a part of an array")
    return whole


def is_costly(op: Op, inputs: int, dtype: Any) -> bool:
    """Whether computing the op a second time takes longer than reading its output from memory."""
    tape = tape_of(op, (False,) * inputs, dtype)
    return tape is not None and any(step.ufunc in COSTLY for step in tape.forward)
