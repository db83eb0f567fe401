"""What an array holds, element by element, as a trace goes on."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

_EXACT = 2**53  # integers up to here are the same in JavaScript


class Cells:
    """The bytes of one array, and which of them are known.

    Parameters
    ----------
    size : int
        Bytes.
    dtype : dtype or None
        Of an element.  Where it is not known, those whose bits look like a float are shown as one.
    element : int
        Bytes of an element.  A struct is cut into words of 4 whose values are not shown.
    held : bytes or None
        What it holds at the beginning; None for shared memory, which holds nothing.
    base : int
        Where it begins in its first sector.
    shared : bool
    """

    def __init__(
        self,
        size: int,
        dtype: np.dtype | None,
        element: int,
        held: bytes | None,
        base: int = 0,
        shared: bool = False,
    ) -> None:
        self.size, self.dtype, self.base, self.shared = size, dtype, base, shared
        self.whole = element in (1, 2, 4, 8)
        self.element = element if self.whole else 4 if size % 4 == 0 else 1
        self._bytes = bytearray(held if held is not None else size)
        self._known = bytearray([held is not None]) * size
        self._when: dict[int, int] = {}  # the event that stored last at an offset

    def count(self) -> int:
        return -(-self.size // self.element)

    def store(self, offset: int, data: bytes, event: int) -> None:
        """Put bytes, unless a later event has put others there."""
        if self._when.get(offset, -1) > event:
            return
        self._when[offset] = event
        self._bytes[offset : offset + len(data)] = data
        self._known[offset : offset + len(data)] = b"\1" * len(data)

    def forget(self, offset: int, size: int) -> None:
        """These bytes have become others that nobody has noted."""
        for at in range(max(0, offset), min(self.size, offset + size)):
            self._known[at] = 0

    def holds(self, offset: int, data: bytes) -> bool:
        """Whether these bytes stand there, or nothing that is known."""
        here = slice(offset, offset + len(data))
        return not all(self._known[here]) or bytes(self._bytes[here]) == data

    def decoded(self, data: bytes) -> Any:
        """What an access of a lane has: a number, or a list of them where it is a vector."""
        size = self.element
        if not self.whole or len(data) <= size or len(data) % size:
            fits = self.dtype if self.dtype is not None and len(data) == size else None
            return as_json(data, fits)
        return [as_json(data[k : k + size], self.dtype) for k in range(0, len(data), size)]

    def touched(self, offset: int, size: int) -> range:
        """The elements that an access touches, those outside of the array as well."""
        return range(offset // self.element, (offset + size - 1) // self.element + 1)

    def value(self, index: int) -> Any:
        """An element as JSON holds it; None where it is not known."""
        here = slice(index * self.element, (index + 1) * self.element)
        if index < 0 or not self._known[here] or not all(self._known[here]):
            return None
        return as_json(bytes(self._bytes[here]), self.dtype) if self.whole else "·"

    def runs(self) -> list[tuple[int, list[Any]]]:
        """(first element, values) of all that is known."""
        found: list[tuple[int, list[Any]]] = []
        for index in range(self.count()):
            value = self.value(index)
            if value is None:
                continue
            if not found or found[-1][0] + len(found[-1][1]) != index:
                found.append((index, []))
            found[-1][1].append(value)
        return found


def as_json(data: bytes, dtype: np.dtype | None) -> Any:
    """A number that JavaScript reads as it is, in the fewest digits that tell it; else a text.

    >>> [as_json(np.float32(x).tobytes(), np.dtype(np.float32)) for x in (0.1, np.nan)]
    [0.1, 'nan']
    """
    if dtype is None and len(data) not in (1, 2, 4, 8):
        return data.hex()
    if dtype is None:
        dtype = np.dtype(_guess(data))
    number = np.frombuffer(data, dtype)[0]
    if dtype.kind == "f":
        return float(str(number)) if math.isfinite(number) else str(number)
    if dtype.kind == "b":
        return bool(number)
    return int(number) if abs(int(number)) <= _EXACT else str(number)


def _guess(data: bytes) -> str:
    """Float or integer: bits that make a number of usual size are taken for a float."""
    letters = {4: ("<f", "f4", "i4"), 8: ("<d", "f8", "i8")}
    if len(data) not in letters:
        return f"u{len(data)}"
    code, real, whole = letters[len(data)]
    (number,) = struct.unpack(code, data)
    usual = number == 0 or 1e-12 < abs(number) < 1e12
    return real if usual and any(data) else whole
