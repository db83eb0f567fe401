"""The files of TensorBoard, read with nothing of what writes them but the protocol buffers.

A record is a length of 8 bytes, its masked CRC-32C, the event, and the event's.
"""

import struct
from typing import NamedTuple

POLYNOMIAL = 0x82F63B78  # of Castagnoli, reversed: RFC 3720, B.4


class Event(NamedTuple):
    """One value under a tag; `kind` is scalar, histo, image or graph."""

    step: int
    tag: str
    kind: str
    value: object


def crc32c(data):
    """Bit by bit.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path, check=False):
    """The events of a file as bytes; a last one that is cut off is left out."""
    data, at = path.read_bytes(), 0
    while at + 12 <= len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        body, end = data[at + 12 : at + 12 + size], at + 16 + size
        if end > len(data):
            return
        if check:
            assert struct.unpack_from("<I", data, at + 8) == (masked(data[at : at + 8]),)
            assert struct.unpack_from("<I", data, end - 4) == (masked(body),)
        yield body
        at = end


def shown(folder):
    """What TensorBoard shows of a folder: a session's start hides what is older and as late.

    A point that a resumed run draws again at its place is one: the end of the epoch in which the
    one before was stopped.
    """
    from tensorboardX.proto.event_pb2 import Event as Proto
    from tensorboardX.proto.event_pb2 import SessionLog

    events = []
    for path in sorted(folder.iterdir()):
        for body in records(path):
            event = Proto.FromString(body)
            if event.session_log.status == SessionLog.START:
                events = [old for old in events if old.step < event.step or old.kind == "graph"]
            if event.graph_def:
                events.append(Event(event.step, "", "graph", event.graph_def))
            for value in event.summary.value:
                kind = value.WhichOneof("value").removesuffix("_value")
                found = getattr(value, value.WhichOneof("value"))
                made = Event(event.step, value.tag, kind, found)
                if made not in events:
                    events.append(made)
    return events


def scalars(folder, tag):
    """(step, value) of a tag."""
    return [(e.step, e.value) for e in shown(folder) if e.tag == tag and e.kind == "simple"]
