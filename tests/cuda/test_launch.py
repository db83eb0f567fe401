"""Arguments, grids and blocks: what is taken, what is refused, and in which words."""

import struct

import numpy as np
import pytest

import tinygraph as tg
from tests.cuda.recorder import SLOTS, kernel_of, refused
from tinygraph.cuda import InOut, Out, blocks


@pytest.mark.parametrize(("ctype", "slot"), SLOTS.items())
def test_each_scalar_is_packed_as_its_c_type(loaded, ctype, slot):
    kernel_of(f"{ctype} a, {ctype} b")(1, 1, 1, 0)
    assert loaded.launches[0][0] == struct.pack(f"<{slot}{slot}", 1, 0)


def test_an_empty_array_is_a_null_pointer(loaded):
    kernel_of("const float* x, float4* y")(1, 1, np.empty(0, "f4"), np.empty((3, 0), "f4"))
    assert loaded.launches[0][0] == bytes(16)


def test_sizes_of_arrays_follow_the_arguments(loaded):
    x, y = np.zeros(5, np.float32), np.zeros((2, 4))
    kernel_of("const float* x, int n, double* y")(1, 1, x, 3, y)
    assert loaded.sizes == struct.pack("<QQQ", 2 * 20, 0, 2 * 64 + 1)


def test_layouts_that_are_contiguous_are_taken(loaded):
    x = np.zeros((4, 6), np.float32)
    kernel = kernel_of("const float* x")
    for view in (x, x[1:3], x.reshape(2, 12), x[:, None], x[1:2].T, np.ones((), np.float32)):
        kernel(1, 1, view)
        assert loaded.launches[-1][0] == struct.pack("<Q", view.ctypes.data)


@pytest.mark.parametrize("count", [0, 3, 5])
def test_refuses_a_wrong_number_of_arguments(loaded, scale, count):
    message = refused(scale, *range(count))
    assert message == (
        "scale<float>: arguments: expected 4 arguments (const float* x, float* y, float alpha, "
        f"int n), got {count}."
    )


@pytest.mark.parametrize(
    ("x", "got"),
    [
        (np.zeros(4), "float64"),
        (np.zeros(4, int), "int64"),
        (np.zeros(4, ">f4"), ">f4"),
        (np.zeros(4, np.complex64), "complex64"),
        ([1.0, 2.0], "list"),
        (3.0, "float"),
        ("text", "'text'"),
    ],
)
def test_refuses_what_is_no_array_of_the_dtype(loaded, scale, arrays, x, got):
    message = refused(scale, x, arrays[1], 1.0, 4)
    assert message.startswith("scale<float>: x: expected an array of float32 (const float*)")
    assert f"got {got}. Way out: " in message


def test_refuses_a_foreign_byte_order_by_that_name(loaded, scale, arrays):
    assert "in native byte order" in refused(scale, np.zeros(4, ">f4"), arrays[1], 1.0, 4)


def test_refuses_a_tensor_and_says_what_to_pass(loaded, scale, arrays):
    message = refused(scale, tg.Tensor([1.0]), arrays[1], 1.0, 1)
    assert "got a Tensor. Way out: pass its array: x.value" in message
    message = refused(scale, tg.Parameter([1.0]), arrays[1], 1.0, 1)
    assert "got a Parameter. Way out: pass its array: x.value" in message


def test_refuses_none_and_names_the_null_pointer(loaded, scale, arrays):
    assert "numpy.empty(0, numpy.float32)" in refused(scale, None, arrays[1], 1.0, 1)


@pytest.mark.parametrize("view", [np.s_[::2], np.s_[::-1]])
def test_refuses_arrays_that_are_not_contiguous(loaded, scale, arrays, view):
    x, y = arrays
    assert "x: expected a C-contiguous array" in refused(scale, x[view], y, 1.0, 4)
    assert "y: expected a C-contiguous array" in refused(scale, x, Out(y[view]), 1.0, 4)


def test_refuses_a_transposed_view(loaded):
    assert "strides (4, 24)" in refused(kernel_of("const float* x"), np.zeros((4, 6), "f4").T)


def test_refuses_to_write_to_a_read_only_array(loaded, scale, arrays):
    x, y = arrays
    y.flags.writeable = False
    assert "y: expected an array to write to (float*)" in refused(scale, x, y, 1.0, 4)


def test_reads_from_a_read_only_array(loaded, scale, arrays):
    arrays[0].flags.writeable = False
    scale(1, 1, *arrays, 1.0, 4)
    addresses = struct.unpack_from("<QQ", loaded.launches[0][0])
    assert addresses == tuple(array.ctypes.data for array in arrays)


@pytest.mark.parametrize("mark", [Out, InOut])
def test_refuses_a_mark_on_an_input(loaded, scale, arrays, mark):
    x, y = arrays
    message = refused(scale, mark(x), y, 1.0, 4)
    assert f"x: expected an input, as the pointer is const, got {mark.__name__}" in message


def test_refuses_sizes_and_addresses_that_do_not_fit_a_vector_type(loaded):
    kernel = kernel_of("const float4* x")
    assert "a size that 4 divides (const float4*), got 7" in refused(kernel, np.zeros(7, "f4"))
    base = np.zeros(64, np.float32)
    start = (-base.ctypes.data // 4) % 4  # elements up to the next multiple of 16 bytes
    message = refused(kernel, base[start + 1 : start + 9])
    assert "a multiple of 16 bytes (const float4*), got one that is 4 bytes past" in message
    kernel(1, 1, base[start : start + 8])
    loaded.launches.clear()


def test_refuses_an_array_that_is_not_aligned_to_its_elements(loaded):
    odd = np.zeros(65, np.uint8)[1:].view(np.float64)
    assert "a multiple of 8 bytes" in refused(kernel_of("const double* x"), odd)


INTEGERS = {
    "signed char": (-(2**7), 2**7 - 1),
    "unsigned char": (0, 2**8 - 1),
    "short": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "unsigned": (0, 2**32 - 1),
    "long long": (-(2**63), 2**63 - 1),
    "size_t": (0, 2**64 - 1),
}


@pytest.mark.parametrize(("ctype", "limits"), INTEGERS.items())
def test_refuses_integers_out_of_range(loaded, ctype, limits):
    kernel, (low, high) = kernel_of(f"{ctype} n"), limits
    for value in (low - 1, high + 1):
        assert f"n: expected a number from {low} to {high}" in refused(kernel, value)
    kernel(1, 1, low)
    kernel(1, 1, high)
    unpacked = [struct.unpack(f"<{SLOTS[ctype]}", launch[0])[0] for launch in loaded.launches]
    assert unpacked == [low, high]
    loaded.launches.clear()


@pytest.mark.parametrize("value", [1.0, np.float32(2), np.float64(2.5)])
def test_refuses_a_float_for_an_int(loaded, scale, arrays, value):
    message = refused(scale, *arrays, 1.0, value)
    assert f"n: expected an int (int), got the float {value}. Way out: convert" in message


@pytest.mark.parametrize("value", ["3", None, 1j, np.zeros(1, int), np.array(3), [3]])
@pytest.mark.parametrize("ctype", ["int", "float", "double"])
def test_refuses_what_is_no_number(loaded, ctype, value):
    assert f"n: expected a number ({ctype})" in refused(kernel_of(f"{ctype} n"), value)


def test_refuses_numbers_that_a_float_does_not_hold(loaded):
    assert "a: expected a number within 3.4" in refused(kernel_of("float a"), 1e39)
    assert "a: expected a number that a double holds" in refused(kernel_of("double a"), 10**400)
    assert "a: expected a bool, got int" in refused(kernel_of("bool a"), 2)


def test_numbers_of_all_kinds_are_cast(loaded):
    kernel = kernel_of("float a, double b, int n, bool c")
    kernel(1, 1, 3, np.float32(0.5), np.uint8(7), np.bool_(True))
    kernel(1, 1, float("inf"), float("nan"), True, 1)
    packed = [struct.unpack("<f4xdi4x?7x", launch[0]) for launch in loaded.launches]
    assert packed[0] == (3.0, 0.5, 7, True)
    assert packed[1][0] == float("inf") and np.isnan(packed[1][1]) and packed[1][2:] == (1, True)


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        (0, "at least 1 block on each axis, got 0 x 1 x 1"),
        ((4, 0), "at least 1 block"),
        (-1, "at least 1 block"),
        (2**31, "at most 2147483647 blocks on axis x"),
        ((1, 65536), "at most 65535 blocks on axis y"),
        ((1, 1, 65536), "at most 65535 blocks on axis z"),
        ((1, 1, 1, 1), "a tuple of 1 to 3 ints"),
        ((), "a tuple of 1 to 3 ints"),
        (1.5, "a tuple of 1 to 3 ints"),
        ("12", "a tuple of 1 to 3 ints"),
        (None, "a tuple of 1"),
    ],
)
def test_refuses_a_grid(loaded, grid, expected):
    assert f"k: grid: expected {expected}" in refused(kernel_of(""), grid=grid).replace(
        "an int or ", ""
    )


def test_refuses_a_grid_of_0_and_says_to_launch_nothing(loaded):
    assert "Way out: launch nothing" in refused(kernel_of(""), grid=blocks(0, 256))


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (0, "at least 1 thread"),
        ((32, 0), "at least 1 thread"),
        (2000, "at most 1024 threads on axis x, got 2000 x 1 x 1"),
        ((1, 1025), "at most 1024 threads on axis y"),
        ((1, 1, 65), "at most 64 threads on axis z"),
        ((32, 33), "at most 1024 threads, got 32 x 33 x 1 = 1056"),
        ((1, 2, 3, 4), "an int or a tuple of 1 to 3 ints"),
    ],
)
def test_refuses_a_block(loaded, block, expected):
    assert f"k: block: expected {expected}" in refused(kernel_of(""), block=block)


def test_refuses_a_block_beyond_the_launch_bounds(loaded, scale, arrays):
    message = refused(scale, *arrays, 1.0, 4, block=(32, 17))
    assert "block: expected at most 512 threads, as __launch_bounds__" in message
    assert "got 32 x 17 x 1 = 544" in message


@pytest.mark.parametrize("shared", [-1, 227 * 1024 + 1, 1.5, "4"])
def test_refuses_shared_memory(loaded, shared):
    assert refused(kernel_of(""), shared=shared).startswith("k: shared: expected ")


def test_the_limits_themselves_are_taken(loaded):
    kernel = kernel_of("")
    kernel((2**31 - 1, 65535, 65535), (16, 1, 64), shared=227 * 1024)
    kernel(np.int64(3), np.array([8, 4]))
    assert loaded.launches == [
        (b"", (2**31 - 1, 65535, 65535), (16, 1, 64), 227 * 1024),
        (b"", (3, 1, 1), (8, 4, 1), 0),
    ]
