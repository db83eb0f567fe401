"""tune=True: a few tile sizes and numbers of threads are measured, and the fastest is kept.

Each candidate runs forward and backward on the arguments of the first call, and its gradients are
thrown away.  Only batches that can be cut are measured, and of their ops none writes an input, so
that nothing outside of the plan changes; the random streams are put back.  Of others it is
recorded that they run whole, and why.

Which candidate wins depends on the moment, and sums are taken in another order on other tiles.  So
a choice can be recorded, and given to the next process: with it the bits are the same.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import CheckpointError, whole
from tinygraph.base.threads import cores
from tinygraph.engine import Array, Spec, default_generator
from tinygraph.plan.code import Code
from tinygraph.plan.runner import Plan
from tinygraph.plan.tiles import tile_size

ROUNDS = 3  # of each candidate
FINAL_ROUNDS = 5  # of the two fastest, in turns
TOO_SLOW = 1.3  # times the fastest so far: no further rounds
HOPELESS = 4.0  # the same for a first run, which lays buffers out: no such number of threads


class Candidate(NamedTuple):
    """Threads, and samples of a tile; 0 for a batch that is not cut."""

    threads: int
    tile: int

    def __str__(self) -> str:
        if not self.tile:
            return "the whole batch"
        return f"tiles of {self.tile} on {self.threads} thread{'s' if self.threads > 1 else ''}"


@dataclass(frozen=True)
class Choice:
    """What was chosen for one plan.

    Of the candidates that were tried the two fastest have medians, the others their best time, and
    those that are far behind that of their first run.
    """

    arguments: tuple[str, ...]  # dtypes and shapes of arrays, as in "float32[100, 1, 28, 28]"
    code: str  # a digest of the plan's ops and their shapes
    threads: int
    tile: int  # 0: the batch is not cut
    milliseconds: dict[str, float]  # by candidate
    reason: str = ""  # why the batch cannot be cut, so that nothing was measured

    def __str__(self) -> str:
        chosen = str(Candidate(self.threads, self.tile))
        if self.reason:
            return f"tuned: {chosen}; nothing to choose: {self.reason}"
        times = ", ".join([f"{name} {ms:.4g} ms" for name, ms in self.milliseconds.items()])
        return f"tuned: {chosen}; measured: {times}"


class Tuning:
    """The choices for all plans of a compiled function."""

    def __init__(self, threads: int | None = None, tile: int | None = None) -> None:
        self.threads, self.tile = threads, tile  # what is fixed beforehand
        self.choices: list[Choice] = []  # measured in this process, or given to `load`
        self.measures = True  # False: what has no choice keeps what a plan chooses by itself

    def to_list(self) -> list[dict[str, Any]]:
        """The choices as JSON takes them."""
        return [{**asdict(c), "arguments": list(c.arguments)} for c in self.choices]

    def load(self, saved: Any) -> None:
        """Take over what `to_list` gave, or CheckpointError; plans with these shapes are not
        measured again."""
        try:
            self.choices = [_choice_of(item) for item in saved]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            got, way_out = f"{type(error).__name__}: {error}", "start a new run, or leave tune out"
            expected = "a list of choices, as to_list gives them"
            raise CheckpointError("compile", "tuning", expected, got, way_out) from None

    def tuned(self, plan: Plan, arguments: Sequence[Array]) -> tuple[Plan, Choice]:
        """The plan with the fastest tiles and threads, ready to run, and what was chosen."""
        shapes = tuple([str_of(Spec(array.shape, array.dtype)) for array in arguments])
        digest, reason = digest_of(plan.code), plan.cut.reason
        for choice in self.choices:
            if (choice.arguments, choice.code, choice.reason) == (shapes, digest, reason):
                return plan if reason else cut_as(plan, choice.threads, choice.tile), choice
        if not self.measures:
            return plan, Choice(shapes, digest, plan.threads, plan.tile, {}, "not to be measured")
        if reason:
            self.choices.append(Choice(shapes, digest, plan.threads, plan.tile, {}, reason))
            return plan, self.choices[-1]
        candidates = candidates_for(plan, self.threads, self.tile)
        draws = default_generator.state_dict()
        try:
            found, times = fastest(plan, candidates, arguments)
        finally:
            default_generator.load_state_dict(draws)
        milliseconds = {str(candidate): 1e3 * s for candidate, s in times.items()}
        self.choices.append(Choice(shapes, digest, found.threads, found.tile, milliseconds))
        return found, self.choices[-1]


def candidates_for(plan: Plan, threads: int | None, tile: int | None) -> list[Candidate]:
    """What is measured: what the plan chose by itself; all cores, and one, two, four, ... of them,
    each with the usual tile, half of it and twice as much; the whole batch."""
    batch, most = plan.cut.batch, cores()
    counts = sorted({most, *[1 << k for k in range(most.bit_length())]}, reverse=True)
    found = [Candidate(plan.threads, plan.tile)]
    for count in [threads] if threads else counts:
        usual = tile_size(plan.code, batch, count)
        share = -(-batch // count)
        for size in [tile] if tile else [usual, usual // 2, 2 * usual]:
            if size >= 1 and count <= batch:
                size = min(size, share)
                found.append(Candidate(count, size) if size < batch else Candidate(1, 0))
    if not (threads or tile):
        found.append(Candidate(1, 0))
    return list(dict.fromkeys(found))


def fastest(
    plan: Plan, candidates: Sequence[Candidate], arguments: Sequence[Array]
) -> tuple[Plan, dict[Candidate, float]]:
    """The fastest candidate as a plan that is laid out, and the seconds of all that were tried."""
    times: dict[Candidate, float] = {}
    leading: list[tuple[float, Candidate, Plan]] = []  # the two fastest; others free their memory
    hopeless: set[int] = set()  # numbers of threads
    for candidate in candidates:
        if candidate.threads in hopeless:
            continue
        made = cut_as(plan, *candidate)
        best = leading[0][0] if leading else math.inf
        times[candidate] = _timed(made, arguments)  # lays the buffers out, which takes longer
        if times[candidate] > HOPELESS * best:
            hopeless.add(candidate.threads)
            continue
        seconds = [_timed(made, arguments)]
        while len(seconds) < ROUNDS and min(seconds) <= TOO_SLOW * best:
            seconds.append(_timed(made, arguments))
        times[candidate] = min(seconds)
        leading = sorted([*leading, (min(seconds), candidate, made)], key=lambda x: x[0])[:2]
    if len(leading) > 1:
        rounds: dict[Candidate, list[float]] = {candidate: [] for _, candidate, _ in leading}
        for _ in range(FINAL_ROUNDS):
            for _, candidate, made in leading:
                rounds[candidate].append(_timed(made, arguments))
        times.update({candidate: float(np.median(taken)) for candidate, taken in rounds.items()})
        leading.sort(key=lambda x: times[x[1]])
    return leading[0][2], times


def _timed(plan: Plan, arguments: Sequence[Array]) -> float:
    started = time.perf_counter()
    plan.rehearse(arguments)
    return time.perf_counter() - started


def cut_as(plan: Plan, threads: int, tile: int) -> Plan:
    """A plan of the same code in other tiles; tile 0 for the whole batch."""
    return Plan(plan.code, plan.carrying, threads, tile or plan.cut.batch)


def digest_of(code: Code) -> str:
    """Ops, shapes and who takes what, as a short text that is the same in every process."""
    import hashlib  # not before a plan is tuned

    lines = [
        f"{made.op.name if made.op else 'leaf'} {str_of(made.spec)} {made.inputs} {made.needs}"
        for made in code.instructions
    ]
    text = "\n".join([*lines, f"{code.outputs} {code.root}"])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def str_of(spec: Spec) -> str:
    """A shape with its dtype.

    >>> str_of(Spec((3, 4), np.dtype("float32")))
    'float32[3, 4]'
    """
    return f"{spec.dtype}[{', '.join(map(str, spec.shape))}]"


def _choice_of(item: Mapping[str, Any]) -> Choice:
    """One choice from plain values; an exception where it is none."""
    threads = whole("compile", "threads", item["threads"])
    tile = whole("compile", "tile", item["tile"], least=0)
    times = {str(name): float(ms) for name, ms in item["milliseconds"].items()}
    shapes, reason = tuple(map(str, item["arguments"])), str(item.get("reason", ""))
    return Choice(shapes, str(item["code"]), threads, tile, times, reason)
