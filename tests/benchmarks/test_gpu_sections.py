"""Sections of `make gpu`: what is wrong is not timed, what is faster is told."""

import types

import numpy as np
import pytest

from benchmarks.gpu import conv, gemm, host_time, ours, smoke, steps, variants
from benchmarks.gpu.chosen import Pass, Side, gemm_cuts, gemm_steps
from benchmarks.gpu.room import Room, WallClock
from benchmarks.gpu.torch_side import COMPILED, TorchSide
from benchmarks.timing import Times, Timing
from benchmarks.workloads import seed_network
from tests.benchmarks.torch_stand_in import TorchStandIn


def rehearsal(torch=None):
    return Room("emulator", WallClock(), torch, rehearse=True)


# ---- first results, products, steps


def test_a_wrong_first_result_is_seen(monkeypatch):
    right = smoke._matmul
    monkeypatch.setattr(
        smoke, "_matmul", lambda device, s: [r + (device != "cpu") for r in right(device, s)]
    )
    result = smoke.run(rehearsal())
    assert result.failed.startswith("matmul 20x30x25 is wrong")
    assert "| relu | 0.0e+00 | yes |" in str(result.blocks[0])
    assert "130x70" not in str(result.blocks[0])


def test_a_wrong_product_is_not_timed(monkeypatch):
    monkeypatch.setattr(ours, "product", lambda a, b, device: lambda: 0 * a)
    with pytest.raises(ArithmeticError, match="size 32 is wrong"):
        gemm.run(rehearsal())


def test_error_of_a_product():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((80, 80)).astype(np.float32) for _ in range(2))
    assert gemm.error(np, a, b, a @ b) < 1e-6
    rounded = a.astype(np.float16).astype(np.float32) @ b  # 10 bits, as tf32 has
    assert 1e-5 < gemm.error(np, a, b, rounded) < 2e-3


def test_cublas_is_asked_for_the_precision():
    said = []
    linalg = types.SimpleNamespace(
        get_compute_type=lambda dtype: 4, set_compute_type=lambda dtype, kind: said.append(kind)
    )
    cupy = types.SimpleNamespace(_core=types.SimpleNamespace(_routines_linalg=linalg))
    for precision in (ours.STRICT, ours.TF32):
        with gemm.cublas_precision(cupy, precision):
            said.append("run")
    assert said == [1, "run", 4, 7, "run", 4]


@pytest.mark.second
def test_a_side_that_disagrees_is_left_out(monkeypatch):
    monkeypatch.setattr(steps, "workloads", lambda room: [seed_network(2, 4, size=8)])
    result = steps.run(rehearsal(TorchStandIn(bias=0.1)))
    text = "\n".join(map(str, result.blocks))
    assert "| tinygraph eager |" in text and "| PyTorch eager |" not in text
    assert any("PyTorch eager: AssertionError" in line for line in result.left_out)
    assert not result.failed


def off(sides, by):
    """The sides of a convolution, with another gradient of w."""
    *runs, results = sides
    return *runs, lambda: [*results()[:2], results()[2] + by]


def test_a_convolution_is_held_against_float64(monkeypatch):
    """Where the other side is off the page says so, and ours is timed; where ours is, it is not."""
    right, torch = ours.convolution, TorchStandIn()
    torch.convolution = lambda x, *rest: off(right(x, *rest, "cpu"), x.dtype == np.float32)
    result = conv.run(rehearsal(torch))
    assert not result.failed and "| forward |" in str(result.blocks[1])
    assert any("gradient of w of cuDNN is off by" in line for line in result.left_out)
    torch.convolution = lambda *arrays: right(*arrays, "cpu")
    monkeypatch.setattr(ours, "convolution", lambda *args: off(right(*args), 1))
    result = conv.run(rehearsal(torch))
    assert result.failed == "a convolution of ours is wrong"
    assert "| forward |" not in str(result.blocks[1])


@pytest.mark.second
def test_the_faster_compiled_side_is_the_one_to_beat(monkeypatch):
    monkeypatch.setattr(steps, "workloads", lambda room: [seed_network(2, 4, size=8)])
    seconds = {
        "tinygraph eager": 4.0,
        "PyTorch eager": 12.0,
        "PyTorch compiled": 10.0,
        "PyTorch compiled, CUDA graphs": 2.0,
    }

    def in_turns(self, runs):
        assert set(seconds) <= set(runs)
        return {name: Times((Timing(s, s),) * 2) for name, s in seconds.items()}

    monkeypatch.setattr(Room, "in_turns", in_turns)
    torch = TorchStandIn()
    room = Room("emulator", WallClock(), torch, quick=True)
    result = steps.measured(room, "T", steps.workloads(room), COMPILED)
    name = "seed network, batch 2, 4 filters"
    line = f"| {name} | tinygraph eager | 4000 (4000 to 4000) | 3.00 (3.00 to 3.00) | 0.50 ("
    assert line in str(result.blocks[1])
    lost = f"{name}, strict float32, times as fast as PyTorch"
    assert result.lost[:2] == [
        f"{lost} eager: 3.00, the aim is 10.00",
        f"{lost} compiled: 0.50, the aim is 4.00",
    ]
    assert torch.precisions[0] is False


def test_a_step_of_ours_that_disagrees_fails(monkeypatch):
    monkeypatch.setattr(steps, "workloads", lambda room: [seed_network(2, 4, size=8)])
    real = ours.steps

    def wrong(workload, device):
        found = real(workload, "cpu")
        return {"eager": found["eager"] if device == "cpu" else lambda: found["eager"]() + 1}

    monkeypatch.setattr(ours, "steps", wrong)
    assert "disagrees with numpy" in steps.run(rehearsal()).failed


def test_torch_compile_begins_afresh_for_each_network():
    """Dynamo goes eager in silence after it has compiled one function several times."""
    said = []

    def compile(function, mode):
        said.append("compile")
        return function

    torch = types.SimpleNamespace(
        backends=types.SimpleNamespace(cudnn=types.SimpleNamespace()),
        tensor=lambda array, device: types.SimpleNamespace(requires_grad_=lambda: None),
        optim=types.SimpleNamespace(SGD=lambda parameters, lr: None),
        nn=types.SimpleNamespace(functional=types.SimpleNamespace(cross_entropy=None)),
        compile=compile,
        _dynamo=types.SimpleNamespace(reset=lambda: said.append("reset")),
    )
    side = TorchSide(torch, "cuda")
    for mode in (None, *COMPILED.values()):
        side.step(seed_network(2, 4, size=8), mode)
    assert said == ["reset", "compile"] * len(COMPILED)


# ---- choices and their variants


def in_turns_of(seconds):
    """In the place of `Room.in_turns`: times made up beforehand, by the name of a side."""

    def in_turns(self, runs):
        assert runs.keys() == seconds.keys()
        return {name: Times((Timing(s, s),) * 2) for name, s in seconds.items()}

    return in_turns


def sides(**answers):
    return {name: Side(list, lambda a=answer: [np.array(a)]) for name, answer in answers.items()}


def one_case(monkeypatch, made):
    monkeypatch.setattr(variants, "groups", lambda room: {"A group": [("a sum", lambda: made)]})
    return variants.run(rehearsal())


def test_a_variant_that_is_faster_has_won(monkeypatch):
    seconds = {"chosen": 4.0, "slower": 5.0, "hardly": 3.9, "faster": 2.0}
    monkeypatch.setattr(Room, "in_turns", in_turns_of(seconds))
    result = one_case(monkeypatch, sides(**dict.fromkeys(seconds, 1.0)))
    assert result.lost == ["a sum: faster is 2.00 times as fast as chosen"]
    assert "| a sum | chosen | 4000 (4000 to 4000) | the choice |" in str(result.blocks[1])
    assert "| a sum | faster | 2000 (2000 to 2000) | 2.00 (2.00 to 2.00) |" in str(result.blocks[1])
    assert not result.failed


def test_variants_that_disagree_are_not_timed(monkeypatch):
    result = one_case(monkeypatch, sides(chosen=1.0, other=1.01))
    assert "disagrees" in result.failed and not result.blocks[1].rows
    assert result.left_out[0].startswith(
        "a sum: ArithmeticError: other differs from chosen by 0.01"
    )


def test_the_ways_of_a_product():
    names = [choice.step for choice in gemm_steps(4096, 4096, 4096)]
    assert names == ["gemm_pipelined", "gemm_shared_tile", "gemm_register_tile"]
    assert [choice.chunks for choice in gemm_cuts(40, 10, 60_000)] == [58, 1]


def test_the_ways_of_a_convolution():
    """64 filters of 64 channels, 8 x 8 images: few blocks, and the higher the tile the fewer."""
    one = Pass("forward", (4, 64, 8, 8), (64, 64, 3, 3))
    assert {choice.tile for choice in one.tiles()} == {32, 64, 128}
    chosen, uncut = one.cuts()
    assert chosen == one.tiles()[0] and chosen.chunks > uncut.chunks == 1


@pytest.mark.second
def test_choices_beside_their_variants():
    result = variants.run(rehearsal())
    assert not result.failed, result.left_out
    text = "\n".join(map(str, result.blocks))
    for way in ("gemm_shared_tile", "tile of 128", "3 chunks", "stage, linear", "max-pool, linear"):
        assert f"{way} | " in text
    assert result.left_out == ["captured steps: a CUDA graph needs CuPy"]


@pytest.mark.second
def test_time_of_the_host():
    table = host_time.run(rehearsal()).blocks[1]
    assert [row[0] for row in table.rows][-2:] == ["with no_grad(): relu(x)", "seed step, eager"]
    assert all(float(row[1].split()[0]) > 1 for row in table.rows)
