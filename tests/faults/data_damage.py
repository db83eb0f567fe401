"""Data files that are malformed: only DatasetError, in bounded memory and time.

A file of each kind that tinygraph.data reads is made by hand, then damaged: bits flipped, cut off,
made longer, bytes written over, numbers in headers set to extremes, parts exchanged.  Where nothing
vouches for a file (`verify=False`), one that is still well-formed may be read; then what comes must
be what its bytes say.

The address space of the process is limited meanwhile: a reader that believed a size in a header
would meet that limit and end in MemoryError, which counts as a failure.
"""

from __future__ import annotations

import gzip
import io
import math
import random
import shutil
import struct
import tarfile
import tempfile
import time
import warnings
import zipfile
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from tests.data.archive_bytes import tar_gz_bytes, zip_bytes
from tests.data.idx_bytes import header, idx
from tests.faults.memory_disk import memory_disk
from tests.faults.tally import Tally
from tinygraph.base.errors import DatasetError
from tinygraph.data import cifar10, image_folder, mnist, read_idx

MEMORY = 256 << 20  # what reading one file may add to the address space
SECONDS = 20  # what it may take, on a machine that others use too
PIXELS = 1 << 20
RNG = np.random.default_rng(0)
EXTREMES = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


# ---- good files --------------------------------------------------------------------------------


def picture(kind, size=(12, 9), mode="RGB"):
    from PIL import Image

    image = Image.fromarray(RNG.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))
    buffer = io.BytesIO()
    image.convert(mode).save(buffer, kind)
    return buffer.getvalue()


def cifar_records(count):
    """Records of the binary version."""
    rows = RNG.integers(0, 256, (count, 3073), dtype=np.uint8)
    rows[:, 0] %= 10
    return rows.tobytes()


def binary_names():
    return [f"data_batch_{i}.bin" for i in range(1, 6)]


def zipped(method):
    names = [f"train/{name}/{i:04d}.jpg" for i, name in enumerate(["cat", "dog", "ship"])]
    return zip_bytes([(name, picture("JPEG", (32, 32))) for name in names], method)


def good_files():
    """Folder's content by kind of data: {kind: {file: bytes}}."""
    images = idx(RNG.integers(0, 256, (4, 28, 28), dtype=np.uint8))
    labels = idx(RNG.integers(0, 10, 4, dtype=np.uint8))
    batches = {name: cifar_records(2) for name in binary_names()}
    return {
        "idx": {"file": idx(RNG.standard_normal((3, 4, 5)).astype(np.float32))},
        "idx.gz": {"file": gzip.compress(idx(np.arange(60, dtype=np.int16).reshape(3, 20)))},
        "mnist": {"train-images-idx3-ubyte": images, "train-labels-idx1-ubyte": labels},
        "mnist.gz": {
            "train-images-idx3-ubyte.gz": gzip.compress(images),
            "train-labels-idx1-ubyte.gz": gzip.compress(labels),
        },
        "cifar10 binary": batches,
        "cifar10 archive": {"cifar-10-binary.tar.gz": tar_gz_bytes(list(batches.items()))},
        "cifar10 jpeg": {"cifar10_jpeg_subset.zip": zipped(zipfile.ZIP_STORED)},
        "cifar10 jpeg, deflated": {"cifar10_jpeg_subset.zip": zipped(zipfile.ZIP_DEFLATED)},
        "cifar10 lossless": {
            "lossless_batch_0.png": picture("PNG", (1024, 2)),
            "lossless_labels.u8": bytes([3, 9]),
        },
        "png": {"image.png": picture("PNG")},
        "png, palette": {"image.png": picture("PNG", mode="P")},
        "jpeg": {"image.jpg": picture("JPEG")},
        "bmp": {"image.bmp": picture("BMP")},
    }


def bombs():
    """Files that say or hold very much, or are packed unusually: {kind: list of {file: bytes}}."""
    zeros = gzip.compress(header(8, 10) + bytes(100 << 20), 1)
    member, long_name = tarfile.TarInfo("data_batch_1.bin"), tarfile.TarInfo("././@LongLink")
    long_name.type = tarfile.GNUTYPE_LONGNAME
    member.size = long_name.size = 200 << 20
    member, long_name = (
        gzip.compress(entry.tobuf(tarfile.GNU_FORMAT) + bytes(entry.size), 1)
        for entry in (member, long_name)
    )
    signature, rest = picture("PNG")[:16], picture("PNG")[24:]
    wide = struct.pack(">II", 60_000, 60_000)
    checked = (
        signature
        + wide
        + rest[:5]
        + struct.pack(">I", zlib.crc32(signature[12:] + wide + rest[:5]))
        + rest[9:]
    )
    deflated = zip_bytes([("train/cat/0001.jpg", bytes(100 << 20))], zipfile.ZIP_DEFLATED)
    return {
        "idx": [{"file": header(8, *[0xFFFFFFFF] * n) + b"abc"} for n in (1, 2, 3, 8)],
        "idx.gz": [{"file": zeros}],
        "cifar10 archive": [
            {"cifar-10-binary.tar.gz": member},
            {"cifar-10-binary.tar.gz": long_name},
        ],
        "cifar10 jpeg": [
            {"cifar10_jpeg_subset.zip": deflated},
            {"cifar10_jpeg_subset.zip": zipped(zipfile.ZIP_LZMA)},
            {"cifar10_jpeg_subset.zip": zipped(zipfile.ZIP_BZIP2)},
        ],
        "png": [{"image.png": checked}, {"image.png": signature + wide + rest}],
    }


# ---- damage ------------------------------------------------------------------------------------


def damaged(data, rng):
    """The bytes with one damage."""
    kind, size = rng.randrange(7), len(data)
    at = rng.randrange(size)
    if kind <= 1:  # flipped bits, in the header more often than elsewhere
        data = bytearray(data)
        for _ in range(rng.choice([1, 2, 8])):
            data[rng.randrange(min(size, 64)) if kind else at] ^= 1 << rng.randrange(8)
        return bytes(data)
    if kind == 2:
        return data[: rng.choice([0, 1, 4, 16, size - 1, at])]
    if kind == 3:
        return data + rng.choice([b"\0", bytes(600), rng.randbytes(20), data])
    if kind == 4:  # a number that says too much
        form = rng.choice(["<B", "<H", ">H", "<I", ">I"])
        most = (1 << 8 * struct.calcsize(form)) - 1
        number = struct.pack(form, rng.choice(EXTREMES) & most)
        at = rng.choice([at, rng.randrange(min(size, 80)), max(0, size - rng.randrange(1, 80))])
        return data[:at] + number + data[at + len(number) :]
    if kind == 5:
        other = rng.randrange(size)
        return data[:at] + data[other : other + rng.randrange(1, 200)] + data[at + 8 :]
    return rng.choice([rng.randbytes(size), bytes(size), b"\xff" * size, data[::-1]])


def inside(kind, data, rng):
    """The damage done inside of the compression, where its checksum does not see it."""
    if kind in ("idx.gz", "mnist.gz", "cifar10 archive") and rng.random() < 0.5:
        return gzip.compress(damaged(gzip.decompress(data), rng), 1)
    return damaged(data, rng)


# ---- reading -----------------------------------------------------------------------------------


def read(kind, folder):
    """Read what lies in the folder, and raise ValueError if it is not what its bytes say."""
    if kind.startswith("idx"):
        _like_its_bytes(read_idx(folder / "file"), (folder / "file").read_bytes())
    elif kind.startswith("mnist"):
        data = mnist("train", folder, verify=False)
        _samples(data.inputs, data.labels, (len(data.labels), 1, *data.inputs.shape[2:]), 256)
    elif kind.startswith("cifar10"):
        data = cifar10("train", folder, verify=False)
        _samples(data.inputs, data.labels, (len(data.labels), 3, 32, 32), 10)
    else:
        image, _ = image_folder(folder, max_pixels=PIXELS)[0]
        if image.ndim != 3 or image.shape[0] != 3 or image.dtype != np.float32:
            raise ValueError(f"an image of shape {image.shape}")
        _unit_interval(image)


def _like_its_bytes(array, data):
    """idx, read again by its description."""
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    shape = struct.unpack_from(f">{data[3]}I", data, 4)
    code = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}[data[2]]
    body = data[4 + 4 * data[3] :]
    if array.shape != shape or len(body) != math.prod(shape) * int(code[-1]):
        raise ValueError(f"shape {array.shape} where the file says {shape}")
    if array.astype(code).tobytes() != body:
        raise ValueError("other numbers than in the file")


def _samples(inputs, labels, shape, classes):
    if inputs.shape != shape or inputs.dtype != np.float32 or labels.dtype != np.int64:
        raise ValueError(f"inputs {inputs.dtype}{inputs.shape}, labels {labels.dtype}")
    if labels.size and not 0 <= labels.min() <= labels.max() < classes:
        raise ValueError(f"labels from {labels.min()} to {labels.max()}")
    _unit_interval(inputs)


def _unit_interval(array):
    if not ((array >= 0) & (array <= 1)).all():
        raise ValueError("pixels outside of 0 to 1")


@contextmanager
def memory_limit(extra):
    """No more address space than now and `extra` bytes, where the system can limit it (Linux)."""
    try:
        import resource

        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + extra, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def resident(name):
    """VmRSS or VmHWM of this process in MiB, on Linux; else 0."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def forget_peak():
    """Let VmHWM, the most memory that the process has had, begin again with what it has now."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


# ---- the experiment ----------------------------------------------------------------------------


def once(kind, files, what, folder, tally):
    """Read one set of files; the seconds that it took."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    started = time.perf_counter()
    try:
        read(kind, folder)
        tally.add("still well-formed, read as its bytes say")
    except DatasetError as error:
        if "expected " in str(error) and " got " in str(error):
            tally.add("refused with the reason")
        else:
            tally.fail(f"{what}: no reason in {error}")
    except Exception as error:
        tally.fail(f"{what}: {error!r:.300}")
    seconds = time.perf_counter() - started
    if seconds > SECONDS:
        tally.fail(f"{what}: took {seconds:.0f} s")
    shutil.rmtree(folder)
    folder.mkdir()
    return seconds


def torment(count=10_000, seed=0):
    """`count` damaged files of all kinds in turn, and the bombs."""
    tally, rng = Tally("malformed data files"), random.Random(seed)
    good, traps, longest = good_files(), bombs(), 0.0
    with tempfile.TemporaryDirectory(dir=memory_disk()) as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name) / "data"
        folder.mkdir()
        for kind, files in good.items():  # what is whole is read
            once(kind, files, f"{kind}, whole", folder, whole := Tally("whole files"))
            tally.failures += whole.failures
            if whole.outcomes["refused with the reason"]:
                tally.failures.append(f"{kind}: refused though whole")
        before = resident("VmRSS")
        forget_peak()
        with memory_limit(MEMORY):
            for kind, sets in traps.items():
                for files in sets:
                    longest = max(longest, once(kind, files, f"{kind}, bomb", folder, tally))
            kinds = list(good)
            for i in range(tally.count, count):
                kind = kinds[i % len(kinds)]
                files = dict(good[kind])
                chosen = rng.choice(list(files))
                files[chosen] = inside(kind, files[chosen], rng)
                what = f"{kind}, {chosen}, number {i}"
                longest = max(longest, once(kind, files, what, folder, tally))
        grown = resident("VmHWM") - before
        tally.notes = (
            f"peak memory grew by {grown:.0f} MiB (limit {MEMORY >> 20}), the longest "
            f"took {longest:.2f} s (limit {SECONDS})"
        )
    return tally
