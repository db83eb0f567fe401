"""A plan as a table that people read."""

from __future__ import annotations

import math

from tinygraph.base.text_table import aligned
from tinygraph.plan.code import Instruction
from tinygraph.plan.fast import compiled_body
from tinygraph.plan.runner import Plan


def describe(plan: Plan) -> str:
    """What a plan does: its ops in order, tiles, threads and bytes."""
    code = plan.code
    names = [_name(at, made) for at, made in enumerate(code.instructions)]
    wanted = code.differentiated()
    rows = [("value", "op", "takes", "shape", "backward")]
    for at, made in enumerate(code.instructions):
        if made.op is not None:
            takes = ", ".join(names[i] for i in made.inputs)
            shape = f"{made.spec.dtype}[{', '.join(map(str, made.spec.shape))}]"
            rows.append((f"%{at}", made.op.name, takes, shape, "yes" if wanted[at] else ""))
    return "\n".join([*aligned(rows, left=range(5)), *_notes(plan)])


def _name(at: int, made: Instruction) -> str:
    if made.op is not None:
        return f"%{at}"
    return made.label or ("a tensor" if made.argument is None else f"argument {made.argument}")


def _notes(plan: Plan) -> list[str]:
    if plan.tile:
        tiles = math.ceil(plan.cut.batch / plan.tile)
        how = f"tiles of {plan.tile} samples, {tiles} in all, on {plan.threads} thread"
        lines = [f"batch of {plan.cut.batch}: {how}{'s' if plan.threads > 1 else ''}"]
    else:
        reason = plan.cut.reason or "it is small"
        lines = [f"the batch is not cut: {reason}"]
    numba = [f"%{at}" for at, made in enumerate(plan.code.instructions) if compiled_body(made.op)]
    if numba:
        lines.append(f"compiled by numba: {', '.join(numba)}")
    arena, requested = plan.bytes_of_buffers()
    if arena:
        lines.append(f"buffers: {_size(arena)}, {_size(requested)} without sharing")
    replay = plan.replay()
    if replay is not None:
        calls = sum(map(len, replay.replayed.values()))
        apart = [f"%{at}" for at in replay.not_bound()]
        through = f", {', '.join(apart)} through their bodies" if apart else ""
        lines.append(f"replayed as {calls} calls{through}")
    return lines


def _size(count: int) -> str:
    """Bytes in a unit that shows some of them.

    >>> _size(4352), _size(2_500_000)
    ('4.4 kB', '2.5 MB')
    """
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count / 1e3:.1f} kB"
