"""Threads that have left the kernel, and threads that are alive but elsewhere.

Since Volta barriers and masks wait for threads that have not left; that an older GPU may hang is a
note.  A thread that is alive and does not come is a mistake.
"""

import numpy as np
import pytest

from tests.cuda.emulator.launching import assert_found, check
from tinygraph.cuda import InOut


def report_of(lines, block=64, n=40):
    source = f"""__global__ void k(int* y, const int* x, int n) {{
        const int t = threadIdx.x;{lines}
    }}"""
    y = np.zeros(block, np.int32)
    x = np.arange(block, dtype=np.int32)
    return check(source, 1, block, InOut(y), x, n), y, source


BARRIERS = {
    "a plain barrier": """
        __shared__ int s[64];
        if (t >= n) return;
        s[t] = x[t];
        __syncthreads(); // <-
        y[t] = s[n - 1 - t];""",
    "one that counts": """
        if (t >= n) return;
        const int some = __syncthreads_count(1); // <-
        y[t] = some - 1 - t;""",
    "in a loop from which threads leave": """
        for (int round = 0; round < n - 1 - t; round++) {
            y[t]++;
            __syncthreads(); // <-
        }""",
}


@pytest.mark.parametrize("name", BARRIERS)
def test_a_barrier_does_not_wait_for_those_who_have_left(name):
    report, y, source = report_of(BARRIERS[name])
    np.testing.assert_array_equal(y[:40], 39 - np.arange(40))
    assert report.ok and {f.note for f in report.findings} == {True}
    assert_found(report, "barrier-divergence", source)
    assert "since Volta" in report.findings[0].message
    assert report.text().startswith("k: clean, 1 note")
    assert "Usual cause" not in report.text()


LIVE = {
    "it waits at another barrier": """
        if (t >= n) return;
        if (t < 8) { __syncthreads(); } // <-
        else { y[t] = 1; __syncthreads(); } // <-""",
    "it goes on to the next one": """
        if (t >= n) return;
        if (t < 32) {
            y[t] = 1;
            __syncthreads(); // <-
        }
        y[t] += 1;
        __syncthreads(); // <-""",
}


@pytest.mark.parametrize("name", LIVE)
def test_a_barrier_that_a_live_thread_misses(name):
    report, _, source = report_of(LIVE[name])
    assert not report.ok
    assert_found(report, "barrier-divergence", source)
    assert any(not f.note and "at another barrier" in f.message for f in report.findings)


MASKS = {
    "ballot": ("__popc(__ballot_sync(~0u, x[t] >= 0))", 20),
    "any": ("__any_sync(~0u, x[t] == 19)", 1),
    "all": ("__all_sync(~0u, x[t] < 20)", 1),
    "match any": ("__popc(__match_any_sync(~0u, x[t] % 2))", 10),
    "match all": ("__match_all_sync(~0u, x[t] / 32, &same) == ~0u && same", 1),
    "sum": ("__reduce_add_sync(~0u, x[t])", 190),
    "least": ("__reduce_min_sync(~0u, x[t] + 3)", 3),
    "shuffle": ("__shfl_sync(~0u, x[t], 7)", 7),
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_may_name_lanes_that_have_left(name):
    call, value = MASKS[name]
    report, y, source = report_of(
        f"""
        if (t >= n) return;
        int same = 0;
        (void)same;
        y[t] = {call}; // <-""",
        32,
        20,
    )
    assert y.tolist() == 20 * [value] + 12 * [0]
    assert report.ok and {f.note for f in report.findings} == {True}
    assert_found(report, "warp-sync", source)


def test_halves_of_a_warp_vote_before_one_of_them_leaves():
    """The helper's one line is a call with masks of its own at each time."""
    source = """
    __device__ int any(unsigned mask, int p) { return __any_sync(mask, p); } // <-
    __global__ void k(int* y) {
        const int t = threadIdx.x;
        if (any(0xffffu << (t & 16), t == 3) || t % 16 < 4) return;
        y[t] = any(~0u, t == 31);
    }"""
    y = np.zeros(32, np.int32)
    report = check(source, 1, 32, InOut(y))
    assert report.ok, report.text()
    assert y.tolist() == 20 * [0] + 12 * [1]
    assert_found(report, "warp-sync", source)


@pytest.mark.parametrize("group", ["reduce(g, x[t], cg::plus<int>())", "inclusive_scan(g, x[t])"])
def test_a_tile_of_which_lanes_have_left(group):
    source = f"""
    #include <cooperative_groups.h>
    #include <cooperative_groups/scan.h>
    namespace cg = cooperative_groups;
    __global__ void k(int* y, const int* x, int n) {{
        const int t = threadIdx.x;
        if (t >= n) return;
        auto g = cg::tiled_partition<32>(cg::this_thread_block());
        y[t] = cg::{group};
    }}"""
    y, x = np.zeros(32, np.int32), np.arange(32, dtype=np.int32)
    report = check(source, 1, 32, InOut(y), x, 20)
    assert report.ok, report.text()
    expected = np.cumsum(x[:20]) if "scan" in group else np.full(20, 190)
    np.testing.assert_array_equal(y[:20], expected)


def test_the_value_of_a_lane_that_has_left_is_still_none():
    report, _, _ = report_of(
        """
        if (t >= n) return;
        y[t] = __shfl_down_sync(~0u, x[t], 4); // <-""",
        32,
        20,
    )
    assert not report.ok
    (used,) = [f for f in report.findings if not f.note]
    assert (
        used.kind == "warp-sync" and "which is not in the mask ffffffff or has left" in used.message
    )


ELSEWHERE = {
    "at a barrier": """
        if (t >= n) return;
        if (t < 8) y[t] = __ballot_sync(0xffffu, 1); // <-
        __syncthreads(); // <-""",
    "at another vote, with another mask": """
        if (t >= n) return;
        if (t < 8) y[t] = __ballot_sync(0xffffu, 1); // <-
        else if (t < 16) y[t] = __ballot_sync(0xff00u, 1); // <-""",
    "at the same vote, with another mask": """
        if (t >= n) return;
        y[t] = __any_sync(t < 8 ? 0xffu : 0xfffffu, 1); // <-""",
    "in another call": """
        if (t >= n) return;
        if (t < 8) y[t] = __ballot_sync(0xffffu, 1); // <-
        else if (t < 16) y[t] = __shfl_sync(0xffffu, t, 8); // <-
        __syncwarp(); // <-""",
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_vote_with_a_lane_that_is_alive_but_elsewhere(name):
    report, _, _ = report_of(ELSEWHERE[name], 32, 20)
    assert not report.ok
    assert any(f.kind == "warp-sync" and not f.note for f in report.findings), report.text()
