"""The loop that CUDA's guide gives for an atomic of one's own, and loops that only look like it.

Its first step is a plain read, which nothing orders.  It does no harm where the atomicCAS expects
what was read: then it fails if somebody has come in between.
"""

import numpy as np
import pytest

from tests.cuda.emulator.launching import assert_found, check
from tinygraph.cuda import InOut

RIGHT = {
    "a sum of floats": """
        int *bits = (int *)y, old = *bits, seen;
        do {
            seen = old;
            old = atomicCAS(bits, seen, __float_as_int(x[i] + __int_as_float(seen)));
        } while (seen != old);""",
    "a product of doubles": """
        unsigned long long *bits = (unsigned long long *)y, old = *bits, seen;
        do {
            seen = old;
            const double next = __longlong_as_double(seen) * (1 + x[i]);
            old = atomicCAS(bits, seen, (unsigned long long)__double_as_longlong(next));
        } while (seen != old);""",
    "read as a float, swapped as its bits": """
        float old = *y;
        while (old < x[i]) {
            const int seen = __float_as_int(old);
            old = __int_as_float(atomicCAS((int *)y, seen, __float_as_int(x[i])));
        }""",
    "most threads have nothing to do": """
        int old = *(int *)y;
        while (__int_as_float(old) < 5 - x[i]) {
            const int seen = old;
            old = atomicCAS((int *)y, seen, __float_as_int(5 - x[i]));
            if (old == seen) break;
        }""",
    "read anew in each round": """
        unsigned *count = (unsigned *)y, seen;
        do seen = *count;
        while (atomicCAS(count, seen, seen + 1) != seen);""",
    "another array is read in between": """
        int seen, *count = (int *)y;
        do {
            seen = *count;
            y[32 + i] = x[i] + x[63 - i];
        } while (atomicCAS(count, seen, seen + 1) != seen);""",
    "a half of a word": """
        unsigned short *low = (unsigned short *)y, seen;
        do seen = *low;
        while (atomicCAS(low, seen, (unsigned short)(seen + 1)) != seen);""",
    "with a fence in between": """
        int seen, *count = (int *)y;
        do {
            seen = *count;
            __threadfence();
        } while (atomicCAS(count, seen, seen + 1) != seen);""",
}

WRONG = {
    "it expects another value": """
        int *count = (int *)y, seen = *count; // <-
        atomicCAS(count, 0, seen + 1); // <-""",
    "it swaps another word": """
        int *count = (int *)y, seen = *count; // <-
        atomicCAS(count + 1, seen, seen + 1);
        atomicAdd(count, 1); // <-""",
    "a plain sum beside the loop": """
        int *count = (int *)y, seen = *count; // <-
        if (i == 40) *count = seen + 1; // <-
        else while (true) {
            const int old = atomicCAS(count, seen, seen + 1); // <-
            if (old == seen) break;
            seen = old;
        }""",
    "the result is stored by a plain write": """
        int *count = (int *)y, seen = *count, old; // <-
        while ((old = atomicCAS(count, seen, seen + 1)) != seen) seen = old; // <-
        *count = seen + 1; // <-""",
    "what others count is read, and no more": """
        int *count = (int *)y;
        if (i % 2) atomicCAS(count, i - 1, i); // <-
        else y[32 + i] = *count; // <-""",
    "a barrier lies in between": """
        int *count = (int *)y, seen = *count; // <-
        __syncthreads();
        atomicCAS(count, seen, seen + 1); // <-""",
    "only one thread swaps what it has read": """
        int *count = (int *)y, seen = *count; // <-
        if (i == 0) atomicCAS(count, seen, seen + 1);
        else if (i == 40) atomicExch(count, seen + 1); // <-""",
}


def report_of(lines):
    source = f"""__global__ void k(float* y, const float* x) {{
        const int i = blockIdx.x * blockDim.x + threadIdx.x;{lines}
    }}"""
    y = np.zeros(96, np.float32)
    return check(source, 2, 32, InOut(y), np.linspace(1, 2, 64, dtype=np.float32)), y, source


@pytest.mark.parametrize("name", RIGHT)
def test_a_loop_of_ones_own(name):
    report, y, _ = report_of(RIGHT[name])
    assert report.ok and not report.findings, report.text()
    if "count" in RIGHT[name]:
        assert y.view(np.int32)[0] == 64


@pytest.mark.parametrize("name", WRONG)
def test_what_only_looks_like_it(name):
    report, _, source = report_of(WRONG[name])
    assert_found(report, "race", source)


def test_a_sum_in_shared_memory():
    report, y, _ = report_of("""
        __shared__ int sum;
        if (threadIdx.x == 0) sum = 0;
        __syncthreads();
        int old = sum, seen;
        do old = atomicCAS(&sum, seen = old, old + 1);
        while (seen != old);
        __syncthreads();
        if (threadIdx.x == 0) y[blockIdx.x] = sum;""")
    assert not report.findings, report.text()
    assert y[:2].tolist() == [32, 32]


def test_many_threads_take_turns():
    """Each 256th atomic gives way to another thread: a read and its swap lie apart then."""
    report, y, _ = report_of("""
        int *count = (int *)y;
        for (int round = 0; round < 50; round++) {
            int old = *count, seen;
            do old = atomicCAS(count, seen = old, old + 1);
            while (seen != old);
        }""")
    assert not report.findings, report.text()
    assert y.view(np.int32)[0] == 50 * 64
