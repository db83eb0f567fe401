"""The emulator on arm64: cross-compiled with the wheel `ziglang`, run under qemu-user.

    pip install ziglang
    apt install qemu-user libc6-arm64-cross     (Debian, Ubuntu)

Without qemu everything is still compiled, and the runs are skipped.
"""

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tinygraph.cuda.emulator import compiler, native
from tinygraph.cuda.emulator.lines import Lines
from tinygraph.cuda.emulator.operations import FLAGS, add_table
from tinygraph.cuda.emulator.translate import translate
from tinygraph.cuda.reading.source import Source

SYSTEM = Path("/usr/aarch64-linux-gnu")  # where libc6-arm64-cross puts the C library
QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
CAN_RUN = QEMU and (SYSTEM / "lib/ld-linux-aarch64.so.1").exists()
NO_QEMU = "compiled for arm64, not run: apt install qemu-user libc6-arm64-cross"
DRIVER = Path(__file__).with_name("arm64_driver.c")
FOR_ARM64 = ["-target", "aarch64-linux-gnu.2.31"]

pytestmark = [
    pytest.mark.second,
    pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed"),
]

# Barriers at two depths of calls, shuffles, votes, an atomic, doubles, 64-bit numbers.
RIGHT = """
__device__ float total(float v) {
    __shared__ float part[96];
    part[threadIdx.x] = v;
    __syncthreads();
    for (int n = 96; n > 3; n /= 2) {
        if (threadIdx.x < n / 2) part[threadIdx.x] += part[threadIdx.x + n / 2];
        __syncthreads();
    }
    float sum = part[0] + part[1] + part[2];
    __syncthreads();
    return sum;
}
__global__ void right(float* y, int n) {
    __shared__ int count;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) count = 0;
    float sum = total(threadIdx.x) + total(1);
    for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(0xffffffff, (float)threadIdx.x, k);
    unsigned even = __ballot_sync(0xffffffff, threadIdx.x % 2 == 0);
    atomicAdd(&count, __popc(even) / 8);
    __syncthreads();
    double fine = sqrt((double)i) * exp(-0.01 * i);
    long long big = (1ll << 40) * (threadIdx.x + 1) >> 38;
    if (i < n) y[i] = sum + count + (float)fine + (float)big;
}"""
WRONG = {  # body; number of the finding's kind in check.c; its line
    "race": (
        "__shared__ float s[96];\ns[threadIdx.x] = 1;\n"
        "if (threadIdx.x > 0) y[threadIdx.x] = s[0];\nelse y[0] = 1;",
        4,
        (2, 3),
    ),
    "bounds": ("y[threadIdx.x + 1] = 1;\nif (threadIdx.x == 0) y[0] = 1;", 5, (1,)),
    "divergence": (
        "if (threadIdx.x < 32) {\n__syncthreads();\n} else {\n__syncthreads();\n}\n"
        "y[threadIdx.x] = 1;",
        1,
        (2, 4),
    ),
    "unwritten": ("if (threadIdx.x != 7) y[threadIdx.x] = 1;", 7, ()),
    "endless": ("while (*(volatile float*)y == 0) {}", 10, (1,)),
}
FAULTS = {  # body; number of the failure's kind in runtime.h; words
    "pointer": ("y[(1 << 28) + threadIdx.x] = 1;", 1, "belongs to no array"),
    "stack": (
        "volatile float a[90000]; for (int i = 0; i < 90000; i += n) a[i] = i; y[0] = a[n];",
        2,
        "local variables",
    ),
    "endless": ("while (*(volatile float*)y == 0) {}", 4, "not done after 2"),
    "trap": ("if (threadIdx.x == 5) __trap();", 7, "__trap"),
}


def zig(*arguments):
    command = [sys.executable, "-m", "ziglang", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the run time for arm64."""
    folder = tmp_path_factory.mktemp("arm64")
    zig(
        "cc",
        *FOR_ARM64,
        "-std=gnu11",
        "-O2",
        "-g1",
        "-fPIC",
        "-shared",
        "-pthread",
        "-ftls-model=initial-exec",
        *sorted(compiler.RUNTIME.glob("*.c")),
        "-o",
        folder / "libruntime.so",
    )
    return folder


def built(folder, text, name, how):
    """The program that launches a kernel, and the kernel's library."""
    source = Source.read(text)
    unit = folder / f"{name}-{how}.cpp"
    unit.write_text(native._unit(source, translate(source), [name], "fast"))
    flags = [*compiler._COMMON, *compiler._FAMILY["clang"]]
    if how == "fast":
        flags += [flag for flag in compiler._FAST if not flag.startswith("-m")]
    else:
        flags += [*compiler._CHECKED, *compiler._CHECKED_BY_FAMILY["clang"]]
    library, part = folder / f"lib{name}-{how}.so", unit.with_suffix(".o")
    if how == "profiled":
        assembly = unit.with_suffix(".s")
        zig("c++", *FOR_ARM64, *flags, *FLAGS["clang"], "-S", unit, "-o", assembly)
        assembly.write_text(add_table(assembly.read_text()))
        zig("c++", *FOR_ARM64, "-c", assembly, "-o", part)
    else:
        zig("c++", *FOR_ARM64, *flags, "-c", unit, "-o", part)
    libraries = [folder / "libruntime.so", "-Wl,-rpath," + str(folder)]
    # As C, since nothing of the C++ library is used: zig would build it, which takes minutes.
    zig("cc", *FOR_ARM64, "-shared", part, *libraries, "-o", library)
    program = folder / f"{name}-{how}"
    zig("cc", *FOR_ARM64, f"-I{compiler.RUNTIME}", DRIVER, library, *libraries, "-o", program)
    return program, library


def told(program, *arguments):
    """What the program prints, and the array."""
    if not CAN_RUN:
        pytest.skip(NO_QEMU)
    done = subprocess.run(
        [QEMU, "-L", SYSTEM, program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}{done.stderr}"
    text, _, numbers = done.stdout.rpartition("y ")
    return text, np.array(numbers.split(), np.float32)


def expected(n):
    """What `right` writes with blocks of 96 threads."""
    i = np.arange(n)
    t = i % 96
    sum_of_shuffles = sum((t ^ k) for k in (16, 8, 4, 2, 1))
    return 96 * 95 / 2 + 96 + sum_of_shuffles + 192 + np.sqrt(i) * np.exp(-0.01 * i) + 4 * (t + 1)


@pytest.mark.parametrize("how", ["fast", "checked"])
def test_a_right_kernel(folder, how):
    program, _ = built(folder, RIGHT, "right", how)
    text, y = told(program, how, 40 if how == "fast" else 2, 96, 190)
    assert text == ""
    np.testing.assert_allclose(y, expected(190), rtol=1e-6)


def test_operations_are_counted(folder):
    source = "__global__ void flops(float* y, int n) { y[threadIdx.x] = 3.f * n + expf(n) / n; }"
    program, _ = built(folder, source, "flops", "profiled")
    text, _ = told(program, "profiled", 1, 40, 40)
    assert text == f"operations {40 * 4}\n"


def kernels(table):
    """One source with a kernel whose first argument picks the body: compiled once for all."""
    bodies = "".join(
        f"__device__ __noinline__ void {name}(float* y, int n) {{\n{body}\n}}\n"
        for name, (body, *_) in table.items()
    )
    cases = "".join(f"case {200 + i}: {name}(y, n); break;\n" for i, name in enumerate(table))
    return f"{bodies}__global__ void any(float* y, int n) {{\nswitch (n) {{\n{cases}}}\n}}"


def line_of(text, name, line):
    """The number of a body's line in the source of all."""
    before = text[: text.index(f"__device__ __noinline__ void {name}(")]
    return before.count("\n") + 1 + line


def test_wrong_kernels_are_found_at_their_lines(folder):
    source = kernels(WRONG)
    program, library = built(folder, source, "any", "checked")
    lines = Lines(library)
    for number, (name, (_, kind, places)) in enumerate(WRONG.items()):
        text, _ = told(
            program, "checked", 1, 96 if name != "bounds" else 200 + number, 200 + number
        )
        found = re.findall(r"^finding (\d+) line (\d+) pc (\d+)", text, re.MULTILINE)
        kinds = {int(k) for k, _, _ in found}
        assert kind in kinds, (name, text)
        named = [
            (int(line) or (lines.find(int(pc)) or ("", 0))[1])
            for k, line, pc in found
            if int(k) == kind
        ]
        if places:
            assert named[0] in {line_of(source, name, line) for line in places}, (name, text)


def test_faults_end_the_launch_and_not_the_program(folder):
    program, _ = built(folder, kernels(FAULTS), "any", "fast")
    for number, (name, (_, kind, words)) in enumerate(FAULTS.items()):
        text, _ = told(program, "fast", 1, 40, 200 + number)
        assert text.startswith(f"failure {kind} ") and words in text, (name, text)
