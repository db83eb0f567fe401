"""A trace tells what a kernel does, access by access, as loops written by hand say it does."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest

from tests.cuda.emulator.launching import assert_alive, in_child, kernel
from tinygraph.base.errors import KernelLaunchError
from tinygraph.cuda import Out
from tinygraph.cuda.emulator.trace import BRANCH, CODE, END, KINDS, RELEASE


@pytest.fixture
def rng():
    return np.random.default_rng(0)


TREE = """
__global__ void block_sum(const float* x, float* y, int n) {
    __shared__ float s[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        int at = 2 * step * threadIdx.x;
        if (at + step < blockDim.x) {
            s[at] += s[at + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = s[0];
}"""


def tree_sum_by_hand(x, block, n):
    """What each thread does: (epoch, kind, array, element, value, line), and the sum."""
    F = np.float32
    did = [[] for _ in range(64)]
    s = np.zeros(64, F)
    for t in range(64):
        i = block * 64 + t
        if i < n:
            did[t].append((0, "load", "x", i, x[i], 5))
        s[t] = x[i] if i < n else 0
        did[t].append((0, "store", "s", t, s[t], 5))
        did[t].append((0, "barrier", None, 0, None, 6))
    step, epoch = 1, 1
    while step < 64:
        for t in range(64):
            at = 2 * step * t
            if at + step < 64:
                right, left = s[at + step], s[at]
                did[t].append((epoch, "load", "s", at + step, right, 10))
                did[t].append((epoch, "load", "s", at, left, 10))
                s[at] = left + right
                did[t].append((epoch, "store", "s", at, s[at], 10))
            did[t].append((epoch, "barrier", None, 0, None, 12))
        step, epoch = 2 * step, epoch + 1
    did[0].append((epoch, "load", "s", 0, s[0], 14))
    did[0].append((epoch, "store", "y", block, s[0], 14))
    return did, s[0]


def told(trace, block, thread):
    """The same of a thread in a trace."""
    rows = []
    for number in np.flatnonzero(trace.events["thread"] == thread):
        event = trace.events[number]
        if event["block"] != block or event["kind"] in (CODE, BRANCH, RELEASE, END):
            continue
        name, element, value = None, 0, None
        if event["array"] >= 0:
            array = trace.arrays[event["array"]]
            name, element = array.name, event["offset"] // array.element
            value = np.frombuffer(event["value"].tobytes(), np.float32)[0]
            assert event["size"] == 4
        line = trace.places[event["place"]].line
        rows.append((event["epoch"], trace.kind(number), name, element, value, line))
    return rows


def unordered_sum(rows):
    """Rows with the two loads of `s[at] += s[at + step]` in the order of their elements.

    C++ leaves it open which operand of a compound assignment is read first."""
    rows = list(rows)
    for k in range(len(rows) - 1):
        first, second = rows[k], rows[k + 1]
        if first[:2] == second[:2] == (first[0], "load") and first[5] == second[5] == 10:
            rows[k : k + 2] = sorted([first, second], key=lambda row: row[3])
    return rows


@pytest.mark.parametrize("reverse", [False, True])
def test_every_access_and_barrier_of_a_tree_sum(reverse, rng):
    x, y = rng.standard_normal(100).astype(np.float32), np.zeros(2, np.float32)
    trace = kernel(TREE).trace(2, 64, x, Out(y), 100, blocks=[0, 1], reverse=reverse)
    assert (trace.kernel, trace.grid, trace.block_size) == ("block_sum", (2, 1, 1), (64, 1, 1))
    assert trace.blocks == (0, 1) and trace.cut == 0 and trace.reverse is reverse
    assert not trace.findings
    for block in (0, 1):
        did, total = tree_sum_by_hand(x, block, 100)
        assert y[block] == total
        for thread in range(64):
            rows = told(trace, block, thread)
            assert unordered_sum(rows) == unordered_sum(did[thread]), (block, thread)


def test_of_blocks_that_are_not_asked_for_nothing_is_kept(rng):
    x, y = rng.standard_normal(100).astype(np.float32), np.zeros(2, np.float32)
    both = kernel(TREE).trace(2, 64, x, y, 100, blocks=[0, 1])
    second = kernel(TREE).trace(2, 64, x, y, 100, blocks=[(1, 0, 0)])
    assert (second.events["block"] == 1).all()
    expected = both.events[both.events["block"] == 1]
    for name in ("thread", "epoch", "kind", "offset", "size", "value"):
        np.testing.assert_array_equal(second.events[name], expected[name])


def test_values_of_stores_are_what_the_arrays_hold_at_the_end(rng):
    x, y = rng.standard_normal(100).astype(np.float32), np.zeros(2, np.float32)
    trace = kernel(TREE).trace(2, 64, x, y, 100, blocks=[0, 1])
    names = [array.name for array in trace.arrays]
    np.testing.assert_array_equal(trace.arrays[names.index("x")].initial, x)
    held = np.zeros(2, np.float32)
    stores = trace.events[trace.events["array"] == names.index("y")]
    for event in stores:
        held[event["offset"] // 4] = np.frombuffer(event["value"].tobytes(), np.float32)[0]
    assert len(stores) == 2
    np.testing.assert_array_equal(held, y)


def test_a_thread_ends_once_and_a_barrier_opens_once_for_all():
    trace = kernel(TREE).trace(1, 64, np.ones(64, np.float32), np.zeros(1, np.float32), 64)
    ends = trace.events[trace.events["kind"] == END]
    assert sorted(ends["thread"]) == list(range(64))
    opened = trace.events[trace.events["kind"] == RELEASE]
    assert list(opened["epoch"]) == list(range(7))  # one before the loop, six in it


def test_every_launch_runs_its_threads_in_the_same_order():
    """Also where volatile accesses give way to others now and then."""
    source = """
    __global__ void count(volatile int* x) {
        for (int i = 0; i < 3; i++) x[threadIdx.x] = x[threadIdx.x] + 1;
    }"""
    launches = [kernel(source).trace(2, 50, np.zeros(50, np.int32), blocks=[1]) for _ in range(5)]
    threads = [trace.events["thread"].tolist() for trace in launches]
    assert threads == threads[:1] * 5 and threads[0] != sorted(threads[0])


def test_what_comes_after_the_limit_is_counted():
    x, y = np.ones(64, np.float32), np.zeros(1, np.float32)
    whole = kernel(TREE).trace(1, 64, x, y, 64)
    part = kernel(TREE).trace(1, 64, x, y, 64, limit=100)
    assert 0 < (part.events["kind"] != BRANCH).sum() <= 100 and y[0] == 64
    assert len(part) + part.cut >= (whole.events["kind"] != BRANCH).sum()
    for name in ("thread", "kind", "offset", "value"):
        np.testing.assert_array_equal(part.events[name], whole.events[name][: len(part)])


SHIFT = """
__global__ void shift(float* x) {
    float right = x[threadIdx.x + 1];
    x[threadIdx.x] = right;
}"""


def test_a_race_has_two_outcomes():
    """Thread 0 first: every thread reads what was there.  The last one first: it spreads."""
    results = []
    for reverse in (False, True):
        x = np.arange(9, dtype=np.float32)
        trace = kernel(SHIFT).trace(1, 8, x, reverse=reverse)
        (finding,) = trace.findings
        assert finding.kind == "race"
        results.append(x.tolist())
    assert results == [[1, 2, 3, 4, 5, 6, 7, 8, 8], [8] * 9]


def test_a_finding_has_the_other_thread_and_its_event():
    report = kernel(SHIFT).check(1, 8, np.arange(9, dtype=np.float32), trace=True)
    (finding,) = report.findings
    assert (finding.line, finding.thread, finding.block) == (4, (1, 0, 0), (0, 0, 0))
    assert (finding.other_line, finding.other_file) == (3, "<source>")
    assert (finding.other_thread, finding.other_block) == ((0, 0, 0), (0, 0, 0))
    event = report.trace.events[finding.event]
    assert (KINDS[event["kind"]], event["thread"], event["offset"]) == ("store", 1, 4)
    assert report.trace.value(finding.event) == 2 and event["before"] == 0x3F800000  # 1.0f


def test_a_refused_access_is_the_event_of_its_finding():
    text = """
__global__ void beyond(float* y) {
    y[threadIdx.x + 4] = 1;
}"""
    trace = kernel(text).trace(1, 8, np.zeros(8, np.float32))
    (finding,) = trace.findings
    event = trace.events[finding.event]
    assert event["refused"] and event["thread"] == 4 and event["offset"] == 32
    assert finding.others == 3
    refused = trace.events[trace.events["refused"]]
    np.testing.assert_array_equal(refused["thread"], [4, 5, 6, 7])


WARP = """
__global__ void warp(const float* x, float* y, unsigned* count) {
    float v = x[threadIdx.x];
    float w = __shfl_down_sync(0xffffffffu, v, 8);
    unsigned b = __ballot_sync(0xffffffffu, v > 10);
    if (v > 10) atomicAdd(count, 2u);
    __syncwarp();
    *(float4*)(y + 4 * threadIdx.x) = make_float4(v, w, b, 0);
}"""


def test_calls_of_a_warp_tell_what_is_given_and_taken():
    x, y = np.arange(32, dtype=np.float32), np.zeros(128, np.float32)
    count = np.zeros(1, np.uint32)
    trace = kernel(WARP).trace(1, 32, x, y, count)
    assert not trace.findings
    events, bits = trace.events, x.view(np.uint32)

    def of(kind, line):
        chosen = events[events["kind"] == KINDS.index(kind)]
        assert {trace.places[p].line for p in chosen["place"]} == {line}
        return chosen[np.argsort(chosen["thread"])]

    shuffles = of("shuffle", 4)
    np.testing.assert_array_equal(shuffles["before"], bits)
    sources = [lane + 8 if lane < 24 else lane for lane in range(32)]
    np.testing.assert_array_equal(shuffles["source"], sources)
    np.testing.assert_array_equal(shuffles["value"][:, 0], bits[sources])
    assert (shuffles["mask"] == 0xFFFFFFFF).all()
    votes = of("vote", 5)
    np.testing.assert_array_equal(votes["before"], x > 10)
    assert set(votes["value"][:, 0]) == {sum(1 << lane for lane in range(11, 32))}
    assert len(of("syncwarp", 7)) == 32
    atomics = of("atomic", 6)
    np.testing.assert_array_equal(atomics["thread"], range(11, 32))
    np.testing.assert_array_equal(np.sort(atomics["before"]), range(0, 42, 2))
    np.testing.assert_array_equal(atomics["value"][:, 0], atomics["before"] + 2)
    stores = of("store", 8)
    assert (stores["size"] == 16).all()
    np.testing.assert_array_equal(stores["value"].copy().view(np.float32).ravel(), y)


def test_a_helper_has_its_own_lines_and_a_header_has_none():
    text = """
__device__ float4 doubled(const float4* p) {
    float4 v = *p;
    v.x *= 2;
    return v;
}
__global__ void caller(const float4* x, float4* y) {
    y[threadIdx.x] = doubled(x + threadIdx.x);
}"""
    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)
    trace = kernel(text).trace(1, 8, x, y)
    assert {place.file for place in trace.places} == {"<source>"}
    lines = {
        (trace.kind(n), trace.places[event["place"]].line)
        for n, event in enumerate(trace.events)
        if event["array"] >= 0
    }
    assert lines == {("load", 3), ("store", 8)}
    assert trace.files["<source>"][2] == "    float4 v = *p;"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"blocks": [2]}, "blocks of the grid 2 x 1 x 1"),
        ({"blocks": []}, "1 to 1024 blocks"),
        ({"blocks": 0}, "blocks of the grid"),
        ({"blocks": [(0, 0, 0, 0)]}, "blocks of the grid"),
        ({"limit": 0}, "a number of events from 1 on"),
    ],
)
def test_wrong_wishes_are_refused(wrong, words):
    with pytest.raises(KernelLaunchError, match=words):
        kernel(SHIFT).trace(2, 4, np.zeros(9, np.float32), **wrong)


WITH_ANOTHER_COMPILER = """
from tests.cuda.emulator import test_trace, test_trace_locals
from tinygraph.cuda.emulator.compiler import find_compiler
for reverse in (False, True):
    rng = np.random.default_rng(0)
    test_trace.test_every_access_and_barrier_of_a_tree_sum(reverse, rng)
test_trace.test_calls_of_a_warp_tell_what_is_given_and_taken()
test_trace.test_branches_tell_which_way_each_thread_goes()
test_trace.test_lanes_that_part_at_the_question_mark_go_to_different_sites()
test_trace.test_a_helper_has_its_own_lines_and_a_header_has_none()
test_trace_locals.test_variables_hold_what_the_loops_say()
print(find_compiler().name)
"""


@pytest.mark.second
@pytest.mark.skipif(find_spec("ziglang") is None, reason="the wheel ziglang is not installed")
def test_the_compiler_of_the_wheel_tells_the_same():
    child = in_child(WITH_ANOTHER_COMPILER, 300, CXX=f"{sys.executable} -m ziglang c++")
    assert_alive(child, "ziglang")


# ---- which way threads go ------------------------------------------------------------------------

WAYS = """
__device__ int digits(int n) {
    int count = 1;
    while (n >= 10) {
        n /= 10;
        count++;
    }
    return count;
}
__global__ void ways(const float* x, float* y, int n) {
    int i = threadIdx.x;
    if (i < n && x[i] > 2.5f) {
        y[i] = 1;
    } else {
        y[i] = x[i] == 1 ? digits(5) : 6;
    }
    switch (i % 3) {
    case 0: y[i] += digits(i); break;
    case 1: y[i] += 2; break;
    default: y[i] += 3;
    }
}"""
WAY_LINE = {text.strip(): n for n, text in enumerate(WAYS.splitlines(), 1)}


def test_branches_tell_which_way_each_thread_goes():
    x, y, n = np.arange(16, dtype=np.float32), np.zeros(16, np.float32), 14
    trace = kernel(WAYS).trace(1, 16, x, y, n)
    line_of = {e["site"]: trace.places[e["place"]].line for e in trace.events if e["place"] >= 0}
    chosen = {}  # (thread, line of the condition): lines where it goes on
    for number in np.flatnonzero(trace.events["kind"] == BRANCH):
        event = trace.events[number]
        after = trace.events[number + 1]
        assert after["thread"] == event["thread"] and after["site"] == event["to"]
        key = int(event["thread"]), trace.places[event["place"]].line
        chosen.setdefault(key, []).append(line_of[event["to"]])
    condition = WAY_LINE["if (i < n && x[i] > 2.5f) {"]
    yes, no = WAY_LINE["y[i] = 1;"], WAY_LINE["y[i] = x[i] == 1 ? digits(5) : 6;"]
    loop, body = WAY_LINE["while (n >= 10) {"], WAY_LINE["n /= 10;"]
    for thread in range(16):
        taken = thread < n and x[thread] > 2.5
        # `&&` is two conditions: the second one is not asked if the first is false
        assert chosen[thread, condition][-1] == (yes if taken else no)
        assert len(chosen[thread, condition]) == (2 if thread < n else 1)
        assert len(chosen.get((thread, no), [])) == (0 if taken else 1)
        rounds = chosen.get((thread, loop), [])
        if thread % 3 == 0 or thread == 1:
            assert rounds.count(body) == len(str(thread)) - 1
            assert len(rounds) == len(str(thread))
        else:
            assert not rounds


def test_lanes_that_part_at_the_question_mark_go_to_different_sites():
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    trace = kernel(WAYS).trace(1, 4, x, y, 4)
    line = WAY_LINE["y[i] = x[i] == 1 ? digits(5) : 6;"]
    at = [e for e in trace.events if e["kind"] == BRANCH and trace.places[e["place"]].line == line]
    ways = {int(e["thread"]): int(e["to"]) for e in at}
    assert set(ways) == {0, 1, 2} and ways[0] == ways[2] != ways[1]


def test_code_without_a_choice_has_no_branch():
    text = """
__global__ void straight(int* x, int n) {
    x[threadIdx.x] = n * 3 + 1;
    __syncthreads();
    x[threadIdx.x] += 2;
}"""
    trace = kernel(text).trace(1, 8, np.zeros(8, np.int32), 5)
    assert not (trace.events["kind"] == BRANCH).any()
