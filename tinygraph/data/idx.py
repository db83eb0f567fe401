"""idx: the file format of MNIST, plain or compressed with gzip.

    byte 0-1    0
    byte 2      element type: one of `DTYPES`
    byte 3      number of dimensions d
    4 * d       the dimensions, unsigned 32-bit
    then        the elements, row-major

All numbers are big-endian.  A file is not trusted: the header says how many bytes must follow, no
more than one byte beyond that is ever decompressed, and memory grows only with what was read.

Source: LeCun, Cortes, Burges, "The MNIST database of handwritten digits", section "File formats".
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tinygraph.base import AnyPath, as_path, too_large
from tinygraph.data.files import fault, opened
from tinygraph.engine import Array, Shape

DTYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}

_CHUNK = 1 << 20


def read_idx(path: AnyPath, max_bytes: int = 1 << 31) -> Array:
    """Read an idx file, compressed or not.

    Parameters
    ----------
    path : str or os.PathLike
        The file.  Its first bytes tell whether it is compressed; its name does not matter.
    max_bytes : int
        Refuse a file whose header declares more bytes of elements than this.

    Returns
    -------
    array
        In the byte order of this machine.

    Raises
    ------
    DatasetError
        The file is absent, not an idx file, truncated, too long, or corrupt.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(bytes([0, 0, 8, 1, 0, 0, 0, 3]) + b"abc")
    ...     file.flush()
    ...     tg.data.read_idx(file.name)
    array([97, 98, 99], dtype=uint8)
    """
    path = as_path("read_idx", "path", path)
    with opened("read_idx", path) as stream:
        dtype, shape = _read_header(stream, path)
        declared = math.prod(shape) * dtype.itemsize  # Python ints: cannot overflow
        if declared > max_bytes:
            raise fault(
                "read_idx",
                path,
                f"at most {max_bytes} bytes of elements",
                f"a header that declares {declared}, shape {shape}",
                "pass a larger max_bytes if that is meant",
            )
        _require_room(path, dtype, shape)
        data = _read_at_most(stream, declared + 1)
    if len(data) != declared:
        found = f"only {len(data)}: it is truncated" if len(data) < declared else "more than that"
        raise fault("read_idx", path, f"{declared} bytes of elements for shape {shape}", found)
    array = np.frombuffer(data, dtype).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _require_room(path: Path, dtype: np.dtype, shape: Shape) -> None:
    """Raise where numpy has no array of such a shape, or nothing has room for it."""
    most = math.prod(max(n, 1) for n in shape) * dtype.itemsize
    if most >= 1 << 63:
        raise fault("read_idx", path, "sizes that an array can have", f"shape {shape}")
    taken = max(2 * math.prod(shape) * dtype.itemsize, 8 * shape[0])
    if why := too_large(taken):
        raise fault("read_idx", path, "sizes that there is memory for", f"shape {shape}: {why}")


def _read_header(stream: BinaryIO, path: Path) -> tuple[np.dtype, Shape]:
    magic = _read_at_most(stream, 4)
    if len(magic) < 4:
        raise fault("read_idx", path, "an idx header of at least 4 bytes", f"{len(magic)} bytes")
    if magic[:2] != b"\0\0" or magic[2] not in DTYPES:
        codes = ", ".join(f"{code:02x}" for code in DTYPES)
        raise fault(
            "read_idx",
            path,
            f"an idx file, which starts with 00 00 and one of {codes}",
            magic.hex(" "),
            "name an idx file, or an idx file in gzip",
        )
    dimensions = magic[3]
    if not 1 <= dimensions <= 32:
        raise fault("read_idx", path, "1 to 32 dimensions", str(dimensions))
    sizes = _read_at_most(stream, 4 * dimensions)
    if len(sizes) < 4 * dimensions:
        raise fault(
            "read_idx", path, f"{dimensions} sizes of 4 bytes in the header", f"{len(sizes)} bytes"
        )
    return np.dtype(DTYPES[magic[2]]), struct.unpack(f">{dimensions}I", sizes)


def _read_at_most(stream: BinaryIO, limit: int) -> bytearray:
    """Up to `limit` bytes; memory follows what is there, not what was declared."""
    data = bytearray()
    while len(data) < limit:
        chunk = stream.read(min(_CHUNK, limit - len(data)))
        if not chunk:
            break
        data += chunk
    return data
