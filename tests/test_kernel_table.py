"""graph.kernel_table(): which kernels run, on which buffers, with how many bytes; by hand."""

import subprocess
import sys

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.recipes.numba_cnn import model


def float32(*shape):
    return np.ones(shape, np.float32)


def test_a_chain_by_hand():
    x = tg.Tensor(float32(30, 20), requires_grad=True, name="x")
    table = tg.Graph(tg.relu(tg.relu(x)).sum()).kernel_table()
    relus = [row for row in table if row.op == "relu"]
    assert [(r.phase, r.kernel) for r in relus] == [
        ("forward", "unary_forward<float, Relu>"),
        ("forward", "unary_forward<float, Relu>"),
        ("backward", "unary_backward<float, Relu>"),
        ("backward", "unary_backward<float, Relu>"),
    ]
    assert [[b.name for b in r.reads] for r in relus] == [
        ["x"],
        ["relu"],
        ["grad of relu 2", "relu 2"],
        ["grad of relu", "relu"],
    ]
    assert [[b.name for b in r.writes] for r in relus] == [
        ["relu"],
        ["relu 2"],
        ["grad of relu"],
        ["grad of x"],
    ]
    assert [r.bytes for r in relus] == [4 * 600 * 2] * 2 + [4 * 600 * 3] * 2
    assert [(r.grid, r.block) for r in relus] == [((3, 1, 1), (256, 1, 1))] * 4
    assert table.bytes == sum(row.bytes for row in table)


def test_the_launches_are_those_that_run():
    """Kernels, extents and arrays of a training step, against a recording of the real one."""
    network = model(3, (1, 8, 8)).to("emulator")
    x = tg.Tensor(np.random.default_rng(0).random((5, 1, 8, 8), np.float32), device="emulator")
    labels = tg.Tensor(np.array([0, 9, 3, 3, 1]), device="emulator")
    with tg.cuda.recording() as launches:
        loss = tg.softmax_cross_entropy(network(x), labels)
        graph = tg.Graph(loss)
        loss.backward()
    table = graph.kernel_table()
    assert [(row.kernel, row.grid, row.block, row.shared, row.bytes) for row in table] == [
        (run.kernel.name, run.grid, run.block, run.shared, run.bytes) for run in launches
    ]


@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_nothing_changes(device):
    network = tg.nn.Sequential(
        tg.nn.Linear(6, 4, bias=False), tg.nn.BatchNorm1d(4), tg.nn.Dropout(0.5)
    )
    network = network.to(device)
    loss = network(tg.Tensor(float32(16, 6), device=device)).sum()
    graph = tg.Graph(loss)
    before = {name: value.copy() for name, value in network.state_dict().items()}
    value = loss.item()
    tg.manual_seed(3)
    expected = tg.randn(3).numpy()
    tg.manual_seed(3)
    graph.kernel_table()
    assert loss.item() == value
    for name, array in network.state_dict().items():
        np.testing.assert_array_equal(array, before[name])
    assert all(parameter.grad is None for parameter in network.parameters())
    np.testing.assert_array_equal(tg.randn(3).numpy(), expected)
    loss.backward()  # what the ops saved is still there


STEP = """
import resource
import numpy as np
import tinygraph as tg
from tinygraph.recipes.numba_cnn import model

network = model(256, (1, 28, 28)).to("emulator")
images = tg.Tensor(np.zeros((1000, 1, 28, 28), np.float32), device="emulator")
labels = tg.Tensor(np.zeros(1000, np.int64), device="emulator")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with tg.cuda.recording(execute=False):
    loss = tg.softmax_cross_entropy(network(images), labels)
table = tg.Graph(loss).kernel_table()
print(table.bytes, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.second
def test_a_large_step_needs_no_memory():
    """Batch 1000, 256 filters: gigabytes are counted, and none of them is used."""
    done = subprocess.run([sys.executable, "-c", STEP], capture_output=True, text=True, check=True)
    moved, used = map(int, done.stdout.split())
    conv = 4 * 1000 * 256 * 26 * 26  # bytes of the output of the convolution
    assert moved > 10 * conv  # written, read by ReLU, written, read by max-pool, ... and back
    assert used < 0.1 * conv


def test_text_and_dict():
    x = tg.Tensor(float32(1000), requires_grad=True, name="x")
    table = tg.Graph(tg.relu(x)).kernel_table()
    lines = str(table).splitlines()
    assert lines[0].split()[:3] == ["phase", "op", "kernel"]
    assert "x float32[1000] -> relu float32[1000]" in lines[1]
    assert lines[-1].split() == ["total", "2", "20", "-"] and "kB" in lines[0]
    assert table.to_dict()["bytes"] == 20000
    assert table.to_dict()["kernels"][0]["reads"][0] == {
        "name": "x",
        "shape": (1000,),
        "dtype": "float32",
        "bytes": 4000,
    }


def test_an_op_without_kernel_is_named():
    class Square(tg.Op):
        def forward(self, mem, x):
            return x * x, x

    with pytest.raises(tg.errors.DeviceError, match="square"):
        tg.Graph(Square()(tg.Tensor([1.0]))).kernel_table()
