"""How many rounds a loop makes, where its machine code alone says so.

It does where one register counts: set to a number before the loop, changed by a number once in each
round, and compared with a number where the loop ends.  Anything else counts at run time: None.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Iterator

from tinygraph.cuda.nvrtc.disassembly import Instruction
from tinygraph.cuda.nvrtc.flow import Flow, Loop, is_conditional, jumps

MANY = 1 << 16  # no loop of this many rounds is unrolled in anybody's mind
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
    goes_on = _going_on(jump, stays=jump.target in loop.blocks)
    if goes_on is None:
        return None
    predicate, wanted = goes_on
    found = _comparison(flow, block, predicate)
    if found is None:
        return None
    at, register, limit = found
    step = _step(flow, loop, register)
    start = _start(flow, loop, register)
    if step is None or start is None:
        return None
    place, change = step
    if place not in block and place not in flow.blocks[loop.header]:
        return None  # perhaps not in each round
    counted = place < at or place not in block  # before the comparison
    test = _test(flow.code[at])
    return _count(start, change, counted, lambda value: test(value, limit) == wanted)


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


def _comparison(flow: Flow, block: range, predicate: str) -> tuple[int, str, int] | None:
    """Where a block sets the predicate: place, register, and the number it is compared with."""
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
        if found.base not in ("ISETP", "UISETP") or found.guard or len(found.operands) != 5:
            return None
        first, second, register, limit, last = found.operands
        number = _number(limit)
        plain = first == predicate and second in TRUE and last in TRUE
        return (at, register, number) if plain and number is not None else None
    return None


def _test(found: Instruction) -> Callable[[int, int], bool]:
    compare = next(COMPARES[part] for part in found.modifiers if part in COMPARES)
    if "U32" not in found.modifiers:
        return compare
    return lambda a, b: compare(a & 0xFFFFFFFF, b & 0xFFFFFFFF)


def _step(flow: Flow, loop: Loop, register: str) -> tuple[int, int] | None:
    """The only place in a loop that changes the register, in each round, and by how much."""
    places = [
        at
        for block in loop.blocks
        for at in flow.blocks[block]
        if register in written(flow.code[at])
    ]
    if len(places) != 1:
        return None
    found = flow.code[places[0]]
    rest = [part for part in found.operands[1:] if part not in (*ZEROS, *TRUE)]
    own = [part for part in rest if part == register]
    numbers = [_number(part) for part in rest if part != register]
    if found.guard or found.base not in ADDS or len(own) != 1 or len(numbers) != 1:
        return None
    return None if numbers[0] is None else (places[0], numbers[0])


def _start(flow: Flow, loop: Loop, register: str) -> int | None:
    """The number in the register when the loop begins, the same on every way to it."""
    waiting = [block for block in flow.before[loop.header] if block not in loop.blocks]
    seen, values = set(waiting), set()
    while waiting:
        block = waiting.pop()
        setting = [at for at in flow.blocks[block] if register in written(flow.code[at])]
        if setting:
            values.add(_moved(flow.code[setting[-1]]))
        else:
            values |= set() if flow.before[block] else {None}
            waiting += [b for b in flow.before[block] if b not in seen]
            seen |= set(flow.before[block])
    return values.pop() if len(values) == 1 else None


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
