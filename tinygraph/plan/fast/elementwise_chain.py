"""Elementwise chains, compiled: one loop that reads each operand once and writes each output once.

numpy needs a pass over a block for each ufunc of a chain (block_program.py).  Here the same program
becomes the text of a loop, one line for each ufunc, whose values stay in registers:

    def chain_9f3c(a0, a1, a2):                 sigmoid_mul(x, 0.5)
        c0 = real(1)
        s1 = a1[0]
        for i in range(len(a2)):
            s0 = a0[i]
            s3 = -s0
            s3 = exp(s3)
            ...
            a2[i] = s2

Every operation rounds as numpy's does, so that the bits are numpy's, but for exp, log and tanh,
which elementary.py has and which differ in the last bits; a sigmoid is made of exp.

Source: plan/elementwise_chain.py has the chain and its derivative, and the same in numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tinygraph.engine import Op, Spec
from tinygraph.plan.block_program import BlockCall, BlockProgram, Filled, Register
from tinygraph.plan.code import Code
from tinygraph.plan.elementwise_chain import ElementwiseChain
from tinygraph.plan.fast import elementary
from tinygraph.plan.fast.jit import CompiledBody, Function, compiled, inlined, plain

FEWEST_BYTES = 1 << 18  # of the output: smaller chains are as soon done op by op

# What each ufunc of a program is for one element.  A comparison makes the number 1 or 0.
EXPRESSIONS: dict[Any, str] = {
    np.add: "{0} + {1}",
    np.subtract: "{0} - {1}",
    np.multiply: "{0} * {1}",
    np.divide: "{0} / {1}",
    np.square: "{0} * {0}",
    np.reciprocal: "real(1) / {0}",
    np.negative: "-{0}",
    np.positive: "{0}",
    np.absolute: "abs({0})",
    np.sqrt: "np.sqrt({0})",
    np.exp: "exp({0})",
    np.log: "log({0})",
    np.tanh: "tanh({0})",
    np.expm1: "real(np.expm1({0}))",
    np.log1p: "real(np.log1p({0}))",
    np.copysign: "real(np.copysign({0}, {1}))",
    np.maximum: "{0} if ({0} >= {1}) | ({0} != {0}) else {1}",  # NaN wins
    np.minimum: "{0} if ({0} <= {1}) | ({0} != {0}) else {1}",
    np.not_equal: "real(1) if {0} != {1} else real(0)",
    np.greater: "real(1) if {0} > {1} else real(0)",
    np.less_equal: "real(1) if {0} <= {1} else real(0)",
    np.heaviside: "real(1) if {0} > real(0) else (real(0) if {0} < real(0) else "
    "({1} if {0} == real(0) else {0}))",
    np.sign: "real(1) if {0} > real(0) else (real(-1) if {0} < real(0) else "
    "(real(0) if {0} == real(0) else {0}))",
}


def loop_text(program: BlockProgram, numbers: Sequence[bool], name: str) -> str:
    """A function of flat arrays, inputs and then outputs; `numbers` tells inputs of one element.

    >>> from tinygraph.plan.block_program import Writer
    >>> writer = Writer(2)
    >>> y = writer.emit(np.multiply, *writer.inputs)
    >>> print(loop_text(writer.compiled([writer.emit(np.add, y, 1)]), [False, True], "scaled"))
    def scaled(a0, a1, a2):
        c0 = real(1)
        s1 = a1[0]
        for i in range(len(a2)):
            s0 = a0[i]
            s3 = s0 * s1
            s2 = s3 + c0
            a2[i] = s2
    """
    arrays = program.inputs + program.outputs
    filled = [Filled(x) for x in program.filled]  # the slots after those of arrays
    constants: dict[float, str] = {}

    def operand(x: Any) -> str:
        if isinstance(x, Register):
            if not arrays <= x.at < arrays + len(filled):
                return f"s{x.at}"
            x = filled[x.at - arrays].number
        return constants.setdefault(x, f"c{len(constants)}")

    def line(call: BlockCall) -> str:
        expression = EXPRESSIONS[call.ufunc].format(*[operand(x) for x in call.operands])
        return f"s{call.result.at} = {expression}"

    inputs, outputs = range(program.inputs), range(program.inputs, arrays)
    body = [
        *[f"s{at} = a{at}[i]" for at in inputs if not numbers[at]],
        *[line(call) for call in program.calls],
        *[f"a{at}[i] = s{at}" for at in outputs],
    ]
    before = [
        *[f"{constant} = real({number!r})" for number, constant in constants.items()],
        *[f"s{at} = a{at}[0]" for at in inputs if numbers[at]],
    ]
    head = f"def {name}({', '.join(f'a{at}' for at in range(arrays))}):"
    loop = f"for i in range(len(a{program.inputs})):"
    return "\n    ".join([head, *before, loop, *[f"    {step}" for step in body]])


@cache
def kernel(program: BlockProgram, numbers: tuple[bool, ...], dtype: Any) -> Function:
    """The loop, compiled for float32 or float64.

    The text is no file, and numba keeps machine code for functions of files only.  So it is given
    that of elementary.py, whose functions are compiled with the loop: a change there is noticed;
    and a name with the digest of the text, so that another text is another function.
    """
    import hashlib  # not before something is compiled

    digest = hashlib.sha256(loop_text(program, numbers, "").encode()).hexdigest()[:16]
    name = f"chain_{digest}"
    scope: dict[str, Any] = {"__name__": elementary.__name__, "np": np, "real": dtype.type}
    scope |= elementary.elementary(dtype, inlined)
    exec(compile(loop_text(program, numbers, name), elementary.__file__, "exec"), scope)
    takes = "x1 " * program.inputs + "=x1 " * program.outputs
    return compiled(scope[name], takes, dtype, contract=False)


class CompiledElementwiseChain(CompiledBody, ElementwiseChain):
    """`ElementwiseChain`, element by element; `numbers` tells which operands are one number."""

    def __init__(self, code: Code, numbers: tuple[bool, ...]) -> None:
        super().__init__(code)
        self.numbers = numbers
        self._kernels: dict[Any, Function] = {}  # those of `kernel`, which looks at whole programs

    def prepare(self, dtype: Any) -> None:
        kept = (False,) * (self._backward.inputs - len(self.numbers) - 1)
        kernel(self._forward, self.numbers, dtype)
        if self._backward.outputs:
            for upstream in (False, True):  # that of a sum is one number
                kernel(self._backward, (*self.numbers, *kept, upstream), dtype)

    def _run(self, program: BlockProgram, *given: Any) -> None:
        """Which inputs are one number is as `prepare` foresees, or the kernel is compiled now."""
        _, inputs, outputs = given
        numbers, dtype = tuple([x.ndim == 0 for x in inputs]), outputs[0].dtype
        run = self._kernels.get((id(program), numbers, dtype))
        if run is None:
            run = self._kernels[id(program), numbers, dtype] = kernel(program, numbers, dtype)
        run(*[plain(x.reshape(-1)) for x in inputs], *outputs)


def elementwise_chain(op: Op, specs: tuple[Spec, ...]) -> CompiledElementwiseChain | None:
    """The op with compiled bodies; None for any other op, and for one with another ufunc."""
    if type(op) is not ElementwiseChain or not op.ufuncs() <= EXPRESSIONS.keys():
        return None
    shape = op.infer(*specs).shape
    return CompiledElementwiseChain(op.code, tuple([spec.shape != shape for spec in specs]))
