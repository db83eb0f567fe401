"""The main loop of a kernel, in machine code: what a pass of it issues, loads and multiplies.

A warp issues one instruction a clock and scheduler, so that a kernel which computes is as fast as
the share of its instructions that compute.  The share can be read without a GPU:

    heart       the loop whose own blocks, without the loops inside, hold the most multiply-adds
    main loop   the heart; but a loop whose rounds the machine code fixes is as if unrolled, and
                belongs to the loop around it, and so on outwards
    pass        one way through it: the one with the most multiply-adds, then the most bytes loaded
                and stored, then the fewest instructions: a full tile, away from the edges

Instructions of inner loops count as often as the machine code says that they run, once where only
the run knows.  Where a compiler made several copies of a loop, for whole tiles and for the edge,
those with half of the most multiply-adds are looked at and the one with the best share is told.
A kernel without multiply-adds in loops is judged by the bytes that it moves instead, and one
without a loop as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.machine_code.disassembly import Instruction, disassemble
from benchmarks.machine_code.flow import Flow, Loop
from benchmarks.machine_code.rounds import rounds
from tinygraph.cuda.nvrtc.compiling import Compiled

TENSOR_CORES = ("HMMA", "IMMA", "DMMA")
MULTIPLY_ADDS = ("FFMA", "FFMA2", "DFMA", *TENSOR_CORES)
LOADS = ("LDG", "LDGSTS", "LD")
STORES = ("STG", "ST")
LOCAL = ("LDL", "STL")
WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


class Weight(NamedTuple):
    """What is weighed of a way through a loop: the most first, the fewest instructions last."""

    multiply_adds: int
    moved: int
    fewer: int

    def plus(self, *others: Weight) -> Weight:
        return Weight(*map(sum, zip(self, *others, strict=True)))


NOTHING = Weight(0, 0, 0)


@dataclass(frozen=True)
class MainLoop:
    """A pass of a kernel's main loop.

    Attributes
    ----------
    opcodes : dict
        How often a pass issues an instruction, by opcode with modifiers; "@!PT ..." is one that
        is issued and never does anything.
    is_loop : bool
        False for a kernel without a loop: then it is the whole kernel.
    unrolled : tuple of int
        The rounds of the loops inside that the machine code fixes.
    """

    opcodes: dict[str, int]
    is_loop: bool = True
    unrolled: tuple[int, ...] = ()

    @property
    def instructions(self) -> int:
        return sum(self.opcodes.values())

    @property
    def multiply_adds(self) -> dict[str, int]:
        """By kind: "FFMA", "DFMA", "HMMA", ..."""
        found: Counter[str] = Counter()
        for opcode, times in self.opcodes.items():
            if _base(opcode) in MULTIPLY_ADDS:
                found[_base(opcode)] += times
        return dict(found)

    @property
    def kind(self) -> str:
        """The multiply-adds that the loop is there for; "" where it has none."""
        found = self.multiply_adds
        return max(found, key=lambda kind: found[kind] * _worth(kind), default="")

    def share(self, kind: str) -> float:
        """Of the issued instructions, those of a kind: "FFMA", "LDS", "IMAD", ..."""
        return self.count(kind) / self.instructions

    def count(self, *kinds: str) -> int:
        return sum(times for opcode, times in self.opcodes.items() if _base(opcode) in kinds)

    def measure(self, what: str) -> float:
        """What a bound of floors.py is about: a measure by its words, or an opcode's share.

        >>> loop = MainLoop({"FFMA": 6, "LDG.E.128": 2})
        >>> loop.measure("FFMA"), loop.measure("bytes a load"), loop.measure("instructions")
        (0.75, 16.0, 8)
        """
        if what == "bytes a load":
            return self.bytes_a_load or 0.0
        numbers = {"instructions": self.instructions, "divisions": self.divisions}
        return numbers[what] if what in numbers else self.share(what)

    @property
    def loads(self) -> int:
        """Loads from global memory."""
        return self.count(*LOADS)

    @property
    def bytes_a_load(self) -> float | None:
        """The bytes that a thread's load from global memory brings, on average."""
        found = sum(times * _width(o) for o, times in self.opcodes.items() if _base(o) in LOADS)
        return found / self.loads if self.loads else None

    @property
    def bytes_a_shared_load(self) -> float | None:
        shared = {o: times for o, times in self.opcodes.items() if _base(o) == "LDS"}
        number = sum(shared.values())
        return sum(t * _width(o) for o, t in shared.items()) / number if number else None

    @property
    def divisions(self) -> int:
        """Of integers, each with its reciprocal: one taken before the loop does not count."""
        return sum(
            times
            for opcode, times in self.opcodes.items()
            if _base(opcode) in ("I2F", "UI2F") and opcode.endswith("RP")
        )

    @property
    def local(self) -> int:
        """Loads from and stores to local memory: spills, and arrays with a run-time index."""
        return self.count(*LOCAL)


def main_loop(machine_code: Compiled) -> MainLoop:
    """The main loop of a compiled kernel.

    Raises
    ------
    KernelCompileError
        There is no nvdisasm.

    Examples
    --------
    >>> from tinygraph.cuda.nvrtc import compile
    >>> from tinygraph.cuda.reading.source import Source
    >>> text = 'extern "C" __global__ void one(float* y) { y[threadIdx.x] = 1.0f; }'
    >>> [machine_code] = compile(Source.read(text), ["one"], "sm_90")
    >>> found = main_loop(machine_code)
    >>> found.is_loop, found.kind, found.loads
    (False, '', 0)
    """
    return judged(Flow(disassemble(machine_code.cubin)[machine_code.symbol]))


def judged(flow: Flow) -> MainLoop:
    """The main loop of a flow of control; see the head of this file."""
    ways = _Ways(flow)
    own = {loop: ways.weight(_own_blocks(loop)) for loop in flow.loops}
    by_work = any(weight.multiply_adds for weight in own.values())
    work = {loop: weight[0] if by_work else weight[1] for loop, weight in own.items()}
    most = max(work.values(), default=0)
    if most == 0:
        return ways.passed(None)
    hearts = [loop for loop in flow.loops if 2 * work[loop] >= most]
    # What a loop has around its inner loop is a rest of that one, unrolled apart.
    hearts = [loop for loop in hearts if not any(other.blocks < loop.blocks for other in hearts)]
    # In the order of `loops` the innermost comes first, and is kept where another is no better.
    return max((ways.passed(ways.outermost(heart)) for heart in hearts), key=_goodness)


def _goodness(found: MainLoop) -> tuple[float, float]:
    """For each multiply-add, or for each byte: many bytes moved, then few instructions."""
    work = sum(times * _worth(kind) for kind, times in found.multiply_adds.items())
    moved = sum(times * _moved(opcode) for opcode, times in found.opcodes.items())
    return moved / (work or moved), -found.instructions / (work or moved)


def _own_blocks(loop: Loop) -> frozenset[int]:
    return loop.blocks.difference(*(inner.blocks for inner in loop.inner))


class _Ways:
    """The heaviest ways through the loops of a flow."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.rounds = {loop: rounds(flow, loop) for loop in flow.loops}
        self._weights = {
            block: NOTHING.plus(*(_weight_of(flow.code[at]) for at in flow.blocks[block]))
            for block in flow.order
        }
        self._ways: dict[Loop | None, list[int | Loop]] = {}

    def outermost(self, loop: Loop) -> Loop | None:
        """The loop that a heart belongs to: the first one outwards that counts at run time."""
        found: Loop | None = loop
        while found is not None and self.rounds[found] is not None:
            found = found.parent
        return found

    def passed(self, loop: Loop | None) -> MainLoop:
        """The heaviest way through a loop; through the whole kernel for None."""
        opcodes: Counter[str] = Counter()
        unrolled: list[int] = []

        def take(part: Loop | None, times: int) -> None:
            for place in self.way(part):
                if isinstance(place, Loop):
                    fixed = self.rounds[place]
                    unrolled.extend([fixed] if fixed else [])
                    take(place, times * (fixed or 1))
                else:
                    for at in self.flow.blocks[place]:
                        opcodes[_issued(self.flow.code[at])] += times

        take(loop, 1)
        return MainLoop(dict(opcodes), loop is not None, tuple(unrolled))

    def way(self, loop: Loop | None) -> list[int | Loop]:
        """The blocks and inner loops of the heaviest way, in its order."""
        if loop not in self._ways:
            self._ways[loop] = self._way(loop)
        return self._ways[loop]

    def _way(self, loop: Loop | None) -> list[int | Loop]:
        flow = self.flow
        members = loop.blocks if loop else frozenset(flow.order)
        header = loop.header if loop else flow.order[0]
        inner = loop.inner if loop else [part for part in flow.loops if part.parent is None]
        inside = {block: part for part in inner for block in part.blocks}

        def name(block: int) -> int:  # an inner loop is one place, called by its header
            return inside[block].header if block in inside else block

        best, before = {name(header): NOTHING}, {name(header): -1}
        ends = []
        for place in [block for block in flow.order if block in members and name(block) == block]:
            if place not in best:
                continue
            part = inside.get(place)
            weight = best[place].plus(self._through(part) if part else self._weights[place])
            going = {way for b in (part.blocks if part else [place]) for way in flow.after[b]}
            if header in going if loop else not going:
                ends.append((weight, place))
            for following in {name(way) for way in going if way in members} - {place, header}:
                if following not in best or weight > best[following]:
                    best[following], before[following] = weight, place
        if not ends:  # nothing but a loop that never ends
            return [header]
        at, found = max(ends)[1], []
        while at >= 0:
            found.append(inside.get(at, at))
            at = before[at]
        return found[::-1]

    def _through(self, loop: Loop) -> Weight:
        """The weight of all rounds of a loop."""
        places = self.way(loop)
        of_round = NOTHING.plus(
            *(self._through(p) if isinstance(p, Loop) else self._weights[p] for p in places)
        )
        return NOTHING.plus(*[of_round] * (self.rounds[loop] or 1))

    def weight(self, blocks: Iterable[int]) -> Weight:
        return NOTHING.plus(*(self._weights[block] for block in blocks))


def _weight_of(found: Instruction) -> Weight:
    opcode = _issued(found)
    work = _worth(_base(opcode)) if _base(opcode) in MULTIPLY_ADDS else 0
    return Weight(work, _moved(opcode), -1)


def _worth(kind: str) -> int:
    """Multiply-adds of one kind in those of another: a tensor core does many at once."""
    return 64 if kind in TENSOR_CORES else 1


def _width(opcode: str) -> int:
    """Bytes that a thread moves."""
    return next((WIDTHS[part] for part in opcode.split(".") if part in WIDTHS), 4)


def _moved(opcode: str) -> int:
    """Bytes between a thread and global memory."""
    return _width(opcode) if _base(opcode) in (*LOADS, *STORES) else 0


def _issued(found: Instruction) -> str:
    """The opcode; with its guard where it never does anything but take a clock."""
    return f"@!PT {found.opcode}" if found.guard == "!PT" else found.opcode


def _base(opcode: str) -> str:
    return opcode.partition(".")[0]
