"""Vector types and atomics on the emulator."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import tinygraph.cuda
from tinygraph.cuda import Kernel

HEADERS = Path(tinygraph.cuda.__file__).parent / "emulator" / "include"

# ---- vector types ------------------------------------------------------------------------------

# CUDA C++ Programming Guide, "Built-in Vector Types": (bytes, alignment) of the vectors of 1 to 4.
LAYOUTS = {
    "char": [(1, 1), (2, 2), (3, 1), (4, 4)],
    "uchar": [(1, 1), (2, 2), (3, 1), (4, 4)],
    "short": [(2, 2), (4, 4), (6, 2), (8, 8)],
    "ushort": [(2, 2), (4, 4), (6, 2), (8, 8)],
    "int": [(4, 4), (8, 8), (12, 4), (16, 16)],
    "uint": [(4, 4), (8, 8), (12, 4), (16, 16)],
    "long": [(8, 8), (16, 16), (24, 8), (32, 16)],
    "ulong": [(8, 8), (16, 16), (24, 8), (32, 16)],
    "longlong": [(8, 8), (16, 16), (24, 8), (32, 16)],
    "ulonglong": [(8, 8), (16, 16), (24, 8), (32, 16)],
    "float": [(4, 4), (8, 8), (12, 4), (16, 16)],
    "double": [(8, 8), (16, 16), (24, 8), (32, 16)],
}
VECTORS = {f"{name}{n + 1}": layout[n] for name, layout in LAYOUTS.items() for n in range(4)}


def test_sizes_and_alignments_are_those_of_cuda():
    rows = "".join(
        f"y[{2 * i}] = sizeof({v}); y[{2 * i + 1}] = alignof({v});\n" for i, v in enumerate(VECTORS)
    )
    y = np.zeros(2 * len(VECTORS), np.int32)
    Kernel(f"__global__ void layouts(int* y) {{ {rows} }}", "layouts")(1, 1, y)
    assert dict(zip(VECTORS, map(tuple, y.reshape(-1, 2).tolist()), strict=True)) == VECTORS


@pytest.mark.parametrize("name", LAYOUTS)
def test_vectors_are_made_copied_and_stored_whole(name):
    """make_*, braces of every length, copies through locals, arrays, shared memory, references."""
    kernel = Kernel(
        f"""
    struct Pair {{ {name}4 first; {name}2 second; }};
    __device__ {name}4 turned(const {name}4& v) {{ return make_{name}4(v.w, v.z, v.y, v.x); }}
    __global__ void vectors(double* y) {{
        __shared__ {name}4 tile[2];
        {name}1 a = make_{name}1(1); {name}2 b = {{2, 3}}; {name}3 c = {{4, 5, 6}};
        {name}4 d = {name}4{{7, 8, 9, 10}}, part = {{11}}, zero = {{}}, array[2] = {{{{12}}, d}};
        tile[1] = d;
        {name}4 copy = tile[1], later;
        later = turned(copy);
        Pair pair = {{later, b}}, same = pair;
        double all[] = {{(double)a.x, (double)b.x, (double)b.y, (double)c.x, (double)c.y,
            (double)c.z, (double)copy.x, (double)copy.y, (double)copy.z, (double)copy.w,
            (double)part.x, (double)part.w, (double)zero.x, (double)zero.w, (double)array[0].x,
            (double)array[1].w, (double)same.first.x, (double)same.first.w,
            (double)same.second.y}};
        for (int i = 0; i < 19; i++) y[i] = all[i]; }}""",
        "vectors",
    )
    y = np.zeros(19)
    kernel(1, 1, y)
    assert y.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 0, 0, 12, 10, 10, 7, 3]


def test_vectors_in_unions_and_constant_tables_and_dim3():
    kernel = Kernel(
        """
    __constant__ float4 table[2] = {{1, 2, 3, 4}, {5, 6}};
    union Bits { float4 vector; float element[4]; unsigned bits[4]; };
    __global__ void mixed(const float* x, float* y) {
        Bits bits;
        bits.vector = *reinterpret_cast<const float4*>(x);
        for (int i = 0; i < 4; i++) y[i] = bits.element[i] + table[1].y;
        y[4] = bits.bits[0] == __float_as_uint(x[0]);
        dim3 block = blockDim, one(7), two(3, 4);
        uint3 thread = threadIdx;
        y[5] = block.x * 100 + block.y * 10 + thread.x;
        y[6] = one.x * one.y * one.z + two.x * two.y * two.z; }""",
        "mixed",
    )
    x, y = np.arange(4, dtype=np.float32), np.zeros(7, np.float32)
    kernel(1, 1, x, y)
    assert y.tolist() == [6, 7, 8, 9, 1, 110, 19]


COMPILERS = {
    "g++": ["g++"],
    "clang++": ["clang++"],
    "ziglang": [sys.executable, "-m", "ziglang", "c++"],
}
COPIED = {f"{n}{k}": b for n in LAYOUTS for k, (b, _) in zip("24", LAYOUTS[n][1::2], strict=True)}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("target", ["native", "aarch64-linux-gnu"])
def test_a_vector_is_one_access_in_check_builds(compiler, target, tmp_path):
    """Loading two members of a vector, and storing a vector, calls one hook of its full width."""
    command = COMPILERS[compiler]
    if shutil.which(command[0]) is None or (compiler == "ziglang" and not find_spec("ziglang")):
        pytest.skip(f"{compiler} is not installed")
    if target != "native":
        if compiler == "g++":
            pytest.skip("g++ compiles for its own machine only")
        command = [*command, "-target", target]
    ends = {"2": ("value.x + value.y", "1, 2"), "4": ("value.x + value.w", "1, 2, 3, 4")}
    functions = "".join(
        f"""
        extern "C" double load_{v}(const {v}* p, int i) {{ {v} value = p[i]; return {used}; }}
        extern "C" void store_{v}({v}* p, int i) {{ p[i] = make_{v}({elements}); }}
        """
        for v in COPIED
        for used, elements in [ends[v[-1]]]
    )
    source = tmp_path / "hooks.cpp"
    source.write_text('#include "vector_types.h"\n' + functions)
    subprocess.run(
        [
            *command,
            "-std=c++17",
            "-O1",
            "-fno-inline",
            "-fsanitize=thread",
            "-S",
            "-DTINYGRAPH_CHECK",
            f"-I{HEADERS}",
            str(source),
            "-o",
            str(tmp_path / "hooks.s"),
        ],
        check=True,
        capture_output=True,
    )
    hooks: dict[str, list[str]] = {}
    name = ""
    for line in (tmp_path / "hooks.s").read_text().splitlines():
        word = line.split(":")[0]
        if word.startswith(("load_", "store_")):
            name = word
        for kind in ("read", "write"):
            if f"__tsan_{kind}" in line and any(c in line for c in ("call", "jmp", "bl\t")):
                hook = line.split("__tsan_")[1].split("@")[0].strip()
                hooks.setdefault(name, []).append(hook)
    for vector, size in COPIED.items():
        times, width = (2, 16) if size == 32 else (1, size)
        loads = [h for h in hooks[f"load_{vector}"] if h.startswith("read")]
        stores = [h for h in hooks[f"store_{vector}"] if h.startswith("write")]
        assert loads == [f"read{width}"] * times, vector
        assert stores == [f"write{width}"] * times, vector


# ---- atomics -----------------------------------------------------------------------------------

BLOCKS, THREADS = 32, 128
TOTAL = BLOCKS * THREADS


@pytest.mark.parametrize("scope", ["", "_block", "_system"])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("int", np.int32),
        ("unsigned int", np.uint32),
        ("unsigned long long", np.uint64),
        ("float", np.float32),
        ("double", np.float64),
    ],
)
def test_atomic_add_loses_nothing_and_gives_each_old_value_once(kind, dtype, scope):
    kernel = Kernel(
        f"""__global__ void count({kind}* sum, int* seen) {{
        {kind} old = atomicAdd{scope}(sum, ({kind})1);
        atomicAdd(&seen[(int)old], 1); }}""",
        "count",
    )
    total, seen = np.zeros(1, dtype), np.zeros(TOTAL, np.int32)
    kernel(BLOCKS, THREADS, total, seen)
    assert total[0] == TOTAL
    assert (seen == 1).all()


OPERATIONS = {  # function: start, result of applying it to 0 .. TOTAL-1 in any order
    "Sub": (5, 5 - TOTAL * (TOTAL - 1) // 2),
    "Min": (77, 0),
    "Max": (77, TOTAL - 1),
    "And": (-1, 0),
    "Or": (0, TOTAL - 1),
    "Xor": (9, 9),
}


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("int", np.int32),
        ("unsigned int", np.uint32),
        ("long long", np.int64),
        ("unsigned long long", np.uint64),
    ],
)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_atomic_operations_under_contention(operation, kind, dtype):
    if operation == "Sub" and "long" in kind:
        pytest.skip("atomicSub has 32 bits in CUDA")
    start, expected = OPERATIONS[operation]
    kernel = Kernel(
        f"""__global__ void apply({kind}* y) {{
        {kind} i = blockIdx.x * blockDim.x + threadIdx.x;
        atomic{operation}(&y[0], i); atomic{operation}_block(&y[1], i);
        atomic{operation}_system(&y[2], i); }}""",
        "apply",
    )
    y = np.array([start] * 3).astype(dtype)
    kernel(BLOCKS, THREADS, y)
    assert (y == np.array(expected).astype(dtype)).all()


def test_counters_that_wrap_and_exchanges():
    kernel = Kernel(
        """__global__ void wrap(unsigned* up, unsigned* down, float* last, int* sum) {
        atomicInc(up, 9); atomicDec(down, 9);
        float mine = blockIdx.x * blockDim.x + threadIdx.x + 1;
        atomicAdd(sum, (int)atomicExch(last, mine)); }""",
        "wrap",
    )
    up, down = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    last, total = np.zeros(1, np.float32), np.zeros(1, np.int32)
    kernel(BLOCKS, THREADS, up, down, last, total)
    assert (up[0], down[0]) == (TOTAL % 10, -TOTAL % 10)
    # Every value is exchanged in and out once, but for the one that stays.
    assert total[0] + int(last[0]) == TOTAL * (TOTAL + 1) // 2


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("int", np.int32),
        ("unsigned int", np.uint32),
        ("unsigned long long", np.uint64),
        ("unsigned short", np.uint16),
    ],
)
def test_compare_and_swap_builds_any_atomic(kind, dtype):
    """A product modulo a prime by compare-and-swap; a neighbour in the same word stays."""
    kernel = Kernel(
        f"""__global__ void multiply({kind}* y) {{
        {kind} old = y[0], expected;
        do {{ expected = old;
             old = atomicCAS(y, expected, ({kind})(expected * 3 % 65521)); }}
        while (old != expected); }}""",
        "multiply",
    )
    y = np.array([1, 4321], dtype)
    kernel(BLOCKS, THREADS, y)
    assert y.tolist() == [pow(3, TOTAL, 65521), 4321]
