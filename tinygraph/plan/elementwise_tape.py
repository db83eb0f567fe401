"""The tape of an elementwise op: the ufuncs that its own numpy body calls, and nothing else.

The body runs once on `Element`s in the place of arrays.  They hold no numbers; each ufunc is
written down, as a step that several ops can share the blocks of.  So chains need no second form of
an op, and an op that is added joins them by itself.  A body that does more than call ufuncs on
whole arrays has no tape.

    np.negative(x, out=y)              v1 = negative(v0)
    np.exp(y, out=y)                   v2 = exp(v1)
    y += 1                             v3 = add(v2, 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tinygraph.op import Op
from tinygraph.ops.arithmetic import Arithmetic
from tinygraph.ops.shared.unary import Unary
from tinygraph.plan.block_program import Filled, Value, Writer
from tinygraph.shapes import Shape

COSTLY = (np.exp, np.expm1, np.log, np.log1p, np.tanh)  # longer than reading a result from memory
BY_ARRAYS = (np.maximum, np.minimum)  # take a number at half the speed of an array


class NoTape(Exception):
    """The body does something that is no ufunc of whole arrays."""


class Element(NDArrayOperatorsMixin):
    """Stands for an array of a body: the value that was written into it last."""

    __slots__ = ("dtype", "shape", "value", "writer")

    def __init__(self, writer: Writer, shape: Shape, dtype: Any, value: Value | None = None):
        self.writer, self.shape, self.dtype, self.value = writer, shape, np.dtype(dtype), value

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Element:
        (out,) = options.pop("out", (None,))
        if method != "__call__" or options or ufunc.signature or ufunc.nout != 1:
            raise NoTape(f"{ufunc.__name__}.{method}")
        if out is None:
            of = [np.ones(1, x.dtype) if isinstance(x, Element) else x for x in inputs]
            out = Element(self.writer, self.shape, ufunc(*of).dtype)
        operands = [_operand(ufunc, x) for x in inputs]
        out.value = self.writer.emit(ufunc, *operands, is_bool=out.dtype == bool)
        return out

    def __setitem__(self, key: Any, number: float) -> None:
        if key is not Ellipsis:
            raise NoTape("a part of an array")
        self.value = self.writer.emit(np.positive, number)


def _operand(ufunc: Any, x: Any) -> Any:
    if isinstance(x, Element):
        return x.value
    if not isinstance(x, (int, float, np.generic)):
        raise NoTape(f"a {type(x).__name__}")
    return Filled(float(x)) if ufunc in BY_ARRAYS else float(x)


class _Memory:
    """In the place of the op's `mem`."""

    def __init__(self, writer: Writer, needs: tuple[bool, ...]) -> None:
        self.writer, self.needs = writer, needs

    def empty(self, shape: Shape, dtype: Any) -> Element:
        return Element(self.writer, shape, dtype)


class Tape:
    """One op in a program: its value, and what its backward makes of it.

    Parameters
    ----------
    writer : Writer
        Where the calls are written down.
    op : Op
    inputs : sequence of Value
    shapes : sequence of tuple
        Those of the inputs.
    dtype : dtype
    needs : tuple of bool
        Which inputs want a gradient.
    kept : Value, optional
        The output, where it is already known.

    Raises
    ------
    NoTape
        Or whatever the body raises where there are no numbers.
    """

    def __init__(
        self,
        writer: Writer,
        op: Op,
        inputs: Sequence[Value],
        shapes: Sequence[Shape],
        dtype: Any,
        needs: tuple[bool, ...],
        kept: Value | None = None,
    ) -> None:
        self.writer, self.op, self.needs, self.dtype = writer, op, needs, dtype
        self._shape = np.broadcast_shapes(*shapes)
        given = [Element(writer, s, dtype, x) for s, x in zip(shapes, inputs, strict=True)]
        memory: Any = _Memory(writer, needs)
        if isinstance(op, Unary):  # its mathematics; forward may cut it into blocks
            (x,), y = given, memory.empty(shapes[0], dtype)
            op.function(memory, x, y)  # type: ignore[arg-type]
            self._saved: Any = y if op.keeps == "y" else x
        else:
            y, self._saved = op.forward(memory, *given)
        if y.dtype != dtype:
            raise NoTape(f"a result of {y.dtype}")
        if kept is not None:
            y.value = kept
        self.value: Value = y.value

    def gradients(self, g: Value) -> list[Value | None]:
        """For each input its gradient, where it wants one."""
        memory: Any = _Memory(self.writer, self.needs)
        gy: Any = Element(self.writer, self._shape, self.dtype, g)
        if isinstance(self.op, Unary):
            gx = memory.empty(self._shape, self.dtype)
            self.op.gradient(memory, gy, self._saved, gx)
            return [gx.value]
        found: Any = self.op.backward(memory, gy, self._saved, self.needs)
        return [x.value if needed else None for x, needed in zip(found, self.needs, strict=True)]


@lru_cache(maxsize=256)
def ufuncs_of(op: Op, inputs: int, dtype: Any) -> tuple[Any, ...] | None:
    """The ufuncs of forward, where an op has a tape; else None."""
    if not isinstance(op, (Unary, Arithmetic)):
        return None  # the bodies of other ops are not run for nothing
    writer = Writer(inputs + 1)
    *given, g = writer.inputs
    try:
        tape = Tape(writer, op, given, [()] * inputs, dtype, (True,) * inputs)
        forward = tuple([call.ufunc for call in writer.calls])
        tape.gradients(g)
    except Exception:  # NoTape, or an error of a body that asks for numbers
        return None
    return forward


def is_costly(op: Op, inputs: int, dtype: Any) -> bool:
    """Whether computing the op a second time takes longer than reading its output from memory."""
    return any(ufunc in COSTLY for ufunc in ufuncs_of(op, inputs, dtype) or ())
