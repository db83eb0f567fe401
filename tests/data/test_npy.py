"""Arrays on disk: what is read is what was written, and nothing else is read."""

import io
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tinygraph.base import free_memory
from tinygraph.base.errors import ArgumentError, DatasetError
from tinygraph.data import ArrayDataset, DataLoader, NpyDataset, Subset, TransformedDataset
from tinygraph.data.workers import _JobPickler
from tinygraph.training import Trainer

LENGTHS = (4, 1, 0, 6)
IMAGES = np.arange(11 * 6, dtype=np.uint8).reshape(11, 2, 3)
LABELS = np.arange(11) * 3


def written(folder, lengths=LENGTHS, images=IMAGES, labels=LABELS):
    """Both arrays in as many files as there are lengths, and the names of them."""
    first = 0
    for number, length in enumerate(lengths):
        np.save(folder / f"x-{number:04}.npy", images[first : first + length])
        np.save(folder / f"y-{number:04}.npy", labels[first : first + length])
        first += length
    return folder / "x-*.npy", folder / "y-*.npy"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return NpyDataset(*written(tmp_path_factory.mktemp("shards")))


INDICES = st.one_of(
    st.integers(-11, 10),
    st.lists(st.integers(-11, 10), min_size=1, max_size=15),
    st.lists(st.integers(-11, 10), max_size=15).map(lambda found: np.array(found, np.int64)),
    st.lists(st.booleans(), min_size=11, max_size=11).map(np.array),
    st.slices(11),
)


@given(index=INDICES)
def test_any_index_gives_what_numpy_gives(data, index):
    for found, expected in zip(data[index], (IMAGES[index], LABELS[index]), strict=True):
        assert type(found) is type(expected)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)


def test_what_is_read_may_be_changed(data):
    inputs, _ = data[:]
    inputs += 1
    np.testing.assert_array_equal(data[:][0], IMAGES)


@pytest.mark.parametrize("index", [11, -12, [0, 11], np.array([-12])])
def test_samples_that_there_are_not(data, index):
    with pytest.raises(IndexError, match="sample (11|-12) of 11"):
        data[index]


def test_what_it_is_called(data):
    assert repr(data) == "NpyDataset(unnamed: 11 samples of uint8 (2, 3) in 4 files)"
    assert (data.shape, data.dtype) == ((2, 3), np.uint8)


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "?", "<U3", "<i2"])
def test_one_file_of_any_dtype(tmp_path, dtype):
    array = np.arange(5).astype(dtype)
    np.save(tmp_path / "x.npy", array)
    np.save(tmp_path / "y.npy", np.zeros((5, 0)))
    data = NpyDataset(str(tmp_path / "x.npy"), tmp_path / "y.npy", name="five")
    inputs, labels = data[[4, 0]]
    assert inputs.dtype == array.dtype and labels.shape == (2, 0)
    np.testing.assert_array_equal(inputs, array[[4, 0]])
    assert repr(data).startswith("NpyDataset(five: 5 samples") and repr(data).endswith("one file)")


def test_neighbours_are_read_at_once_and_no_file_stays_open(tmp_path, monkeypatch):
    data = NpyDataset(*written(tmp_path))
    reads, streams = [], []

    class Stream(io.FileIO):
        def readinto(self, place):
            reads.append((Path(self.name).name, len(place)))
            return super().readinto(place)

    def opened(path, mode, buffering):
        streams.append(Stream(path, mode))
        return streams[-1]

    monkeypatch.setattr(Path, "open", opened)
    data[[5, 10, 1, 2, 4, 9]]
    inputs = [("x-0000.npy", 12), ("x-0001.npy", 6), ("x-0003.npy", 6), ("x-0003.npy", 12)]
    labels = [("y-0000.npy", 16), ("y-0001.npy", 8), ("y-0003.npy", 8), ("y-0003.npy", 16)]
    assert reads == inputs + labels
    assert len(streams) == 6 and all(stream.closed for stream in streams)


def test_order_of_names_and_a_relative_path(tmp_path, monkeypatch):
    for name in ("b", "a", "10", "9"):
        np.save(tmp_path / f"{name}.x.npy", [ord(name[0])])
        np.save(tmp_path / f"labels of {name}.npy", [len(name)])
    monkeypatch.chdir(tmp_path)
    data = NpyDataset("*.x.npy", "labels of *.npy")
    monkeypatch.chdir("/")
    assert bytes(data[:][0].astype(np.uint8)) == b"19ab" and data[:][1].tolist() == [2, 1, 1, 1]


# ---- the same order, and each rank its own rows -------------------------------------------------


class Noting(NpyDataset):
    """Notes the rows that it was asked for."""

    def __getitem__(self, index):
        self.asked = [*getattr(self, "asked", ()), *np.atleast_1d(index).tolist()]
        self.calls = getattr(self, "calls", 0) + 1
        return super().__getitem__(index)


@pytest.mark.parametrize("size, counts", [(1, [8]), (2, [4, 4]), (3, [2, 2, 4])])
def test_ranks_read_each_row_once_in_the_order_of_one_array(tmp_path, size, counts):
    names = written(tmp_path)
    loader = DataLoader(ArrayDataset(IMAGES, LABELS), 4, True, drop_last=True, seed=1)
    whole, asked, parts = list(loader), [], []
    for rank in range(size):
        data = Noting(*names)
        parts.append(list(DataLoader(data, 4, True, drop_last=True, seed=1).part(rank, size, 4)))
        asked.append(data.asked)
    for number, (inputs, labels) in enumerate(whole):
        for place, expected in ((0, inputs), (1, labels)):
            found = np.concatenate([batches[number][place] for batches in parts])
            np.testing.assert_array_equal(found, expected)
    assert [len(rows) for rows in asked] == counts
    assert sorted(row for rows in asked for row in rows) == sorted(loader.order(0))


@pytest.mark.second
def test_workers_read_by_themselves(tmp_path):
    names = written(tmp_path)
    expected = list(DataLoader(NpyDataset(*names), 4, True, seed=1))
    for found, batch in zip(
        DataLoader(NpyDataset(*names), 4, True, seed=1, num_workers=2), expected, strict=True
    ):
        for one, other in zip(found, batch, strict=True):
            np.testing.assert_array_equal(one, other)


def scaled(inputs, target, draws):
    return inputs.astype(np.float32) / 255, target % 3


def losses(data):
    train, held_out = tg.data.random_split(TransformedDataset(data, scaled), [0.8, 0.2])
    tg.manual_seed(0)
    model = tg.nn.Linear(4, 3)
    trainer = Trainer(model, tg.optim.SGD(model.parameters(), 0.1), tg.cross_entropy)
    rows = trainer.fit(DataLoader(train, 8, True), DataLoader(held_out, 8), epochs=2)
    return [(row["loss"], row["validation_loss"]) for row in rows]


def test_a_training_is_that_of_arrays_in_memory(tmp_path):
    images, labels = np.arange(30 * 4, dtype=np.uint8).reshape(30, 4), np.arange(30)
    on_disk = NpyDataset(*written(tmp_path, (10, 10, 10), images, labels))
    assert losses(on_disk) == losses(ArrayDataset(images, labels))


def drawn(inputs, target, draws):
    if target == 27:
        raise ValueError("no such picture")
    return inputs + draws.uniform(), target


@pytest.mark.parametrize("shift", [0, 1])
def test_changed_samples_are_read_at_once(tmp_path, shift):
    data = Noting(*written(tmp_path))
    changed = TransformedDataset(Subset(Subset(data, range(11)), range(8, -1, -1)), drawn, seed=3)
    inputs, labels = changed[[2 + shift, 6]]
    assert data.asked == [6 - shift, 2] and data.calls == 1
    for place, (found, label) in enumerate(zip(inputs, labels, strict=True)):
        one, its_label = changed[[2 + shift, 6][place]]
        np.testing.assert_array_equal(found, one)
        assert label == its_label
    batches = list(DataLoader(data, 3, collate_fn=len))
    assert batches == [3, 3, 3, 2] and data.calls == 3 + 4


def test_an_error_says_which_sample_it_is_of(tmp_path):
    changed = TransformedDataset(Subset(NpyDataset(*written(tmp_path)), [4, 9]), drawn)
    for index in (1, [0, 1]):
        with pytest.raises(ValueError, match="no such picture") as error:
            changed[index]
        assert error.value.__notes__ == ["at sample 1, TransformedDataset"]
    with pytest.raises(ValueError, match="unpack") as error:
        TransformedDataset([(1, 2), (1, 2, 3)], drawn)[:]
    assert error.value.__notes__ == ["at sample 1, TransformedDataset"]


# ---- files that are none ------------------------------------------------------------------------


def broken(change):
    """Three files of each kind, and a change to them."""

    def prepare(folder):
        names = written(folder, (3, 3, 3), IMAGES[:9], LABELS[:9])
        change(folder)
        return names

    return prepare


def truncated(path):
    os.truncate(path, path.stat().st_size - 1)


BROKEN = [
    (lambda f: (f / "y-0001.npy").unlink(), r"labels: .*'0001'.*beside x-0001.npy, got none"),
    (lambda f: (f / "x-0002.npy").unlink(), r"inputs: .*'0002'.*beside y-0002.npy, got none"),
    (lambda f: np.save(f / "y-0002.npy", [1, 2]), "3 rows, as x-0002.npy has, got 2"),
    (lambda f: np.save(f / "x-0001.npy", np.ones((3, 2, 3))), r"uint8 \(2, 3\), as in x-0000.npy"),
    (lambda f: np.save(f / "x-0001.npy", np.ones((3, 6), "u1")), r"got uint8 \(6,\)"),
    (lambda f: np.save(f / "y-0001.npy", np.float32([1, 2, 3])), "int64.*got float32"),
    (lambda f: (f / "x-0001.npy").write_text("1,2,3"), r"x-0001.npy: expected a \.npy file"),
    (lambda f: (f / "x-0001.npy").write_bytes(b""), r"x-0001.npy: expected a \.npy file"),
    (lambda f: truncated(f / "x-0001.npy"), r"x-0001.npy: expected a \.npy file.*whole"),
    (lambda f: np.save(f / "y-0000.npy", np.array([{}] * 3, object)), "y-0000.npy: .*objects"),
    (lambda f: np.save(f / "y-0000.npy", 3), "y-0000.npy: expected at least one axis"),
    (
        lambda f: np.save(f / "x-0000.npy", np.asfortranarray(IMAGES[:3])),
        "x-0000.npy: expected samples that lie one after the other.*ascontiguousarray",
    ),
]


@pytest.mark.parametrize("change, message", BROKEN)
def test_files_that_are_refused(tmp_path, change, message):
    with pytest.raises(DatasetError, match=message):
        NpyDataset(*broken(change)(tmp_path))


def test_an_npz_file_is_refused(tmp_path):
    np.savez(tmp_path / "x.npz", IMAGES)
    with pytest.raises(DatasetError, match=r"x.npz: expected a \.npy file"):
        NpyDataset(tmp_path / "x.npz", tmp_path / "x.npz")


def npy(header):
    """The bytes of a .npy file of version 1.0 with this header, and 64 bytes of numbers."""
    text = header.encode("latin-1").ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(64)


HEADERS = {
    "bools": "(True, 2)",
    "floats": "(2.0, 2)",
    "words": "('a',)",
    "less than nothing": "(-1, 2)",
    "more than numpy counts": "(0, 4294967295, 4294967295)",
    "more bytes than there are": "(1099511627776,)",
    "samples of no bytes without end": "(1099511627776, 0)",
    "no tuple": "None",
    "a dict": "{}",
    "nested": "(" * 60,
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_that_are_none(name, tmp_path, monkeypatch):
    monkeypatch.setattr(free_memory, "free_bytes", lambda: 2**30)
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {HEADERS[name]}, }}"
    (tmp_path / "x.npy").write_bytes(npy(header))
    with pytest.raises(DatasetError, match="x.npy: expected"):
        NpyDataset(tmp_path / "x.npy", tmp_path / "x.npy")


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "x.npy")
    with pytest.raises(DatasetError, match="Not a regular file"):
        NpyDataset(tmp_path / "x.npy", tmp_path / "x.npy")


@pytest.mark.parametrize("name", ["x.npy", "*.npy", "none/*.npy"])
def test_files_that_there_are_not(tmp_path, name):
    with pytest.raises(DatasetError, match="NpyDataset: .*check the path|No such file"):
        NpyDataset(tmp_path / name, tmp_path / name)


@pytest.mark.parametrize("name", ["*-*.npy", "*/x.npy"])
def test_stars_that_are_refused(tmp_path, name):
    with pytest.raises(ArgumentError, match=r"labels: expected one \* at most"):
        NpyDataset(*written(tmp_path)[:1], tmp_path / name)


@pytest.mark.parametrize("change", [truncated, Path.unlink])
def test_files_that_change_while_they_are_read(tmp_path, change):
    data = NpyDataset(*written(tmp_path))
    change(tmp_path / "x-0003.npy")
    np.testing.assert_array_equal(data[:5][0], IMAGES[:5])
    with pytest.raises(DatasetError, match="x-0003.npy: expected"):
        data[:]


def again(change):
    """The file written again, with a time of its own."""

    def write(path):
        np.save(path, change(np.load(path)))
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 10**7))

    return write


WRITTEN = {
    "another dtype of as many bytes": again(lambda x: x.view("i1")),
    "wider numbers": again(lambda x: x.astype("f4")),
    "another shape of as many bytes": again(lambda x: x.reshape(len(x), -1)),
    "more samples": again(lambda x: np.concatenate([x, x])),
    "other numbers": again(lambda x: x + 1),
    "columns": again(lambda x: np.asfortranarray(x.reshape(len(x), -1))),
}


@pytest.mark.parametrize("which", ["x", "y"])
@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_that_was_written_since_is_refused(name, which, tmp_path):
    data = NpyDataset(*written(tmp_path))
    data[:]
    path = tmp_path / f"{which}-0003.npy"
    WRITTEN[name](path)
    with pytest.raises(DatasetError, match=rf"{which}-0003.npy: expected the file that.*anew"):
        data[:]
    np.testing.assert_array_equal(data[:5][0], IMAGES[:5])  # the other files are as they were


def test_a_file_with_another_header_and_the_old_time_is_refused(tmp_path):
    """float32 in the place of float64 of half as many numbers: the same length, the same time."""
    np.save(tmp_path / "x.npy", np.full((4, 2), 7.0))
    np.save(tmp_path / "y.npy", np.arange(4))
    data = NpyDataset(tmp_path / "x.npy", tmp_path / "y.npy")
    before = (tmp_path / "x.npy").stat()
    np.save(tmp_path / "x.npy", np.full((8, 2), 7.0, np.float32))
    os.utime(tmp_path / "x.npy", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (tmp_path / "x.npy").stat().st_size == before.st_size
    with pytest.raises(DatasetError, match="written since"):
        data[0]


# ---- arrays that are mapped ---------------------------------------------------------------------


@pytest.fixture
def mapped(tmp_path):
    images, labels = written(tmp_path, (11,))
    found = [np.load(str(name).replace("*", "0000"), mmap_mode="r") for name in (images, labels)]
    return ArrayDataset(*found)


def test_a_mapped_array_stays_in_its_file(mapped):
    assert isinstance(mapped.inputs.base, np.memmap) or isinstance(mapped.inputs, np.memmap)
    assert isinstance(tg.data.TensorDataset(mapped.inputs).tensors[0].numpy().base, np.memmap)
    part, _ = tg.data.random_split(Subset(mapped, range(11)), [0.5, 0.5])
    assert part.dataset.dataset.inputs is mapped.inputs


def roundtrip(thing):
    """As it goes to a worker, and how many bytes that takes."""
    sent = bytes(_JobPickler.dumps(thing))
    return pickle.loads(sent), len(sent)


def test_a_mapped_array_is_sent_by_its_place(tmp_path):
    large = np.arange(200_000).reshape(-1, 5)
    np.save(tmp_path / "x.npy", large)
    array = np.load(tmp_path / "x.npy", mmap_mode="r")
    views = [array, np.asarray(array), array[7:], array[3:30_000][5:], array[2], array.view("i4")]
    for view in views:
        found, size = roundtrip(view)
        assert size < 1000
        assert (found.dtype, found.shape) == (view.dtype, view.shape)
        np.testing.assert_array_equal(found, view)
        assert not found.flags.writeable
    data, size = roundtrip(TransformedDataset(ArrayDataset(array, array[:, 0]), large_sum))
    assert size < len(large) * 8 + 2000  # a column is no part of the file
    assert data[3] == (large[3].sum(), large[3, 0])
    data, size = roundtrip(tg.data.TensorDataset(array))
    assert size < 2000 and data[4][0].numpy().tolist() == large[4].tolist()


def test_a_mapped_file_that_was_written_since_is_not_mapped_again(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(1000.0))
    array = np.load(path, mmap_mode="r")
    sent = bytes(_JobPickler.dumps(array))
    other = tmp_path / "other.npy"
    np.save(other, np.arange(2000.0, dtype=np.float32))
    os.replace(other, path)  # as long, of another dtype: the map keeps the old file
    with pytest.raises(DatasetError, match="x.npy: expected the file that was mapped"):
        pickle.loads(sent)
    np.testing.assert_array_equal(roundtrip(array)[0], np.arange(1000.0))
    path.unlink()
    with pytest.raises(DatasetError, match="x.npy"):
        pickle.loads(sent)
    np.testing.assert_array_equal(roundtrip(array)[0], np.arange(1000.0))


def large_sum(inputs, target, draws):
    return inputs.sum(), target


def test_what_is_not_as_in_its_file_is_sent_as_it_is(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(2, 3))
    changed = np.load(tmp_path / "x.npy", mmap_mode="c")
    changed[0] = 7
    for array in (changed, changed.T, np.arange(3), np.zeros((0, 2)), np.ones((3, 3))[:, ::2]):
        np.testing.assert_array_equal(roundtrip(array)[0], array)
    written = np.load(tmp_path / "x.npy", mmap_mode="r+")
    found, _ = roundtrip(written)
    found[0] = 9  # a worker's own
    assert 9 not in written


# ---- memory -------------------------------------------------------------------------------------

CHILD = """
import sys
import numpy as np
import tinygraph as tg

def memory(kind):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(kind))

x, y, how = sys.argv[1:]
if how == "read":
    data, kind = tg.data.NpyDataset(x, y), "VmHWM"  # all memory, at its peak
else:
    arrays = [np.load(name, mmap_mode="r") for name in (x, y)]
    data, kind = tg.data.ArrayDataset(*arrays), "RssAnon"  # without the pages of files
next(iter(tg.data.DataLoader(data, 256, seed=1)))
before, most, count = memory(kind), 0, 0
for inputs, labels in tg.data.DataLoader(data, 256, shuffle=True, seed=1):
    count += len(inputs)
    most = max(most, memory(kind))
assert count == len(data)
print(most - before)
"""


@pytest.mark.second
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="counts memory as Linux does")
@pytest.mark.parametrize("how", ["read", "mapped"])
def test_an_epoch_through_a_gigabyte_takes_little_memory(tmp_path, how):
    rows = 1 << 15
    large = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (rows, 8192))
    assert large.nbytes == 1 << 30  # with nothing written to it, it takes no room on the disk
    np.save(tmp_path / "y.npy", np.zeros(rows, np.int64))
    command = [sys.executable, "-c", textwrap.dedent(CHILD), tmp_path / "x.npy", tmp_path / "y.npy"]
    taken = subprocess.run([*command, how], capture_output=True, text=True, timeout=100)
    assert taken.returncode == 0, taken.stderr
    assert int(taken.stdout) < 64  # a batch has 8 MB
