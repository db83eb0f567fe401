"""recording(): launches taken down, run or not; roles of arrays; operations as files state them."""

import threading

import numpy as np
import pytest

from tests.cuda.recorder import SCALE
from tinygraph.base.errors import ArgumentError, KernelLaunchError
from tinygraph.cuda import InOut, Kernel, Out, recording
from tinygraph.cuda.devices import EMULATOR
from tinygraph.cuda.reading.operation_counts import operation_count
from tinygraph.cuda.reading.source import Source

STATED = "// operations of scale: n\n" + SCALE


def arrays(n=100):
    return np.ones(n, np.float32), np.zeros(n, np.float32)


@pytest.mark.parametrize("execute", [True, False])
def test_a_launch_is_taken_down(execute):
    kernel = Kernel(STATED, "scale<float>")
    x, y = arrays()
    with recording(execute) as launches:
        kernel((2, 1), 64, x, y, 3, 100, shared=16)
    (launch,) = launches
    assert launch.kernel is kernel
    assert (launch.grid, launch.block, launch.shared) == ((2, 1, 1), (64, 1, 1), 16)
    assert launch.scalars == {"alpha": 3.0, "n": 100}
    assert [(a.parameter, a.reads, a.writes, a.bytes) for a in launch.arrays] == [
        ("x", True, False, 400),
        ("y", True, True, 400),
    ]
    assert (launch.bytes, launch.operations) == (1200, 100)
    assert (y == (3 if execute else 0)).all()


def test_what_was_uninitialised_is_not_read():
    kernel = Kernel(SCALE, "scale<float>")
    x, _ = arrays()
    with recording(execute=False) as launches:
        y = EMULATOR.empty((100,), np.float32)
        kernel(1, 128, x, y, 1, 100)  # writes it the first time
        kernel(1, 128, x, y, 1, 100)  # the second time it has contents
        z = EMULATOR.empty((100,), np.float32)
        kernel(1, 64, x[:50], z[:50], 1, 50)
        kernel(1, 64, x[:50], z[50:], 1, 50)  # another part of it
        kernel(1, 64, x[:50], z[25:75], 1, 50)
        kernel(1, 128, x, Out(np.ones(100, np.float32)), 1, 100)
        kernel(1, 128, x, InOut(EMULATOR.empty((100,), np.float32)), 1, 100)
    assert [launch.arrays[1].reads for launch in launches] == [
        False,
        True,
        False,
        False,
        True,
        False,
        True,
    ]


def test_arguments_are_checked_all_the_same():
    with recording(execute=False) as launches, pytest.raises(KernelLaunchError, match="alpha"):
        Kernel(SCALE, "scale<float>")(1, 128, *arrays(), "1", 100)
    assert not launches


def test_outside_and_in_other_threads_nothing_is_taken_down():
    kernel = Kernel(SCALE, "scale<float>")
    x, y = arrays()
    with recording(execute=False) as launches:
        thread = threading.Thread(target=kernel, args=(1, 128, x, y, 2, 100))
        thread.start()
        thread.join()
    assert (y == 2).all()
    kernel(1, 128, x, y, 5, 100)
    assert not launches and (y == 5).all()


@pytest.mark.parametrize(
    "formula, macros, numbers, expected",
    [
        ("2 * M * N", {}, {"M": 3, "N": 5}, 30),
        ("n * (TILE + 1)", {"TILE": "16"}, {"n": 2}, 34),
        ("ceil_div(n, 4) if n > 8 else min(n, 1)", {}, {"n": 9}, 3),
        ("ceil_div(n, 4) if n > 8 else min(n, 1)", {}, {"n": 8}, 1),
        ("3 * x", {}, {"x": 7}, 21),
        ("0", {}, {}, 0),
    ],
)
def test_formulas(formula, macros, numbers, expected):
    source = Source.read(f"/*\n * operations of k: {formula}\n */\n__global__ void k();", macros)
    assert operation_count(source, "k", numbers) == expected


def test_a_kernel_that_states_nothing():
    assert operation_count(Source.read("__global__ void k();"), "k", {}) is None


@pytest.mark.parametrize(
    "formula, words",
    [
        ("2 * m", "name 'm' is not defined"),
        ("2 *", "expression"),
        ("n.real", "Attribute"),
        ("[n][0]", "no arithmetic"),
        ("n // 0", "n // 0"),
        ("__import__('os')", "names n"),
    ],
)
def test_bad_formulas(formula, words):
    source = Source.read(f"// operations of k: {formula}\n__global__ void k();")
    with pytest.raises(ArgumentError) as error:
        operation_count(source, "k", {"n": 1})
    assert words in str(error.value) and "operations of k" in str(error.value)
