"""Where a batch can be cut: which values carry samples, and how many samples make a tile.

    whole   the same for all samples: parameters, constants, and what is computed from these alone,
            by each tile for itself: the places of tokens in a sequence
    map     sample i stands at index i of axis 0, and depends on sample i of what carries samples;
            or on several neighbouring rows, as many for each sample: (N, T, V) as (N T, V)
    sum     added up over samples; a mean is one of each tile, which counts for as much of the whole
            as it has terms: `divisor`, asked before any tile runs

The ops say so themselves (`Op.batch`).  A code is cut where every op that takes samples is a map or
a sum, and nothing is computed from a sum: a loss at the end.  But a sum times a number is a sum:
c (a + b) = c a + c b, as in a loss that is divided by a number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tinygraph.engine import Array, Spec
from tinygraph.ops.elementwise.arithmetic import Div, Mul
from tinygraph.ops.elementwise.elementwise import Neg
from tinygraph.plan.code import Code, Instruction

Kind = Literal["whole", "map", "sum"]

FEWEST_SAMPLES = 16  # of a tile: products over fewer rows leave a processor idle
# Bytes of all values of a tile.  Fused ops work in blocks that fit a core's cache by themselves; on
# the seed network and a VGG-like one tiles of 16 MiB to 64 MiB were as fast as any.
TILE_BYTES = 32 << 20
MOST_SHARED = 1 / 8  # of the bytes of all values: what each tile computes alike
# Bytes of all values, and of an op's on average, below which tiles and threads cost more than they
# save.  On two threads SRCNN at a batch of 16, 3.7 MB in 6 ops, takes half to two thirds of the
# time; a GPT of two blocks, 7.9 MB in 80 ops, takes longer: threads wait for the interpreter.
WORTH_CUTTING, WORTH_CUTTING_EACH = 2 << 20, 256 << 10


@dataclass(frozen=True)
class Cut:
    """How a code may be cut into tiles."""

    batch: int  # samples of the whole batch
    kinds: tuple[Kind, ...]  # for each value; () where it cannot be cut
    rows: tuple[int, ...] = ()  # for each value those of a sample on axis 0; 0 for what is no map
    reason: str = ""  # why it cannot be cut
    # For each sum the value that sums over samples: itself, or what it is a multiple of.
    reduced: dict[int, int] = field(default_factory=dict)


def find_cut(code: Code, carrying: Sequence[int]) -> Cut:
    """How a code may be cut, where `carrying` names the arguments that may carry samples.

    The batch is the longest of them; else the shortest, and others may have several rows for each
    sample, as labels of tokens have beside sequences.
    """
    rows = {
        at: made.spec.shape[0]
        for at, made in enumerate(code.instructions)
        if made.argument is not None and made.argument in carrying and made.spec.shape
    }
    most = max(rows.values(), default=0)
    fewest = min((n for n in rows.values() if n > 1), default=most)
    found = _cut(code, most, {at for at, n in rows.items() if n == most})
    if not found.reason or fewest == most:
        return found
    again = _cut(code, fewest, {at for at, n in rows.items() if n % fewest == 0})
    return found if again.reason else again


def _cut(code: Code, batch: int, carrying: set[int]) -> Cut:
    """The same, where the leaves that carry samples are known."""
    kinds: list[Kind] = []
    shared = 0  # bytes of values that are the same for all samples
    reduced: dict[int, int] = {}

    def refuse(reason: str) -> Cut:
        return Cut(batch, (), reason=reason)

    if code.device.runs_kernels:
        return refuse(f"kernels on {code.device} take all samples at once")
    if batch < 2:
        return refuse("no argument carries several samples")
    wanted = code.differentiated()
    for at, made in enumerate(code.instructions):
        if made.op is None:
            kinds.append("map" if at in carrying else "whole")
            if kinds[at] == "map" and wanted[at]:
                return refuse("the gradient of an argument that carries samples is wanted")
            continue
        carries = tuple([kinds[i] == "map" for i in made.inputs])
        name = made.op.name
        totals = [i for i in made.inputs if kinds[i] == "sum"]
        if totals and _is_multiple(made, kinds):
            kinds.append("sum")
            reduced[at] = reduced[totals[0]]
            continue
        if totals:
            return refuse(f"{name} takes a sum over the batch")
        if made.op.updates:
            return refuse(f"{name} writes one of its inputs")
        if not any(carries):  # each tile computes it for itself
            shared += made.nbytes
            if shared > MOST_SHARED * bytes_of_values(code):
                return refuse(f"{name} computes much that is the same for all samples")
            kinds.append("whole")
            continue
        specs = tuple([code.instructions[i].spec for i in made.inputs])
        claim = made.op.batch(specs, carries)
        if claim is None:
            return refuse(f"{name} mixes samples, or does not say that it keeps them apart")
        if claim == "map" and (made.spec.shape[:1] or (1,))[0] % batch:
            return refuse(f"{name} moves samples away from axis 0")
        if claim == "sum":
            reduced[at] = at
            if divisor(code, at, kinds, _Nothing(code), batch, batch) is None:
                return refuse(f"{name} divides by a number that follows from what is computed")
        kinds.append(claim)
    if code.root is not None and kinds[code.root] != "sum":
        return refuse("backward begins at a value that is no sum over the batch")
    if "map" not in kinds:
        return refuse("no argument carries several samples")
    found = zip(code.instructions, kinds, strict=True)
    rows = tuple([made.spec.shape[0] // batch if kind == "map" else 0 for made, kind in found])
    return Cut(batch, tuple(kinds), rows, reduced=reduced)


def divisor(
    code: Code, at: int, kinds: Sequence[Kind], values: Any, samples: int, batch: int
) -> float | None:
    """What a sum is divided by, of so many samples: it follows from the values of leaves, and of
    all else from what its shape is then."""
    made, given = code.instructions[at], []
    for i in made.inputs:
        spec = code.instructions[i].spec
        if code.instructions[i].op is None:
            given.append(values[i])
        else:
            rows = samples * spec.shape[0] // batch if kinds[i] == "map" else 0
            given.append(Spec((rows, *spec.shape[1:]), spec.dtype) if rows else spec)
    op: Any = made.op
    found: float | None = op.divisor(*given)
    return found


class _Nothing:
    """Stands for the values of leaves before they are there: zeros that take no memory."""

    def __init__(self, code: Code) -> None:
        self.code = code

    def __getitem__(self, at: int) -> Array:
        spec = self.code.instructions[at].spec
        return np.broadcast_to(np.zeros((), spec.dtype), spec.shape)


def _is_multiple(made: Instruction, kinds: Sequence[Kind]) -> bool:
    """Whether an op multiplies or divides a sum by what is the same for all samples, or turns its
    sign."""
    found = [kinds[i] for i in made.inputs]
    right = isinstance(made.op, (Mul, Div)) and found == ["sum", "whole"]
    return isinstance(made.op, Neg) or right or (type(made.op) is Mul and found == ["whole", "sum"])


def bytes_of_values(code: Code) -> int:
    """Bytes of all values that ops make, for the whole batch."""
    return sum(made.nbytes for made in code.instructions if made.op is not None)


def tile_size(code: Code, batch: int, threads: int) -> int:
    """Samples of a tile: few enough that its values take little memory, and at least 16.

    About as many as `TILE_BYTES` hold; a quarter less to a third more where all tiles are then of
    one size, for each size has a program of its own.  A function of shapes and threads alone, so
    that runs can be repeated.
    """
    each = max(1, bytes_of_values(code) // batch)
    fitting = max(FEWEST_SAMPLES, TILE_BYTES // each)
    share = -(-batch // threads)
    tiles = -(-share // fitting)
    low, high = max(FEWEST_SAMPLES, fitting * 3 / 4), fitting * 4 / 3
    even = [n for n in range(1, share + 1) if share % n == 0 and low <= share // n <= high]
    if even:
        tiles = min(even, key=lambda n: abs(n - tiles))
    return -(-share // tiles)


def worth_cutting(code: Code) -> bool:
    """Whether the values of a batch are too large for a cache, and ops take longer than calls."""
    ops = sum(made.op is not None for made in code.instructions)
    return bytes_of_values(code) >= max(WORTH_CUTTING, WORTH_CUTTING_EACH * ops)
