"""tg.onnx.load: names, shapes, modes and gradients, against onnxruntime, numpy and tg.nn."""

import copy

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import tinygraph as tg
from tests.onnx.models import (
    ALL,
    DOUBLE,
    FLOAT,
    INT64,
    functions,
    images,
    model,
    node,
    numbers,
    perceptron,
    save,
    sequence,
)
from tinygraph.base.errors import OnnxError


def loaded(made, tmp_path, name="model.onnx"):
    return tg.onnx.load(save(made, tmp_path / name))


def by_onnxruntime(made, feeds):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(made.SerializeToString(), options).run(None, feeds)


FEEDS = {
    "perceptron": lambda n: {"x": numbers(n, 4)},
    "images": lambda n: {"x": numbers(n, 1, 4, 4)},
    "sequence": lambda n: {"ids": np.arange(5 * n).reshape(n, 5) % 7},
    "functions": lambda n: {"x": numbers(3, 4)},
}


@pytest.mark.parametrize("name", ALL)
def test_what_onnxruntime_computes_for_any_batch(name, tmp_path):
    made = ALL[name]()
    network = loaded(made, tmp_path)
    for n in (1, 4):
        feeds = FEEDS[name](n)
        (wanted,) = by_onnxruntime(made, feeds)
        np.testing.assert_allclose(network(*feeds.values()).numpy(), wanted, 1e-5, 1e-6)
        np.testing.assert_array_equal(
            network(**feeds).numpy(), network(*map(tg.Tensor, feeds.values())).numpy()
        )


@pytest.mark.parametrize("name", ["perceptron", "images", "sequence"])
def test_a_compiled_network_has_the_same_outputs(name, tmp_path):
    network = loaded(ALL[name](), tmp_path)
    compiled = tg.compile(network)
    for n in (2, 3, 2, 3):
        feeds = [tg.Tensor(x) for x in FEEDS[name](n).values()]
        np.testing.assert_allclose(compiled(*feeds).numpy(), network(*feeds).numpy(), 1e-6, 1e-6)


def test_long_cumulative_sums_of_a_constant(tmp_path):
    """One by one in float32 the last sums would be wrong by 1e-3."""
    table = np.full(1 << 17, 0.1, np.float32)
    nodes = [node("CumSum", ["table", "axis"], ["sums"]), node("Add", ["x", "sums"], ["y"])]
    initializers = {"table": table, "axis": np.array(0)}
    made = model(nodes, {"x": (FLOAT, [1])}, {"y": (FLOAT, [table.size])}, initializers)
    y = loaded(made, tmp_path)(np.zeros(1, np.float32))
    np.testing.assert_allclose(y.value, np.cumsum(table.astype(np.float64)), 2.0**-24)


def test_reduce_l2_of_numbers_whose_squares_are_out_of_range(tmp_path):
    nodes = [node("ReduceL2", ["x", "axes"], ["y"], keepdims=0)]
    initializers = {"axes": np.array([1])}
    network = loaded(
        model(nodes, {"x": (FLOAT, [2, 2])}, {"y": (FLOAT, [2])}, initializers), tmp_path
    )
    y = network(np.float32([[3e-23, 4e-23], [3e20, -4e20]]))
    np.testing.assert_allclose(y.value, [5e-23, 5e20], rtol=1e-6)


# ---- names -----------------------------------------------------------------------------------


def test_parameters_and_buffers_have_the_names_of_the_file(tmp_path):
    network = loaded(perceptron(), tmp_path)
    assert [n for n, _ in network.named_parameters()] == [
        "0.weight",
        "0.bias",
        "2.weight",
        "2.bias",
    ]
    mlp = tg.nn.Sequential(tg.nn.Linear(4, 8), tg.nn.ReLU(), tg.nn.Linear(8, 3))
    mlp.load_state_dict(network.state_dict())
    x = numbers(5, 4)
    np.testing.assert_array_equal(network(x).numpy(), mlp(x).numpy())

    network = loaded(images(), tmp_path)
    assert [n for n, _ in network.named_buffers()] == ["bn.mean", "bn.var"]
    parameters = {n for n, _ in network.named_parameters()}
    assert parameters == {"conv.weight", "conv.bias", "bn.weight", "bn.bias", "weight"}
    assert network.bn.weight.name == "bn.weight"
    assert (network.input_names, network.output_names) == (("x",), ("y",))


def test_names_that_python_or_the_module_cannot_have(tmp_path):
    names = ["onnx::Add_1", "onnx..Add_1", "forward", "a", "a.b", "a.b.c", "_program", "training"]
    nodes = [node("Add", [f"v{i}", name], [f"v{i + 1}"]) for i, name in enumerate(names)]
    values = {name: numbers(2, seed=i) for i, name in enumerate(names)}
    last = f"v{len(names)}"
    made = model(nodes, {"v0": (FLOAT, [2])}, {last: (FLOAT, [2])}, values)
    network = loaded(made, tmp_path)
    assert len(list(network.parameters())) == len(names)
    assert "onnx__Add_1" in dict(network.named_parameters())
    np.testing.assert_allclose(network([0.0, 0.0]).numpy(), sum(values.values()), 1e-5)


def test_inputs_by_order_and_by_name(tmp_path):
    made = model(
        [node("Sub", ["first", "in:second"], ["y"])],
        {"first": (FLOAT, [1]), "in:second": (FLOAT, [1])},
        {"y": (FLOAT, [1])},
    )
    network = loaded(made, tmp_path)
    assert network([3.0], [1.0]).item() == network([3.0], in_second=[1.0]).item() == 2
    assert network(**{"in:second": [1.0], "first": [3.0]}).item() == 2
    for args, names in ((([1.0],), {}), (([1.0],) * 3, {}), (([1.0],), {"first": [1.0]})):
        with pytest.raises(OnnxError, match="forward"):
            network(*args, **names)
    with pytest.raises(OnnxError, match="third"):
        network([1.0], [1.0], third=[1.0])
    with pytest.raises(OnnxError, match="float64"):
        network(np.zeros(1), [1.0])


def test_an_initialiser_that_is_an_input_too_is_no_input_of_forward(tmp_path):
    made = model(
        [node("Add", ["x", "w"], ["y"])],
        {"x": (FLOAT, [1]), "w": (FLOAT, [1])},
        {"y": (FLOAT, [1])},
        {"w": np.ones(1, np.float32)},
        ir=3,
    )
    network = loaded(made, tmp_path)
    assert network.input_names == ("x",) and network([1.0]).item() == 2


# ---- training --------------------------------------------------------------------------------


class Images(tg.nn.Module):
    """The network of `images`, by hand."""

    def __init__(self):
        self.conv = tg.nn.Conv2d(1, 3, 3, padding=1)
        self.bn = tg.nn.BatchNorm2d(3)
        self.weight = tg.nn.Parameter(np.zeros((12, 2), np.float32))

    def forward(self, x):
        y = tg.max_pool2d(tg.relu(self.bn(self.conv(x))), 2)
        return tg.matmul(tg.flatten(tg.dropout(y, 0.25, self.training), 1), self.weight)


def both(tmp_path):
    network, by_hand = loaded(images(), tmp_path), Images()
    state = network.state_dict()
    state["bn.running_mean"], state["bn.running_var"] = state.pop("bn.mean"), state.pop("bn.var")
    by_hand.load_state_dict(state, strict=False)
    return network, by_hand


def test_training_is_that_of_the_same_network_by_hand(tmp_path):
    network, by_hand = both(tmp_path)
    assert not network.training
    x, target = numbers(6, 1, 4, 4), numbers(6, 2, seed=9)
    results = []
    for each in (network.train(), by_hand.train()):
        tg.manual_seed(3)
        optimizer = tg.optim.SGD(each.parameters(), lr=0.001, momentum=0.9)
        losses = []
        for _ in range(4):
            loss = tg.mse_loss(each(x), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        results.append((losses, each.conv.weight.numpy(), each.eval()(x).numpy()))
    for mine, other in zip(*results, strict=True):
        np.testing.assert_array_equal(mine, other)
    np.testing.assert_array_equal(network.bn.mean.numpy(), by_hand.bn.running_mean.numpy())
    np.testing.assert_array_equal(network.bn.var.numpy(), by_hand.bn.running_var.numpy())
    assert results[0][0][0] > results[0][0][-1]


def test_a_copy_is_trained_alone(tmp_path):
    network = loaded(images(), tmp_path)
    twin = copy.deepcopy(network)
    twin.bn.mean.value[...] = 7
    twin.weight.value[...] = 0
    x = numbers(2, 1, 4, 4)
    assert np.any(network(x).numpy()) and not np.any(twin(x).numpy())
    assert twin.double().weight.dtype == np.float64


def test_statistics_of_the_batch_that_the_file_itself_asks_for(tmp_path):
    nodes = [
        node(
            "BatchNormalization",
            ["x", "s", "b", "m", "v"],
            ["y", "rm", "rv"],
            training_mode=1,
            momentum=0.75,
        )
    ]
    values = {"s": numbers(2), "b": numbers(2, seed=1), "m": numbers(2, seed=2)}
    values["v"] = np.abs(numbers(2, seed=3))
    made = model(
        nodes,
        {"x": (FLOAT, [5, 2, 3])},
        {"y": (FLOAT, [5, 2, 3]), "rm": (FLOAT, [2]), "rv": (FLOAT, [2])},
        values,
    )
    x = numbers(5, 2, 3, seed=4)
    found = loaded(made, tmp_path)(x)
    for mine, wanted in zip(found, by_onnxruntime(made, {"x": x}), strict=True):
        np.testing.assert_allclose(mine.numpy(), wanted, 1e-5, 1e-6)


def test_dropout_that_a_file_asks_for_in_evaluation_is_refused(tmp_path):
    nodes = [
        node("Constant", [], ["true"], value=helper.make_tensor("t", 9, [], [True])),
        node("Constant", [], ["half"], value_float=0.5),
        node("Dropout", ["x", "half", "true"], ["y", "mask"]),
    ]
    outputs = {"y": (FLOAT, [100]), "mask": (9, [100])}
    network = loaded(model(nodes, {"x": (FLOAT, [100])}, outputs), tmp_path)
    x = np.ones(100, np.float32)
    with pytest.raises(OnnxError, match="training_mode"):
        network(x)
    y, mask = network.train()(x)
    np.testing.assert_array_equal(y.numpy(), np.where(mask.numpy(), 2, 0))
    assert 20 < mask.numpy().sum() < 80


# ---- early opsets ----------------------------------------------------------------------------

EARLY = {
    "squeeze": (11, [node("Squeeze", ["x"], ["y"], axes=[0])], {}, (1, 3, 4)),
    "unsqueeze": (11, [node("Unsqueeze", ["x"], ["y"], axes=[0, 2])], {}, (3, 4)),
    "pad": (10, [node("Pad", ["x"], ["y"], pads=[0, 1, 2, 0], value=1.5)], {}, (3, 4)),
    "slice": (9, [node("Slice", ["x"], ["y"], starts=[1], ends=[-1], axes=[1])], {}, (3, 4)),
    "clip": (10, [node("Clip", ["x"], ["y"], min=-0.5, max=0.25)], {}, (3, 4)),
    "sum": (11, [node("ReduceSum", ["x"], ["y"], axes=[1], keepdims=0)], {}, (3, 4)),
    "mean": (17, [node("ReduceMean", ["x"], ["y"], axes=[-1])], {}, (3, 4)),
    "split": (11, [node("Split", ["x"], ["y", "z"], split=[1, 3], axis=1)], {}, (3, 4)),
    "softmax": (11, [node("Softmax", ["x"], ["y"], axis=1)], {}, (2, 3, 4)),
    "log_softmax": (11, [node("LogSoftmax", ["x"], ["y"])], {}, (2, 3, 4)),
    "top_k": (10, [node("TopK", ["x", "k"], ["y", "i"])], {"k": np.array([2])}, (3, 4)),
    "upsample": (
        9,
        [node("Upsample", ["x", "s"], ["y"])],
        {"s": np.array([1, 1, 2, 2], np.float32)},
        (1, 2, 3, 3),
    ),
    "resize": (
        10,
        [node("Resize", ["x", "s"], ["y"], mode="linear")],
        {"s": np.array([1, 1, 2, 2], np.float32)},
        (1, 2, 3, 3),
    ),
    "resize_to_the_same_size": (
        13,
        [node("Resize", ["x", "", "s"], ["y"], mode="linear")],
        {"s": np.array([1, 1, 1.1, 2], np.float32)},
        (1, 2, 7, 2),
    ),
    "upsample_to_the_same_size": (
        9,
        [node("Upsample", ["x", "s"], ["y"])],
        {"s": np.array([1, 1, 1.1, 2], np.float32)},
        (1, 2, 7, 2),
    ),
    "dropout": (7, [node("Dropout", ["x"], ["y"], ratio=0.5)], {}, (3, 4)),
    "scatter": (
        9,
        [node("Scatter", ["x", "i", "u"], ["y"], axis=1)],
        {"i": np.array([[1, 3]]), "u": np.array([[5, 6]], np.float32)},
        (3, 4),
    ),
}


@pytest.mark.parametrize("name", EARLY)
def test_operators_of_early_opsets(name, tmp_path):
    opset, nodes, values, shape = EARLY[name]
    outputs = {y: (INT64 if y == "i" else FLOAT, None) for y in nodes[0].output}
    made = model(nodes, {"x": (FLOAT, list(shape))}, outputs, values, opset=opset, ir=4)
    x = numbers(*shape)
    found = loaded(made, tmp_path)(x)
    found = found if isinstance(found, tuple) else (found,)
    for mine, wanted in zip(found, by_onnxruntime(made, {"x": x}), strict=True):
        np.testing.assert_allclose(mine.numpy(), wanted, 1e-5, 1e-6)


# ---- gradients of what is put together here -----------------------------------------------------

COMPOSED = {
    "conv3d": (
        [node("Conv", ["x", "w", "b"], ["y"], strides=[2, 1, 1], pads=[1, 0, 1, 0, 1, 1])],
        [(1, 2, 4, 3, 3), (3, 2, 2, 2, 2), (3,)],
    ),
    "conv_transpose3d": (
        [node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 1, 2], dilations=[1, 2, 1])],
        [(1, 2, 2, 2, 3), (2, 2, 2, 2, 2)],
    ),
    "conv_transpose_cut": (
        [node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], pads=[1, 0, 0, 1])],
        [(1, 2, 3, 3), (2, 1, 3, 3)],
    ),
    "max_pool3d": ([node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2, 2])], [(1, 2, 3, 3, 3)]),
    "average_pool_uneven": (
        [node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2], pads=[1, 0, 0, 1], ceil_mode=1)],
        [(1, 1, 4, 4)],
    ),
    "lp_pool": ([node("LpPool", ["x"], ["y"], kernel_shape=[2], p=3)], [(1, 2, 5)]),
    "lrn": ([node("LRN", ["x"], ["y"], size=3, alpha=0.5)], [(2, 4, 2)]),
    "cubic": (
        [node("Resize", ["x", "", "s"], ["y"], mode="cubic", antialias=1)],
        [(1, 1, 6, 4)],
    ),
    "scatter_add": (
        [node("ScatterElements", ["x", "i", "u"], ["y"], axis=0, reduction="add")],
        [(4, 2), (3, 2)],
    ),
    "scatter": ([node("ScatterElements", ["x", "i", "u"], ["y"], axis=0)], [(4, 2), (3, 2)]),
    "gru": (
        [node("GRU", ["x", "w", "r", "b", "l"], ["y"], hidden_size=2, direction="bidirectional")],
        [(3, 2, 2), (2, 6, 2), (2, 6, 2), (2, 12)],
    ),
    "lstm_peepholes": (
        [node("LSTM", ["x", "w", "r", "b", "l", "", "", "p"], ["y"], hidden_size=2)],
        [(3, 2, 2), (1, 8, 2), (1, 8, 2), (1, 16), (1, 6)],
    ),
    "atan": ([node("Atan", ["x"], ["y"])], [(5,)]),
    "attention": (
        [node("Attention", ["x", "w", "r"], ["y"], is_causal=1)],
        [(1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)],
    ),
}
CONSTANTS = {
    "s": np.array([1, 1, 0.6, 1.5], np.float32),
    "i": np.array([[1, 3], [1, 0], [2, 3]]),
    "l": np.array([3, 2], np.int32),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_gradients_of_compositions(name, tmp_path):
    nodes, shapes = COMPOSED[name]
    free = [x for x in nodes[0].input if x and x not in CONSTANTS]
    constants = {x: CONSTANTS[x] for x in nodes[0].input if x in CONSTANTS}
    inputs = {x: (DOUBLE, list(shape)) for x, shape in zip(free, shapes, strict=True)}
    made = model(nodes, inputs, {"y": (DOUBLE, None)}, constants, opset=23)
    network = loaded(made, tmp_path)
    arrays = [numbers(*shape, seed=i, dtype=np.float64) for i, shape in enumerate(shapes)]
    report = tg.testing.gradcheck(network, arrays, max_elements=16)
    assert report.verdict == "pass"


# ---- refusals --------------------------------------------------------------------------------


def one(kind, *, opset=20, inputs=1, **attributes):
    names = [f"x{i}" for i in range(inputs)]
    return model(
        [node(kind, names, ["y"], name="culprit", **attributes)],
        {name: (FLOAT, [2, 2]) for name in names},
        {"y": (FLOAT, None)},
        opset=opset,
        others=[("somewhere", 3), ("ai.onnx.ml", 3)],
    )


REFUSED = {
    "control flow": (
        lambda: one("Loop", inputs=3, body=perceptron().graph),
        r"Loop 'culprit' \(opset 20\).*control flow",
    ),
    "quantised": (lambda: one("QuantizeLinear", inputs=2), "QuantizeLinear.*quantised"),
    "drawn": (lambda: one("RandomNormalLike"), "RandomNormalLike.*random"),
    "unknown": (lambda: one("Nothing"), "Nothing"),
    "another domain": (
        lambda: one("Nothing", domain="somewhere"),
        r"somewhere\.Nothing 'culprit' \(opset 3\): operator",
    ),
    "an attribute": (lambda: one("Relu", slope=1.0), "slope"),
    "too old": (lambda: one("Gelu", opset=11), "Gelu"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_node(name, tmp_path):
    make, words = REFUSED[name]
    with pytest.raises(OnnxError, match=words):
        loaded(make(), tmp_path)


def test_errors_at_run_time_name_the_node(tmp_path):
    network = loaded(one("MatMul", inputs=2), tmp_path)
    with pytest.raises(OnnxError, match=r"MatMul 'culprit' \(opset 20\).*float32\[2, 3\]"):
        network(numbers(2, 3), numbers(2, 3))
    with pytest.raises(OnnxError, match=r"Det 'culprit' .*gradient.*no_grad"):
        loaded(one("Det"), tmp_path)(tg.Tensor(numbers(2, 2), requires_grad=True))
    with tg.no_grad():
        x = numbers(2, 2)
        y = loaded(one("Det"), tmp_path)(tg.Tensor(x, requires_grad=True))
        assert y.item() == pytest.approx(np.linalg.det(x), 1e-5)


def test_functions_of_the_file(tmp_path):
    made, x = functions(), numbers(3, 4)
    network = loaded(made, tmp_path)
    assert [n for n, _ in network.named_parameters()] == ["shift"]
    network(tg.Tensor(x)).sum().backward()
    assert network.shift.grad is not None


def test_sequence_gradients_reach_the_table(tmp_path):
    network = loaded(sequence(), tmp_path).train()
    network(np.zeros((2, 5), np.int64)).sum().backward()
    grad = dict(network.named_parameters())["table"].grad
    assert np.any(grad[0]) and not np.any(grad[1:])


SHARED = {  # which initialiser each input of the operator is
    "scale and variance": "sbms",
    "bias and mean": "smmv",
    "mean and variance": "sbvv",
    "all four": "vvvv",
    "each its own": "sbmv",
}


@pytest.mark.parametrize("which", SHARED)
def test_batch_norm_whose_equal_initialisers_are_one(which, tmp_path):
    """As onnxoptimizer's eliminate_duplicate_initializer leaves them; onnxruntime computes it."""
    values = {name: np.abs(numbers(3, seed=i)) + 0.5 for i, name in enumerate("sbmv")}
    names = list(SHARED[which])
    made = model(
        [node("BatchNormalization", ["x", *names], ["y"])],
        {"x": (FLOAT, ["N", 3, 4])},
        {"y": (FLOAT, ["N", 3, 4])},
        {name: values[name] for name in sorted({*names})},
    )
    x = numbers(5, 3, 4, seed=9)
    network = loaded(made, tmp_path)
    (wanted,) = by_onnxruntime(made, {"x": x})
    np.testing.assert_allclose(network(x).numpy(), wanted, 1e-5, 1e-6)
    before = [p.numpy().copy() for p in network.parameters()]
    network.train()(x)  # changes the running statistics, and nothing else
    for old, new in zip(before, network.parameters(), strict=True):
        np.testing.assert_array_equal(old, new.numpy())
    momentum, mean = 0.9, values[names[2]]
    running = momentum * mean + (1 - momentum) * x.mean((0, 2))
    buffers = [buffer.numpy() for buffer in network.buffers()]
    assert any(np.allclose(buffer, running, 1e-5, 1e-6) for buffer in buffers)


def test_two_batch_norms_that_share_statistics(tmp_path):
    """Each has its own when it is trained: their inputs differ."""
    values = {name: np.abs(numbers(2, seed=i)) + 0.5 for i, name in enumerate("sbmv")}
    made = model(
        [
            node("BatchNormalization", ["x", *"sbmv"], ["h"]),
            node("BatchNormalization", ["h", *"sbmv"], ["y"]),
        ],
        {"x": (FLOAT, ["N", 2])},
        {"y": (FLOAT, ["N", 2])},
        values,
    )
    x = numbers(6, 2, seed=3)
    network = loaded(made, tmp_path)
    np.testing.assert_allclose(network(x).numpy(), by_onnxruntime(made, {"x": x})[0], 1e-5, 1e-6)
    network.train()(x)
    assert len(list(network.buffers())) == 4


def test_statistics_that_the_file_computes(tmp_path):
    made = model(
        [
            node("Mul", ["m", "two"], ["mean"]),
            node("BatchNormalization", ["x", "s", "b", "mean", "v"], ["y"]),
        ],
        {"x": (FLOAT, ["N", 2])},
        {"y": (FLOAT, ["N", 2])},
        {
            **{name: np.abs(numbers(2, seed=i)) + 0.5 for i, name in enumerate("sbmv")},
            "two": np.float32([2.0]),
        },
    )
    x = numbers(6, 2, seed=3)
    network = loaded(made, tmp_path)
    np.testing.assert_allclose(network(x).numpy(), by_onnxruntime(made, {"x": x})[0], 1e-5, 1e-6)
    with pytest.raises(OnnxError, match="training rewrites them"):
        network.train()(x)
