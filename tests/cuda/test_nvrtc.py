"""Compiling without a GPU: resources, spills, errors with their line, the cache, no NVRTC."""

import ctypes
import re

import pytest

from tinygraph.base.errors import ArgumentError, KernelCompileError
from tinygraph.cuda import nvrtc
from tinygraph.cuda.nvrtc import compiling, library
from tinygraph.cuda.nvrtc.compiling import ARCHITECTURES, resources
from tinygraph.cuda.reading.source import Source

REVERSE = """
template <typename T>
__global__ void __launch_bounds__(BLOCK) reverse(const T* x, T* y)
{
    __shared__ T tile[BLOCK];
    tile[threadIdx.x] = x[blockIdx.x * BLOCK + threadIdx.x];
    __syncthreads();
    y[blockIdx.x * BLOCK + threadIdx.x] = tile[BLOCK - 1 - threadIdx.x];
}
"""

# 64 values that are all alive at once, in a block that leaves a thread 32 registers.
SPILLING = """
__global__ void __launch_bounds__(1024, 2) wide(const float* x, float* y, int rounds)
{
    float v[64];
    #pragma unroll
    for (int i = 0; i < 64; ++i) v[i] = x[threadIdx.x + 1024 * i];
    for (int r = 0; r < rounds; ++r) {
        #pragma unroll
        for (int i = 0; i < 64; ++i) v[i] = v[i] * v[(i + 7) % 64] + v[(i * 5 + 3) % 64];
    }
    #pragma unroll
    for (int i = 0; i < 64; ++i) y[threadIdx.x + 1024 * i] = v[i];
}
"""

STACK = """
__global__ void picked(const float* x, float* y, int n)
{
    float v[32];  // indexed by a number only known at run time: local memory, but no spill
    for (int i = 0; i < 32; ++i) v[i] = x[i];
    for (int i = 0; i < n; ++i) v[(i * n) % 32] += v[(i * 7 + n) % 32];
    y[threadIdx.x] = v[threadIdx.x % 32];
}
"""


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    """Nothing was compiled before."""
    monkeypatch.setenv("TINYGRAPH_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("dtype, size", [("float", 4), ("double", 8)])
def test_resources_of_a_kernel(arch, dtype, size):
    found = resources(Source.read(REVERSE, {"BLOCK": 192}), f"reverse<{dtype}>", arch)
    assert found.arch == arch
    assert found.shared == 192 * size
    assert found.spills == found.spill_stores == found.spill_loads == found.stack == 0
    assert 4 <= found.registers <= 32
    assert found.threads == found.max_threads == 192  # __launch_bounds__
    assert found.occupancy.active_warps == found.occupancy.active_blocks * 6
    assert 0.5 < found.occupancy.share <= 1


def test_without_launch_bounds_the_usual_block():
    found = resources(Source.read(STACK), "picked", "sm_90")
    assert (found.threads, found.max_threads) == (256, 1024)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_spill_is_seen(arch):
    found = resources(Source.read(SPILLING), "wide", arch)
    assert found.spill_stores > 0 and found.spill_loads > 0
    assert found.spills == found.spill_stores + found.spill_loads
    assert found.registers <= 64  # 65536 registers for at least 1024 threads


def test_stack_is_no_spill():
    found = resources(Source.read(STACK), "picked", "sm_80")
    assert found.stack == 32 * 4 and found.spills == 0


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_constant_memory(arch):
    text = "__constant__ float weights[500];\n" + STACK.replace("v[i] = x[i]", "v[i] = weights[i]")
    plain = resources(Source.read(STACK), "picked", arch).constant
    assert plain < 100
    assert 2000 <= resources(Source.read(text), "picked", arch).constant < 2100


def test_the_kernel_asked_for_among_several():
    source = Source.read(SPILLING + STACK)
    assert resources(source, "picked", "sm_90").spills == 0
    assert resources(source, "wide", "sm_90").spills > 0


def test_extern_c_namespaces_and_template_values():
    text = """
    extern "C" __global__ void plain(int* x) { *x = 1; }
    namespace ops { template <int N, bool UP> __global__ void many(int* x) {
        __shared__ int s[N]; s[threadIdx.x] = UP; __syncthreads(); x[threadIdx.x] = s[N - 1]; } }
    """
    assert resources(Source.read(text), "plain", "sm_80").spills == 0
    assert nvrtc.compile(Source.read(text), ["plain"], "sm_80")[0].symbol == "plain"
    assert resources(Source.read(text), "ops::many<48, true>", "sm_80").shared == 192


def test_include_files_are_found_beside_the_source_and_in_the_package(tmp_path):
    (tmp_path / "two.cuh").write_text("#define TWO 2\n")
    path = tmp_path / "k.cu"
    path.write_text(
        '#include "two.cuh"\n#include "prelude.cuh"\n'
        "__global__ void k(float* x) { *x = TWO * INFINITY; }\n"
    )
    assert resources(Source.read(path), "k", "sm_90").spills == 0


def test_cubins_are_machine_code_for_the_architecture():
    for arch in ("sm_75", "sm_120"):
        (made,) = nvrtc.compile(Source.read(STACK), ["picked"], arch)
        assert made.cubin.startswith(b"\x7fELF") and f"for '{arch}'" in made.log


def test_cudas_own_headers_are_found_beside_nvrtc(tmp_path, monkeypatch):
    """In a toolkit, in the wheels for CUDA 13, and in those for CUDA 12: a folder for each."""
    text = "#include <cuda_special.h>\n__global__ void k(float* x) { *x = SPECIAL; }"
    for at, (lib, include) in enumerate(
        [
            ("cuda/lib64", "cuda/include"),
            ("nvidia/cu13/lib", "nvidia/cu13/include"),
            ("nvidia/cuda_nvrtc/lib", "nvidia/cuda_runtime/include"),
        ]
    ):
        root = tmp_path / str(at)
        (root / include).mkdir(parents=True)
        (root / include / "cuda_special.h").write_text(f"#define SPECIAL {at}.0f\n")
        monkeypatch.setattr(library.library(), "_name", str(root / lib / "libnvrtc.so.13"))
        assert nvrtc.resources(Source.read(f"{text} // {at}"), "k", "sm_90").spills == 0
    monkeypatch.setattr(library.library(), "_name", "libnvrtc.so.13")
    with pytest.raises(KernelCompileError, match="cuda_special"):
        nvrtc.resources(Source.read(text), "k", "sm_90")


# ---- errors ---------------------------------------------------------------------------------


def test_compile_errors_show_file_line_and_source_line(tmp_path):
    path = tmp_path / "broken.cu"
    path.write_text("// one\n__global__ void k(float* x)\n{\n    x[0] = missing;\n}\n")
    with pytest.raises(KernelCompileError) as error:
        resources(Source.read(path), "k", "sm_90")
    message = str(error.value)
    assert "broken.cu:4" in message
    assert "x[0] = missing;" in message and 'identifier "missing" is undefined' in message


def test_a_kernel_that_the_file_does_not_have():
    with pytest.raises(KernelCompileError, match="nothing"):
        resources(Source.read(STACK), "nothing", "sm_90")


def test_a_failure_is_not_kept(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text("__global__ void k(float* x) { *x = one; }\n")
    with pytest.raises(KernelCompileError):
        resources(Source.read(path), "k", "sm_90")
    path.write_text("#define one 1\n" + path.read_text())
    assert resources(Source.read(path), "k", "sm_90").spills == 0


def test_too_much_static_shared_memory():
    text = (
        "__global__ void k(float* x) { __shared__ float s[20000]; s[threadIdx.x] = *x; "
        "__syncthreads(); *x = s[19999 - threadIdx.x]; }"
    )
    with pytest.raises(KernelCompileError, match=r"too much shared data"):
        resources(Source.read(text), "k", "sm_90")


def test_unknown_architectures():
    with pytest.raises(ArgumentError, match=r"sm_91.*did you mean 'sm_90'|sm_91.*sm_120"):
        resources(Source.read(STACK), "picked", "sm_91")


def test_a_function_without_a_word_is_the_devices():
    """So are the calls of a generic lambda, which NVRTC 13.0 takes for the host's otherwise."""
    text = """
    template <typename F> __device__ float called(F f) { return f(2.0f); }
    float twice(float x) { return x + x; }
    __global__ void both(float* y) { *y = twice(called([&](auto x) { return x * *y; })); }
    """
    assert resources(Source.read(text), "both", "sm_90").spills == 0


def test_an_architecture_that_this_nvrtc_does_not_know(monkeypatch):
    monkeypatch.setitem(nvrtc.MULTIPROCESSORS, "sm_30", nvrtc.MULTIPROCESSORS["sm_75"])
    with pytest.raises(KernelCompileError, match=r"sm_30.*pip install --upgrade nvidia-cuda-nvrtc"):
        nvrtc.compile(Source.read(STACK), ["picked"], "sm_30")


@pytest.fixture
def no_library(monkeypatch):
    library.library.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    library.library.cache_clear()


def test_without_nvrtc_the_message_names_the_package(no_library):
    no_library.setattr(library, "candidates", lambda: iter([]))
    with pytest.raises(KernelCompileError, match=r"pip install nvidia-cuda-nvrtc"):
        resources(Source.read(STACK), "picked", "sm_90")


def test_a_library_that_cannot_be_loaded_is_named(no_library, tmp_path):
    broken = tmp_path / "libnvrtc.so.13"
    broken.write_text("not a library")
    no_library.setattr(library, "candidates", lambda: iter([broken]))
    with pytest.raises(KernelCompileError, match=re.escape(str(broken))):
        nvrtc.version()


def test_the_builtins_beside_a_library_are_loaded_before_it(no_library, tmp_path):
    """The library of 13.0's wheel asks for them by name alone, and would not find them."""
    (tmp_path / "libnvrtc.so.13").write_text("loaded second")
    builtins = tmp_path / "libnvrtc-builtins.so.13.0"
    builtins.write_text("loaded first: the error is about this one")
    no_library.setattr(library, "candidates", lambda: iter([tmp_path / "libnvrtc.so.13"]))
    with pytest.raises(KernelCompileError, match=re.escape(str(builtins))):
        nvrtc.version()


def test_the_first_library_that_loads_is_taken(no_library, tmp_path):
    found = list(library.candidates())
    no_library.setattr(library, "candidates", lambda: iter([tmp_path / "absent.so", *found]))
    assert int(nvrtc.version().split(".")[0]) >= 12


# ---- cache ----------------------------------------------------------------------------------


def test_what_was_compiled_is_not_compiled_again(monkeypatch):
    runs = []
    compile_once = compiling._compile
    monkeypatch.setattr(compiling, "_compile", lambda *a: runs.append(a) or compile_once(*a))
    source = Source.read(REVERSE, {"BLOCK": 64})
    first = resources(source, "reverse<float>", "sm_80")
    assert resources(source, "reverse<float>", "sm_80") == first and len(runs) == 1
    resources(source, "reverse<double>", "sm_80")
    resources(source, "reverse<float>", "sm_90")
    resources(Source.read(REVERSE, {"BLOCK": 128}), "reverse<float>", "sm_80")
    resources(Source.read(REVERSE + "//", {"BLOCK": 64}), "reverse<float>", "sm_80")
    assert len(runs) == 5  # name, architecture, macros and text each make another program


@pytest.mark.parametrize("version, has_one", [("12.8", False), ("12.9", True), ("13.0", True)])
def test_a_cache_of_nvrtc_is_passed_by(monkeypatch, version, has_one):
    """What lies in it comes without the assembler's log; older versions do not know the option."""
    given = []

    class Library:
        def __getattr__(self, name):
            return getattr(library.library(), name)

        def nvrtcCompileProgram(self, program, count, options):
            given[:] = [option.decode() for option in options]
            known = [option.encode() for option in given if option != "--no-cache"]
            return library.library().nvrtcCompileProgram(
                program, len(known), (ctypes.c_char_p * len(known))(*known)
            )

    monkeypatch.setattr(compiling, "version", lambda: version)
    monkeypatch.setattr(compiling, "library", Library)
    compiling._compile(Source.read(REVERSE, {"BLOCK": 64}), ["reverse<float>"], "sm_90")
    assert ("--no-cache" in given) == has_one


def test_machine_code_knows_its_lines():
    """compute-sanitizer and profilers name the line of the source by them."""
    (compiled,) = nvrtc.compile(Source.read(REVERSE, {"BLOCK": 64}), ["reverse<float>"], "sm_90")
    assert b".debug_line" in compiled.cubin
