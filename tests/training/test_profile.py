"""Profile of a training step: counts by hand, times from a stand-in for CuPy's events."""

import json

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import ArgumentError
from tinygraph.cli import main
from tinygraph.cuda.devices import EMULATOR
from tinygraph.engine.device import CPU
from tinygraph.training import Profile, profile_steps
from tinygraph.watch.costs import Cost


def step_of(n):
    x = tg.Tensor(np.ones(n, np.float32), requires_grad=True, device="emulator")

    def step():
        tg.relu(tg.relu(x)).sum().backward()

    return step


def test_rows_are_sums_over_a_step():
    profile = profile_steps(step_of(1000), EMULATOR, steps=4)
    rows = {row.kernel: row for row in profile.rows}
    forward, backward = rows["unary_forward<float, Relu>"], rows["unary_backward<float, Relu>"]
    assert (forward.calls, forward.bytes) == (2, 2 * 8000)
    assert (backward.calls, backward.bytes) == (2, 2 * 12000)
    assert profile.bytes == sum(row.bytes for row in profile.rows)
    assert [row.bytes for row in profile.rows] == sorted(r.bytes for r in profile.rows)[::-1]
    assert 0 < forward.registers < 256 and forward.spills == 0 and 0 < forward.occupancy <= 1
    assert forward.seconds is None and profile.plain_seconds is None
    assert "not timed" in profile.notes[-1] and "not timed" in str(profile)


def test_macros_tell_kernels_apart():
    a = tg.Tensor(np.ones((8, 8), np.float32), requires_grad=True, device="emulator")
    b = tg.Tensor(np.ones((8, 40), np.float32), device="emulator")
    profile = profile_steps(lambda: ((a @ b), (a @ a)), "emulator")
    labels = [row.label for row in profile.rows]
    assert len(labels) == len(set(labels)) == 2
    assert all(label.startswith("matmul<float> GEMM_TILE=") for label in labels)


def test_a_device_without_kernels_has_no_architecture():
    with pytest.raises(ArgumentError, match="arch: expected a device that runs kernels"):
        profile_steps(step_of(10), CPU, arch="sm_90")


def test_times_in_the_table():
    rows = (
        Cost(kernel="a<float>", macros={"TILE": "16"}, calls=2, bytes=4e6, operations=8e9,
             registers=32, spills=0, occupancy=0.5, kernel_seconds=3e-3),
        Cost(kernel="b", bytes=1e6, kernel_seconds=1e-3),
    )  # fmt: skip
    profile = Profile(rows, ("a note",), "cuda", 5, 5e-3, arch="sm_90")
    assert profile.seconds == pytest.approx(4e-3)
    assert [" ".join(line.split()) for line in str(profile).splitlines()] == [
        "kernel calls us share MB GB/s GFLOP GFLOP/s registers occupancy",
        "a<float> TILE=16 2 3000.00 75.0% 4 1.33 8 2667 32 50%",
        "b 1 1000.00 25.0% 1 1 - - - -",
        "total 3 4000.00 100.0% 5 1.25 8 2000 - -",
        "a note",
    ]
    answer = json.loads(json.dumps(profile.to_dict()))
    assert [row["share"] for row in answer["kernels"]] == [0.75, 0.25]
    assert (answer["device"], answer["arch"], answer["plain_seconds"]) == ("cuda", "sm_90", 5e-3)
    assert "reads" not in answer["kernels"][0] and answer["kernels"][1]["registers"] is None


@pytest.mark.second
def test_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (
        main(
            [
                "profile",
                "numba_cnn",
                "--filters",
                "2",
                "--batch-size",
                "4",
                "--steps",
                "1",
                "--json",
            ]
        )
        == 0
    )
    answer = json.loads(capsys.readouterr().out)
    kernels = {row["kernel"]: row for row in answer["kernels"]}
    assert kernels["sgd_update<float>"]["calls"] >= 1
    assert kernels["unary_forward<float, Relu>"]["bytes"] == 4 * 2 * (4 * 2 * 6 * 6)
    assert answer["settings"]["device"] == "emulator" and answer["settings"]["filters"] == 2
    assert answer["files"] == ["profile-numba_cnn-emulator.svg"]
    assert (tmp_path / answer["files"][0]).read_text().startswith("<?xml")


@pytest.mark.parametrize(
    "options, words",
    [
        (
            ["numba_cnn", "--device", "gpu"],
            "--device: expected one of cpu, emulator, cuda, got 'gpu'",
        ),
        (["numba_cn"], "numba_cnn"),
        (["numba_cnn", "--arch", "sm_91"], "sm_90"),
        (["numba_cnn", "--steps", "0"], "whole number from 1"),
    ],
)
def test_bad_usage(options, words, capsys):
    assert main(["profile", *options]) == 2
    assert words in capsys.readouterr().err
