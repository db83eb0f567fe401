"""Undefined values: received and thrown away they are no mistake, used they are.

Wrong kernels stand beside right ones.  Each launch has one block of 16 or 32 threads and a second,
partly filled warp where the text asks for one.
"""

import signal
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from tests.cuda.emulator.launching import assert_found, check, kernel
from tinygraph.cuda import InOut, Out
from tinygraph.cuda.emulator.compiler import find_follower

pytestmark = pytest.mark.skipif(find_follower() is None, reason="no clang at hand")

HELPERS = """
struct Best { float value; int at; };
struct Parts { float mean, m2; int n; };
union Bits { float f; unsigned u; };
__device__ void first_two(const float* x, float& a, float& b) { a = x[0]; b = x[1]; }
__device__ void only_first(const float* x, float& a, float& b) { a = x[0]; }
template <class T> __device__ T sum_of(unsigned mask, T v, int width)
{
    for (int o = width / 2; o > 0; o /= 2) v += __shfl_down_sync(mask, v, o, width);
    return v;
}
"""


def report_of(body, block=16):
    text = f"{HELPERS}__global__ void k(const float* x, float* y, int* z, int n) {{\n"
    text += "const int t = threadIdx.x, lane = t % 32; (void)lane;\n" + body + "\n}"
    x, y, z = np.arange(1, 65, dtype=np.float32), np.zeros(64, np.float32), np.zeros(8, np.int32)
    return check(text, 1, block, x, InOut(y), InOut(z), 16)


@contextmanager
def hail(number):
    """This thread gets a signal thousands of times in a second."""
    thread, stop = threading.get_ident(), threading.Event()

    def send():
        while not stop.wait(2e-5):
            signal.pthread_kill(thread, number)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        stop.set()
        sender.join()


def test_threads_that_give_way_at_any_moment_are_no_finding():
    """The watchdog makes long threads take turns, also between two steps of one store."""
    text = """__global__ void k(const float* x, float* y, int n) {
        float v; v = x[threadIdx.x];
        for (int i = threadIdx.x; i < n; i += 64) y[i] = v;
    }"""
    x, y = np.ones(64, np.float32), np.zeros(1 << 17, np.float32)
    with hail(signal.SIGURG):
        for _ in range(3):
            report = check(text, 1, 64, x, Out(y), y.size)
            assert report.ok, report.text()


@pytest.mark.parametrize("first", ["x", "y"])
def test_a_read_beyond_an_array_stays_that_when_values_are_followed(first):
    """Whatever the order in memory: the second launch must not find another array behind x."""
    text = """__global__ void k(const float* x, float* y, int n) {
        float v;
        v = 0;
        for (int i = 0; i < n; i++) v += x[i * 64 + threadIdx.x];
        y[threadIdx.x] = v;
    }"""
    both = np.ones(2 << 12, np.float32)
    x, y = both[: 1 << 12], both[1 << 12 :]
    if first == "y":
        x, y = y, x
    report = check(text, 1, 64, x, Out(y), 128)
    assert {f.kind for f in report.findings} == {"out-of-bounds"}, report.text()


WRONG_LOCALS = {
    "float sum; for (int i = 0; i < 4; i++) sum += x[i]; y[t] = sum;": "stored",
    "float best; if (x[t] > 100) best = x[t]; y[t] = best;": "stored",
    "int at; for (int i = 0; i < 4; i++) if (x[i] > 9) at = i; if (!t) y[at & 3] = 1;": "decides",
    "bool found; if (x[t] < 0) found = true; if (found) y[t] = 1;": "decides",
    "float a[4]; a[0] = a[1] = a[2] = 1; y[t] = a[0] + a[3];": "stored",
    "float a[4]; for (int i = 0; i < 3; i++) a[i] = 1; if (a[n / 5] > 0) y[t] = 1;": "decides",
    "Best b; b.value = x[t]; y[t] = b.value; if (t == 0) z[0] = b.at;": "stored",
    "float4 v; v.x = v.y = v.z = 0; *(float4*)(y + 4 * t) = v;": "stored",
    "float a, b; only_first(x, a, b); y[t] = a + b;": "stored",
    "Bits b; y[t] = b.f;": "stored",
    "int left; while (left > 0) left--; y[t] = 1;": "decides",
    "float v; __shared__ float s[32]; s[t] = v; __syncthreads(); y[t] = s[t ^ 1];": "stored",
    "int v; if (t == 0) v = 1; int w = __shfl_sync(0xffffu, v, t / 2); y[t] = w;": "stored",
    "int v; if (t > 99) v = 1; if (__any_sync(0xffffu, v)) y[t] = 1;": "decides",
    "int v; if (n > 99) v = 1; atomicAdd(&z[0], v);": "atomic",
    "float v; auto twice = [&] { return 2 * v; }; y[t] = twice();": "stored",
    "float v; y[t] = sqrtf(v);": "stored",
    "float v; y[t] = n > 3 ? v : 0;": "stored",
    # Through functions of the C library, whose inside nobody follows.
    "float v; y[t] = tanhf(v);": "stored",
    "double v; y[t] = erf(v) + 1;": "stored",
    "float v; if (powf(x[t], v) > 1) y[t] = 1;": "decides",
    "int v; y[t] = __expf(v) * __logf(x[t]);": "stored",
    "float v; if (lrintf(v) == 3) y[t] = 1;": "decides",
}


@pytest.mark.second
@pytest.mark.parametrize("body", WRONG_LOCALS)
def test_an_uninitialised_local_that_is_used(body):
    report = report_of(body)
    assert {f.kind for f in report.findings} == {"uninitialized"}, report.text()
    assert {f.line for f in report.findings} == {14}
    assert all("the local variable" in f.message for f in report.findings)
    assert any(WRONG_LOCALS[body] in f.message for f in report.findings)


@pytest.mark.second
@pytest.mark.parametrize(
    "body",
    [
        "float sum; sum = 0; for (int i = 0; i < 4; i++) sum += x[i]; y[t] = sum;",
        "float best; if (t >= 0) best = x[t]; y[t] = best;",
        "float a[4]; for (int i = 0; i < 4; i++) a[i] = i; y[t] = a[n & 3];",
        "float a[8]; a[3] = x[t]; y[t] = a[3];",
        "float v; float w = v; (void)w; y[t] = 1;",
        "float v; float w = tanhf(v); (void)w; y[t] = tanhf(x[t]) + powf(x[t], 2);",
        "float v; v = expf(x[t] / 99); if (lrintf(v) == 3) y[t] = erff(v);",
        "float a[2], b[2]; a[0] = 1; b[0] = a[0], b[1] = a[1]; y[t] = b[0];",
        "Best b; b.value = 1; Best c = b; y[t] = c.value;",
        "Parts p; p.n = 1; p.mean = x[t]; p.m2 = 0; Parts q = p; y[t] = q.mean + q.m2;",
        "float a, b; first_two(x, a, b); y[t] = a + b;",
        "float a, b; only_first(x, a, b); y[t] = a;",
        "Bits b; b.f = x[t]; z[t & 7] += 0; y[t] = b.u >> 31;",
        "int e; y[t] = frexpf(x[t], &e); y[t] += e;",
        "float s, c; sincosf(x[t], &s, &c); y[t] = s * s + c * c;",
        "float whole; y[t] = modff(x[t], &whole) + whole;",
        'float v; asm volatile("" : "=x"(v)); y[t] = 1;',
        "int v; if (t < 4) v = t; if (t < 4 && v > 2) y[t] = 1;",
        "unsigned m; m = __ballot_sync(0xffffu, t & 1); y[t] = __popc(m);",
        "int old; old = atomicAdd(&z[0], 1); y[t] = old;",
        "float4 v; v = *(const float4*)(x + 4 * (t & 3)); y[t] = v.x + v.w;",
        "int i, j; for (i = 0, j = 9; i < j; i++, j--) y[t] = i;",
        "float v; switch (t & 1) { case 0: v = 1; break; default: v = 2; } y[t] = v;",
        "float v; if (t == 0) v = 7; v = __shfl_sync(0xffffu, v, 0); y[t] = v;",
        "__shared__ Parts s[16]; Parts p; p = {x[t], 0, 1}; s[t] = p; __syncthreads(); "
        "y[t] = s[t ^ 1].mean;",
        "char c; int i; c = 1; i = c; y[t] = i;",
        "double d; d = x[t]; y[t] = (float)__shfl_xor_sync(0xffffu, d, 1);",
        "int rest; z[t & 1] = remquof(x[t], 3, &rest) > 9; y[t] = rest;",
        "unsigned all; int same; all = __match_all_sync(0xffffu, 3, &same); y[t] = same + all;",
    ],
)
def test_an_uninitialised_local_that_is_not_used(body):
    report = report_of(body.replace("z[t & 7] += 0; ", "").replace("z[t & 1] = ", "y[t] = "))
    assert report.ok, report.text()


def test_of_two_sums_the_one_that_nobody_began_is_named():
    report = report_of("float a = 0, b;\nfor (int i = 0; i < 4; i++) a += x[i], b += x[i];\n"
                       "y[t] = a;\ny[t + 32] = b;")  # fmt: skip
    assert [(f.kind, f.line, f.array) for f in report.findings] == [("uninitialized", 17, "y")]


SUM = "float v = x[t]; for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync({}, v, o);\n"


@pytest.mark.second
@pytest.mark.parametrize(
    "body, block",
    [
        (SUM.format("0xffffffffu") + "if (lane == 0) y[t / 32] = v;", 32),
        ("y[t] = sum_of(0xffffu, x[t], 16);", 16),  # lanes beyond 0 get too much, not nothing
        ("float v = sum_of(0xffu, t < 8 ? x[t] : 0, 8); if (t == 0) y[0] = v;", 8),
        ("if (t < 12) { float v = x[t]; v += __shfl_down_sync(0xfffu, v, 4); "
         "if (t < 8) y[t] = v; }", 16),
        ("if (t < 12) { float v = __shfl_down_sync(0xfffu, x[t], 8); "
         "y[t] = t + 8 < 12 ? v : x[t]; }", 16),
        ("if (t < 12) { float v = __shfl_up_sync(0xffeu | 1u, x[t], 4); (void)v; y[t] = 1; }", 16),
        ("float v = __shfl_xor_sync(0xfffu, x[t], 8); if (t < 4) y[t] = v;", 12),
        ("double v = x[t]; v += __shfl_down_sync(0xfffu, v, 8); if (t < 4) y[t] = v;", 12),
        ("int w = __shfl_down_sync(0xfffu, t, 8); __shared__ int s[16]; s[t] = w; "
         "__syncthreads(); y[t] = s[t & 3];", 12),
    ],
)  # fmt: skip
def test_a_value_of_an_absent_lane_that_is_thrown_away(body, block):
    report = report_of(body, block)
    assert report.ok, report.text()


@pytest.mark.second
@pytest.mark.parametrize(
    "body, block, words",
    [
        (SUM.format("0xffffu") + "if (lane == 0) y[t / 32] = v;", 16, "stored"),
        (SUM.format("0xffffffffu") + "if (lane == 0) y[t / 32] = v;", 48, "stored"),
        ("float v = __shfl_down_sync(0xfffu, x[t], 8); y[t] = v;", 12, "stored"),
        ("float v = __shfl_down_sync(0xfffu, x[t], 8); if (v > 2) y[t] = 1;", 12, "decides"),
        ("int v = __shfl_down_sync(0xfffu, t, 8); if (t == 11) y[v & 15] = 1;", 12, "decides"),
        ("int v = __shfl_xor_sync(0xfffu, t, 8); atomicMax(&z[1], v);", 12, "atomic"),
        ("double v = __shfl_sync(0xfffu, (double)x[t], 13); y[t] = v;", 12, "stored"),
    ],
)
def test_a_value_of_an_absent_lane_that_is_used(body, block, words):
    report = report_of(body, block)
    assert {f.kind for f in report.findings} == {"warp-sync"}, report.text()
    finding = report.findings[0]
    assert finding.line == 14 and words in finding.message
    assert "which is not in the mask" in finding.message


def test_the_use_is_named_beside_the_shuffle():
    body = "float v = x[t];\nv += __shfl_down_sync(0xfffu, v, 8);\nfloat w = 2 * v;\ny[t] = w;"
    (finding,) = report_of(body, 12).findings
    assert finding.line == 15 and finding.array == "y"
    assert "and <source>:17: y[t] = w;" in finding.message


def test_the_arrays_hold_what_one_launch_left():
    text = "__global__ void k(float* y, int* z) { int v; v = 2; y[threadIdx.x] += v; z[0]++; }"
    y, z = np.ones(1, np.float32), np.zeros(1, np.int32)
    assert check(text, 1, 1, InOut(y), InOut(z)).ok
    assert y[0] == 3 and z[0] == 1


def test_blocks_that_hand_on_and_spin_are_followed_too():
    text = """
__global__ void k(const float* x, volatile float* sums, volatile int* flag, float* y) {
        float v;
        v = x[blockIdx.x];
        if (threadIdx.x == 0) {
            if (blockIdx.x > 0) { while (flag[blockIdx.x - 1] == 0) { } __threadfence(); }
            v += blockIdx.x > 0 ? sums[blockIdx.x - 1] : 0;
            sums[blockIdx.x] = v;
            __threadfence();
            flag[blockIdx.x] = 1;
        }
        __syncthreads();
        y[blockIdx.x * 32 + threadIdx.x] = sums[blockIdx.x];
    }"""
    x, sums, flag = np.ones(5, np.float32), np.zeros(5, np.float32), np.zeros(5, np.int32)
    report = check(text, 5, 32, x, InOut(sums), InOut(flag), Out(np.zeros(160, np.float32)))
    assert report.ok, report.text()
    np.testing.assert_array_equal(sums, np.arange(1, 6))


@pytest.mark.second
def test_a_launch_that_takes_too_long_to_follow_is_no_deadlock():
    """The first launch has ended; the second finds something before it gets slow."""
    text = """
__global__ void k(const float* x, float* y, int n) {
    float v;
    if (n < 0) v = 1;
    if (threadIdx.x == 0) y[0] = v; // <-
    __syncthreads();
    float sum = x[threadIdx.x];
    for (int i = 0; i < 1000 * n; i++) sum = sum * 0.5f + 1;
    y[1 + threadIdx.x] = sum;
}"""
    x, y = np.zeros(32, np.float32), np.zeros(33, np.float32)
    report = kernel(text).check(1, 32, x, InOut(y), 2000, timeout=0.5)
    assert_found(report, "uninitialized", text)
