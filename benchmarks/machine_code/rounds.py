"""How many rounds a loop makes, where its machine code alone says so.

It does where one register counts: changed by a number once in each round, and compared where the
loop ends with what it was before the loop, and a number more: two numbers, or an address and the
same one some bytes further.  Anything else counts at run time: None.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from benchmarks.machine_code.disassembly import Instruction
from benchmarks.machine_code.flow import Flow, Loop, is_conditional, jumps

MANY = 1 << 16  # no loop of this many rounds is unrolled in anybody's mind
MOST_BLOCKS = 20  # looked at for the place where a register is set
ZEROS = ("RZ", "URZ", "SRZ", "-RZ")
TRUE = ("PT", "UPT")
MOVES = ("MOV", "UMOV", "CS2R", "UCS2R")
ADDS = ("IADD3", "UIADD3", "VIADD", "IADD", "UIADD")
COMPARES: dict[str, Callable[[int, int], bool]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}


def rounds(flow: Flow, loop: Loop) -> int | None:
    """The rounds of a loop that ends in one place, by a counter that the code alone determines."""
    leaving = [b for b in loop.blocks if not set(flow.after[b]) <= loop.blocks]
    if len(leaving) != 1 or any(leaving[0] in inner.blocks for inner in loop.inner):
        return None
    block = flow.blocks[leaving[0]]
    jump = flow.code[block.stop - 1]
    decision = _going_on(jump, stays=jump.target in loop.blocks)
    if decision is None:
        return None
    predicate, wanted = decision
    found = _comparison(flow, block, predicate)
    if found is None:
        return None
    at, register, limit = found
    if _changed(flow, loop, limit):
        return None
    step = _step(flow, loop, register)
    start, end = (_before(flow, loop, part) for part in (register, limit))
    if step is None or start is None or end is None or start.origin != end.origin:
        return None
    place, change = step
    if place not in block and place not in flow.blocks[loop.header]:
        return None  # perhaps not in each round
    counted = place < at or place not in block  # before the comparison
    test = _test(flow.code[at])
    return _count(start.offset, change, counted, lambda value: test(value, end.offset) == wanted)


def _count(start: int, change: int, counted: bool, goes_on: Callable[[int], bool]) -> int | None:
    value = start
    for done in range(1, MANY):
        value += change
        if not goes_on(value if counted else value - change):
            return done
    return None


def _going_on(jump: Instruction, stays: bool) -> tuple[str, bool] | None:
    """The predicate that decides, and its value in another round."""
    if not jumps(jump) or not is_conditional(jump):
        return None
    named = [part for part in (jump.guard, *jump.operands[:-1]) if part and part not in TRUE]
    if len(named) != 1:
        return None
    return named[0].lstrip("!"), stays != named[0].startswith("!")


def _comparison(flow: Flow, block: range, predicate: str) -> tuple[int, str, str] | None:
    """Where a block sets the predicate: place, register, and what it is compared with."""
    for at in range(block.stop - 2, block.start - 1, -1):  # above the jump
        found = flow.code[at]
        if predicate not in found.operands[:2]:
            continue
        if found.base == "PLOP3":  # a predicate of the uniform path, handed on
            source = found.operands[4:5]
            if found.operands[1:4] == ("PT", "PT", "PT") and found.operands[5:] == ("0x80", "0x0"):
                predicate = source[0]
                continue
            return None
        if found.base not in ("ISETP", "UISETP") or found.guard:
            return None
        if "EX" in found.modifiers and found.operands[5:] == (predicate,):
            continue  # the upper half of a counter of 64 bits: the lower one is above
        if len(found.operands) != 5:
            return None
        first, second, register, limit, last = found.operands
        plain = first == predicate and second in TRUE and last in TRUE
        return (at, register, limit) if plain else None
    return None


def _test(found: Instruction) -> Callable[[int, int], bool]:
    compare = next(COMPARES[part] for part in found.modifiers if part in COMPARES)
    if "U32" not in found.modifiers:
        return compare
    return lambda a, b: compare(a & 0xFFFFFFFF, b & 0xFFFFFFFF)


def _changed(flow: Flow, loop: Loop, register: str) -> list[int]:
    """Where a loop changes a register."""
    places = (at for block in loop.blocks for at in flow.blocks[block])
    return [at for at in places if register in written(flow.code[at])]


def _step(flow: Flow, loop: Loop, register: str) -> tuple[int, int] | None:
    """The only place in a loop that changes the register, in each round, and by how much."""
    places = _changed(flow, loop, register)
    change = _added(flow.code[places[0]]) if len(places) == 1 else None
    return (places[0], change[1]) if change and change[0] == register else None


class _Value(NamedTuple):
    """What is in a register: some bytes further than what was there at `origin`, None for 0."""

    origin: tuple[str, int] | None
    offset: int


def _before(flow: Flow, loop: Loop, operand: str) -> _Value | None:
    """What an operand is when the loop begins."""
    number = _number(operand)
    if number is not None:
        return _Value(None, number)
    before = [block for block in flow.before[loop.header] if block not in loop.blocks]
    return _common(flow, [(block, flow.blocks[block].stop) for block in before], operand, ())


Place = tuple[int, int]  # a block, and the instruction before which a register is looked at


def _common(flow: Flow, places: list[Place], register: str, seen: tuple[int, ...]) -> _Value | None:
    """The value that a register has at several places, if it is the same."""
    found = {_value(flow, place, register, seen) for place in places}
    return found.pop() if len(found) == 1 else None


def _value(flow: Flow, place: Place, register: str, seen: tuple[int, ...]) -> _Value | None:
    block, stop = place
    setting = [
        at for at in range(flow.blocks[block].start, stop) if register in written(flow.code[at])
    ]
    if not setting:
        if block in seen or len(seen) > MOST_BLOCKS:
            return None
        before = [(other, flow.blocks[other].stop) for other in flow.before[block]]
        return _common(flow, before, register, (*seen, block))
    found = flow.code[setting[-1]]
    number = _moved(found)
    if number is not None:
        return _Value(None, number)
    change = _added(found)
    if change is not None:
        further = _value(flow, (block, setting[-1]), change[0], seen)
        if further is not None:
            return further._replace(offset=further.offset + change[1])
    return _Value((register, setting[-1]), 0)


def _added(found: Instruction) -> tuple[str, int] | None:
    """The register and the number of an addition of two such, into one register."""
    rest = [part for part in found.operands[1:] if part not in (*ZEROS, *TRUE) and "P" not in part]
    numbers = [number for part in rest if (number := _number(part)) is not None]
    registers = [part for part in rest if _number(part) is None]
    plain = not found.guard and found.base in ADDS and len(numbers) == len(registers) == 1
    return (registers[0], numbers[0]) if plain and registers[0][0] in "RU" else None


def _moved(found: Instruction) -> int | None:
    """The number that an instruction puts into its register."""
    *ahead, last = found.operands[1:] or ("",)
    if found.guard:
        return None
    if found.base in MOVES or (found.base == "IMAD" and "MOV" in found.modifiers):
        return _number(last) if all(part in ZEROS for part in ahead) else None
    if found.base == "HFMA2" and len(ahead) == 3 and all(part in ZEROS for part in ahead[:2]):
        # 0 * 0 + a pair of halves: how compilers load a number where the integer pipe is busy
        low, high = (struct.pack("<e", float(part)) for part in (last, ahead[2]))
        return int.from_bytes(low + high, "little", signed=True)
    return None


def written(found: Instruction) -> Iterator[str]:
    """The registers that an instruction may write: one, two or four from its first operand on."""
    name = found.operands[0] if found.operands else ""
    kind = name.rstrip("0123456789")
    if kind not in ("R", "UR") or kind == name:
        return
    wide = {"128": 4, "64": 2, "WIDE": 2}
    count = max([1, *[wide.get(part, 1) for part in found.modifiers]])
    if found.base in ("CS2R", "UCS2R") and "32" not in found.modifiers:
        count = 2
    if found.base.startswith("D"):
        count = 2
    if found.base in ("HMMA", "IMMA", "DMMA", "LDSM"):
        count = 4
    first = int(name[len(kind) :])
    yield from (f"{kind}{first + more}" for more in range(count))


def _number(text: str) -> int | None:
    if text in ZEROS:
        return 0
    try:
        value = int(text, 0)
    except ValueError:
        return None
    return value - (1 << 32) if value >= 1 << 31 else value
