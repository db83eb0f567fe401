"""Which instructions of a plan get bodies that numba has compiled, and whether any do.

    fast=None    where numba is there, and the values of a batch are large
    fast=True    always; without numba it is an error
    fast=False   never

For a small batch numpy is quick enough, and importing numba would take longer than a training.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tinygraph.base import ArgumentError, PlanWarning, install
from tinygraph.engine import Op, Spec
from tinygraph.plan.code import Code
from tinygraph.plan.fast import jit
from tinygraph.plan.fast.batch_norm import compiled_norm
from tinygraph.plan.fast.convolution import compiled_convolution
from tinygraph.plan.fast.elementwise_chain import FEWEST_BYTES, elementwise_chain
from tinygraph.plan.fast.jit import CompiledBody, compiled_body
from tinygraph.plan.fast.pooled_convolution import find_pooled_convolutions, pooled_convolution
from tinygraph.plan.fast.single_channel_stage import single_channel_stage
from tinygraph.plan.rewrites import rewritten
from tinygraph.plan.rewrites.elementwise_chains import find_elementwise_chains
from tinygraph.plan.tiles import bytes_of_values

WORTH_COMPILING = 4 << 20  # bytes of values below which numpy is quick enough

# Each gives the op with compiled bodies, or None where its bodies are for others.  The first wins.
BODIES: Sequence[Callable[[Op, tuple[Spec, ...]], CompiledBody | None]] = (
    single_channel_stage,
    pooled_convolution,
    compiled_convolution,
    compiled_norm,
    elementwise_chain,
)


class NoNumba(ArgumentError):
    """`fast=True`, and numba cannot be imported, or cannot compile."""


def with_compiled_bodies(code: Code, fast: bool | None) -> Code:
    """The same code, in which some ops have compiled bodies; on a device with kernels none has.

    Where numba cannot be imported, or cannot compile, that is NoNumba for True; for None a
    PlanWarning, if it is there, and the plan is all numpy.
    """
    large = bytes_of_values(code) >= WORTH_COMPILING
    unwanted = fast is False or (fast is None and not (large and jit.installed()))
    if unwanted or code.device.runs_kernels:
        return code
    # Stages of more channels, and chains of smaller arrays, than in numpy.
    fused = rewritten(code, find_pooled_convolutions)
    fused = rewritten(fused, partial(find_elementwise_chains, fewest_bytes=FEWEST_BYTES))
    found = {
        at: op
        for at, made in enumerate(fused.instructions)
        if made.op is not None and (op := _compiled(made.op, fused, made.inputs))
    }
    reason = missing = jit.why_not() if found or fast else ""
    if not reason:
        reason = _prepared(fused, found)
        if reason and not fast:
            message = f"compile: a plan in numpy, for numba: {reason}"
            warnings.warn(PlanWarning(message), stacklevel=2)
    if reason and fast:
        way_out = f"{install('fast')}, or fast=None" if missing else "fast=None, which does without"
        raise NoNumba("compile", "fast", "numba, which fast=True needs", reason, way_out)
    if reason or not found:
        return code
    instructions = list(fused.instructions)
    for at, op in found.items():
        instructions[at] = replace(instructions[at], op=op)
    return replace(fused, instructions=instructions)


def _prepared(code: Code, found: Mapping[int, Op]) -> str:
    """Compile all bodies; why that has failed, or ""."""
    try:
        for at, op in found.items():
            compiled_body(op).prepare(code.instructions[at].spec.dtype)  # type: ignore[union-attr]
    except Exception as error:  # numba has many
        return f"{type(error).__name__}: {error}"
    return ""


def _compiled(op: Op, code: Code, inputs: Sequence[int]) -> Op | None:
    """The op with compiled bodies; else with them in the place of the product within it."""
    specs = tuple([code.instructions[i].spec for i in inputs])
    found = next((made for made in (body(op, specs) for body in BODIES) if made), None)
    product = getattr(op, "product", None)
    if found is None and isinstance(product, Op):
        inner = _compiled(product, code, inputs)
        return inner and replace(op, product=inner)  # type: ignore[type-var]
    return found
