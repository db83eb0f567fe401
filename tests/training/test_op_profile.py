"""Profile of a step on the cpu: what adds up, counts by hand, plans, and the command."""

import json

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn, recipes
from tinygraph.base.errors import ArgumentError
from tinygraph.cli import main
from tinygraph.engine.spec import Spec
from tinygraph.training import Profile, profile_steps
from tinygraph.watch.costs import Cost
from tinygraph.watch.kernel_table import operations_of

F4 = np.dtype(np.float32)


def network_step(compiled=False, **options):
    tg.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 10)
    )
    rule = tg.optim.SGD(model.parameters(), lr=0.1)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((12, 1, 8, 8)).astype(np.float32), rng.integers(0, 10, 12)

    def step(x, y):
        loss = tg.softmax_cross_entropy(model(x), y)
        rule.zero_grad()
        loss.backward()
        rule.step()
        return loss

    run = tg.compile(step, **options) if compiled else step
    return lambda: run(x, y)


def test_lines_add_up_to_the_step():
    profile = profile_steps(network_step(), steps=3)
    rows = {row.op: row for row in profile.rows}
    assert set(rows) == {
        "conv2d",
        "relu",
        "max_pool2d",
        "flatten",
        "linear",
        "SGD",
        "softmax_cross_entropy",
        "outside of ops",
    }
    assert profile.seconds == pytest.approx(sum(row.seconds for row in profile), rel=1e-12)
    assert rows["outside of ops"].outside_seconds > 0 < profile.plain_seconds
    times = [row.seconds for row in profile[:-1]]
    assert times == sorted(times)[::-1] and profile[-1].op == "outside of ops"
    conv = rows["conv2d"]
    assert conv.calls == 2 and conv.seconds == conv.forward_seconds + conv.backward_seconds
    # 2 * N D OH OW C KH KW forward, a bias for each element; the same for gw, and sums for gb.  gw
    # is the sum of three parts: of 432 products, 128 at least make one.
    assert conv.operations == 2 * (2 * 12 * 4 * 36 * 9 + 12 * 4 * 36) + 3 * 4 * 9
    assert rows["linear"].operations == 3 * 2 * 12 * 36 * 10 + 2 * 12 * 10
    assert rows["SGD"].bytes == 2 * 4 * (4 * 9 + 4 + 360 + 10)  # values and gradients
    assert rows["SGD"].operations is None  # an update states none
    assert rows["SGD"].forward_seconds is None and rows["SGD"].update_seconds > 0
    json.dumps(profile.to_dict())


@pytest.mark.parametrize("options, threads", [({}, 1), ({"tile": 3, "threads": 2}, 2)], ids=str)
def test_a_plan_makes_no_new_arrays(options, threads):
    profile = profile_steps(network_step(compiled=True, **options), steps=2)
    rows = {row.op: row for row in profile.rows}
    tiles = 4 if options else 1
    fused = rows["conv2d_relu_max_pool2d"]
    assert fused.calls == 2 * tiles and fused.operations > 0 and fused.bytes > 0
    assert fused.arrays > 0 and rows["linear"].arrays == tiles * 4
    assert all(row.new_arrays == row.new_bytes == 0 for row in profile[:-1])
    assert profile.threads == threads
    assert ("wall time" in str(profile)) == (threads > 1)


def test_a_plan_that_was_watched_runs_on_without():
    step = network_step(compiled=True)
    profile_steps(step, steps=1)
    unwatched = network_step(compiled=True)
    for _ in range(4):
        last = unwatched()
    assert step().item() == unwatched().item() < last.item()


def test_operations_of_ops_with_and_without_kernels():
    class Own(tg.Op):
        def forward(self, mem, x):
            return x, None

    x = Spec((5, 7), F4)
    assert operations_of(Own(), [x], (True,)) == (None, None)
    matmul = (tg.ones((5, 7)) @ tg.ones((7, 2))).op
    assert operations_of(matmul, [x, Spec((7, 2), F4)], (True, True)) == (140, 280)
    assert operations_of(matmul, [x, Spec((7, 2), F4)], (False, False)) == (140, None)
    row = next(r for r in profile_steps(lambda: Own()([1.0]), steps=1).rows if r.op == "own")
    assert row.operations is None and row.backward_seconds is None


@pytest.mark.parametrize(
    "step, steps, words",
    [
        (lambda: np.ones(3).sum(), 2, "one that applies ops to tensors on the cpu"),
        (network_step(), 0, "an int of at least 1, got 0"),
        (network_step(), True, "an int of at least 1, got True"),
    ],
)
def test_what_cannot_be_profiled(step, steps, words):
    with pytest.raises(ArgumentError, match=words):
        profile_steps(step, steps=steps)


def test_the_table():
    rows = (
        Cost(op="conv2d", calls=2, forward_seconds=10e-3, backward_seconds=20e-3, bytes=6e6,
             operations=9e9, arrays=5, new_arrays=3, new_bytes=2.5e6),
        Cost(op="SGD", update_seconds=5e-3, bytes=1e3),
        Cost(op="outside of ops", calls=0, outside_seconds=5e-3),
    )  # fmt: skip
    text = str(Profile(rows, ("a note",), threads=2))
    assert [" ".join(line.split()) for line in text.splitlines()] == [
        "op calls forward ms backward ms ms share MB GB/s GFLOP GFLOP/s new arrays new MB",
        "conv2d 2 10.00 20.00 30.00 75.0% 6 0.2 9 300 3 2.5",
        "SGD 1 - - 5.00 12.5% 0.001 0.0002 - - 0 -",
        "outside of ops - - - 5.00 12.5% - - - - 0 -",
        "total 3 10.00 20.00 40.00 100.0% 6 0.15 9 225 3 2.5",
        "a note",
    ]


@pytest.mark.parametrize(
    "name, settings, op",
    [
        ("perceptron", {}, "heaviside"),
        ("linear_regression", {}, "linear"),
        ("xor_mlp", {"gradients": "delta_rule"}, "sigmoid"),
        ("numba_cnn", {"filters": 2, "compile": False}, "max_pool2d"),
        ("vgg_cifar", {"data": "digits", "widths": (4,), "compile": True}, "batch_norm"),
    ],
)
def test_recipes(name, settings, op):
    recipe = recipes.get(name)
    profile = profile_steps(recipe.training_step(recipe.settings(settings), None, False), steps=1)
    assert op in {row.op for row in profile.rows}


@pytest.mark.second
def test_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (
        main(
            [
                "profile",
                "numba_cnn",
                "--device",
                "cpu",
                "--filters",
                "2",
                "--steps",
                "1",
                "--set",
                "compile=true",
            ]
        )
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("conv2d_relu_max_pool2d ") for line in lines)
    assert lines[0].startswith("numba_cnn: ") and lines[-1] == "wrote profile-numba_cnn-cpu.svg"
    assert (tmp_path / "profile-numba_cnn-cpu.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    "options, words",
    [
        (["numba_cnn", "--arch", "sm_90"], "--arch: expected a device that runs kernels"),
        (["numba_cnn", "--set", "compil=true"], "compile"),
        (["numba_cnn", "--set", "lr=-1"], "profile: --set lr: expected a finite number above 0"),
        (["xor_mlp", "--data-dir", "x"], "--data-dir: expected no such option"),
        (["xor_mlp", "--batch-size", "4"], "no such setting"),
        (["xor_mlp", "--picture", "bars.txt"], ".svg"),
    ],
)
def test_bad_usage(options, words, capsys):
    assert main(["profile", *options, "--device", "cpu"]) == 2
    captured = capsys.readouterr().err
    assert words in captured and len(captured.strip().splitlines()) == 1
