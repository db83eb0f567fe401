"""tg.onnx.save: names, batches of any size, what is refused, files that are whole."""

import hashlib

import numpy as np
import pytest

import tinygraph as tg
from tests.onnx import runtimes
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, OnnxError
from tinygraph.interop.onnx import export

onnx = runtimes.onnx
RNG = np.random.default_rng(5)


def numbers(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def cnn():
    tg.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Dropout(0.5), nn.Linear(27, 4),
    )  # fmt: skip
    model(numbers(9, 1, 8, 8))  # the running statistics are not those of the beginning
    return model.eval()


def shapes(values):
    """Names, and sizes or names of sizes."""
    return {
        v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in values
    }


def text(proto):
    return [node.op_type for node in proto.graph.node]


def arrays_of(proto):
    return {each.name: onnx.numpy_helper.to_array(each) for each in proto.graph.initializer}


# ---- what is in a file --------------------------------------------------------------------------


def test_a_network_is_written_with_the_names_of_its_parameters(tmp_path):
    model = cnn()
    path = tg.onnx.save(model, tmp_path / "cnn.onnx", numbers(1, 1, 8, 8))
    assert path == tmp_path / "cnn.onnx" and [p.name for p in tmp_path.iterdir()] == ["cnn.onnx"]
    proto = onnx.load(path)
    onnx.checker.check_model(proto, full_check=True)
    assert text(proto) == ["Conv", "BatchNormalization", "Relu", "MaxPool", "Flatten", "Gemm"]
    assert (proto.producer_name, proto.producer_version) == ("tinygraph", tg.__version__)
    assert [(o.domain, o.version) for o in proto.opset_import] == [("", 20)]
    state = {n: a for n, a in model.state_dict().items() if "num_batches" not in n}
    found = arrays_of(proto)
    assert found.keys() == state.keys()
    for name, array in state.items():
        np.testing.assert_array_equal(found[name], array)
    assert shapes(proto.graph.input) == {"x": ["N", 1, 8, 8]}
    assert shapes(proto.graph.output) == {"output": ["N", 4]}


@pytest.mark.parametrize("samples", [1, 2, 7])
def test_a_batch_of_any_size(tmp_path, samples):
    model, x = cnn(), numbers(samples, 1, 8, 8)
    path = tg.onnx.save(model, tmp_path / "cnn.onnx", numbers(3, 1, 8, 8))
    (y,) = runtimes.by_onnxruntime(path, x)
    runtimes.close(y, model(x).numpy())


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear"])
def test_an_axis_that_keeps_its_size_is_copied(tmp_path, mode):
    model, x = nn.Upsample(None, (2.0, 1.1), mode), numbers(2, 1, 3, 7)
    (y,) = runtimes.by_onnxruntime(tg.onnx.save(model, tmp_path / "up.onnx", x), x)
    rows = [model(x[..., k : k + 1]).numpy() for k in range(7)]  # column by column
    runtimes.close(y, np.concatenate(rows, -1))


def test_the_bytes_do_not_depend_on_the_example(tmp_path):
    model = cnn()
    files = [
        tg.onnx.save(model, tmp_path / f"{n}.onnx", numbers(n, 1, 8, 8)).read_bytes()
        for n in (1, 5)
    ]
    assert files[0] == files[1]


def test_without_a_batch_the_sizes_are_those_of_the_example():
    proto = tg.onnx.to_proto(cnn(), numbers(3, 1, 8, 8), batch=False)
    assert shapes(proto.graph.input) == {"x": [3, 1, 8, 8]}
    assert shapes(proto.graph.output) == {"output": [3, 4]}


class Two(nn.Module):
    def __init__(self):
        self.weight = nn.Parameter(numbers(3, 2))
        self.scale = nn.Buffer(numbers(1))

    def forward(self, left, right, double=False):
        y = left @ self.weight * (2 if double else 1)
        return {"product": y, "parts": (y + right * self.scale, tg.sum(y, 1))}


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_several_inputs_and_outputs(double, named):
    model, left, right = Two(), numbers(4, 3), numbers(4, 2)
    example = (left, tg.Tensor(right), double)
    if named:
        example = dict(zip(("left", "right", "double"), example, strict=True))
    proto = tg.onnx.to_proto(model, example)
    assert shapes(proto.graph.input) == {"left": ["N", 3], "right": ["N", 2]}
    names = ["product", "parts_0", "parts_1"]
    assert list(shapes(proto.graph.output)) == names
    y = model(left, right, double=double)
    expected = [y["product"], *y["parts"]]
    for got, node in zip(runtimes.by_onnxruntime(proto, left, right), expected, strict=True):
        runtimes.close(got, node.numpy())


def test_names_that_are_asked_for(tmp_path):
    names = {"input_names": ["a", "b"], "output_names": ["y", "z", "s"]}
    proto = tg.onnx.to_proto(Two(), (numbers(4, 3), numbers(4, 2)), **names)
    assert list(shapes(proto.graph.input)) == ["a", "b"]
    assert list(shapes(proto.graph.output)) == ["y", "z", "s"]


def test_a_function_and_what_it_finds_outside():
    weight, bias = tg.Parameter(numbers(3, 2), name="weight"), tg.Tensor(numbers(2))
    x = numbers(4, 3)
    proto = tg.onnx.to_proto(lambda x: x @ weight + bias, x)
    found = arrays_of(proto)
    np.testing.assert_array_equal(found["weight"], weight.numpy())
    assert found.keys() == {"weight"} and text(proto) == ["Constant", "MatMul", "Add"]
    runtimes.close(runtimes.by_onnxruntime(proto, x)[0], x @ weight.numpy() + bias.numpy())


def test_an_output_may_be_an_input_or_stand_twice():
    def model(x):
        y = tg.relu(x)
        return x, y, y, y.detach()

    x = numbers(2, 3)
    proto = tg.onnx.to_proto(model, x, batch=False)
    same = np.maximum(x, 0)
    for got, expected in zip(runtimes.by_onnxruntime(proto, x), (x, same, same, same), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_names_do_not_collide():
    weight = tg.Parameter(numbers(3), name="x")
    other = tg.Parameter(numbers(3), name="mul_1")
    x = numbers(2, 3)
    proto = tg.onnx.to_proto(lambda x: x * weight * other, x, output_names=["add_1"])
    runtimes.close(runtimes.by_onnxruntime(proto, x)[0], x * weight.numpy() * other.numpy())


def test_shared_parameters_are_there_once():
    class Tied(nn.Module):
        def __init__(self):
            self.embedding = nn.Embedding(5, 3)
            self.head = nn.Linear(3, 5, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, ids):
            return self.head(self.embedding(ids))

    model, ids = Tied(), np.array([[1, 4], [0, 2]])
    proto = tg.onnx.to_proto(model, ids)
    assert "embedding.weight" in arrays_of(proto) and "head.weight" not in arrays_of(proto)
    runtimes.close(runtimes.by_onnxruntime(proto, ids)[0], model(ids).numpy())


# ---- how a model is called ----------------------------------------------------------------------


def test_compiled_functions_are_written_as_they_stand():
    model = cnn()
    step = tg.compile(lambda x: model(x))
    x = numbers(2, 1, 8, 8)
    step(x)  # a plan is there
    proto = tg.onnx.to_proto(step, x)
    assert text(proto) == text(tg.onnx.to_proto(model, x))


@pytest.mark.parametrize("device", ["cpu", pytest.param("emulator", marks=pytest.mark.second)])
def test_under_no_grad_and_from_another_device(device):
    model, x = nn.Linear(3, 2), numbers(2, 3)
    expected = model(x).numpy()
    with tg.no_grad():
        proto = tg.onnx.to_proto(model.to(device), x)
    runtimes.close(runtimes.by_onnxruntime(proto, x)[0], expected)


def test_nothing_of_the_model_is_changed():
    model, x = cnn(), numbers(2, 1, 8, 8)
    before = model.state_dict()
    tg.onnx.to_proto(model, x)
    assert all((before[n] == a).all() for n, a in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(3), nn.Dropout(0.5)])
def test_in_training_it_is_refused_before_anything_changes(layer):
    model = nn.Sequential(nn.Linear(3, 3), layer)
    before = model.state_dict()
    with pytest.raises(OnnxError, match=r"as in training. Way out: model.eval\(\)"):
        tg.onnx.to_proto(model, numbers(4, 3))
    assert all((before[n] == a).all() for n, a in model.state_dict().items())
    tg.onnx.to_proto(model.eval(), numbers(4, 3))


# ---- what follows the batch ---------------------------------------------------------------------


def split_heads(x):
    return x.reshape(x.shape[0], 2, -1).transpose(1, 2)


FOLLOWING = {
    "reshape": split_heads,
    "two sizes that follow": lambda x: x.reshape(len(x), 1, 4).expand((len(x), len(x), 4)),
    "zeros": lambda x: x + tg.zeros(x.shape[0], 4),
    "a number": lambda x: tg.sum(x, 0) * x.shape[0],
    "a divisor": lambda x: tg.sum(x, 0) / x.shape[0],
    "the divisor of a variance": lambda x: tg.var(x, 0),
    "the last sample": lambda x: x[x.shape[0] - 1],
    "all but the first": lambda x: x[1 : x.shape[0]],
    "in another order": lambda x: tg.sort(x, 0)[0],
    "joined": lambda x: tg.reshape(x, (2 * len(x), 2)),
    "padded": lambda x: tg.pad(x, ((1, 0), (0, 0))),
    "flat": lambda x: tg.flatten(x),
}


@pytest.mark.parametrize("name", FOLLOWING)
def test_numbers_that_follow_the_batch(name):
    function = FOLLOWING[name]
    proto = tg.onnx.to_proto(function, numbers(1, 4))
    for samples in (2, 4, 9):
        x = numbers(samples, 4)
        runtimes.close(runtimes.by_onnxruntime(proto, x)[0], function(tg.Tensor(x)).numpy())


def test_a_reshape_that_follows_the_batch_has_minus_one():
    proto = tg.onnx.to_proto(split_heads, numbers(1, 4))
    assert text(proto) == ["Reshape", "Transpose"]
    assert arrays_of(proto)["constant_1"].tolist() == [-1, 2, 2]


REFUSED = {
    "places": lambda x: x * tg.arange(x.shape[0], dtype="float32").reshape(-1, 1),
    "a reciprocal": lambda x: tg.sum(x) * (1 / x.shape[0]),
    "other operators": lambda x: tg.relu(x) if len(x) > 2 else tg.tanh(x),
    "as many operators as samples": lambda x: tg.stack([x[i] for i in range(len(x))]),
    "two samples": lambda x: tg.reshape(x, (2, 4)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_follow_the_batch_is_refused(name):
    function, x = REFUSED[name], numbers(2, 4)
    with pytest.raises(OnnxError, match="batch=False fixes the sizes"):
        tg.onnx.to_proto(function, x)
    proto = tg.onnx.to_proto(function, x, batch=False)
    runtimes.close(runtimes.by_onnxruntime(proto, x)[0], function(tg.Tensor(x)).numpy())


def test_the_batch_of_some_inputs_alone():
    def model(x, table):
        return x @ table

    proto = tg.onnx.to_proto(model, (numbers(4, 4), numbers(4, 4)), batch="x")
    assert shapes(proto.graph.input) == {"x": ["N", 4], "table": [4, 4]}
    assert shapes(proto.graph.output) == {"output": ["N", 4]}


# ---- files and bad input ------------------------------------------------------------------------


def test_a_large_network_lies_in_two_files(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "MOST_BYTES", 2000)
    model, x = nn.Sequential(nn.Linear(30, 40), nn.Linear(40, 2)), numbers(3, 30)
    path = tg.onnx.save(model, tmp_path / "large.onnx", x)
    name, beside = sorted(p.name for p in tmp_path.iterdir())
    assert name == "large.onnx"
    digest = hashlib.sha256((tmp_path / beside).read_bytes()).hexdigest()
    assert beside == f"large.onnx.{digest[:32]}.data"
    onnx.checker.check_model(str(path), full_check=True)
    runtimes.close(runtimes.by_onnxruntime(path, x)[0], model(x).numpy())
    assert arrays_of(onnx.load(path))["0.weight"].tolist() == model[0].weight.numpy().tolist()


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "disk full"])
def test_an_export_in_two_files_that_is_broken_off_leaves_the_old_network(
    killed, tmp_path, monkeypatch
):
    monkeypatch.setattr(export, "MOST_BYTES", 2000)
    old, new, x = nn.Linear(30, 40), nn.Linear(30, 40), numbers(3, 30)
    path = tg.onnx.save(old, tmp_path / "large.onnx", x)
    before = sorted(tmp_path.iterdir())
    replace = export.replace_file

    def broken_off(target, data):
        if target == path:
            raise KeyboardInterrupt if killed else OSError(28, "No space left on device")
        return replace(target, data)

    monkeypatch.setattr(export, "replace_file", broken_off)
    if killed:  # nothing of ours runs after that
        monkeypatch.setattr(export.Path, "unlink", lambda self, missing_ok=False: None)
    with pytest.raises(KeyboardInterrupt if killed else OnnxError):
        tg.onnx.save(new, path, x)
    monkeypatch.undo()
    assert killed or sorted(tmp_path.iterdir()) == before
    for found in (tg.onnx.load(path)(x).numpy(), runtimes.by_onnxruntime(path, x)[0]):
        runtimes.close(found, x @ old.weight.numpy().T + old.bias.numpy())


def test_an_export_in_two_files_over_another_leaves_two(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "MOST_BYTES", 2000)
    x = numbers(3, 30)
    users = tmp_path / f"large.onnx.{'z' * 32}.data"
    users.write_bytes(b"not ours")
    for model in (nn.Linear(30, 40), nn.Linear(30, 40)):
        path = tg.onnx.save(model, tmp_path / "large.onnx", x)
        for _ in range(2):
            tg.onnx.save(model, path, x)
            assert len([*tmp_path.iterdir()]) == 3 and users.exists()
            runtimes.close(tg.onnx.load(path)(x).numpy(), model(x).numpy())
    monkeypatch.undo()
    tg.onnx.save(nn.ReLU(), path, x)
    assert users.read_bytes() == b"not ours"


def test_a_file_is_replaced_or_stays(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"before")
    with pytest.raises(OnnxError):
        tg.onnx.save(nn.Dropout(0.5), path, numbers(2, 3))
    assert path.read_bytes() == b"before"
    tg.onnx.save(nn.ReLU(), path, numbers(2, 3))
    assert text(onnx.load(path)) == ["Relu"]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(OnnxError, match=r"a place for a file, got No such file"):
        tg.onnx.save(nn.ReLU(), tmp_path / "no" / "model.onnx", numbers(2, 3))


ONE = numbers(2, 3)
BAD = [
    ((nn.ReLU(), "x"), {}, "an array, or a tuple or dict with arrays"),
    ((nn.ReLU(), ()), {}, "an array, or a tuple or dict with arrays"),
    (("relu", ONE), {}, "a Module, or a function"),
    ((nn.ReLU(), ONE), {"input_names": ["a", "b"]}, "1 names"),
    ((nn.ReLU(), ONE), {"output_names": ["x"]}, "none of an input"),
    ((nn.ReLU(), ONE), {"batch": ["y"]}, "some of the inputs"),
    ((nn.ReLU(), ONE[:0]), {}, "at least one sample"),
    ((nn.ReLU(), ONE), {"input_names": [""]}, "inputs and outputs with names"),
    ((nn.ReLU(), ONE), {"output_names": [""]}, "inputs and outputs with names"),
    ((nn.ReLU(), ONE), {"output_names": ["\ud800"]}, r"names that are text, got '.ud800'"),
    ((nn.ReLU(), ONE), {"input_names": [3]}, "names that are text, got 3"),
    ((nn.ModuleDict({"\ud800": nn.Linear(3, 2)}), ONE), {}, r"text, got '.ud800\.weight'"),
    ((lambda x: 3, ONE), {}, "Tensors, in tuples, lists or dicts"),
]


@pytest.mark.parametrize(("arguments", "options", "words"), BAD)
def test_bad_input(arguments, options, words):
    with pytest.raises(OnnxError, match=words):
        tg.onnx.to_proto(*arguments, **options)


def test_a_path_that_is_none():
    with pytest.raises(ArgumentError, match="a str or Path"):
        tg.onnx.save(nn.ReLU(), 3, ONE)
