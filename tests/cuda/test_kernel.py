"""Kernel: lazy, packed, checked; how `checking()` and `op_kernel` use it; and real launches."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cuda.recorder import SCALE, SLOTS, kernel_of
from tinygraph.base.errors import DtypeError, KernelCompileError, KernelLaunchError
from tinygraph.cuda import InOut, Kernel, Out, blocks, checking, op_kernel
from tinygraph.cuda.devices import EMULATOR
from tinygraph.cuda.emulator.findings import Finding
from tinygraph.engine.running import Eager, here


def test_nothing_is_parsed_or_compiled_before_the_first_launch(loaded, scale, arrays):
    Kernel("__global__ this is no kernel", "k")
    assert "signature" not in vars(scale) and not loaded.loads
    scale(4, 256, *arrays, 2.0, 1000)
    scale(4, 256, *arrays, 2.0, 1000)
    ((source, signature, checked),) = loaded.loads
    assert (source, signature, checked) == (scale.source, scale.signature, False)


def test_a_missing_file_is_an_error_at_once(tmp_path):
    with pytest.raises(KernelCompileError, match=r"nothing\.cu"):
        Kernel(tmp_path / "nothing.cu", "k")


def test_a_launch_packs_each_argument_into_eight_bytes(loaded, scale, arrays):
    x, y = arrays
    scale((4, 2), (16, 8, 2), x, Out(y), 2, np.int64(1000), shared=256)
    ((packed, grid, block, shared),) = loaded.launches
    assert packed == struct.pack("<QQf4xi4x", x.ctypes.data, y.ctypes.data, 2.0, 1000)
    assert (grid, block, shared) == ((4, 2, 1), (16, 8, 2), 256)


def test_a_kernel_without_arguments_runs_on_the_emulator(loaded):
    kernel_of("")(1, 1)
    assert loaded.launches == [(b"", (1, 1, 1), (1, 1, 1), 0)]


# ---- the checker


def roles(recorder):
    return [argument.role for argument in recorder.checks[-1][0]]


def test_check_tells_the_module_each_argument_and_its_role(loaded, scale, arrays):
    x, y = arrays
    report = scale.check(4, (16, 16), x, Out(y), 2, 1000, shared=8, profile=True)
    assert report.ok and loaded.loads[0][2] is True
    arguments, grid, block, shared, profile = loaded.checks[0]
    assert (grid, block, shared, profile) == ((4, 1, 1), (16, 16, 1), 8, True)
    assert [a.parameter for a in arguments] == list(scale.signature.parameters)
    assert arguments[0].value is x and arguments[1].value is y
    assert arguments[2].value.dtype == np.float32 and arguments[3].value.dtype == np.int32
    assert roles(loaded) == ["in", "out", "in", "in"]
    scale.check(1, 1, x, InOut(y), 2, 1000)
    assert roles(loaded)[1] == "inout"
    scale.check(1, 1, x, y, 2, 1000)
    assert roles(loaded)[1] == "auto"


def test_findings_of_check_are_returned_and_not_raised(loaded, scale, arrays):
    loaded.findings = [Finding("race", "two threads", "k.cu", 3, "x[0] = 1;")]
    assert not scale.check(4, 256, *arrays, 2.0, 1000).ok


def test_launches_inside_checking_are_checked_and_raise(loaded, scale, arrays):
    with checking():
        scale(4, 256, *arrays, 2.0, 1000)
        assert len(loaded.checks) == 1 and not loaded.launches
        loaded.findings = [Finding("race", "two threads write", "k.cu", 3, "x[0] = 1;")]
        with pytest.raises(KernelLaunchError, match="two threads write"):
            scale(4, 256, *arrays, 2.0, 1000)
    scale(4, 256, *arrays, 2.0, 1000)
    assert len(loaded.launches) == 1


def test_checking_ends_with_its_block_also_after_an_error(loaded, scale, arrays):
    with pytest.raises(RuntimeError), checking():
        raise RuntimeError
    assert type(here.top) is Eager
    scale(4, 256, *arrays, 2.0, 1000)
    assert loaded.launches and not loaded.checks


def test_an_array_of_device_empty_is_an_output_once(loaded, scale, arrays):
    x = arrays[0]
    with checking():
        y = EMULATOR.empty((10, 100), np.float32)
        scale(4, 256, x, y, 2.0, 1000)
        assert roles(loaded)[1] == "out"
        scale(4, 256, x, y, 2.0, 1000)
        assert roles(loaded)[1] == "auto"
        scale(4, 256, x, EMULATOR.empty(4, np.float32).reshape(2, 2), 2.0, 4)
        assert roles(loaded)[1] == "out"
        scale(4, 256, x, InOut(EMULATOR.empty(4, np.float32)), 2.0, 4)
        assert roles(loaded)[1] == "inout"
        scale(4, 256, x, EMULATOR.empty(8, np.float32)[:4], 2.0, 4)
        assert roles(loaded)[1] == "auto"
        scale(4, 256, x, EMULATOR.zeros(8, np.float32), 2.0, 4)
        assert roles(loaded)[1] == "auto"


def test_a_fresh_array_that_is_only_read_stays_fresh(loaded, scale):
    with checking():
        y = EMULATOR.empty(4, np.float32)
        scale(1, 4, y, np.zeros(4, np.float32), 2.0, 4)
        scale(1, 4, np.zeros(4, np.float32), y, 2.0, 4)
        assert roles(loaded) == ["in", "out", "in", "in"]


def test_freshness_ends_with_checking_and_with_the_array(loaded, scale, arrays):
    x = arrays[0]
    with checking():
        y = EMULATOR.empty(4, np.float32)
        for _ in range(100):  # the next array may get the address, and the id, of the last
            EMULATOR.empty(4, np.float32)
            scale(1, 4, x, np.zeros(4, np.float32), 2.0, 4)
            assert roles(loaded)[1] == "auto"
    with checking():
        scale(1, 4, x, y, 2.0, 4)
        assert roles(loaded)[1] == "auto"
    here.top.fresh(y)  # outside, it has no effect
    scale.check(1, 4, x, y, 2.0, 4)
    assert roles(loaded)[1] == "auto"


# ---- ops' kernels


def test_blocks_divides_and_rounds_up():
    assert [blocks(n, 256) for n in (0, 1, 256, 257, 10**10)] == [0, 1, 1, 2, 39062500]


@given(st.integers(0, 10**12), st.integers(1, 1024))
def test_blocks_are_just_enough(n, threads):
    assert (blocks(n, threads) - 1) * threads < n or n == 0
    assert blocks(n, threads) * threads >= n


def test_op_kernel_names_file_function_type_and_macros():
    kernel = op_kernel("dropout", "dropout_forward", np.float32)
    assert kernel.source.name == "dropout.cu" and kernel.name == "dropout_forward<float>"
    assert op_kernel("dropout", "dropout_forward", np.dtype("f4")) is kernel
    assert op_kernel("dropout", "dropout_forward", "float64").name == "dropout_forward<double>"
    tiled = op_kernel("dropout", "dropout_forward", np.float32, TILE=16, B=1)
    assert tiled.source.defines == (("B", "1"), ("TILE", "16"))
    assert op_kernel("dropout", "dropout_forward", np.float32, B=1, TILE=16) is tiled is not kernel
    real = op_kernel("dropout", "dropout_forward", np.float32, TILE=16.0, B=1)
    assert real.source.defines == (("B", "1"), ("TILE", "16.0"))


def test_op_kernel_refuses_other_dtypes_and_files():
    with pytest.raises(DtypeError, match="dropout: dtype: expected one of float32"):
        op_kernel("dropout", "dropout_forward", np.float16)
    with pytest.raises(KernelCompileError, match=r"nothing\.cu"):
        op_kernel("nothing", "f", np.float32)


# ---- the emulator itself


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_kernel_runs_on_the_emulator(dtype):
    kernel = Kernel(SCALE, f"scale<{'float' if dtype == np.float32 else 'double'}>")
    x = np.random.default_rng(0).standard_normal(1000).astype(dtype)
    y = np.full(1000, np.nan, dtype)
    kernel(blocks(1000, 256), 256, x, Out(y), 2.5, 1000)
    np.testing.assert_array_equal(y, dtype(2.5) * x)


def test_each_type_of_argument_arrives_on_the_emulator():
    names = "bcdefghijk"
    parameters = ", ".join(f"{c} {n}" for c, n in zip(SLOTS, names, strict=False))
    more = ", unsigned long long last"
    writes = " ".join(f"out[{i}] = (double){n};" for i, n in enumerate(names))
    kernel = kernel_of(f"double* out, {parameters}{more}", f"{writes} out[10] = (double)last;")
    values = [True, -5, 200, -30000, 60000, -(2**31), 2**32 - 1, -(2**40), 2**50, 0.5, 2**53]
    out = np.zeros(11)
    kernel(1, 1, out, *values)
    np.testing.assert_array_equal(out, np.array(values, float))


def test_check_finds_nothing_in_a_right_kernel_and_writes_its_output(scale, arrays):
    x, y = arrays
    report = scale.check(4, 256, x, Out(y), 3.0, 1000)
    assert report.ok, report.text()
    np.testing.assert_array_equal(y, 3 * x)


def test_checking_raises_for_a_missing_guard(arrays):
    wrong = Kernel(SCALE.replace("if (i < n) ", ""), "scale<float>")
    with checking(), pytest.raises(KernelLaunchError, match="out-of-bounds"):
        wrong(4, 256, *arrays, 1.0, 1000)


def test_a_kernel_that_does_not_compile_shows_its_line():
    kernel = kernel_of("float* x", "x[0] = nothing;")
    with pytest.raises(KernelCompileError, match=r"nothing.*\n +1 \| __global__ void k"):
        kernel(1, 1, np.zeros(1, np.float32))
