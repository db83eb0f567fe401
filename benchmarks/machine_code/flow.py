"""The flow of control in machine code: basic blocks, loops, and how often a loop runs.

    block   instructions that run one after the other: only the last one may jump
    loop    blocks from which a jump leads back to a block through which every way to them goes

Blocks and jumps are found here: nvdisasm prints them as well (-bbcfg), but as text of a drawing, in
the place of JSON, with the jumps of parted warps, and without loops.

A divergent warp is no way of its own: `BRA.DIV` and its like lead to code that runs where threads
of a warp have parted, and are taken as never jumping.

Source: Aho, Lam, Sethi and Ullman, "Compilers", 9.6: dominators, back edges, natural loops.
Dominators: Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.machine_code.disassembly import Instruction

ENDS = ("EXIT", "RET", "BRX", "BRXU", "JMX", "JMXU", "KILL")  # no way on that the code names
RARE = ("DIV", "CONV")  # BRA.DIV: for threads of a warp that have parted


@dataclass(eq=False)
class Loop:
    """A loop: the block that every round begins with, all its blocks, and the loops inside."""

    header: int
    blocks: frozenset[int]
    parent: Loop | None = None
    inner: list[Loop] = field(default_factory=list)


class Flow:
    """The blocks of a function that can be reached, in an order in which a loop's header is first.

    Attributes
    ----------
    code : sequence of Instruction
    blocks : dict
        The first instruction's number: the range of the block's numbers.
    after, before : dict
        The blocks that come next, and those that came before.
    order : list
        Reverse postorder: without the jumps back, each block stands before those that follow it.
    loops : list of Loop
        The innermost first.
    """

    def __init__(self, code: Sequence[Instruction]) -> None:
        self.code = code
        self.blocks = {part.start: part for part in _blocks(code)}
        after = {start: tuple(self._next(part)) for start, part in self.blocks.items()}
        self.order = _reverse_postorder(after)
        self.after = {start: after[start] for start in self.order}
        self.before: dict[int, list[int]] = {start: [] for start in self.order}
        for start, ways in self.after.items():
            for way in ways:
                self.before[way].append(start)
        self.loops = self._loops()

    def _next(self, block: range) -> Iterator[int]:
        last = self.code[block.stop - 1]
        if jumps(last) and last.target is not None:
            yield last.target
        ends = last.base in ENDS or last.base == "BRA"
        if block.stop in self.blocks and not (ends and not is_conditional(last)):
            yield block.stop

    def _dominators(self) -> dict[int, int]:
        """For each block the nearest one through which every way to it goes."""
        rank = {start: at for at, start in enumerate(self.order)}
        nearest = {self.order[0]: self.order[0]}

        def common(a: int, b: int) -> int:
            while a != b:
                a, b = (nearest[a], b) if rank[a] > rank[b] else (a, nearest[b])
            return a

        changed = True
        while changed:
            changed = False
            for start in self.order[1:]:
                known = [before for before in self.before[start] if before in nearest]
                found = known[0]
                for other in known[1:]:
                    found = common(found, other)
                changed |= nearest.get(start) != found
                nearest[start] = found
        return nearest

    def _loops(self) -> list[Loop]:
        nearest = self._dominators()

        def dominates(a: int, b: int) -> bool:
            while b != a and nearest[b] != b:
                b = nearest[b]
            return a == b

        bodies: dict[int, set[int]] = {}
        for start in self.order:
            for way in self.after[start]:
                if dominates(way, start):
                    bodies.setdefault(way, {way}).update(self._body(way, start))
        loops = [Loop(header, frozenset(body)) for header, body in bodies.items()]
        loops.sort(key=lambda loop: len(loop.blocks))
        for at, loop in enumerate(loops):
            for outer in loops[at + 1 :]:
                if loop.blocks < outer.blocks:
                    loop.parent = outer
                    outer.inner.append(loop)
                    break
        return loops

    def _body(self, header: int, last: int) -> set[int]:
        """The blocks from which `last` is reached without the header."""
        body, waiting = {header}, [last]
        while waiting:
            block = waiting.pop()
            if block not in body:
                body.add(block)
                waiting += self.before[block]
        return body


def jumps(instruction: Instruction) -> bool:
    """Whether control may go on at the instruction's target."""
    return instruction.base == "BRA" and not set(RARE) & set(instruction.modifiers)


def is_conditional(instruction: Instruction) -> bool:
    """Whether control may also go on behind it: a guard, or a predicate among the operands."""
    return instruction.guard not in ("", "PT") or len(instruction.operands) > 1


def _blocks(code: Sequence[Instruction]) -> Iterator[range]:
    starts = {0, len(code)}
    for at, instruction in enumerate(code):
        if instruction.base == "BRA" or instruction.base in ENDS:
            starts.add(at + 1)
            if jumps(instruction) and instruction.target is not None:
                starts.add(instruction.target)
    places = sorted(start for start in starts if start <= len(code))
    yield from itertools.starmap(range, itertools.pairwise(places))


def _reverse_postorder(after: dict[int, tuple[int, ...]]) -> list[int]:
    seen, done = {0}, []
    stack = [(0, iter(after[0]))]
    while stack:
        block, ways = stack[-1]
        way = next((way for way in ways if way not in seen), None)
        if way is None:
            done.append(block)
            stack.pop()
        else:
            seen.add(way)
            stack.append((way, iter(after[way])))
    return done[::-1]
