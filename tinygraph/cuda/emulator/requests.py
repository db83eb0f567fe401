"""What one request of a warp costs: sectors of global memory, turns of shared memory.

The same rules as runtime/profile.c, which counts whole launches; here for one request at a time, so
that a page can show where the cost lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tinygraph.cuda.emulator.findings import SECTOR

BANKS, WORD = 32, 4  # shared memory: banks, and bytes of each of their words


class Cost(NamedTuple):
    """What a request took, and the least that would do for as many bytes or lanes.

    In sectors of 32 bytes where it went to global memory, in turns where it went to shared memory.
    """

    took: int
    least: int


def sectors(addresses: Sequence[int], size: int) -> Cost:
    """Sectors that a request moves; every sector once, however many lanes want something of it.

    >>> sectors([4 * lane for lane in range(32)], 4), sectors([8 * lane for lane in range(32)], 4)
    (Cost(took=4, least=4), Cost(took=8, least=4))
    """
    wanted = set(addresses)
    moved = {s for a in wanted for s in range(a // SECTOR, (a + size - 1) // SECTOR + 1)}
    return Cost(len(moved), -(-len(wanted) * size // SECTOR))


def turns(addresses: Sequence[int], size: int) -> Cost:
    """Turns in which the banks serve a request.

    Lanes that want different words of one bank wait for each other; the same word is sent to all of
    them at once.  Accesses of 8 and of 16 bytes are served for a half and a quarter of the lanes at
    a time.

    >>> turns([4 * lane for lane in range(32)], 4), turns([8 * lane for lane in range(32)], 4)
    (Cost(took=1, least=1), Cost(took=2, least=1))
    """
    together = 8 if size >= 16 else 16 if size == 8 else 32
    took = least = 0
    for begin in range(0, len(addresses), together):
        words = {
            (address + byte) // WORD
            for address in addresses[begin : begin + together]
            for byte in range(0, size, WORD)
        }
        depth = [0] * BANKS
        for word in words:
            depth[word % BANKS] += 1
        took += max(depth)
        least += 1
    return Cost(took, least)
