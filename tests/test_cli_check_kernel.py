"""The options of `tinygraph check-kernel`: what a launch means, and a clear error for none."""

import shlex

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygraph.base.errors import ArgumentError, KernelCompileError
from tinygraph.cli.check_kernel import arguments_of, checked, kernel_of, parse_launch
from tinygraph.cuda import In, InOut, Kernel, Out

SCALE = """
__global__ void scale(const float* x, float* y, float alpha, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = alpha * x[i];
}
"""


def made(expression, ctype="const float*", options=""):
    """The value of one argument of a kernel that takes no other."""
    signature = Kernel(f"__global__ void k({ctype} x) {{}}", "k").signature
    text = f"--grid 1 --block 1 --arg {shlex.quote(f'x={expression}')} {options}"
    return arguments_of(signature, parse_launch(text))[0]


# ---- values ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, value",
    [
        ("1000", 1000),
        ("-3", -3),
        (" 2 * 3", 6),
        ("0x1f", 31),
        ("1e-3", 1e-3),
        ("True", True),
        ("-inf", -np.inf),
    ],
)
def test_numbers(text, value):
    found = made(text, "float")
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "ctype, dtype",
    [
        ("float", "f4"),
        ("double", "f8"),
        ("unsigned char", "u1"),
        ("long long", "i8"),
        ("bool", "?"),
        ("float4", "f4"),
    ],
)
def test_arrays_take_the_type_of_the_parameter(ctype, dtype):
    for text in ("zeros((2, 4))", "ones(8)", "arange(4) % 2", "array([[1, 0, 1, 0]])"):
        want = eval(f"np.{text}").astype(dtype)
        np.testing.assert_array_equal(made(text, f"const {ctype}*"), want, strict=True)


def test_a_transposed_array_arrives_contiguous():
    found = made("arange(6).reshape(2, 3).T")
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, np.arange(6).reshape(2, 3).T)


def test_random_values_follow_the_seed():
    want = np.random.default_rng(7).random((4, 5)).astype(np.float32)
    np.testing.assert_array_equal(made("rng.random((4, 5))", options="--seed 7"), want)
    assert (made("rng.random(50)") != made("rng.random(50)", options="--seed 1")).any()


def test_marks():
    for text in ("empty((2, 3))", "out(zeros((2, 3)))", "out(empty((2, 3)))"):
        value = made(text, "float*")
        assert type(value) is Out and value.array.shape == (2, 3)
        assert value.array.dtype == np.float32
    value = made("inout(arange(5))", "int*")
    assert type(value) is InOut and value.array.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("role, kind", [("in", In), ("out", Out), ("inout", InOut)])
@pytest.mark.parametrize("text", ["x:{}=arange(4)", "x=arange(4):{}", "x=arange(4) : {} "])
def test_a_role_says_how_an_array_is_used(text, role, kind):
    signature = Kernel("__global__ void k(float* x) {}", "k").signature
    launch = parse_launch(f"--grid 1 --block 1 --arg {shlex.quote(text.format(role))}")
    (value,) = arguments_of(signature, launch)
    assert type(value) is kind and value.array.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("text", ["x:read=ones(4)", "x:=ones(4)", ":in=ones(4)", "x:in"])
def test_a_role_that_does_not_exist(text, capsys):
    with pytest.raises((ArgumentError, SystemExit)) as error:
        parse_launch(f"--grid 1 --block 1 --arg {text}")
    assert "NAME:in=VALUE with in, out or inout" in str(error.value) + capsys.readouterr().err


def test_files(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(made(f"load('{tmp_path}/x.npy')"), [[0, 1, 2], [3, 4, 5]])
    with pytest.raises(ArgumentError, match=r"FileNotFoundError.*absent\.npy"):
        made("load('absent.npy')")
    (tmp_path / "no.npy").write_bytes(b"no array")
    with pytest.raises(ArgumentError, match="Error: "):
        made(f"load('{tmp_path}/no.npy')")


@pytest.mark.parametrize(
    "text, ctype, words",
    [
        ("float32[1000]:rand", "const float*", "SyntaxError"),
        ("rand(3)", "const float*", "NameError: name 'rand' is not defined"),
        ("zeros(-1)", "const float*", "ValueError: negative dimensions"),
        ("", "int", "SyntaxError"),
        ("1 / 0", "int", "ZeroDivisionError"),
        ("zeros((10**6, 10**9))", "const float*", "MemoryError"),
        ("inout(empty(3))", "float*", "inout says that the array holds values"),
        ("in_(empty(3))", "float*", "in says that the array holds values"),
        ("full(3, 0.5)", "const int*", "numbers that int32 holds (const int* x)"),
        ("arange(257)", "const unsigned char*", "numbers that uint8 holds"),
        ("full(3, nan)", "const int*", "numbers that int32 holds"),
        ("array(['a'])", "const float*", "an array of <U1"),
        ("array([1j])", "const float*", "an array of complex128"),
    ],
)
def test_bad_values(text, ctype, words):
    with pytest.raises(ArgumentError) as error:
        made(text, ctype)
    assert str(error.value).startswith(f"check-kernel: --arg x={text}")
    assert words in str(error.value) and "Way out: " in str(error.value)


# ---- options --------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 2**31), min_size=1, max_size=3), st.sampled_from("x,"))
def test_extents(extents, separator):
    text = separator.join(map(str, extents))
    launch = parse_launch(f"--grid {text} --block {text}")
    assert launch.grid == launch.block == tuple(extents)


def test_a_whole_launch():
    launch = parse_launch(
        "--kernel 'scale<float, 2>' --grid 4x2 --block 16,16 --shared 1024 --seed 9 "
        "--define TILE=16 --define DEBUG --define 'SUM=a + b' --arg n=3 --arg 'x=ones(2) == 1'"
    )
    assert (launch.kernel, launch.grid, launch.block) == ("scale<float, 2>", (4, 2), (16, 16))
    assert (launch.shared, launch.seed) == (1024, 9)
    assert dict(launch.define) == {"TILE": "16", "DEBUG": "1", "SUM": "a + b"}
    assert launch.arg == [("n", "3"), ("x", "ones(2) == 1")]


@pytest.mark.parametrize("text", ["x", "4x", "1x2x3x4", "-1", "4*2", "1.5", "4k"])
def test_bad_extents(text):
    with pytest.raises(ArgumentError, match="--block: expected one (argument|to three whole num)"):
        parse_launch(f"--grid 1 --block {text}")


@pytest.mark.parametrize(
    "text, words",
    [
        ("--block 1", "--grid"),
        ("--grid 1", "--block"),
        ("--grid a --block 1", "--grid: expected one to three whole numbers"),
        ("--grid 1 --block 1 --shared -4", "--shared"),
        ("--grid 1 --block 1 --seed x", "--seed: expected a whole number"),
        ("--grid 1 --block 1 --define 3=4", "--define: expected NAME=VALUE"),
        ("--grid 1 --block 1 --blok 3", "--blok"),
        (
            "--grid 1 --block 1 --arg n",
            "--arg: expected NAME=VALUE, or NAME:in=VALUE with in, out or inout, got 'n'",
        ),
        ("--grid 1 --block 1 more", "more"),
    ],
)
def test_bad_options(text, words):
    with pytest.raises(ArgumentError, match=words):
        parse_launch(text)


# ---- launches of a file ---------------------------------------------------------------------


@pytest.fixture
def scale(tmp_path):
    path = tmp_path / "scale.cu"
    path.write_text(SCALE)
    return path


ARGUMENTS = "--arg alpha=2 --arg n=100 --arg 'y=empty(100)' --arg 'x=rng.random(100)'"


def values_of(path, text):
    launch = parse_launch(f"--grid 1 --block 128 {text}")
    return arguments_of(kernel_of(path, launch).signature, launch)


def test_values_stand_in_the_kernels_order(scale):
    x, y, alpha, n = values_of(scale, ARGUMENTS)
    np.testing.assert_array_equal(x, np.random.default_rng(0).random(100).astype(np.float32))
    assert isinstance(y, Out) and (alpha, n) == (2, 100)


@pytest.mark.parametrize(
    "text, problem",
    [
        ("--arg alpha=2 --arg n=100 --arg 'x=rng.random(100)'", "missing y"),
        ("", "missing x, y, alpha, n"),
        (f"{ARGUMENTS} --arg m=3", "unknown m"),
        (f"{ARGUMENTS} --arg n=3", "twice n"),
    ],
)
def test_names_that_do_not_fit_list_the_parameters(scale, text, problem):
    with pytest.raises(ArgumentError) as error:
        values_of(scale, text)
    listing = "scale(const float* x, float* y, float alpha, int n)"
    assert listing in str(error.value) and problem in str(error.value)


def test_missing_arguments_come_with_an_example_that_runs(scale):
    with pytest.raises(ArgumentError) as error:
        values_of(scale, "")
    example = str(error.value).partition("Way out: ")[2]
    assert checked(scale, parse_launch(f"--grid 4 --block 256 {example}")).ok


def test_the_only_kernel_of_a_file_needs_no_name(scale):
    assert kernel_of(scale, parse_launch("--grid 1 --block 1")).name == "scale"


@pytest.mark.parametrize(
    "more, words",
    [
        ("__global__ void other(int* x) {}", "scale, other"),
        ("template <typename T> __global__ void other(T* x) {}", "scale, other<...>"),
    ],
)
def test_among_several_kernels_one_is_named(scale, more, words):
    scale.write_text(SCALE + more)
    with pytest.raises(ArgumentError, match=f"--kernel: expected a name.*{words}"):
        kernel_of(scale, parse_launch("--grid 1 --block 1"))
    assert kernel_of(scale, parse_launch("--kernel scale --grid 1 --block 1")).signature.function


def test_files_without_a_kernel(scale, tmp_path):
    scale.write_text("int x;")
    with pytest.raises(ArgumentError, match="no kernel"):
        kernel_of(scale, parse_launch("--grid 1 --block 1"))
    with pytest.raises(KernelCompileError, match=r"absent\.cu"):
        kernel_of(tmp_path / "absent.cu", parse_launch("--grid 1 --block 1"))
