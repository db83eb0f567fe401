"""Messages between the checker and the process with the learner's code: numbers and plain values.

A message is what `tg.save` would write, in memory.  No pickle: what comes from the learner's
process is data, whatever it sends.
"""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import safetensors.numpy

from tinygraph.base.errors import ArgumentError
from tinygraph.files.saving import BAD_DOCUMENT, packed, unpacked

LIMIT = 1 << 28  # bytes of a message


class Garbled(Exception):
    """A message that `send` did not write."""


def send(connection: Connection, value: Any) -> None:
    """Write a message: dicts, lists and tuples of arrays, numbers, strings, bools and None.

    Raises
    ------
    ArgumentError
        There is something else in it.
    """
    arrays = {name: np.array(array, order="C") for name, array in packed(value).items()}
    connection.send_bytes(safetensors.numpy.save(arrays))


def receive(connection: Connection) -> Any:
    """Read a message.

    Raises
    ------
    EOFError
        The other side has gone.
    Garbled
    """
    try:
        data = connection.recv_bytes(LIMIT)
    except OSError as error:  # longer than the limit, or cut off
        raise Garbled(str(error)) from None
    try:
        return unpacked(safetensors.numpy.load(data))
    except (*BAD_DOCUMENT, AttributeError, ArgumentError) as error:
        raise Garbled(repr(error)) from None
    except Exception as error:  # SafetensorError derives from Exception alone
        raise Garbled(repr(error)) from None


def fits(value: Any) -> bool:
    """Whether a value can be sent."""
    try:
        packed(value)
    except ArgumentError:
        return False
    return True
