"""Saved and loaded again: the same bits, outputs and gradients, of every op and of networks."""

import numpy as np
import pytest

import tinygraph as tg
from tests.onnx.models import numbers
from tests.onnx.test_ops import ALL, outputs_of, problems
from tinygraph import nn
from tinygraph.base.errors import OnnxError
from tinygraph.testing.problem import cast

# Functions that are several operators in a file, whose steps are rounded one by one.
SEVERAL = {
    "TestAdaptiveAvgPool1d",
    "TestAdaptiveAvgPool2d",
    "TestAvgPool1d",
    "TestAvgPool2d",
    "TestBinaryCrossEntropy",
    "TestBorders",
    "TestHalfSquaredError",
    "TestInterpolate",
    "TestL1Loss",
    "TestMseLoss",
    "TestScaledDotProductAttention",
    "TestSoftplus",
    "TestBinaryCrossEntropyWithLogits",
    "TestConv2dReluMaxPool2d",
    "TestCosineSimilarity",
    "TestCrossEntropy",
    "TestExpm1",
    "TestLog1p",
    "TestLog2",
    "TestLogsigmoid",
    "TestNorm",
    "TestRmsNorm",
    "TestRsqrt",
    "TestSilu",
    "TestSoftmaxCrossEntropy",
    "TestStd",
    "TestStdMean",
    "TestVar",
    "TestVarMean",
}
LOOPS = {"TestLstmLayer"}  # c of every step is a Scan, which is not read


def both(function, arrays, positions):
    """Outputs, and gradients under a random upstream gradient."""
    nodes = [tg.Tensor(a, requires_grad=i in positions) for i, a in enumerate(arrays)]
    outputs = outputs_of(function(*nodes))
    rng, total = np.random.default_rng(7), None
    for y in outputs:
        if y.requires_grad and y.dtype.kind == "f":
            part = (y * rng.standard_normal(y.shape).astype(y.dtype)).sum()
            total = part if total is None else total + part
    if total is not None:
        total.backward()
    return [y.numpy() for y in outputs], [x.grad for x in nodes]


def compare(name, problem, path):
    """Whether a problem was saved and compared."""
    arrays = [np.asarray(cast(a, np.float32)) for a in problem.arrays]
    count = 1 if name == "TestBatchNorm" else len(arrays)  # running statistics require none
    positions = [i for i, a in enumerate(arrays[:count]) if a.dtype.kind == "f"]

    def function(*nodes):
        return ALL[name].apply(problem, nodes)

    try:
        path.write_bytes(tg.onnx.to_proto(function, tuple(arrays), batch=False).SerializeToString())
        wanted, gradients = both(function, arrays, positions)
    except (OnnxError, tg.errors.GraphError):
        return False  # in training, or a function without a derivative
    loaded = tg.onnx.load(path)
    assert not list(loaded.parameters())
    found, mine = both(loaded, arrays, positions)
    for got, expected in zip(found + mine, wanted + gradients, strict=True):
        if expected is None or (got is None and not np.any(expected)):
            continue  # an empty output, say, of which nothing flows back
        assert got.dtype == expected.dtype and got.shape == expected.shape
        if name.startswith("TestStd"):  # a root has no slope at 0, one op of it has 0
            sound = np.isfinite(got)
            got, expected = got[sound], expected[sound]
        if name in SEVERAL:
            scale = np.max(np.abs(expected[np.isfinite(expected)]), initial=1)
            np.testing.assert_allclose(got, expected, 1e-4, 1e-5 * float(scale))
        else:
            np.testing.assert_array_equal(got, expected)
    return True


@pytest.mark.parametrize("name", [name for name in ALL if name not in LOOPS])
def test_a_function_has_the_same_bits(name, tmp_path):
    compared = [compare(name, problem, tmp_path / "op.onnx") for problem in problems(name, 2)]
    assert any(compared) or name in ("TestDropout", "TestFloorDivide")


@pytest.mark.second
@pytest.mark.parametrize("name", [name for name in ALL if name not in LOOPS])
def test_more_problems_have_the_same_bits(name, tmp_path):
    for problem in problems(name, 25):
        compare(name, problem, tmp_path / "op.onnx")


# ---- networks ----------------------------------------------------------------------------------


def convolutional():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding="same"), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 2, 3, bias=False), nn.ELU(), nn.Flatten(), nn.Dropout(0.5), nn.Linear(8, 3),
    )  # fmt: skip


class Recurrent(nn.Module):
    def __init__(self):
        self.letters = nn.Embedding(9, 4)
        self.lstm = nn.LSTM(4, 3, batch_first=True, bidirectional=True)
        self.head = nn.Linear(6, 2)

    def forward(self, ids):
        y, _ = self.lstm(self.letters(ids))
        return self.head(y[:, -1])


NETWORKS = {
    "convolutional": (convolutional, lambda: numbers(3, 1, 8, 8, seed=5)),
    "recurrent": (Recurrent, lambda: np.arange(15).reshape(3, 5) % 9),
    "upsampling": (
        lambda: nn.Sequential(
            nn.ConvTranspose2d(2, 3, 3, stride=2), nn.Upsample(scale_factor=2, mode="bilinear"),
            nn.GroupNorm(3, 3), nn.GELU(), nn.AvgPool2d(2), nn.LayerNorm(7), nn.Softmax(-1),
        ),
        lambda: numbers(3, 2, 3, 3, seed=5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_has_the_same_bits_and_is_trained_to_the_same(name, tmp_path):
    make, example = NETWORKS[name]
    tg.manual_seed(2)
    network, x = make().eval(), example()
    loaded = tg.onnx.load(tg.onnx.save(network, tmp_path / "network.onnx", x))
    names = [n for n, _ in network.named_parameters() if "lstm" not in n]  # packed in a file
    assert [n for n, _ in loaded.named_parameters() if n in names] == names
    training = name != "convolutional"  # whose dropout is not in the file
    results = []
    for each in (network, loaded):
        tg.manual_seed(4)
        outputs, optimizer = [], tg.optim.Adam(each.train(training).parameters())
        for _ in range(3):
            y = each(x)
            loss = (y * numbers(*y.shape, seed=6)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            outputs.append(y.numpy().copy())
        results.append(outputs)
    for mine, other in zip(*results, strict=True):
        np.testing.assert_array_equal(mine, other)
