"""Predicted times: a roofline by hand, on a GPU with round figures."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import ArgumentError
from tinygraph.cli import main
from tinygraph.cuda.data_sheets import GPUS, Gpu, find
from tinygraph.training import profile_steps
from tinygraph.watch.prediction import Host, predict, roofline, step_seconds

# 10 multiprocessors at 1 GHz issue 40e9 instructions a second
ROUND = Gpu("round", "sm_90", 10, 1e9, 1e11, 1e12, 1e11, 4e12, 8e12, "made up")


def launch(operations=0, moved=0, grid=10, block=128, name="k<float>", read=0, **macros):
    return SimpleNamespace(
        issued_operations=operations,
        bytes=moved,
        grid=(grid, 1, 1),
        block=(block, 1, 1),
        kernel=SimpleNamespace(name=name, source=SimpleNamespace(defines=tuple(macros.items()))),
        arrays=[SimpleNamespace(bytes=read, reads=True), SimpleNamespace(bytes=7, reads=False)],
    )


def found(resident=8, **given):
    return roofline(launch(**given), ROUND, resident)


def test_memory():
    assert found(moved=1_000_000).memory == pytest.approx(10e-6)  # 1 MB at 100 GB/s
    # one multiprocessor takes 64 bytes a clock, two 128: more than memory has
    assert found(moved=1_000_000, grid=1).memory == pytest.approx(1e6 / 64e9)
    assert found(moved=1_000_000, grid=2).memory == pytest.approx(10e-6)


def test_arithmetic():
    whole = found(operations=512_000)
    assert whole.arithmetic == pytest.approx(512_000 / 1e12)
    assert whole.seconds == whole.start + whole.arithmetic and whole.bound_by == "start"


@pytest.mark.parametrize(
    "grid, block, resident, idle",
    [
        (10, 128, 8, 1.0),
        (20, 128, 1, 1.0),
        (11, 128, 8, 20 / 11),  # one multiprocessor has two blocks
        (5, 128, 8, 2.0),
        (10, 32, 8, 4.0),  # one warp: three schedulers have none
        (40, 32, 8, 1.0),
        (40, 32, 2, 2.0),  # no more than two blocks fit
        (10, 33, 8, 2.0),
    ],
)
def test_a_grid_that_does_not_fill_the_gpu(grid, block, resident, idle):
    given = {"operations": 512_000, "grid": grid, "block": block, "resident": resident}
    assert found(**given).arithmetic == pytest.approx(0.512e-6 * idle)


@pytest.mark.parametrize(
    "name, macros, rate",
    [
        ("k<float>", {}, 1e12),
        ("k<double>", {}, 1e11),
        ("k<float>", {"GEMM_MMA": "0"}, 1e12),
        ("k<float>", {"GEMM_MMA": "19"}, 4e12),
        ("k<float>", {"GEMM_MMA": "16"}, 8e12),
    ],
)
def test_the_peak_is_that_of_the_units(name, macros, rate):
    assert found(operations=10**6, name=name, **macros).arithmetic == pytest.approx(1e6 / rate)


def test_where_tensor_cores_do_not_know_a_type_float32_does_the_work():
    given = launch(operations=10**6, grid=40, GEMM_MMA="19")
    assert roofline(given, find("t4"), 8).arithmetic == pytest.approx(1e6 / 8.1e12)


def test_bounds_by_name():
    assert found(moved=10**9).bound_by == "memory"
    assert found(operations=10**9).bound_by == "arithmetic"
    assert found().bound_by == "start"


def test_the_host_holds_short_kernels_up():
    assert step_seconds(10e-6, 3, Host.EAGER) == pytest.approx(60e-6)
    assert step_seconds(100e-6, 3, Host.EAGER) == pytest.approx(100e-6)
    assert step_seconds(10e-6, 3, Host.CAPTURED) == pytest.approx(10e-6)


# ---- real kernels ---------------------------------------------------------------------------


def test_a_data_sheet_agrees_with_itself():
    """float32 at the boost clock: 2 operations of 128 or, before, 64 lanes of a multiprocessor."""
    for gpu in GPUS.values():
        lanes = 64 if gpu.arch in ("sm_75", "sm_80") else 128
        assert gpu.fp32 == pytest.approx(2 * lanes * gpu.multiprocessors * gpu.clock, rel=0.02)
        assert gpu.issue_rate == gpu.multiprocessors * 4 * gpu.clock
        assert gpu.bandwidth > 1e11 and gpu.source


def test_the_page_s_example_by_hand():
    x = tg.Tensor(np.zeros(1_000_000, np.float32), device="emulator")
    with tg.cuda.recording(execute=False) as launches:
        tg.relu(x)
    one = predict(launches[0], find("t4"))
    assert one.memory == pytest.approx(8e6 / 320e9) and one.bound_by == "memory"


@pytest.mark.parametrize("gpu", ["h20", "", "RTX 4080"])
def test_an_unknown_gpu_names_the_known_ones(gpu):
    with pytest.raises(ArgumentError, match="expected one of h200, h100, a100"):
        find(gpu)
    graph = tg.Graph(tg.relu(tg.ones((2,))))
    with pytest.raises(ArgumentError, match="expected one of h200"):
        graph.kernel_table(gpu=gpu or "none")


@pytest.mark.second
def test_a_table_of_a_graph_adds_up():
    x = tg.Tensor(np.zeros((64, 64), np.float32), requires_grad=True, name="x")
    table = tg.Graph((tg.relu(x) @ x).sum()).kernel_table(gpu="a100")
    assert all(row.predicted_seconds >= Host.CAPTURED.value.gap for row in table)
    total = math.fsum(row.predicted_seconds for row in table)
    assert table.total.predicted_seconds == pytest.approx(total)
    assert "predicted us" in str(table) and "bound by" in str(table)
    assert "PREDICTED for a100" in table.notes[0] and "not measured" in table.notes[0]
    assert table.seconds is None  # nothing was
    plain = tg.Graph((tg.relu(x) @ x).sum()).kernel_table()
    assert "predicted" not in str(plain) and plain.rows[0].predicted_seconds is None


@pytest.mark.second
def test_nothing_runs_for_a_profile_on_the_emulator():
    x = tg.Tensor(np.ones(1000, np.float32), requires_grad=True, device="emulator")
    kept = []

    def step():
        x.grad = None
        y = tg.relu(x)
        kept.append(y.value)
        y.sum().backward()

    profile = profile_steps(step, "emulator", steps=2, gpu="h200")
    assert not kept[-1].any()  # relu of ones
    assert profile.gpu == "h200" and profile.arch == "sm_90" and profile.to_dict()["gpu"] == "h200"
    assert [row.calls for row in profile] == [1] * len(profile)
    assert profile_steps(step, "emulator", steps=1).gpu is None and kept[-1].all()


def test_a_profile_on_the_cpu_predicts_nothing():
    with pytest.raises(ArgumentError, match="gpu: expected a device that runs kernels"):
        profile_steps(lambda: tg.relu(tg.ones((3,))), gpu="h200")


@pytest.mark.second
def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["profile", "numba_cnn", "--gpu", "l4", "--steps", "1"]) == 0
    out = capsys.readouterr().out
    assert "predicted us" in out and "PREDICTED for l4 (L4 data sheet), not measured" in out
    assert main(["profile", "numba_cnn", "--gpu", "l5"]) == 2
    assert (
        "expected one of h200, h100, a100, a10, l4, rtx-4090, t4, got 'l5'"
        in capsys.readouterr().err
    )
    assert main(["profile", "numba_cnn", "--gpu", "l4", "--device", "cpu"]) == 2
    assert "--gpu: expected a device that runs kernels" in capsys.readouterr().err
