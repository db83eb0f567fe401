"""tg.onnx.load of files that nobody should trust: an OnnxError each, and no memory taken."""

import os
import tracemalloc
from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tinygraph as tg
from tests.onnx import mutated
from tests.onnx.models import FLOAT, INT64, model, node, numbers, perceptron, save
from tinygraph.base import free_memory
from tinygraph.base.errors import OnnxError


def refused(made, folder, words):
    path = save(made, folder / "model.onnx")
    tracemalloc.start()
    try:
        with pytest.raises(OnnxError, match=words):
            tg.onnx.load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


# ---- files -----------------------------------------------------------------------------------


def test_no_file_a_folder_and_no_model(tmp_path):
    with pytest.raises(OnnxError, match="can be read"):
        tg.onnx.load(tmp_path / "absent.onnx")
    with pytest.raises(OnnxError, match="file"):
        tg.onnx.load(tmp_path)
    for data in (b"", b"not a model", b"\x00" * 100, perceptron().SerializeToString()[:-40]):
        (tmp_path / "broken.onnx").write_bytes(data)
        with pytest.raises(OnnxError, match="valid ONNX model"):
            tg.onnx.load(tmp_path / "broken.onnx")


def test_a_file_that_is_too_large(tmp_path):
    path = tmp_path / "model.onnx"
    with path.open("wb") as file:
        file.truncate(2**31 + 1)  # takes no room on the disk
    with pytest.raises(OnnxError, match="at most"):
        tg.onnx.load(path)


@pytest.mark.parametrize("word", [b"0.weight", b"Gemm", b"graph", b"transB"])
def test_names_that_are_no_text(word, tmp_path):
    data = perceptron().SerializeToString()
    (tmp_path / "model.onnx").write_bytes(data.replace(word, b"\xff" + word[1:]))
    with pytest.raises(OnnxError, match="UTF-8"):
        tg.onnx.load(tmp_path / "model.onnx")


# ---- tensors ---------------------------------------------------------------------------------


def with_weight(**fields):
    """A model of one Add whose initialiser has other fields."""
    made = model(
        [node("Add", ["x", "w"], ["y"])],
        {"x": (FLOAT, [2])},
        {"y": (FLOAT, None)},
        {"w": numbers(2)},
    )
    weight = made.graph.initializer[0]
    for name, value in fields.items():
        if name == "dims":
            weight.dims[:] = value
        else:
            setattr(weight, name, value)
    return made


@pytest.mark.parametrize("dims", [[2**40], [-1], [2**62, 4], [3], [1] * 65, [2**20, 2**20]])
def test_sizes_that_the_data_do_not_have(dims, tmp_path):
    refused(with_weight(dims=dims), tmp_path, "w")


def test_numbers_that_are_too_few_or_of_no_dtype(tmp_path):
    made = with_weight()
    weight = made.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.float_data[:] = [1.0]
    refused(made, tmp_path, "w")
    refused(with_weight(data_type=TensorProto.STRING), tmp_path, "w|string")
    refused(with_weight(data_type=99), tmp_path, "w|data_type|99")
    refused(with_weight(data_type=TensorProto.COMPLEX64, dims=[1]), tmp_path, "COMPLEX64")


def test_all_tensors_share_one_limit(tmp_path):
    path = save(perceptron(), tmp_path / "model.onnx")
    assert tg.onnx.load(path, max_bytes=4 * (32 + 8 + 24 + 3))
    with pytest.raises(OnnxError, match="max_bytes"):
        tg.onnx.load(path, max_bytes=4 * (32 + 8 + 24 + 3) - 1)


SIZES = {
    "ConstantOfShape": [],
    "Expand": ["x"],
    "Tile": ["x"],
    "Range": [],
}


@pytest.mark.parametrize("kind", SIZES)
def test_sizes_that_are_computed(kind, tmp_path):
    sizes = ["a", "b", "c"] if kind == "Range" else ["size"]
    values = {"size": np.array([2**35]), "a": np.array(0), "b": np.array(2**40), "c": np.array(1)}
    made = model(
        [node(kind, [*SIZES[kind], *sizes], ["y"]), node("Shape", ["x"], ["z"])],
        {"x": (FLOAT, [1])},
        {"y": (INT64 if kind == "Range" else FLOAT, None), "z": (INT64, None)},
        {name: values[name] for name in sizes},
    )
    network = tg.onnx.load(save(made, tmp_path / "model.onnx"))
    with pytest.raises(OnnxError, match=rf"{kind} .*at most"):
        network(numbers(1))


HUGE = 2**40
ROI = {"v": [[0.0, 0.0, 1.0, 1.0]]}
CLAIMS = {
    "Split": ([node("Split", ["x"], ["y"], num_outputs=HUGE)], [2], {}),
    "OneHot": ([node("OneHot", ["i", "n", "v"], ["y"])], [2], {"n": HUGE, "v": [0.0, 1.0]}),
    "Pad": ([node("Pad", ["x", "p"], ["y"])], [2], {"p": [0, HUGE]}),
    "Resize": ([node("Resize", ["x", "", "", "p"], ["y"])], [2], {"p": [HUGE]}),
    "scales": ([node("Resize", ["x", "", "v"], ["y"])], [2], {"v": [1e12]}),
    "strides of MaxUnpool": (
        [node("MaxUnpool", ["x", "i"], ["y"], kernel_shape=[2, 2], strides=[HUGE, 1])],
        [1, 1, 2, 2],
        {},
    ),
    "output_shape of MaxUnpool": (
        [node("MaxUnpool", ["x", "i", "p"], ["y"], kernel_shape=[1, 1])],
        [1, 1, 2, 2],
        {"p": [1, 1, HUGE, 2]},
    ),
    "Col2Im": ([node("Col2Im", ["x", "p", "q"], ["y"])], [1, 4, 1], {"p": [HUGE, 2], "q": [2, 2]}),
    "strides": ([node("ConvTranspose", ["x", "x"], ["y"], strides=[HUGE, 1])], [1, 1, 2, 2], {}),
    "output_shape": (
        [node("ConvTranspose", ["x", "x"], ["y"], output_shape=[HUGE, 2])],
        [1, 1, 2, 2],
        {},
    ),
    "MaxPool": (
        [node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], pads=[HUGE, 0, HUGE, 0])],
        [1, 1, 2, 2],
        {},
    ),
    "CenterCropPad": ([node("CenterCropPad", ["x", "p"], ["y"])], [2], {"p": [HUGE]}),
    "HannWindow": ([node("HannWindow", ["n"], ["y"])], [2], {"n": HUGE}),
    "AffineGrid": ([node("AffineGrid", ["x", "p"], ["y"])], [1, 2, 3], {"p": [1, 1, HUGE, 2]}),
    "DFT": ([node("DFT", ["x", "n"], ["y"])], [1, 4, 1], {"n": HUGE}),
    "STFT": ([node("STFT", ["x", "n", "", "m"], ["y"])], [1, 4, 1], {"n": 1, "m": HUGE}),
    "a step of 0": ([node("STFT", ["x", "n", "", "m"], ["y"])], [1, 4, 1], {"n": 0, "m": 2}),
    "MelWeightMatrix": (
        [node("MelWeightMatrix", ["n", "m", "m", "v", "w"], ["y"])],
        [2],
        {"n": HUGE, "m": 16, "v": 1.0, "w": 8.0},
    ),
    "RoiAlign": (
        [node("RoiAlign", ["x", "v", "i"], ["y"], output_height=HUGE)],
        [1, 1, 4, 4],
        ROI,
    ),
    "sampling_ratio": (
        [node("RoiAlign", ["x", "v", "i"], ["y"], sampling_ratio=2**31 - 1)],
        [1, 1, 4, 4],
        ROI,
    ),
    "DeformConv": (
        [node("DeformConv", ["x", "x", "x"], ["y"], pads=[HUGE, 0, HUGE, 0])],
        [1, 1, 2, 2],
        {},
    ),
    "TfIdfVectorizer": (
        [
            node(
                "TfIdfVectorizer",
                ["i"],
                ["y"],
                mode="TF",
                min_gram_length=1,
                max_gram_length=1,
                max_skip_count=0,
                ngram_counts=[0],
                ngram_indexes=[HUGE],
                pool_int64s=[1],
            )
        ],
        [2],
        {},
    ),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_sizes_that_an_operator_claims(name, tmp_path):
    nodes, shape, given = CLAIMS[name]
    values = {n: np.array(v, np.float32 if n in "vw" else np.int64) for n, v in given.items()}
    if "i" in nodes[0].input:
        one_each = nodes[0].op_type == "RoiAlign"
        values["i"] = np.zeros([1] if one_each else shape, np.int64)
    made = model(
        [*nodes, node("Shape", ["x"], ["z"])],
        {"x": (FLOAT, shape)},
        {"y": (FLOAT, None), "z": (INT64, None)},
        values,
    )
    tracemalloc.start()
    try:
        with pytest.raises(OnnxError) as error, tg.no_grad():
            tg.onnx.load(save(made, tmp_path / "model.onnx"))(numbers(*shape))
        inner = {"CenterCropPad": "Pad", "HannWindow": "Range"}.get(name, nodes[0].op_type)
        assert str(error.value).startswith(inner)  # a body is told by its own operators
        assert tracemalloc.get_traced_memory()[1] < 2**27
    finally:
        tracemalloc.stop()


def test_a_size_is_held_against_the_memory_that_is_free(tmp_path, monkeypatch):
    made = model(
        [node("ConstantOfShape", ["size"], ["y"]), node("Shape", ["x"], ["z"])],
        {"x": (FLOAT, [1])},
        {"y": (FLOAT, None), "z": (INT64, None)},
        {"size": np.array([2**28])},
    )
    network = tg.onnx.load(save(made, tmp_path / "model.onnx"))
    monkeypatch.setattr(free_memory, "free_bytes", lambda: 2**29)
    with pytest.raises(OnnxError, match=r"ConstantOfShape.*memory for.*536,870,912 are free"):
        network(numbers(1))


# ---- data beside the file --------------------------------------------------------------------


def outside(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    path = save(perceptron(), folder / "model.onnx", outside=True)
    return folder, path, onnx.load(path, load_external_data=False)


def entry(tensor, key):
    (found,) = [e for e in tensor.external_data if e.key == key]
    return found


def test_data_beside_the_file(tmp_path):
    folder, path, _ = outside(tmp_path)
    assert (folder / "data.bin").exists() and path.stat().st_size < 2000
    inside = tg.onnx.load(save(perceptron(), tmp_path / "inside.onnx")).state_dict()
    for name, found in tg.onnx.load(path).state_dict().items():
        np.testing.assert_array_equal(found, inside[name])
    os.chdir(tmp_path)  # what is beside the file does not depend on where we are
    assert tg.onnx.load("models/model.onnx").state_dict().keys() == inside.keys()


@pytest.fixture(autouse=True)
def _same_folder_afterwards():
    before = os.getcwd()
    yield
    os.chdir(before)


@pytest.mark.parametrize("location", ["/etc/hostname", "../data.bin", "", "a/../../data.bin", "x"])
def test_data_elsewhere(location, tmp_path):
    folder, path, made = outside(tmp_path)
    (tmp_path / "data.bin").write_bytes((folder / "data.bin").read_bytes())
    entry(made.graph.initializer[0], "location").value = location
    path.write_bytes(made.SerializeToString())
    with pytest.raises(OnnxError):
        tg.onnx.load(path)


@pytest.mark.parametrize("target", ["file", "folder"])
def test_links_that_lead_out(target, tmp_path):
    folder, path, made = outside(tmp_path)
    (folder / "data.bin").rename(tmp_path / "data.bin")
    if target == "file":
        (folder / "data.bin").symlink_to(tmp_path / "data.bin")
    else:
        (folder / "inner").symlink_to(tmp_path)
        for tensor in made.graph.initializer:
            entry(tensor, "location").value = "inner/data.bin"
        path.write_bytes(made.SerializeToString())
    with pytest.raises(OnnxError):
        tg.onnx.load(path)


@pytest.mark.parametrize(
    "key, value", [("offset", "-4"), ("offset", "99999999"), ("length", "4"), ("offset", "one")]
)
def test_offsets_and_lengths_that_do_not_fit(key, value, tmp_path):
    _, path, made = outside(tmp_path)
    entry(made.graph.initializer[0], key).value = value
    path.write_bytes(made.SerializeToString())
    with pytest.raises(OnnxError):
        tg.onnx.load(path)


# ---- graphs ----------------------------------------------------------------------------------

x, y = {"x": (FLOAT, [2])}, {"y": (FLOAT, [2])}
GRAPHS = {
    "a circle": [
        node("Add", ["x", "b"], ["a"]),
        node("Neg", ["a"], ["b"]),
        node("Abs", ["b"], ["y"]),
    ],
    "another order": [node("Abs", ["a"], ["y"]), node("Neg", ["x"], ["a"])],
    "a name twice": [node("Neg", ["x"], ["y"]), node("Abs", ["x"], ["y"])],
    "no such input": [node("Neg", ["z"], ["y"])],
    "no such output": [node("Neg", ["x"], ["z"])],
    "too few inputs": [node("Add", ["x"], ["y"])],
    "no operator": [node("", ["x"], ["y"])],
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_that_are_none(name, tmp_path):
    path = save(model(GRAPHS[name], x, y), tmp_path / "model.onnx")
    with pytest.raises(OnnxError):
        tg.onnx.load(path)([1.0, 2.0])


def calling(names):
    """Functions each of which calls the next one twice."""
    made = []
    for name, inner in pairwise(names):
        calls = [
            node(inner, ["a"], ["b"], domain="local"),
            node(inner, ["b"], ["c"], domain="local"),
        ]
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
        made.append(helper.make_function("local", name, ["a"], ["c"], calls, opsets))
    return made


@pytest.mark.parametrize("names", ["abcdefghijklmnopqrstuvwxyz", "aa", "aba"])
def test_functions_that_unfold_without_end(names, tmp_path):
    last = helper.make_function(
        "local", names[-1], ["a"], ["c"], [node("Neg", ["a"], ["c"])], [helper.make_opsetid("", 20)]
    )
    known = calling(names) + ([] if names[-1] in names[:-1] else [last])
    made = model([node(names[0], ["x"], ["y"], domain="local")], x, y, others=[("local", 1)])
    made.functions.extend(known)
    with pytest.raises(OnnxError, match="at most|valid"):
        tg.onnx.load(save(made, tmp_path / "model.onnx"))


def test_sparse_tensors_are_refused(tmp_path):
    made = model([node("Neg", ["x"], ["y"])], x, y)
    values = helper.make_tensor("s", FLOAT, [1], [1.0])
    places = helper.make_tensor("p", INT64, [1], [1])
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [4]))
    refused(made, tmp_path, "sparse")


# ---- damaged files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "count", [60, pytest.param(400, marks=pytest.mark.second)], ids=["some", "more"]
)
def test_damaged_files_load_or_are_refused(count):
    counts, bad = mutated.try_files(count, seed=count)
    assert not bad
    assert sum(counts.values()) == count and counts["refused"] > count / 2 and counts["ran"]
