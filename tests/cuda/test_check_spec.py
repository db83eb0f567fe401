"""The text form of a launch: what each form means, and a clear error for what means nothing."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygraph.cuda.argument_spec import DTYPES
from tinygraph.cuda.arguments import InOut, Out
from tinygraph.cuda.check_spec import parse_argument, parse_grid, parse_launch
from tinygraph.errors import ArgumentError, KernelCompileError

SCALE = """
__global__ void scale(const float* x, float* y, float alpha, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = alpha * x[i];
}
"""


def made(text, seed=0):
    return parse_argument(text).make(np.random.default_rng(seed))


# ---- scalars --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, value",
    [
        ("n=1000", 1000),
        ("n=-3", -3),
        ("n=0x1f", 31),
        ("alpha=0.5", 0.5),
        ("alpha=1e-3", 1e-3),
        ("flag=true", True),
        ("flag=false", False),
        ("a=inf", math.inf),
        ("a=-inf", -math.inf),
    ],
)
def test_scalars(text, value):
    found = made(text)
    assert found == value and type(found) is type(value)


def test_nan():
    assert math.isnan(made("alpha=nan"))


# ---- arrays ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "sizes, shape", [("6", (6,)), ("2,3", (2, 3)), ("0", (0,)), ("2, 1,3", (2, 1, 3))]
)
@pytest.mark.parametrize("fill, value", [("zeros", 0), ("ones", 1), ("full(1)", 1)])
def test_constant_fills(dtype, sizes, shape, fill, value):
    array = made(f"x={dtype}[{sizes}]:{fill}")
    np.testing.assert_array_equal(array, np.full(shape, value, dtype), strict=True)


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "bool"])
def test_arange(dtype):
    np.testing.assert_array_equal(
        made(f"x={dtype}[2,3]:arange"), np.array([[0, 1, 2], [3, 4, 5]], dtype), strict=True
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_random_fills_follow_the_seed(dtype):
    rng = np.random.default_rng(7)
    uniform, normal = rng.random((4, 5)).astype(dtype), rng.standard_normal(9).astype(dtype)
    same = np.random.default_rng(7)
    np.testing.assert_array_equal(
        parse_argument(f"x={dtype}[4,5]:rand").make(same), uniform, strict=True
    )
    np.testing.assert_array_equal(
        parse_argument(f"y={dtype}[9]:randn").make(same), normal, strict=True
    )
    assert (made(f"x={dtype}[50]:rand", 1) != made(f"x={dtype}[50]:rand", 2)).any()


@given(low=st.integers(-128, 126), width=st.integers(1, 255), seed=st.integers(0, 2**32))
def test_randint_keeps_its_limits(low, width, seed):
    high = min(low + width, 128)
    array = made(f"x=int8[500]:randint({low},{high})", seed)
    assert array.dtype == np.int8 and low <= array.min() and array.max() < high
    if high - low < 5:
        assert set(array) == set(range(low, high))  # all values come up in 500


@pytest.mark.parametrize(
    "text, value",
    [
        ("x=float32[3]:full(nan)", math.nan),
        ("x=float64[3]:full(-inf)", -math.inf),
        ("x=float32[3]:full(0.25)", 0.25),
        ("x=int8[3]:full(-128)", -128),
        ("x=uint64[3]:full(18446744073709551615)", 2**64 - 1),
        ("x=int32[3]:full(2.0)", 2),
    ],
)
def test_full(text, value):
    np.testing.assert_array_equal(made(text), [value] * 3)


@pytest.mark.parametrize(
    "text, kind",
    [
        ("y=float32[4]:empty", Out),
        ("y=float32[4]:empty:out", Out),
        ("y=float32[4]:out", Out),
        ("y=float32[4]:rand:out", Out),
        ("y=float32[4]:zeros:inout", InOut),
        ("y=float32[4]:full(3):inout", InOut),
        ("y=float32[4]:rand", np.ndarray),
    ],
)
def test_roles(text, kind):
    value = made(text)
    assert type(value) is kind
    array = value if kind is np.ndarray else value.array
    assert array.shape == (4,) and array.dtype == np.float32


@pytest.mark.parametrize("role, kind", [("", np.ndarray), (":inout", InOut), (":out", Out)])
def test_files(tmp_path, role, kind):
    path = tmp_path / "a:b=c.npy"
    saved = np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3))
    np.save(path, saved)
    value = made(f"x=@{path}{role}")
    assert type(value) is kind
    array = value if kind is np.ndarray else value.array
    np.testing.assert_array_equal(array, saved, strict=True)
    assert array.flags.c_contiguous


# ---- bad arguments --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, words",
    [
        ("n", "NAME=VALUE"),
        ("=3", "NAME=VALUE"),
        ("3n=3", "NAME=VALUE"),
        ("n=", "(column 3)"),
        ("n=many", "a number, or an array"),
        ("n=1000:rand", "DTYPE[SIZES]:FILL"),
        ("x=float32[10:rand", "(column 3)"),
        ("x=float32]10[:rand", "DTYPE[SIZES]:FILL"),
        ("x=floot32[10]:rand", "did you mean 'float32'"),
        ("x=float[10]:rand", "did you mean"),
        ("x=float32[]:rand", "(column 11): expected sizes"),
        ("x=float32[4,-8]:rand", "(column 13)"),
        ("x=float32[4,k]:rand", "(column 13)"),
        ("x=float32[1e3]:rand", "whole numbers"),
        ("x=float32[10]", "a fill of rand, randn"),
        ("x=float32[10]:", "a fill of rand, randn"),
        ("x=float32[10]:inout", "a fill of rand, randn"),
        ("x=float32[10]rand", "after ']'"),
        ("x=float32[10]:zeroes", "'zeros'"),
        ("x=float32[10]:zeros:inuot", "'inout'"),
        ("x=float32[10]:zeros:inuot", "(column 21)"),
        ("x=float32[10]:zeros:inout:out", "after ']'"),
        ("x=float32[10]:empty:inout", "zeros:inout"),
        ("x=float32[10]:full", "full(V)"),
        ("x=float32[10]:full()", "full(V)"),
        ("x=float32[10]:full(1,2)", "full(V)"),
        ("x=float32[10]:full(a)", "full(V)"),
        ("x=float32[10]:rand(3)", "expected rand"),
        ("x=int32[10]:randint(3)", "randint(LOW,HIGH)"),
        ("x=int32[10]:randint(3,3)", "LOW below"),
        ("x=int32[10]:randint(0,2.5)", "whole numbers"),
        ("x=int32[10]:rand", "randint(LOW,HIGH)"),
        ("x=bool[10]:randn", "a float dtype"),
        ("x=uint8[10]:full(256)", "from 0 to 255"),
        ("x=uint8[10]:full(-1)", "from 0 to 255"),
        ("x=uint8[10]:randint(0,257)", "from 0 to 255"),
        ("x=int32[10]:full(0.5)", "whole numbers"),
        ("x=int32[10]:full(nan)", "whole numbers"),
        ("x=int32[10]:full(inf)", "whole numbers"),
        ("x=uint8[257]:arange", "got 256"),
        ("x=float32[2000000,2000000]:zeros", "at most 4 GiB"),
    ],
)
def test_bad_arguments(text, words):
    with pytest.raises(ArgumentError) as error:
        parse_argument(text)
    assert words in str(error.value) and text in str(error.value)
    assert str(error.value).startswith(f"check-kernel: --arg {text}")


def test_uint8_holds_what_it_can():
    assert made("x=uint8[256]:arange").max() == 255
    assert made("x=uint8[9]:randint(255,256)").min() == 255


@pytest.mark.parametrize(
    "content, words", [(None, "no such file"), (b"", "numpy.save"), (b"no array", "numpy.save")]
)
def test_bad_files(tmp_path, content, words):
    path = tmp_path / "x.npy"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ArgumentError, match=re.escape(words)) as error:
        made(f"x=@{path}")
    assert str(path) in str(error.value)


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([1j]), np.array([{}], dtype=object)])
def test_files_of_other_dtypes(tmp_path, array):
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(ArgumentError, match=r"--arg x=@.*x\.npy"):
        made(f"x=@{tmp_path / 'x.npy'}")


def test_files_of_several_arrays(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.ones(3), b=np.ones(3))
    with pytest.raises(ArgumentError, match=r"one array of .*several arrays"):
        made(f"x=@{tmp_path / 'x.npz'}")


# ---- launches -------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 2**31), min_size=1, max_size=3), st.sampled_from("x,"))
def test_grids(extents, separator):
    assert parse_grid(separator.join(map(str, extents))) == tuple(extents)


@pytest.mark.parametrize("text", ["", "x", "4x", "1x2x3x4", "-1", "4*2", "1.5", "4k"])
def test_bad_grids(text):
    with pytest.raises(ArgumentError, match=r"--block: expected one to three whole numbers"):
        parse_grid(text, "--block")


def test_a_whole_launch():
    launch = parse_launch(
        "--kernel 'scale<float, 2>' --grid 4x2 --block 16,16 --shared 1024 --seed 9 "
        "--define TILE=16 --define DEBUG --define 'SUM=a + b' --arg n=3 --arg x=float32[2]:ones"
    )
    assert (launch.kernel, launch.grid, launch.block) == ("scale<float, 2>", (4, 2), (16, 16))
    assert (launch.shared, launch.seed) == (1024, 9)
    assert launch.defines == {"TILE": "16", "DEBUG": "1", "SUM": "a + b"}
    assert [argument.name for argument in launch.arguments] == ["n", "x"]


@pytest.mark.parametrize(
    "text, words",
    [
        ("--block 1", "--grid"),
        ("--grid 1", "--block"),
        ("--grid a --block 1", "--grid"),
        ("--grid 1 --block 1 --shared -4", "--shared"),
        ("--grid 1 --block 1 --seed x", "--seed"),
        ("--grid 1 --block 1 --define 3=4", "--define"),
        ("--grid 1 --block 1 --blok 3", "--blok"),
        ("--grid 1 --block 1 --arg n", "--arg n"),
        ("--grid 1 --block 1 more", "more"),
    ],
)
def test_bad_launches(text, words):
    with pytest.raises(ArgumentError, match=words):
        parse_launch(text)


@pytest.fixture
def scale(tmp_path):
    path = tmp_path / "scale.cu"
    path.write_text(SCALE)
    return path


ARGUMENTS = "--arg alpha=2 --arg n=100 --arg y=float32[100]:empty --arg x=float32[100]:rand"


def values_of(path, text):
    launch = parse_launch(f"--grid 1 --block 128 {text}")
    return launch.values(launch.open(path).signature)


def test_values_stand_in_the_kernels_order(scale):
    x, y, alpha, n = values_of(scale, ARGUMENTS)
    np.testing.assert_array_equal(x, np.random.default_rng(0).random(100).astype(np.float32))
    assert isinstance(y, Out) and (alpha, n) == (2, 100)


def test_a_seed_repeats_the_values(scale):
    first, again = (values_of(scale, f"{ARGUMENTS} --seed 3")[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (first != values_of(scale, f"{ARGUMENTS} --seed 4")[0]).any()


@pytest.mark.parametrize(
    "text, problem",
    [
        ("--arg alpha=2 --arg n=100 --arg x=float32[100]:rand", "missing y"),
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


def test_missing_arguments_come_with_an_example_that_parses(scale):
    with pytest.raises(ArgumentError) as error:
        values_of(scale, "")
    example = str(error.value).partition("Way out: ")[2]
    assert len(values_of(scale, example)) == 4


def test_the_only_kernel_of_a_file_needs_no_name(scale):
    assert parse_launch("--grid 1 --block 1").open(scale).name == "scale"


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
        parse_launch("--grid 1 --block 1").open(scale)
    assert parse_launch("--kernel scale --grid 1 --block 1").open(scale).signature.function


def test_files_without_a_kernel(scale, tmp_path):
    scale.write_text("int x;")
    with pytest.raises(ArgumentError, match="no kernel"):
        parse_launch("--grid 1 --block 1").open(scale)
    with pytest.raises(KernelCompileError, match=r"absent\.cu"):
        parse_launch("--grid 1 --block 1").open(tmp_path / "absent.cu")


def test_check_hands_the_launch_to_the_kernel(scale, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "tinygraph.cuda.check_spec.Kernel.check",
        lambda kernel, *args, **options: calls.append((kernel.name, args, options)),
    )
    parse_launch(f"--grid 2 --block 64 --shared 8 {ARGUMENTS}").check(scale, profile=True)
    [(name, (grid, block, _x, y, alpha, n), options)] = calls
    assert (name, grid, block, alpha, n) == ("scale", (2,), (64,), 2, 100)
    assert isinstance(y, Out) and options == {"shared": 8, "profile": True}
