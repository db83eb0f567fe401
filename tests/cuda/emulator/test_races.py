"""The checker on races: who may touch which byte without a barrier, and who may not.

Wrong kernels stand beside right ones that differ in one thing.  `// <-` marks lines that a finding
may name: a race has two ends.
"""

import numpy as np
import pytest

from tests.cuda.emulator.launching import assert_found, check, marked
from tinygraph.cuda import InOut


def body(lines, arrays="", declarations=""):
    """A kernel of one or several blocks around some lines; `t` is the thread."""
    text = "\n".join(line.strip() for line in lines.strip().splitlines())
    return (
        f"{declarations}\n__global__ void k(int* y, const int* x, unsigned char* b{arrays}) {{\n"
        f"const int t = threadIdx.x;\n{text}\n}}"
    )


def report_of(source, grid=1, block=64):
    y, x, b = np.zeros(512, np.int32), np.ones(512, np.int32), np.zeros(512, np.uint8)
    return check(source, grid, block, InOut(y), x, InOut(b))


# ---- within a block ------------------------------------------------------------------------------


@pytest.mark.parametrize(("between", "barrier"), [("", False), ("__syncthreads();", True)])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("s[t] = x[t];", "y[t] = s[63 - t];"),  # read after write
        ("y[t] = s[63 - t];", "s[t] = x[t];"),  # write after read
        ("if (t == 5) s[0] = 1;", "if (t == 40) s[0] = 2;"),  # write after write, two warps
        ("if (t == 5) s[0] = 1;", "if (t == 6) s[0] = 2;"),  # one warp
        ("if (t == 5) s[0] = 1;", "if (t == 6) y[0] = s[0];"),
        ("if (t == 63) s[0] = 1;", "if (t == 0) y[0] = s[0];"),  # against the order of execution
        ("y[t] = s[5];", "if (t == 20) s[5] = 1;"),  # many readers
        ("s[t] += 1;", "s[(t + 1) % 64] += 1;"),
    ],
    ids=["raw", "war", "waw", "waw-warp", "raw-warp", "against", "readers", "update"],
)
@pytest.mark.parametrize("memory", ["shared", "global"])
def test_a_barrier_orders_a_block(first, second, between, barrier, memory):
    source = body(f"""
        __shared__ int s[64];
        s[t] = t;
        __syncthreads();
        {first} // <-
        {between}
        {second} // <-
    """)
    if memory == "global":
        source = source.replace("__shared__ int s[64];", "int* s = y + 256;")
    report = report_of(source)
    if barrier:
        assert report.ok, report.text()
        return
    assert_found(report, "race", source)
    finding = next(f for f in report.findings if f.kind == "race")
    assert finding.array == ("s" if memory == "shared" else "y")
    assert ("shared memory" in finding.message) == (memory == "shared")


def test_all_threads_write_one_element():
    """Two writes of the same line, also of the same value."""
    source = body("""
        if (t < 64) y[7] = 1; // <-
    """)
    report = report_of(source)
    assert_found(report, "race", source)
    assert "both threads at this line" in report.findings[0].message
    assert report.findings[0].index == 7


SAME_VALUE = {  # what the 64 threads of both blocks do to y: do they always write the same?
    "a flag": ("y[7] = 1; // <-", True),
    "a flag in two places": ("if (t % 2) y[7] = 5; // <-\nelse y[7] = 5; // <-", True),
    "a byte": ("b[3] = x[t]; // <-", True),
    "a vector": ("((int4*)y)[1] = make_int4(1, 2, 3, 4); // <-", True),
    "a number": ("y[7] = t; // <-", False),
    "mostly the same": ("y[7] = t / 63; // <-", False),
    "the same in one of two elements": ("y[7] = 1; y[8 + t % 2] = 1; y[20] = t; // <-", False),
    "a sum that all read": ("y[7] = y[7] | 1; // <-", False),
    "a part of a vector": (
        "if (t == 0) ((int4*)y)[1] = make_int4(1, 2, 3, 4); // <-\nif (t == 40) y[5] = 3; // <-",
        False,
    ),
    "there and back": ("y[7] = t; y[7] = 1; // <-", False),
    "read before it": ("if (t == 5) b[9] = y[7]; // <-\ny[7] = 1; // <-", False),
}


@pytest.mark.parametrize("name", SAME_VALUE)
def test_a_race_of_equal_values_is_told_as_such(name):
    statement, same = SAME_VALUE[name]
    source = body(statement)
    report = report_of(source, grid=2)
    assert_found(report, "race", source)
    assert all(f.same_value for f in report.findings) == same, report.text()
    for finding in report.findings:
        assert ("both write the same value" in finding.message) == finding.same_value


def test_who_wrote_last_is_told_by_its_kind():
    """The words are those of the earlier access, also where a third one came in between."""
    source = body("""
        y[t % 32] = 0; // <-
        for (int i = 0; i < 10; i++) y[t % 32] += x[t + i]; // <-
    """)
    report = report_of(source)
    assert_found(report, "race", source)
    assert not any("after an atomic" in f.message for f in report.findings), report.text()
    assert any("read after a write" in f.message for f in report.findings)
    source = body("""
        if (t == 40) atomicAdd(y, 1); // <-
        if (t == 50) y[0] = 0; // <-
        if (t == 60) b[0] = y[0]; // <-
    """)
    told = " ".join(f.message for f in report_of(source).findings)
    assert "write after an atomic" in told and "read after a write" in told


def test_a_barrier_of_an_earlier_round_does_not_order_this_one():
    wrong = body("""
        __shared__ int s[64];
        for (int r = 0; r < 3; r++) {
            s[t] = x[t] + r; // <-
            __syncthreads();
            y[t] = s[63 - t]; // <-
        }
    """)
    assert_found(report_of(wrong), "race", wrong)
    right = wrong.replace("63 - t];", "63 - t]; __syncthreads();")
    assert report_of(right).ok


def test_threads_read_together():
    assert report_of(body("y[t] = x[0] + x[t] + x[63 - t];")).ok


def test_private_arrays_race_with_nobody():
    source = body("""
        int own[16];
        for (int i = 0; i < 16; i++) own[(i * t) % 16] = i;
        __syncthreads();
        y[t] = own[0] + own[t % 16];
    """).replace("int own[16];", "int own[16] = {};")
    assert report_of(source).ok


# ---- bytes and words -----------------------------------------------------------------------------

BYTES = {  # statement that all 64 threads execute: does it race?
    "neighbouring bytes": ("s[t] = t;", False),
    "neighbouring shorts": ("((short*)s)[t] = t;", False),
    "the same byte of two": ("s[t / 2] = t;", True),
    "the same short of two": ("((short*)s)[t / 2] = t;", True),
    "the last byte of a word, and the word": (
        "if (t == 0) s[7] = 1; if (t == 1) ((int*)s)[1] = 2;",
        True,
    ),
    "the byte after a word": ("if (t == 0) s[8] = 1; if (t == 1) ((int*)s)[1] = 2;", False),
    "a word, then a byte of it": ("if (t == 0) ((int*)s)[1] = 2; if (t == 1) y[0] = s[4];", True),
    "halves of a word": ("if (t == 0) ((short*)s)[2] = 2; if (t == 1) ((short*)s)[3] = 1;", False),
    "a half and a byte of it": ("if (t == 0) ((short*)s)[2] = 2; if (t == 1) s[5] = 1;", True),
    "a half and a byte beside it": ("if (t == 0) ((short*)s)[2] = 2; if (t == 1) s[6] = 1;", False),
    "eight bytes and the word behind": (
        "if (t == 0) ((long long*)s)[1] = 2; if (t == 1) ((int*)s)[4] = 1;",
        False,
    ),
    "eight bytes and their second word": (
        "if (t == 0) ((long long*)s)[1] = 2; if (t == 1) ((int*)s)[3] = 1;",
        True,
    ),
    "a vector and a byte of its end": (
        "if (t == 0) ((int4*)s)[1] = make_int4(1, 2, 3, 4); if (t == 1) s[31] = 1;",
        True,
    ),
    "vectors side by side": ("if (t < 8) ((int4*)s)[t] = make_int4(t, t, t, t);", False),
    "part, whole, part": (
        "if (t == 0) s[4] = 1; if (t == 0) ((int*)s)[1] = 3; if (t == 9) s[6] = 1;",
        True,
    ),
    "reads of bytes beside writes of others": ("if (t % 2) s[t] = t; else y[t] = s[t];", False),
}


@pytest.mark.parametrize("memory", ["shared", "global"])
@pytest.mark.parametrize("name", BYTES)
def test_races_are_told_by_the_byte(name, memory):
    statement, races = BYTES[name]
    where = "__shared__ __align__(16) unsigned char s[128];"
    source = body(f"""
        {where if memory == "shared" else "unsigned char* s = b;"}
        s[t] = 0; s[t + 64] = 0;
        __syncthreads();
        {statement} // <-
    """)
    report = report_of(source)
    if races:
        assert_found(report, "race", source)
    else:
        assert report.ok, report.text()


# ---- between blocks ------------------------------------------------------------------------------

BLOCKS = {
    "each its own element": ("y[blockIdx.x] = x[0];", True),
    "neighbouring bytes": ("b[blockIdx.x] = 1;", True),
    "all the same element": ("y[0] = blockIdx.x; // <-", False),
    "one writes, another reads": (
        "if (blockIdx.x == 0) y[5] = 1; // <-\nif (blockIdx.x == 2) y[9] = y[5]; // <-",
        False,
    ),
    "one reads, a later one writes": (
        "if (blockIdx.x == 0) y[9] = y[5]; // <-\nif (blockIdx.x == 2) y[5] = 1; // <-",
        False,
    ),
    "a barrier is for one block only": (
        "if (blockIdx.x == 0) y[5] = 1; // <-\n__syncthreads();\n"
        "if (blockIdx.x == 1) y[9] = y[5]; // <-",
        False,
    ),
    "a sum without an atomic": ("y[0] += x[blockIdx.x]; // <-", False),
    "a sum by atomics": ("atomicAdd(&y[0], x[blockIdx.x]);", True),
    "shared memory is not the same": ("__shared__ int s; s = blockIdx.x; y[blockIdx.x] = s;", True),
    "an atomic and a plain read": (
        "atomicAdd(&y[0], 1); // <-\nif (blockIdx.x == 3) y[1] = y[0]; // <-",
        False,
    ),
    "the last one that counts sets the counter back": (
        "__threadfence(); if (atomicAdd(&y[0], 1) == gridDim.x - 1) y[0] = 0;",
        True,
    ),
    "a counter that is set back, without a fence": (
        "if (atomicAdd(&y[0], 1) == gridDim.x - 1) y[0] = 0; // <-",
        False,
    ),
    "what was written behind the fence": (
        "__threadfence(); y[5 + blockIdx.x] = 1; // <-\n"
        "if (atomicAdd(&y[0], 1) == gridDim.x - 1) y[20] = y[5]; // <-",
        False,
    ),
    "many readers and a late writer": (
        "int v = y[5]; // <-\nif (blockIdx.x == 3) y[5] = v + 1; // <-\ny[10 + blockIdx.x] = v;",
        False,
    ),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_nothing_orders_two_blocks(name):
    statement, right = BLOCKS[name]
    source = body(statement)
    report = report_of(source, grid=4, block=1)
    if right:
        assert report.ok, report.text()
    else:
        assert_found(report, "race", source)
        assert "of block (" in report.findings[0].message


# ---- atomics -------------------------------------------------------------------------------------

ATOMICS = {
    "atomics of all kinds on one word": (
        "atomicAdd(p, 1); atomicMax(p, t); atomicExch(p, 3); atomicCAS(p, 3, t);",
        True,
    ),
    "atomic and plain write": ("if (t == 1) atomicAdd(p, 1); if (t == 2) p[0] = 1;", False),
    "plain write, then atomic": ("if (t == 1) p[0] = 1; if (t == 2) atomicAdd(p, 1);", False),
    "atomic and plain read": ("if (t == 1) atomicAdd(p, 1); if (t == 2) p[1] = p[0];", False),
    "plain read, then atomic": ("if (t == 1) p[1] = p[0]; if (t == 2) atomicAdd(p, 1);", False),
    "a barrier between": (
        "if (t == 0) p[0] = 5; __syncthreads(); atomicAdd(p, 1); __syncthreads(); p[t + 1] = p[0];",
        True,
    ),
    "atomic and volatile read": ("atomicAdd(p, 1); if (t == 3) p[1] = *(volatile int*)p;", True),
    "volatile writes of two threads": ("if (t < 2) *(volatile int*)p = 1;", False),
    "atomics on neighbours": ("atomicAdd(p + t, 1); p[t + 64] = 1;", True),
    "a wide atomic and half of it": (
        "if (t == 1) atomicAdd((unsigned long long*)p, 1ull); if (t == 2) p[1] = 1;",
        False,
    ),
}


@pytest.mark.parametrize("memory", ["shared", "global"])
@pytest.mark.parametrize("name", ATOMICS)
def test_atomics_race_with_plain_accesses_only(name, memory):
    statement, right = ATOMICS[name]
    prologue = "__shared__ __align__(8) int s[512]; for (int i = t; i < 512; i += 64) s[i] = 0;"
    pointer = "int* p = s;" if memory == "shared" else "int* p = y;"
    source = body(f"{prologue} {pointer}\n__syncthreads();\n{statement} // <-")
    report = report_of(source)
    if right:
        assert report.ok, report.text()
    else:
        assert_found(report, "race", source)


# ---- what is told --------------------------------------------------------------------------------


def test_the_words_of_a_race():
    source = body("""
        __shared__ int pile[64];
        pile[t] = 0;
        __syncthreads();
        pile[t] = x[t]; // <-
        y[t] = pile[63 - t]; // <-
    """)
    report = report_of(source)
    (finding,) = report.findings
    assert (finding.kind, finding.array) == ("race", "pile")
    assert finding.text in ("pile[t] = x[t]; // <-", "y[t] = pile[63 - t]; // <-")
    assert finding.line in marked(source) and finding.block == (0, 0, 0)
    (x, *rest), index = finding.thread, finding.index
    assert rest == [0, 0] and index in (x, 63 - x)
    for words in (
        "k, block (0, 0, 0) thread",
        f"pile[{index}]",
        "race on shared memory",
        "nothing orders the two",
        "of the same block",
        "pile[t] = x[t];",
        "y[t] = pile[63 - t];",
        "Usual cause: a missing __syncthreads()",
    ):
        assert words in finding.message


def test_the_verdict_does_not_depend_on_the_order_of_execution():
    """A race is found although the numbers are right, in whichever order the threads come."""
    for expression in ("t + 1 < 64 ? t + 1 : 0", "t > 0 ? t - 1 : 63", "t ^ 1", "t ^ 32"):
        source = body(f"""
            __shared__ int s[64];
            s[t] = 1; // <-
            y[t] = s[{expression}]; // <-
        """)
        report = report_of(source)
        assert "race" in {f.kind for f in report.findings}, report.text()


def test_three_dimensional_blocks_and_grids_are_named_in_full():
    source = """
    __global__ void deep(int* y) {
        int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        bool me = t == 23 && blockIdx.x == 1 && blockIdx.y == 2 && blockIdx.z == 1;
        if (t == 5 && blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0) y[11] = 1; // <-
        if (me) y[11] = 2; // <-
    }"""
    y = np.zeros((5, 3), np.int32)
    report = check(source, (2, 3, 2), (2, 3, 4), InOut(y))
    assert_found(report, "race", source)
    (finding,) = report.findings
    assert finding.block == (1, 2, 1) and finding.thread == (1, 2, 3)
    assert "y[11] (element [3, 2])" in finding.message
    assert "thread (1,2,0) of block (0,0,0)" in finding.message


def test_one_mistake_is_told_once():
    """All threads of all blocks make it, in every round of a loop."""
    source = body("""
        for (int i = 0; i < 5; i++)
            y[i] = t; // <-
    """)
    report = report_of(source, grid=3)
    assert len(report.findings) == 1
    two = body("""
        y[0] = t; // <-
        y[1] = t; // <-
    """)
    assert len(report_of(two).findings) == 2


def test_a_race_in_a_helper_names_the_helper_and_its_caller():
    source = body(
        """
        bump(y); // called
    """,
        declarations="__device__ void bump(int* p) { p[3] = p[3] + 1; }",
    )
    report = report_of(source)
    assert {f.kind for f in report.findings} == {"race"}
    assert all(f.line == 1 for f in report.findings)
    assert any(
        "called from" in f.message and "bump(y); // called" in f.message for f in report.findings
    )


def test_two_buffers_need_one_barrier_a_round():
    source = body("""
        __shared__ int s[2][64];
        s[0][t] = x[t];
        for (int r = 0; r < 20; r++) {
            __syncthreads();
            s[1 - r % 2][t] = s[r % 2][(t + 1) % 64] + 1;
        }
        y[t] = s[0][t];
    """)
    assert report_of(source).ok
