"""The idx reader, on hand-made bytes and on everything that can be wrong with a file."""

import gzip
import os
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.idx_bytes import header, idx
from tinygraph.base import free_memory
from tinygraph.base.errors import ArgumentError, DatasetError
from tinygraph.data import read_idx

ARRAY = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
PLAIN = idx(ARRAY)
PACKED = gzip.compress(PLAIN, mtime=0)


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """Read bytes as a file."""
    path = tmp_path_factory.mktemp("idx") / "file"

    def read_bytes(data, **options):
        path.write_bytes(data)
        return read_idx(path, **options)

    return read_bytes


def test_known_bytes(read):
    data = bytes([0, 0, 0x0C, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 1, 0, 255, 255, 255, 254])
    array = read(data)
    assert array.tolist() == [[256, -2]]
    assert array.dtype == np.int32 and array.dtype.isnative


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("shape", [(0,), (5,), (2, 3), (2, 1, 3, 2)])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_every_element_type(read, dtype, shape, pack):
    array = np.random.default_rng(0).integers(-100, 100, shape).astype(dtype)
    got = read(pack(idx(array)))
    np.testing.assert_array_equal(got, array, strict=True)


@pytest.mark.parametrize("data", [PLAIN, PACKED], ids=["plain", "gzip"])
def test_every_truncation_is_refused(read, data):
    for length in range(len(data)):
        with pytest.raises(DatasetError, match="read_idx") as error:
            read(data[:length])
        assert "fetch it again" in str(error.value) or "idx file" in str(error.value)


@pytest.mark.parametrize(
    "sizes",
    [(0, 2**32 - 1, 2**32 - 1), (0, *[2**31] * 3), (2**32 - 1, 0), (1, 0, *[2**32 - 1] * 4)],
)
def test_sizes_that_no_array_has(read, sizes, monkeypatch):
    monkeypatch.setattr(free_memory, "free_bytes", lambda: 2**30)
    with pytest.raises(DatasetError, match="read_idx: .*expected sizes that"):
        read(header(0x08, *sizes))


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DatasetError, match="Not a regular file"):
        read_idx(tmp_path / "pipe")
    with pytest.raises(ArgumentError, match="read_idx"):
        read_idx("a\0b")


@given(extra=st.binary(min_size=1, max_size=50))
def test_extra_bytes_are_refused(read, extra):
    with pytest.raises(DatasetError, match="24 bytes of elements"):
        read(PLAIN + extra)
    with pytest.raises(DatasetError, match="24 bytes of elements"):
        read(gzip.compress(PLAIN + extra))


@given(position=st.integers(8, len(PACKED) - 1), bit=st.integers(0, 7))
def test_no_flipped_bit_of_a_gzip_file_changes_the_numbers(read, position, bit):
    """Either it is refused, or nothing hangs on it: the padding after the last deflate block."""
    damaged = bytearray(PACKED)
    damaged[position] ^= 1 << bit
    try:
        array = read(bytes(damaged))
    except DatasetError:
        return
    np.testing.assert_array_equal(array, ARRAY)


@given(magic=st.binary(min_size=4, max_size=4))
def test_wrong_magic_is_refused(read, magic):
    good = magic[:2] == b"\0\0" and magic[2] in (8, 9, 11, 12, 13, 14) and magic[3] == 3
    if good:
        return
    with pytest.raises(DatasetError):
        read(magic + PLAIN[4:])


def test_the_message_names_file_expected_got_and_way_out(read, tmp_path):
    path = tmp_path / "images"
    path.write_bytes(b"\x89PNG\r\n")
    with pytest.raises(DatasetError) as error:
        read_idx(path)
    for part in (str(path), "expected an idx file", "got 89 50 4e 47", "Way out: "):
        assert part in str(error.value)


def peak_memory(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(read, data, **options):
    with pytest.raises(DatasetError) as error:
        read(data, **options)
    return str(error.value)


def test_huge_dimensions_cost_no_memory(read):
    most = 0xFFFFFFFF
    for sizes in [(most,), (most, most), (most,) * 8, (65536, 32768)]:
        data = header(8, *sizes) + b"abc"
        peak = peak_memory(lambda data=data: refused(read, data, max_bytes=1 << 300))
        assert peak < 4 << 20
    assert "a header that declares 18446744065119617025" in refused(read, header(8, most, most))


def test_sizes_that_wrap_around_64_bits_are_refused(read):
    """4 * 2**31 * 2**31 is 0 modulo 2**64: no product may be taken in fixed-width integers."""
    assert "declares" in refused(read, header(0x08, 4, 1 << 31, 1 << 31))


@pytest.mark.second
def test_a_gzip_bomb_costs_no_memory(read):
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(1 << 20)
    parts = [deflate.compress(header(8, 10))] + [deflate.compress(zeros) for _ in range(100)]
    bomb = b"".join(parts) + deflate.flush()
    assert len(bomb) < 200_000  # 100 MiB inside
    assert peak_memory(lambda: refused(read, bomb)) < 4 << 20


def test_zero_dimensions_and_too_many_are_refused(read):
    assert "1 to 32 dimensions, got 0" in refused(read, bytes([0, 0, 8, 0, 7]))
    assert "1 to 32 dimensions, got 33" in refused(read, bytes([0, 0, 8, 33]) + bytes(400))


def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(DatasetError, match="nothing at that path"):
        read_idx(tmp_path / "absent")
    with pytest.raises(DatasetError, match="a file that can be read"):
        read_idx(tmp_path)
