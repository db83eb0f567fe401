"""Counts of a profiled launch against values worked by hand.

A warp's load of 32 neighbouring floats is 128 bytes: 4 sectors of 32 bytes.  Shared memory has 32
banks of 4 bytes; 32 lanes on 32 banks are one wavefront.
"""

import numpy as np
import pytest

from tests.cuda.emulator.launching import check


def rows(report):
    """{(space, access): counts}: each kernel here has one load and one store of each space."""
    assert report.ok, report.text()
    found = {(row.space, row.access): row for row in report.lines}
    assert len(found) == len(report.lines), report.text()
    return found


# ---- sectors of a request ------------------------------------------------------------------------

SECTORS = {  # type, index that lane t of one warp reads: sectors, the least, share that was used
    "coalesced": ("float", "t", 4, 4),
    "backwards": ("float", "31 - t", 4, 4),
    "off by one element": ("float", "t + 1", 5, 4),
    "stride 2": ("float", "2 * t", 8, 4),
    "stride 8": ("float", "8 * t", 32, 4),
    "stride 32": ("float", "32 * t", 32, 4),
    "all the same": ("float", "5", 1, 1),
    "two by two": ("float", "t / 2", 2, 2),
    "double": ("double", "t", 8, 8),
    "double, stride 2": ("double", "2 * t", 16, 8),
    "bytes": ("unsigned char", "t", 1, 1),
    "bytes across an edge": ("unsigned char", "t + 16", 2, 1),
    "float4": ("float4", "t", 16, 16),
    "float4, stride 2": ("float4", "2 * t", 32, 16),
}
DTYPES = {"float": "f4", "double": "f8", "unsigned char": "u1", "float4": "f4"}


@pytest.mark.parametrize("name", SECTORS)
def test_sectors_of_a_load(name):
    ctype, index, sectors, least = SECTORS[name]
    field = ".x" if ctype == "float4" else ""
    source = f"""
    __global__ void reads(const {ctype}* x, float* y) {{
        int t = threadIdx.x;
        {ctype} v = x[{index}];
        y[t] = v{field};
    }}"""
    x = np.ones(1024, DTYPES[ctype])
    report = check(source, 1, 32, x, np.zeros(32, np.float32), profile=True)
    found = rows(report)
    load, store = found["global", "load"], found["global", "store"]
    assert (load.requests, load.sectors, load.least_sectors) == (1, sectors, least)
    assert load.coalescing == least / sectors and load.sectors_per_request == sectors
    assert (store.requests, store.sectors, store.size) == (1, 4, 4)
    assert report.bytes == 32 * (sectors + 4) and report.operations == 0
    assert load.size == {"float4": 16}.get(ctype, x.itemsize)
    assert load.text == f"{ctype} v = x[{index}];"


def test_lanes_that_are_absent_ask_for_nothing():
    """48 threads and a guard at 40: a full warp, and one of 8 lanes, which is one sector."""
    source = """
    __global__ void guarded(const float* x, float* y) {
        int t = threadIdx.x;
        if (t < 40) y[t] = x[t];
    }"""
    report = check(source, 1, 48, np.ones(40, np.float32), np.zeros(40, np.float32), profile=True)
    for row in rows(report).values():
        assert (row.requests, row.sectors, row.least_sectors) == (2, 5, 5)


def test_rounds_of_a_loop_and_blocks_add_up():
    source = """
    __global__ void loop(const float* x, float* y, int n) {
        float sum = 0;
        for (int i = threadIdx.x; i < n; i += 64) sum += x[i];
        y[blockIdx.x * 64 + threadIdx.x] = sum;
    }"""
    x, y = np.ones(640, np.float32), np.zeros(3 * 64, np.float32)
    report = check(source, 3, 64, x, y, 640, profile=True)
    found = rows(report)
    assert found["global", "load"].requests == 3 * 2 * 10
    assert found["global", "load"].sectors == 3 * 640 * 4 // 32
    assert found["global", "store"].requests == 3 * 2
    assert report.operations == 3 * 640
    assert report.intensity == 3 * 640 / (3 * 640 * 4 + 3 * 64 * 4)


def test_atomics_have_a_row_of_their_own():
    source = """
    __global__ void count(const int* x, int* y) { atomicAdd(&y[x[threadIdx.x]], 1); }"""
    x = np.arange(32, dtype=np.int32) // 16 * 8
    report = check(source, 1, 32, x, np.zeros(9, np.int32), profile=True)
    atomic = rows(report)["global", "atomic"]
    assert (atomic.requests, atomic.sectors, atomic.size) == (1, 2, 4)


# ---- banks ---------------------------------------------------------------------------------------

BANKS = {  # type, elements, index that lane t of one warp reads: wavefronts, the least
    "one bank each": ("float", 32, "t", 1, 1),
    "all one word": ("float", 32, "7", 1, 1),
    "stride 2": ("float", 64, "2 * t", 2, 1),
    "stride 3": ("float", 96, "3 * t", 1, 1),
    "stride 32": ("float", 1024, "32 * t", 32, 1),
    "stride 33": ("float", 1056, "33 * t", 1, 1),
    "stride 16": ("float", 512, "16 * t", 16, 1),
    "bytes of 8 words": ("unsigned char", 32, "t", 1, 1),
    "double": ("double", 32, "t", 2, 2),
    "double, stride 2": ("double", 64, "2 * t", 4, 2),
    "float4": ("float4", 32, "t", 4, 4),
}


@pytest.mark.parametrize("name", BANKS)
def test_wavefronts_of_a_shared_load(name):
    ctype, elements, index, wavefronts, least = BANKS[name]
    field = ".x" if ctype == "float4" else ""
    value = "make_float4(1, 1, 1, 1)" if field else "1"
    source = f"""
    __global__ void reads(float* y) {{
        __shared__ {ctype} s[{elements}];
        int t = threadIdx.x;
        for (int i = t; i < {elements}; i += 32) s[i] = {value};
        __syncthreads();
        {ctype} v = s[{index}];
        y[t] = v{field};
    }}"""
    report = check(source, 1, 32, np.zeros(32, np.float32), profile=True)
    load = rows(report)["shared", "load"]
    assert (load.requests, load.wavefronts, load.least_wavefronts) == (1, wavefronts, least)
    assert load.bank_conflict == wavefronts / least
    assert report.bytes == 128  # shared memory costs none


def test_lanes_that_come_late_stand_in_their_place():
    """A volatile access may give way to another lane: here lane 15, so that 16 comes before it.

    Their double words lie in different halves of a request, 16 on the banks of 0.
    """
    source = """
    __global__ void first(double* y) {
        __shared__ double s[32];
        volatile double* v = s;
        s[threadIdx.x] = threadIdx.x;
        for (int i = 0; i < 20; i++) {
            __syncthreads();
            if (threadIdx.x < 30) y[threadIdx.x] = v[threadIdx.x];
        }
    }"""
    report = check(source, 1, 32, np.zeros(32), profile=True)
    loads = [row for row in report.lines if (row.space, row.access) == ("shared", "load")]
    assert [(row.requests, row.wavefronts) for row in loads] == [(20, 40)]


@pytest.mark.parametrize(("width", "conflict"), [(32, 32), (33, 1)])
def test_transpose_through_a_tile(width, conflict):
    source = """
    __global__ void transpose(const float* x, float* y) {
        __shared__ float tile[32][WIDTH];
        for (int i = threadIdx.y; i < 32; i += 8) tile[i][threadIdx.x] = x[i * 32 + threadIdx.x];
        __syncthreads();
        for (int i = threadIdx.y; i < 32; i += 8) y[i * 32 + threadIdx.x] = tile[threadIdx.x][i];
    }""".replace("WIDTH", str(width))
    x, y = np.arange(1024, dtype=np.float32).reshape(32, 32), np.zeros((32, 32), np.float32)
    report = check(source, 1, (32, 8), x, y, profile=True)
    found = rows(report)
    assert (y == x.T).all()
    assert found["shared", "store"].bank_conflict == 1
    assert found["shared", "load"].bank_conflict == conflict
    assert found["global", "load"].coalescing == found["global", "store"].coalescing == 1
    assert report.bytes == 2 * x.nbytes


def test_a_naive_transpose_uses_an_eighth_of_what_it_fetches():
    source = """
    __global__ void naive(const float* x, float* y) {
        y[threadIdx.x * 32 + threadIdx.y] = x[threadIdx.y * 32 + threadIdx.x];
    }"""
    x = np.arange(1024, dtype=np.float32).reshape(32, 32)
    report = check(source, 1, (32, 32), x, np.zeros((32, 32), np.float32), profile=True)
    found = rows(report)
    assert found["global", "load"].coalescing == 1
    assert found["global", "store"].coalescing == 1 / 8
    assert report.bytes == x.nbytes + 8 * x.nbytes


# ---- operations ----------------------------------------------------------------------------------

OPERATIONS = {  # statement for each element; operations
    "saxpy": ("y[i] = a * x[i] + y[i];", 2),
    "fma": ("y[i] = fmaf(a, x[i], y[i]);", 2),
    "a quotient": ("y[i] = x[i] / (a + x[i]);", 2),
    "exp": ("y[i] = expf(x[i]);", 1),
    "exp of a sum": ("y[i] = expf(x[i] - a) * 0.5f;", 3),
    "root": ("y[i] = sqrtf(x[i] * x[i] + 1.0f);", 3),
    "nothing but a copy": ("y[i] = x[i];", 0),
    "integers": ("y[i] = x[i]; if (i * 7 % 5 == 9) y[i] = 1;", 0),
    "in double": ("y[i] = (double)x[i] * 0.1 - 0.2;", 2),
    "branch of a quarter": ("y[i] = 0; if (i % 4 == 0) y[i] = x[i] * a;", 0.25),
    "loop of ten": ("float s = 0; for (int k = 0; k < 10; k++) s = s * x[i] + a; y[i] = s;", 20),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_those_of_the_source(name):
    statement, each = OPERATIONS[name]
    source = f"""
    __global__ void k(const float* x, float* y, float a, int n) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) {{ {statement} }}
    }}"""
    n = 200
    x, y = np.ones(n, np.float32), np.ones(n, np.float32)
    report = check(source, 4, 64, x, y, 0.5, n, profile=True)
    assert report.ok and report.operations == each * n


def test_operations_of_a_matrix_product():
    source = """
    __global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
        int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= m || j >= n) return;
        float sum = 0;
        for (int p = 0; p < k; p++) sum += a[i * k + p] * b[p * n + j];
        c[i * n + j] = sum;
    }"""
    m, n, k = 5, 18, 7
    a, b, c = (np.ones(shape, np.float32) for shape in ((m, k), (k, n), (m, n)))
    report = check(source, (2, 1), (16, 8), a, b, c, m, n, k, profile=True)
    assert report.operations == 2 * m * n * k


def test_a_launch_without_profile_counts_nothing():
    source = "__global__ void one(float* y) { y[threadIdx.x] = 1; }"
    report = check(source, 1, 32, np.zeros(32, np.float32))
    assert (report.lines, report.bytes, report.operations, report.intensity) == ([], 0, 0, 0.0)
