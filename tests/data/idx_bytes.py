"""idx files made by hand, for tests: written from the format's description, not with tinygraph."""

import struct

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def header(code, *sizes):
    return bytes([0, 0, code, len(sizes)]) + b"".join(struct.pack(">I", n) for n in sizes)


def idx(array):
    """The idx bytes of a numpy array."""
    code = CODES[f"{array.dtype.kind}{array.dtype.itemsize}"]
    return header(code, *array.shape) + array.astype(array.dtype.newbyteorder(">")).tobytes()
