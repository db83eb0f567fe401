"""What a kernel sees on the emulator: the set of overloads, the headers, the assertions."""

import math
import re

import numpy as np
import pytest

from tinygraph.base.errors import KernelCompileError, KernelLaunchError
from tinygraph.cuda import Kernel, nvrtc
from tinygraph.cuda.reading.source import Source

# ---- the set of overloads is NVRTC's -----------------------------------------------------------

TYPES = """
template <typename A, typename B> struct same { static const bool is = false; };
template <typename A> struct same<A, A> { static const bool is = true; };
__global__ void types(int* y, int i, unsigned u, float f, double d, long long ll) {
    long l = i; unsigned long ul = u; unsigned long long ull = u; short s = 1;
"""
CHECKS = """
float exp(f); double exp(d); float pow(f,i); double pow(d,i); float rsqrt(f); double rsqrt(d);
float fmax(f,f); double max(f,d); double min(d,f); float max(f,f); unsigned min(i,u);
unsigned max(u,i); long max(l,l); unsigned long max(ul,l); long long max(ll,ll);
unsigned long long min(ull,ll); int max(s,s); int abs(i); long abs(l); long long abs(ll);
float abs(f); double abs(d); int abs(s); int isnan(f); int isinf(d); int signbit(f); long lrint(f);
long long llrint(d); long lround(f); int ilogb(d); float ldexp(f,i); float normcdf(f);
double sinpi(d); float sinpif(f); float exp10f(f); float __saturatef(f); float fdividef(f,f);
unsigned __sad(i,i,u); unsigned __usad(u,u,u); int __mulhi(i,i); unsigned __brev(u);
unsigned long long __brevll(ull); unsigned __byte_perm(u,u,u); unsigned __funnelshift_lc(u,u,u);
int __hadd(i,i); int __double2hiint(d); double __hiloint2double(i,i); int __float2int_rn(f);
unsigned __float2uint_ru(f); long long __double2ll_rd(d); unsigned long long __float2ull_rz(f);
float __ull2float_rn(ull); float __double2float_rz(d); float __int2float_rd(i);
float __fadd_rd(f,f); float __fsqrt_rz(f); float __fmaf_ru(f,f,f); double __ddiv_ru(d,d);
double __uint2double_rn(u); long long clock64(); int __ffsll(ll); int __popcll(ull);
int atomicAdd(&i,i); unsigned atomicAdd(&u,u); unsigned long long atomicAdd(&ull,ull);
float atomicAdd(&f,f); double atomicAdd(&d,d); float atomicExch(&f,f); long long atomicMin(&ll,ll);
unsigned long long atomicMax(&ull,ull); int atomicSub(&i,i); unsigned atomicInc(&u,u);
int atomicCAS_block(&i,i,i); unsigned long long atomicCAS_system(&ull,ull,ull);
float __ldg(&f); double __ldcs(&d); float atomicAdd_block(&f,f); int atomicXor_system(&i,i);
"""


def test_result_types_are_those_of_nvrtc():
    checks = re.findall(r"([\w ]+?) (\w+\(.*?\));", CHECKS)
    assert len(checks) == CHECKS.count(";")
    text = (
        TYPES
        + "\n".join(
            f'static_assert(same<{kind.strip()}, decltype({call})>::is, "{call}");'
            for kind, call in checks
        )
        + "\ny[0] = 1; }"
    )
    nvrtc.compile(Source.read(text), ["types"], "sm_90")
    y = np.zeros(1, np.int32)
    Kernel(text, "types")(1, 1, y, 0, 0, 0.0, 0.0, 0)
    assert y[0] == 1


@pytest.mark.parametrize(
    "call",
    ["sqrt(2)", "max(1.0f, 2)", "pow(2, 2)", "fmax(1.0f, 2.0)", "atomicAdd(y, 1.0)", "abs(1u)"],
)
def test_what_nvrtc_refuses_does_not_compile_here(call):
    text = f"__global__ void wrong(unsigned short* y) {{ y[0] = {call}; }}"
    with pytest.raises(KernelCompileError):
        nvrtc.compile(Source.read(text), ["wrong"], "sm_90")
    with pytest.raises(KernelCompileError):
        Kernel(text, "wrong")(1, 1, np.zeros(1, np.uint16))


# ---- headers and assertions --------------------------------------------------------------------


def test_the_headers_that_kernels_include():
    names = [
        "cuda_runtime.h",
        "cuda_runtime_api.h",
        "device_launch_parameters.h",
        "stdint.h",
        "math_constants.h",
        "vector_types.h",
        "vector_functions.h",
        "math.h",
        "cmath",
        "assert.h",
        "cassert",
        "float.h",
        "cfloat",
        "limits.h",
        "climits",
        "cstdint",
        "stddef.h",
        "cstddef",
        "cstdio",
    ]
    text = "".join(f"#include <{name}>\n" for name in names)
    text += """__global__ void headers(float* y) {
        uint8_t byte = 255; size_t bytes = sizeof(uint64_t);
        y[0] = CUDART_PI_F; y[1] = CUDART_INF_F; y[2] = FLT_MAX; y[3] = byte + (float)bytes;
        y[4] = INT_MAX; y[5] = fmaxf(expf(0), 0.5f); }"""
    y = np.zeros(6, np.float32)
    Kernel(text, "headers")(1, 1, y)
    expected = [math.pi, np.inf, np.finfo("f4").max, 263, 2**31, 1]
    assert np.array_equal(y, np.array(expected, np.float32))


@pytest.mark.parametrize(
    ("statement", "words"), [("assert(x[0] < 3);", "x[0] < 3"), ("__trap();", "trap")]
)
def test_assert_and_trap_stop_the_launch_and_name_the_line(statement, words):
    kernel = Kernel(
        f"__global__ void stops(const float* x, float* y) {{\n {statement}\n y[0] = 1; }}", "stops"
    )
    y = np.zeros(1, np.float32)
    with pytest.raises(KernelLaunchError, match=re.escape(words)) as caught:
        kernel(1, 1, np.full(1, 3, np.float32), y)
    assert ":2" in str(caught.value) or "line 2" in str(caught.value)
    assert y[0] == 0


def test_an_assertion_that_holds_costs_nothing():
    kernel = Kernel(
        "__global__ void holds(const float* x, float* y) { assert(x[0] == 3); "
        "__builtin_assume(x[0] > 0); y[0] = clock64() > 0; __nanosleep(10); }",
        "holds",
    )
    y = np.zeros(1, np.float32)
    kernel(1, 1, np.full(1, 3, np.float32), y)
    assert y[0] == 1


def test_ndebug_before_the_header_turns_assertions_off():
    kernel = Kernel(
        "#define NDEBUG\n#include <cassert>\n"
        "__global__ void off(float* y) { assert(y[0] > 0); y[0] = 1; }",
        "off",
    )
    y = np.zeros(1, np.float32)
    kernel(1, 1, y)
    assert y[0] == 1
