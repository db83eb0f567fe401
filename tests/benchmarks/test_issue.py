"""What machine code adds to predicted times: instructions, counted by hand."""

import doctest
from importlib import import_module

import numpy as np
import pytest

import tinygraph as tg
from benchmarks.machine_code.issue import IssuedOn, instructions, issue_seconds, multiply_adds_of
from benchmarks.machine_code.main_loop import MainLoop
from tests.cuda.test_prediction import ROUND, launch
from tinygraph.watch.prediction import predict, predictions_on

EIGHT_OF_TEN = MainLoop({"FFMA": 8, "LDS.128": 2})


def test_issue_by_operations():
    """1000 passes of 8 multiply-adds by 32 threads are 10,000 instructions: a quarter of a us."""
    given = launch(operations=2 * 32 * 8 * 1000)
    assert instructions(given, EIGHT_OF_TEN) == 10_000
    assert issue_seconds(given, ROUND, EIGHT_OF_TEN, 8) == pytest.approx(0.25e-6)


def test_issue_by_loads():
    """A pass loads 2 * 16 bytes for each of 32 threads: 1000 passes for a million bytes."""
    loop = MainLoop({"LDG.E.128": 2, "IADD3": 18, "@!PT LDS": 5})
    assert instructions(launch(read=1_024_000), loop) == 1000 * 25


def test_a_kernel_without_a_loop_issues_all_of_itself():
    loop = MainLoop({"FFMA": 4, "STG.E": 1, "EXIT": 1}, is_loop=False)
    assert instructions(launch(grid=3, block=96, operations=10**9), loop) == 3 * 3 * 6


def test_a_grid_that_does_not_fill_the_gpu_issues_longer():
    given = launch(operations=512_000, grid=5)
    assert issue_seconds(given, ROUND, EIGHT_OF_TEN, 8) == pytest.approx(0.5e-6)


def test_multiply_adds_of_tensor_cores():
    """m16n8k8 has 16 * 8 outputs of 8 products."""
    assert multiply_adds_of("HMMA.1688.F32.TF32") == 16 * 8 * 8
    assert multiply_adds_of("HMMA.1684.F32.TF32") == 16 * 8 * 4
    assert multiply_adds_of("HMMA.16816.F32") == 16 * 8 * 16
    assert multiply_adds_of("DMMA.884") == 8 * 8 * 4
    assert multiply_adds_of("FFMA2") == 64 and multiply_adds_of("LDG.E.128") == 0


def test_a_real_kernel_has_one_part_more():
    x = tg.Tensor(np.zeros(1_000_000, np.float32), device="emulator")
    with tg.cuda.recording(execute=False) as launches:
        tg.relu(x)
    on = IssuedOn("t4")
    found, plain = on.predict(launches[0]), predict(launches[0], on.gpu)
    assert 0.1e-6 < found.issue < 4e-6 and found.bound_by == "memory"
    assert (found.memory, found.arithmetic, found.start) == tuple(vars(plain).values())
    assert predictions_on(on) is on
    slow = type(found)(memory=1e-6, arithmetic=1e-6, start=1e-6, issue=5e-6)
    assert slow.bound_by == "issue" and slow.seconds == pytest.approx(6e-6)


@pytest.mark.parametrize("name", ["disassembly", "floors", "flow", "issue", "main_loop", "rounds"])
def test_examples_run(name):
    assert doctest.testmod(import_module(f"benchmarks.machine_code.{name}")).failed == 0
