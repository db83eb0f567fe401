"""The table of exporters: for each op a function that writes it as operators of ONNX.

    @tg.onnx.exporter(MyOp)
    def my_op(w, node, x):              w      a Writer
        return w.node("Mul", x, x)      node   the Tensor that MyOp made: op, inputs, shape, dtype
                                        x      the name that its input has in the file

An exporter belongs to one class: a subclass may compute something else, and has its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tinygraph.base import ArgumentError, OnnxError
from tinygraph.engine import Op
from tinygraph.ops.elementwise.dropout import Dropout

Exporter = Callable[..., str]  # (w, node, *names of its inputs) -> the name of its output
F = TypeVar("F", bound=Exporter)

EXPORTERS: dict[type[Op], Exporter] = {}

EVAL = "model.eval(), before it is saved"

# Ops that no operators can stand for, and why.
WITHOUT_ONNX: dict[type[Op], str] = {Dropout: "it draws random numbers, as in training"}


def exporter(*ops: type[Op]) -> Callable[[F], F]:
    """Say how an op of yours is written in ONNX: a decorator of the function that does it.

    Parameters
    ----------
    *ops : subclasses of Op
        The ops that the function writes.  It is called as `function(w, node, *inputs)`: `node` is
        the Tensor that the op made, with `.op`, `.inputs`, `.shape` and `.dtype`, and `inputs` are
        the names that its inputs have in the file.  `w.node(operator, *inputs, **attributes)` adds
        an operator and returns the name of its output, `w.constant(array)` and `w.ints(2, 3)` the
        name of an array.  What the function returns is the name of the node's value.

    Raises
    ------
    ArgumentError
        Something else than a subclass of Op.

    Examples
    --------
    >>> import tinygraph as tg
    >>> class Cube(tg.Op):
    ...     def forward(self, mem, x):
    ...         return x**3, None
    >>> @tg.onnx.exporter(Cube)
    ... def cube(w, node, x):
    ...     return w.node("Mul", w.node("Mul", x, x), x)
    >>> model = tg.onnx.to_proto(lambda x: Cube()(x), tg.ones(2))
    >>> [node.op_type for node in model.graph.node]
    ['Mul', 'Mul']
    """
    for op in ops:
        if not (isinstance(op, type) and issubclass(op, Op)):
            way_out = "@tg.onnx.exporter(MyOp), the class itself"
            raise ArgumentError("tg.onnx.exporter", "ops", "subclasses of tg.Op", repr(op), way_out)

    def put(function: F) -> F:
        for op in ops:
            EXPORTERS[op] = function
        return function

    return put


def exporter_of(op: Any) -> Exporter:
    """The exporter of an op, or OnnxError that says how to write one."""
    kind = type(op)
    if kind in EXPORTERS:
        return EXPORTERS[kind]
    if kind in WITHOUT_ONNX:
        raise refused(op, WITHOUT_ONNX[kind], EVAL)
    way_out = f"@tg.onnx.exporter({kind.__name__}) above a function that writes it"
    raise OnnxError("tg.onnx.save", op.name, "an op with an exporter", "one without", way_out)


def refused(op: Any, reason: str, way_out: str) -> OnnxError:
    """The error about an op that cannot be written as it is."""
    return OnnxError("tg.onnx.save", op.name, "an op that ONNX can have", reason, way_out)
