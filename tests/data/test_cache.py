"""cached: made once; made again, aloud, whenever the files do not prove that they are right."""

import hashlib
import io
import json
import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

from tinygraph.base.errors import ArgumentError, DatasetError
from tinygraph.data import ArrayDataset, CacheWarning, cached


class Maker:
    """A costly function that counts its calls."""

    def __init__(self, dataset=None):
        if dataset is None:
            inputs = np.random.default_rng(0).random((5, 2), np.float32)
            dataset = ArrayDataset(inputs, np.arange(5), "five", ["a", "b"], "made")
        self.dataset = dataset
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.dataset


def equal(a, b):
    np.testing.assert_array_equal(a.inputs, b.inputs, strict=True)
    np.testing.assert_array_equal(a.labels, b.labels, strict=True)
    assert (a.name, a.classes, a.notes) == (b.name, b.classes, b.notes)


@pytest.fixture
def folder(tmp_path):
    """A folder with a cache `five`, made with the settings {"scale": 3}."""
    cached(Maker(), "five", tmp_path, {"scale": 3})
    return tmp_path


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def made_again(folder, match, settings=None, **options):
    """Make sure that the cache warns, is made again, and is good afterwards."""
    make, settings = Maker(**options), settings or {"scale": 3}
    with pytest.warns(CacheWarning, match=match):
        equal(cached(make, "five", folder, settings), make.dataset)
    assert make.calls == 1
    equal(cached(make, "five", folder, settings), make.dataset)
    assert make.calls == 1
    assert files(folder) == ["five.npz"], "nothing temporary"


def test_made_once(folder):
    make = Maker()
    for _ in range(2):
        equal(cached(make, "five", folder, {"scale": 3}), make.dataset)
    assert make.calls == 0
    assert files(folder) == ["five.npz"]
    with np.load(folder / "five.npz", allow_pickle=False) as content:  # as any program may
        np.testing.assert_array_equal(content["inputs"], make.dataset.inputs)


def test_a_sealed_file_with_deep_json_is_made_again(tmp_path):
    content = io.BytesIO()
    about = np.frombuffer(b"[" * 100_000, np.uint8)
    np.savez(content, inputs=np.zeros(2), labels=np.zeros(2), about=about)
    data = content.getvalue()
    (tmp_path / "deep.npz").write_bytes(data + hashlib.sha256(data).digest())
    with pytest.warns(CacheWarning, match="brackets in one another"):
        cached(lambda: ArrayDataset([[1.0]], [1]), "deep", tmp_path)
    cached(lambda: None, "deep", tmp_path)  # it was written anew


@pytest.mark.parametrize(
    "dataset",
    [
        ArrayDataset(np.empty((0, 3), np.float64), np.empty(0, np.int64)),
        ArrayDataset(np.array([[1, -2]], ">i2"), np.array(["word"])),
        ArrayDataset(np.arange(12).reshape(3, 4)[:, ::2], [True, False, True], notes="ÄÖ"),
        ArrayDataset(np.asfortranarray(np.ones((2, 3))), np.array([1.5, np.nan])),
    ],
)
def test_any_arrays(tmp_path, dataset):
    make = Maker(dataset)
    for _ in range(2):
        equal(cached(make, "any", tmp_path), dataset)
    assert make.calls == 1


def test_keys_keep_apart(folder):
    other = Maker(ArrayDataset(np.zeros(3), np.zeros(3)))
    equal(cached(other, "five-b", folder), other.dataset)
    make = Maker()
    equal(cached(make, "five", folder, {"scale": 3}), make.dataset)
    assert make.calls == 0 and files(folder) == ["five-b.npz", "five.npz"]


def test_other_settings(folder):
    other = ArrayDataset(np.zeros(3), np.zeros(3))
    made_again(
        folder, r'with the settings {"scale": 3}, not {"scale": 4}', {"scale": 4}, dataset=other
    )


def test_the_order_of_settings_does_not_matter(tmp_path):
    make = Maker()
    cached(make, "five", tmp_path, {"a": 1, "b": [1, 2]})
    cached(make, "five", tmp_path, {"b": (1, 2), "a": 1})
    assert make.calls == 1


def write(folder, packed):
    """A file with the right SHA-256 around what numpy has packed, as an attacker would make it."""
    (folder / "five.npz").write_bytes(packed + hashlib.sha256(packed).digest())


def test_every_flipped_byte_is_seen(folder):
    path = folder / "five.npz"
    data = path.read_bytes()
    for position in (*range(0, len(data), 31), len(data) - 1):
        damaged = bytearray(data)
        damaged[position] ^= 1
        path.write_bytes(bytes(damaged))
        with pytest.warns(CacheWarning, match="its SHA-256 is another: it is damaged"):
            cached(Maker(), "five", folder, {"scale": 3})


@pytest.mark.parametrize("size", [0, 1, 31, 32, 100])
def test_truncated_files(folder, size):
    path = folder / "five.npz"
    path.write_bytes(path.read_bytes()[:size])
    made_again(folder, "its SHA-256 is another")


def test_what_is_no_archive_of_arrays(folder):
    for packed in (b"", b"PK", b"[]"):
        write(folder, packed)
        made_again(folder, "it cannot be read")


@pytest.mark.parametrize(
    "about, match",
    [
        ('{"format": 1, "settings": ""}', "format 1, not 2"),
        ('{"format": 2, "settings": "2"}', 'with the settings 2, not {"scale": 3}'),
        ("{}", "it cannot be read"),
        ("[]", "it cannot be read"),
        ("{", "it cannot be read"),
        ('{"format": 2, "settings": "{\\"scale\\": 3}", "size": 1}', "it cannot be read"),
    ],
)
def test_changed_records(folder, about, match):
    file = io.BytesIO()
    text = np.frombuffer(about.encode(), np.uint8)
    np.savez(file, inputs=np.zeros(1), labels=np.zeros(1), about=text)
    write(folder, file.getvalue())
    made_again(folder, match)


def test_no_pickle_is_loaded(folder):
    file = io.BytesIO()
    about = {"format": 2, "settings": '{"scale": 3}'}
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    np.savez(file, inputs=np.array([print], object), labels=np.zeros(1), about=text)
    write(folder, file.getvalue())
    made_again(folder, "it cannot be read .*pickle")


def test_a_function_that_fails_keeps_the_old_cache(folder):
    before = files(folder)

    def fails():
        raise ZeroDivisionError

    with pytest.warns(CacheWarning), pytest.raises(ZeroDivisionError):
        cached(fails, "five", folder, {"scale": 4})
    assert files(folder) == before
    make = Maker()
    cached(make, "five", folder, {"scale": 3})
    assert make.calls == 0


def test_a_write_that_fails_leaves_the_old_cache_and_no_rest(folder, monkeypatch):
    before = files(folder)

    def no_space(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    make = Maker()
    with pytest.warns(CacheWarning) as said:
        equal(cached(make, "five", folder, {"scale": 4}), make.dataset)
    assert "No space left on device; the dataset is not kept" in str(said[-1].message)
    assert files(folder) == before
    monkeypatch.undo()
    make = Maker()
    cached(make, "five", folder, {"scale": 3})
    assert make.calls == 0


KILLED = """
import os, sys, numpy as np
from tinygraph.data import ArrayDataset, cached
calls, left = [], int(sys.argv[2])
for name in ("fsync", "replace"):
    def dies(*args, plain=getattr(os, name)):
        calls.append(args)
        if len(calls) > left:
            os._exit(9)
        return plain(*args)
    setattr(os, name, dies)
cached(lambda: ArrayDataset(np.zeros(9), np.zeros(9)), "five", sys.argv[1], {"scale": 4})
"""


@pytest.mark.second
def test_killed_at_any_step_the_cache_is_the_old_or_the_new(folder):
    """Exit without clean-up at each fsync and replace of a rewrite."""
    results = []
    for left in range(10):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", KILLED, str(folder), str(left)], timeout=60
        )
        old, new = Maker(), Maker(ArrayDataset(np.zeros(9), np.zeros(9)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CacheWarning)
            with np.load(folder / "five.npz") as content:
                settings = json.loads(json.loads(content["about"].tobytes())["settings"])
            make = old if settings == {"scale": 3} else new
            equal(cached(make, "five", folder, settings), make.dataset)
        assert make.calls == 0, f"killed after {left} steps: neither the old cache nor the new"
        results.append(make is new)
        if done.returncode == 0:
            break
    assert done.returncode == 0
    assert results == sorted(results) and not results[0] and results[-1]


def test_many_threads_make_one_cache(tmp_path):
    results = []

    def work():
        results.append(cached(Maker(), "five", tmp_path))

    workers = [threading.Thread(target=work) for _ in range(8)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert len(results) == 8
    for result in results:
        equal(result, Maker().dataset)


def test_bad_arguments(tmp_path):
    for key in ("", "../up", "a/b", "a.b", "x" * 101, 3):
        with pytest.raises(ArgumentError, match="key"):
            cached(Maker(), key, tmp_path)
    for settings in ({1, 2}, {"x": np.zeros(2)}, float("nan")):
        with pytest.raises(ArgumentError, match="settings: expected a value that JSON can hold"):
            cached(Maker(), "five", tmp_path, settings)
    with pytest.raises(DatasetError, match="returns an ArrayDataset, got list"):
        cached(lambda: [1], "five", tmp_path)
    with pytest.raises(DatasetError, match="labels: expected numbers or strings"):
        cached(Maker(ArrayDataset([1], np.array([None]))), "five", tmp_path)
    assert files(tmp_path) == []
