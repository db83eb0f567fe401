"""tg.save and tg.load: any nest comes back as it was, other programs read it, damage is noticed."""

import hashlib
import json
import math
import os
import sys
import tracemalloc
import types
from functools import reduce

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

import tinygraph as tg
from tinygraph.base import free_memory
from tinygraph.base.errors import ArgumentError, CheckpointError
from tinygraph.recipes.srcnn_network import model, read_network

KEYS = st.text(max_size=5) | st.integers() | st.booleans() | st.floats(allow_nan=False)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
DTYPES = st.sampled_from(["f4", "f8", "f2", "i1", "i4", "i8", "u1", "u8", "?"])
ARRAYS = arrays_of.arrays(DTYPES, arrays_of.array_shapes(min_dims=0, min_side=0, max_side=3))
NUMBERS = st.floats(width=32).map(np.float32) | st.integers(-9, 9).map(np.int64)


def nests(inner):
    lists = st.lists(inner, max_size=3)
    return lists | lists.map(tuple) | st.dictionaries(KEYS, inner, max_size=3)


def same(a, b):
    """Whether two nests are alike: types, order of keys, NaN and the sign of zero included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        alike = [(type(k), k) for k in a] == [(type(k), k) for k in b]
        return alike and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, tg.Tensor):
        return same(a.value, b.value)
    if isinstance(a, (np.ndarray, np.generic)):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or repr(a) == repr(b)
    return a == b


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("saved") / "file.safetensors"


@pytest.mark.second
@given(obj=st.recursive(PLAIN | ARRAYS | NUMBERS | ARRAYS.map(tg.Tensor), nests, max_leaves=8))
def test_any_nest_comes_back(path, obj):
    assert same(tg.load(tg.save(obj, path)), obj)


@pytest.mark.parametrize(
    "obj",
    [
        {"$": "array", "name": "x"},
        {"a/b": np.ones(1), "a": {"b": np.zeros(2)}, "n": 1},
        {"tinygraph.document": np.ones(3)},
        {"n": 1, "tinygraph.document": np.ones(3)},
        {1: np.ones(1), "1": np.zeros(1), 1.5: 2, False: 3},
        {},
        [],
        np.arange(3),
    ],
    ids=str,
)
def test_names_that_could_be_taken_for_others(path, obj):
    assert same(tg.load(tg.save(obj, path)), obj)


def test_model_and_optimiser_go_on_with_the_same_bits(path):
    def made():
        tg.manual_seed(1)
        network = tg.nn.Sequential(tg.nn.Linear(3, 4), tg.nn.LayerNorm(4), tg.nn.Linear(4, 2))
        return network, tg.optim.Adam(network.parameters(), lr=0.01)

    def train(network, adam, steps):
        for i in range(steps):
            x = np.cos(np.arange(15.0) + i).reshape(5, 3).astype("f4")
            adam.zero_grad()
            (network(x) ** 2).mean().backward()
            adam.step()

    straight = made()
    train(*straight, 3)
    train(*straight, 2)
    first = made()
    train(*first, 3)
    state = {"model": first[0].state_dict(), "optimizer": first[1].state_dict(), "epoch": 3}
    found = tg.load(tg.save(state, path))
    network, adam = made()
    network.load_state_dict(found["model"])
    adam.load_state_dict(found["optimizer"])
    train(network, adam, 2)
    assert found["epoch"] == 3
    assert same(network.state_dict(), straight[0].state_dict())


def test_a_state_dict_is_a_file_as_others_write_it(path):
    state = tg.nn.Linear(3, 2).state_dict()
    read = safetensors.numpy.load_file(tg.save(state, path))
    assert read.keys() == state.keys() and all(same(read[k], state[k]) for k in state)


def test_a_file_of_another_program_is_read(tmp_path):
    state = model(3, 2, 3, 1, 3).state_dict()
    other = tmp_path / "other.safetensors"
    safetensors.numpy.save_file(state, other)
    read = tg.load(other)
    assert read.keys() == state.keys() and all(same(read[k], state[k]) for k in state)
    assert same(read_network(other).state_dict(), state)


def test_every_flipped_byte_is_noticed(path):
    data = tg.save({"w": np.arange(3.0), "n": [1]}, path).read_bytes()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError):
            tg.load(path)


@pytest.mark.parametrize(
    ("obj", "match"),
    [
        ({"f": [1, len]}, r"save: obj\['f'\]\[1\]: expected .*got builtin_function"),
        ({(1, 2): 3}, r"save: obj: expected keys of str, int, float or bool, got \(1, 2\)"),
        ({"a": {None: 1}}, r"save: obj\['a'\]: expected keys"),
        ([np.array(["a"])], r"obj\[0\]: expected .*got an array of <U1"),
        (tg.nn.Linear(1, 1), r"save: obj: .*got Linear.*save state_dict\(\)"),
        ({"z": 1j}, r"obj\['z'\]: .*got complex"),
        ({1, 2}, "got set"),
    ],
    ids=str,
)
def test_what_cannot_be_saved_leaves_the_old_file(path, obj, match):
    tg.save({"old": 1}, path)
    with pytest.raises(ArgumentError, match=match):
        tg.save(obj, path)
    assert tg.load(path) == {"old": 1}


def test_a_nest_that_holds_itself(path):
    nest = []
    nest.append(nest)
    with pytest.raises(ArgumentError, match="a nest that ends"):
        tg.save(nest, path)


@pytest.mark.parametrize(
    "document",
    ["{", '{"$": "array"}', '{"$": "array", "name": "absent"}', '{"$": "new"}', '{"$": []}'],
)
def test_a_document_that_does_not_fit(path, document):
    text = np.frombuffer(document.encode(), np.uint8)
    path.write_bytes(safetensors.numpy.save({"tinygraph.document": text}))
    with pytest.raises(CheckpointError, match="load: .*a document whose arrays are in the file"):
        tg.load(path)


@pytest.mark.parametrize("data", [b"", b"abc", bytes(100), json.dumps({"a": 1}).encode() * 9])
def test_other_bytes(path, data):
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=str(path)):
        tg.load(path)


def test_an_absent_file(tmp_path):
    with pytest.raises(CheckpointError, match="absent.*No such file.* Way out: check the path"):
        tg.load(tmp_path / "absent")


def test_names_come_in_the_order_of_the_file(path):
    tg.save({name: np.zeros(2, "f4") for name in "hgfedcba"}, path)
    assert {tuple(tg.load(path)) for _ in range(8)} == {tuple("abcdefgh")}


def test_what_torch_load_takes_is_taken(path):
    tg.save({"a": np.ones(2)}, path)
    assert same(tg.load(path, map_location="cpu", weights_only=True), {"a": np.ones(2)})
    with pytest.raises(ArgumentError, match=r"load: weights_only: expected True.* Way out: leave"):
        tg.load(path, weights_only=False)


def test_an_open_file_is_no_path(path):
    with path.open("wb") as file, pytest.raises(ArgumentError, match="save: path: .* name of the"):
        tg.save({}, file)
    with path.open("rb") as file, pytest.raises(ArgumentError, match="load: path: .* Buffered"):
        tg.load(file)


# ---- files of PyTorch ---------------------------------------------------------------------------


def test_a_file_of_torch_without_torch(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    path.write_bytes(b"PK\x03\x04" + bytes(50))
    with pytest.raises(CheckpointError, match="only PyTorch reads.*safetensors.torch.save_file"):
        tg.load(path)


def test_torch_is_asked_for_weights_only(path, monkeypatch):
    asked = {}

    def load(file, **options):
        asked.update(options)
        raise RuntimeError("Weights only load failed. \33[1mTwo ways\33[0m\nlong text")

    stand_in = types.SimpleNamespace(load=load, Tensor=type("Tensor", (), {}))
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    path.write_bytes(b"\x80\x02" + bytes(50))
    with pytest.raises(CheckpointError, match="got Weights only load failed. Way out: save model"):
        tg.load(path)
    assert asked["weights_only"] is True


def test_a_file_of_torch_with_torch(path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    network = torch.nn.Linear(3, 2)
    adam = torch.optim.Adam(network.parameters())
    network(torch.ones(1, 3)).sum().backward()
    adam.step()
    half = torch.ones(2, dtype=torch.bfloat16)
    state = {"model": network.state_dict(), "optimizer": adam.state_dict(), "half": half}
    torch.save(state, path)
    found = tg.load(path)
    linear = tg.nn.Linear(3, 2)
    linear.load_state_dict(found["model"])
    assert linear.weight.value.tolist() == network.weight.tolist()
    assert found["optimizer"]["param_groups"][0]["lr"] == 0.001
    assert found["half"].dtype == np.float32
    torch.save(network, path)  # a pickle of a module runs code when it is read
    with pytest.raises(CheckpointError, match=r"save model.state_dict\(\) there, not the model"):
        tg.load(path)


HASHES = {
    "a hash of their own": {"sha256": "ab" * 32},
    "any 64 digits": {"sshs_model_hash": "0" * 64, "ss_base_model": "v1"},
    "several": {"format": "pt", "sha256": "CAFE" * 16, "modelspec.hash_sha256": "0x" + "1f" * 32},
}


@pytest.mark.parametrize("which", HASHES)
def test_hashes_in_the_metadata_of_other_programs_are_theirs(tmp_path, which):
    """As programs for LoRA write them: they say nothing of the file as we would."""
    path = tmp_path / "lora.safetensors"
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    safetensors.numpy.save_file({"up.weight": array}, path, metadata=HASHES[which])
    np.testing.assert_array_equal(tg.load(path)["up.weight"], array)
    found = tg.training.load_arrays(path, sealed=False)
    np.testing.assert_array_equal(found["up.weight"], array)


def test_a_file_that_an_earlier_version_sealed_is_read_and_checked(tmp_path):
    """Its seal was called "sha256": 64 zeros in its place while the digest is taken."""
    path = tmp_path / "old.safetensors"
    blank = safetensors.numpy.save({"w": np.ones(3)}, metadata={"sha256": "0" * 64})
    whole = blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode(), 1)
    path.write_bytes(whole)
    np.testing.assert_array_equal(tg.training.load_arrays(path)["w"], np.ones(3))
    path.write_bytes(whole[:-1] + b"\x01")
    with pytest.raises(CheckpointError, match="damaged or changed"):
        tg.training.load_arrays(path)


# ---- what would make a file that nothing can read ------------------------------------------------

X = np.arange(3, dtype=np.float32)
UNREADABLE = {
    "the key of safetensors": ({"__metadata__": X}, r"obj\['__metadata__'\]"),
    "half a surrogate": ({"\ud800": X}, r"obj\['.ud800'\]"),
    "half a surrogate further down": ({"model": {"a\udfff": X}}, r"obj\['model'\]\['a.udfff'\]"),
    "long floats": ({"x": X.astype(np.longdouble)}, r"obj\['x'\].*got (float|longdouble)"),
    "long floats further down": ([1, X.astype("g")], r"obj\[1\]"),
    "a long float": ({"a": np.longdouble(3)}, r"obj\['a'\]"),
    "complex numbers": ({"x": X * 1j}, r"obj\['x'\]"),
    "objects": ({"x": np.array([{}, 3], object)}, r"obj\['x'\]"),
    "words": ({"x": np.array(["a", "b"])}, r"obj\['x'\]"),
    "dates": ({"x": np.zeros(2, "M8[s]")}, r"obj\['x'\]"),
    "records": ({"x": np.zeros(2, [("a", "f4")])}, r"obj\['x'\]"),
    "5000 digits": ({"x": X, "n": [10**5000]}, r"obj\['n'\]\[0\].*up to 4300 digits"),
    "5000 digits as a key": ({"x": X, "n": {-(10**4300): 1}}, r"obj\['n'\].*up to 4300 digits"),
    "300 lists in one another": (
        reduce(lambda inner, _: [inner], range(300), X),
        "a nest that ends",
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_nothing_could_read_is_refused_and_the_old_file_stays(name, tmp_path):
    path = tg.save({"old": X}, tmp_path / "file.safetensors")
    before = path.read_bytes()
    obj, words = UNREADABLE[name]
    with pytest.raises(ArgumentError, match=words):
        tg.save(obj, path)
    assert path.read_bytes() == before and [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize(
    "obj",
    [
        {"model": {"__metadata__": X}},
        {"": X, "a\0b": X, "sha256": X, "0" * 64: X, '"sha256":"' + "0" * 64 + '"': X},
        {"x": X.astype(np.float16), "y": X > 1, "z": X.astype("u8")},
        {1: X, "1": X, 2.5: 3, "a": "\ud800", "n": 10**4299},
        reduce(lambda inner, _: [inner], range(150), X),
        {"a/b": X, "a": {"b": X}, "a/b'": X},
    ],
)
def test_what_looks_like_it_comes_back(obj, path):
    found = tg.load(tg.save(obj, path))
    if isinstance(obj, dict):
        assert found.keys() == obj.keys()
        found = {key: found[key] for key in obj}  # safetensors has an order of its own
    assert same(found, obj)


def test_other_byte_orders_are_written_in_that_of_the_format(path):
    assert tg.load(tg.save({"x": X.astype(">f4")}, path))["x"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("bad", ["", "a\0b", "/"])
def test_a_path_that_names_no_file(bad):
    with pytest.raises(ArgumentError, match="the name of a file"):
        tg.save({"x": X}, bad)
    with pytest.raises((ArgumentError, CheckpointError), match="can be read|the name of a file"):
        tg.load(bad)


# ---- sizes that files claim ----------------------------------------------------------------------


def sparse(path, begin, size=2**36):
    """A file of that length, of which only the beginning takes room on the disk."""
    path.write_bytes(begin)
    os.truncate(path, size)
    return path


def header(content):
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return len(data).to_bytes(8, "little") + data


HUGE = {"x": {"dtype": "U8", "shape": [2**36 - 1000], "data_offsets": [0, 2**36 - 1000]}}
SPARSE = {
    "zeros": (b"", "a header"),
    "a header beyond the file": ((2**40).to_bytes(8, "little"), "a header of up to"),
    "a header of 2 GiB": ((2**31).to_bytes(8, "little"), "a header of up to"),
    "no JSON": (header(b"x" * 100), "a header"),
    "deep JSON": (header(b"[" * 100_000), "a header"),
    "another length": (
        header({"x": {"data_offsets": [0, 12]}}),
        "as many bytes as its header says",
    ),
    "no offsets": (header({"x": {"data_offsets": ["a", None]}}), "a header"),
    "its length": (header(json.dumps(HUGE).encode().ljust(992)), "there is memory for"),
}


@pytest.mark.parametrize("name", SPARSE)
def test_a_file_is_not_read_before_its_size_is_looked_at(name, tmp_path, monkeypatch):
    monkeypatch.setattr(free_memory, "free_bytes", lambda: 2**30)
    begin, words = SPARSE[name]
    path = sparse(tmp_path / "file.safetensors", begin)
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match=words):
            tg.load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="Not a regular file"):
        tg.load(tmp_path / "pipe")
