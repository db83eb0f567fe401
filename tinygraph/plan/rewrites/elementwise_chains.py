"""Neighbouring elementwise ops on large arrays as one op that works block by block.

    x * sigmoid(x)        ->   sigmoid_mul(x)
    (x - y) * 0.5 + x     ->   sub_mul_add(x, y, 0.5)

See elementwise_chain.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tinygraph.engine import Op
from tinygraph.plan.code import Code, Instruction
from tinygraph.plan.elementwise_chain import ElementwiseChain
from tinygraph.plan.elementwise_tape import tape_of

FEWEST_BYTES = 8 << 20  # of the output: smaller values stay in a cache between two ops


def find_elementwise_chains(
    code: Code, fewest_bytes: int | None = None
) -> Iterator[tuple[Sequence[int], Op, Sequence[int]]]:
    """Every chain of two or more whose output has at least so many bytes, or `FEWEST_BYTES`."""
    fewest = FEWEST_BYTES if fewest_bytes is None else fewest_bytes
    for last in range(len(code.instructions) - 1, -1, -1):
        made = code.instructions[last]
        large = made.spec.dtype.kind == "f" and made.nbytes >= fewest
        if large and _has_tape(made) and _fits(code, made):
            chain = _chain_to(code, last)
            if len(chain) > 1:
                yield chain, *_as_op(code, chain)


def _has_tape(made: Instruction) -> bool:
    whole = (False,) * len(made.inputs)
    return made.op is not None and tape_of(made.op, whole, made.spec.dtype) is not None


def _fits(code: Code, made: Instruction) -> bool:
    """Whether each operand has the shape of the output, or is a number without a gradient."""
    return all(
        code.instructions[i].spec == made.spec
        or (math.prod(code.instructions[i].spec.shape) == 1 and not needed)
        for i, needed in zip(made.inputs, made.needs, strict=True)
    )


def _chain_to(code: Code, last: int) -> list[int]:
    """The ops that lead to `last` and to nothing else, in order."""
    users, outside = code.users(), {*code.outputs, code.root}
    spec = code.instructions[last].spec
    chain = {last}
    for at in range(last - 1, -1, -1):
        made = code.instructions[at]
        if (
            made.spec == spec
            and _fits(code, made)
            and _has_tape(made)
            and at not in outside
            and users[at]
            and chain.issuperset(users[at])
        ):
            chain.add(at)
    return sorted(chain)


def _as_op(code: Code, chain: Sequence[int]) -> tuple[ElementwiseChain, tuple[int, ...]]:
    """The op, and the values that it takes."""
    inner = [code.instructions[at] for at in chain]
    operands = list(dict.fromkeys([i for made in inner for i in made.inputs if i not in chain]))
    place = {old: new for new, old in enumerate([*operands, *chain])}
    leaves = [
        Instruction(code.instructions[at].spec, argument=i, label=code.instructions[at].label)
        for i, at in enumerate(operands)
    ]
    steps = [replace(made, inputs=tuple([place[i] for i in made.inputs])) for made in inner]
    last = len(place) - 1
    return ElementwiseChain(Code([*leaves, *steps], (last,), last)), tuple(operands)
