"""Lanes that exchange values: shuffles, votes, matches, reductions; masks of every kind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cuda.emulator.launching import check, kernel, run

FULL = 0xFFFFFFFF

SHUFFLES = """
template <class T> __global__ void shuffles(const T* x, T* y, int argument, int width) {
    const int t = threadIdx.x, n = blockDim.x;
    const int warps = (n + 31) / 32, last = n - 32 * (warps - 1);
    const unsigned mask = t / 32 == warps - 1 && last < 32 ? (1u << last) - 1 : 0xffffffffu;
    y[t] = __shfl_sync(mask, x[t], argument, width);
    y[n + t] = __shfl_up_sync(mask, x[t], argument, width);
    y[2 * n + t] = __shfl_down_sync(mask, x[t], argument, width);
    y[3 * n + t] = __shfl_xor_sync(mask, x[t], argument, width);
}"""


def source_lanes(argument, width):
    """For each lane the one that it takes from: CUDA C++ Programming Guide, "Warp Shuffle"."""
    index, up, down, xor = [], [], [], []
    for lane in range(32):
        first = lane // width * width
        last = first + width - 1
        index.append(first + argument % width)
        up.append(lane - argument if lane - argument >= first else lane)
        down.append(lane + argument if lane + argument <= last else lane)
        xor.append(lane ^ argument if lane ^ argument <= last else lane)
    return [index, up, down, xor]


@pytest.mark.parametrize(
    ("ctype", "dtype"),
    [
        ("int", np.int32),
        ("unsigned", np.uint32),
        ("float", np.float32),
        ("double", np.float64),
        ("long long", np.int64),
        ("unsigned long long", np.uint64),
    ],
)
def test_shuffles_move_every_type(ctype, dtype):
    x = (np.arange(64) * 1_000_003 + 7).astype(dtype)
    x[3] = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else np.nan
    y = np.zeros((4, 64), dtype)
    kernel(SHUFFLES, f"shuffles<{ctype}>")(1, 64, x, y, 5, 16)
    lanes = np.array(source_lanes(5, 16))
    np.testing.assert_array_equal(y, x[np.concatenate([lanes, 32 + lanes], axis=1)])


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
def test_shuffles_of_all_widths_and_distances(width):
    shuffles = kernel(SHUFFLES, "shuffles<float>")
    x = np.random.default_rng(width).random(64).astype(np.float32)
    for argument in range(32):
        y = np.zeros((4, 64), np.float32)
        shuffles(1, 64, x, y, argument, width)
        lanes = np.array(source_lanes(argument, width))
        np.testing.assert_array_equal(y, x[np.concatenate([lanes, 32 + lanes], axis=1)])


@pytest.mark.parametrize("block", [1, 7, 32, 44, 63])
def test_a_partly_filled_warp_shuffles_among_its_lanes(block):
    """Here all sources are there; one that is not is the checker's business."""
    x, y = np.arange(block, dtype=np.int32) + 100, np.zeros((4, block), np.int32)
    report = kernel(SHUFFLES, "shuffles<int>").check(1, block, x, y, 0, 32)
    assert report.ok, report.text()
    first = np.arange(block) // 32 * 32
    np.testing.assert_array_equal(y[0], x[first])
    np.testing.assert_array_equal(y[1:], np.tile(x, (3, 1)))


def test_a_half_word_and_a_byte_are_shuffled(launch):
    small = """
    __global__ void small(const short* a, const unsigned char* b, short* y, unsigned char* z) {
        int t = threadIdx.x;
        y[t] = __shfl_sync(0xffffffffu, a[t], t + 1);
        z[t] = __shfl_xor_sync(0xffffffffu, b[t], 31);
    }"""
    a, b = np.arange(-16, 16).astype(np.int16), np.arange(200, 232).astype(np.uint8)
    y, z = np.zeros_like(a), np.zeros_like(b)
    launch(small, 1, 32, a, b, y, z)
    assert y.tolist() == np.roll(a, -1).tolist() and z.tolist() == b[::-1].tolist()


# ---- votes, matches, reductions ----------------------------------------------------------------

COLLECTIVES = """
__global__ void collectives(const int* group, const int* x, const int* rounds, unsigned* y) {
    const int t = threadIdx.x, mine = group[t];
    unsigned mask = 0;
    for (int lane = 0; lane < 32; lane++) if (group[t / 32 * 32 + lane] == mine) mask |= 1u << lane;
    unsigned* row = y + t * 16;
    for (int r = 0; r < rounds[mine]; r++) {  // the groups go round differently often
        const int v = x[t] + r;
        row[0] = __ballot_sync(mask, v % 3 == 0);
        row[1] = __any_sync(mask, v % 5 == 0);
        row[2] = __all_sync(mask, v % 5 < 4);
        row[3] = __match_any_sync(mask, v % 4);
        int same;
        row[4] = __match_all_sync(mask, v % 2, &same);
        row[5] = same;
        row[6] = (unsigned)__reduce_add_sync(mask, v);
        row[7] = (unsigned)__reduce_min_sync(mask, v);
        row[8] = (unsigned)__reduce_max_sync(mask, v);
        row[9] = __reduce_add_sync(mask, (unsigned)v);
        row[10] = __reduce_min_sync(mask, (unsigned)v);
        row[11] = __reduce_max_sync(mask, (unsigned)v);
        row[12] = __reduce_and_sync(mask, (unsigned)v);
        row[13] = __reduce_or_sync(mask, (unsigned)v);
        row[14] = __reduce_xor_sync(mask, (unsigned)v);
        row[15] = (unsigned)__shfl_sync(mask, v, __ffs(mask) - 1);
        __syncwarp(mask);
    }
}"""


def collectives(group, x, rounds):
    """What each lane of one warp gets in its last round, by plain loops."""
    out = np.zeros((32, 16), np.uint32)
    for lane in range(32):
        mates = [m for m in range(32) if group[m] == group[lane]]
        v = {m: int(x[m]) + int(rounds[group[lane]]) - 1 for m in mates}
        remainder = {m: int(np.fmod(v[m], 5)) for m in mates}  # C rounds towards zero
        u = [v[m] % 2**32 for m in mates]
        same = {int(np.fmod(v[m], 2)) for m in mates}
        mask = sum(1 << m for m in mates)
        row = [
            sum(1 << m for m in mates if v[m] % 3 == 0),
            int(any(r == 0 for r in remainder.values())),
            int(all(r < 4 for r in remainder.values())),
            sum(1 << m for m in mates if np.fmod(v[m], 4) == np.fmod(v[lane], 4)),
            mask if len(same) == 1 else 0,
            int(len(same) == 1),
            sum(v.values()),
            min(v.values()),
            max(v.values()),
            sum(u),
            min(u),
            max(u),
            int(np.bitwise_and.reduce(u)),
            int(np.bitwise_or.reduce(u)),
            int(np.bitwise_xor.reduce(u)),
            v[mates[0]],
        ]
        out[lane] = [value % 2**32 for value in row]
    return out


@pytest.mark.second
@pytest.mark.parametrize("checked", [False, True], ids=["fast", "checked"])
@settings(max_examples=25)
@given(
    group=st.lists(st.integers(0, 5), min_size=64, max_size=64),
    x=st.lists(st.integers(-50, 50), min_size=64, max_size=64),
    rounds=st.lists(st.integers(1, 4), min_size=6, max_size=6),
)
def test_groups_of_lanes_with_masks_of_their_own(checked, group, x, rounds):
    """Any cut of a warp into groups: each meets on its own, as often as it likes."""
    group, x, rounds = (np.array(v, np.int32) for v in (group, x, rounds))
    y = np.zeros((64, 16), np.uint32)
    if checked:
        report = check(COLLECTIVES, 1, 64, group, x, rounds, y)
        assert report.ok, report.text()
    else:
        run(COLLECTIVES, 1, 64, group, x, rounds, y)
    for warp in (slice(0, 32), slice(32, 64)):
        np.testing.assert_array_equal(y[warp], collectives(group[warp], x[warp], rounds))


def test_match_compares_64_bits(launch):
    y = np.zeros(32, np.uint32)
    x = np.where(np.arange(32) % 2, 1 << 40, 1 << 41).astype(np.int64)
    launch(
        """__global__ void match(const long long* x, unsigned* y) {
        y[threadIdx.x] = __match_any_sync(0xffffffffu, (unsigned long long)x[threadIdx.x]); }""",
        1,
        32,
        x,
        y,
    )
    assert y.tolist() == [0x55555555, 0xAAAAAAAA] * 16


@pytest.mark.parametrize("block", [5, 32, 50])
def test_activemask_names_the_lanes_that_there_are(launch, block):
    y = np.zeros(block, np.uint32)
    launch("__global__ void active(unsigned* y) { y[threadIdx.x] = __activemask(); }", 1, block, y)
    # Lanes that have run to their end are not active: only the lowest bits may be missing.
    for t, mask in enumerate(y.tolist()):
        full = FULL if t < block // 32 * 32 else (1 << block % 32) - 1
        assert mask & ~full == 0 and mask >> t % 32 & 1


# ---- synchronising -----------------------------------------------------------------------------


def test_syncwarp_orders_the_lanes_of_its_mask(launch):
    """Four groups of eight exchange through shared memory, each in loops of its own length."""
    groups = """
    __global__ void groups(const int* x, int* y) {
        __shared__ int s[64];
        const int t = threadIdx.x, first = t & ~7, lane = t % 32;
        const unsigned mask = 0xffu << (lane & ~7);
        int v = x[t];
        for (int r = 0; r <= first / 8; r++) {
            s[t] = v;
            __syncwarp(mask);
            v = s[first + (t + 1) % 8];
            __syncwarp(mask);
        }
        y[t] = v;
    }"""
    x, y = np.arange(64, dtype=np.int32) * 3, np.zeros(64, np.int32)
    launch(groups, 1, 64, x, y)
    expected = [np.roll(part, -(g + 1)) for g, part in enumerate(x.reshape(8, 8))]
    np.testing.assert_array_equal(y, np.concatenate(expected))


def test_two_branches_meet_in_shuffles_of_their_own(launch):
    """Disjoint masks at the same time, on different lines."""
    branches = """
    __global__ void branches(float* y) {
        const int t = threadIdx.x;
        const unsigned odd = 0xaaaaaaaau;
        float v = t;
        if (t & 1) {
            for (int d = 2; d < 32; d *= 2) v += __shfl_xor_sync(odd, v, d);
        } else {
            v = __shfl_up_sync(~odd, v, 2);
            __syncwarp(~odd);
            v = __shfl_down_sync(~odd, v, 4);
        }
        y[t] = v;
    }"""
    y = np.zeros(32, np.float32)
    launch(branches, 1, 32, y)
    even = np.arange(0, 32, 2)
    up = np.where(even >= 2, even - 2, even)
    down = np.where(even + 4 < 32, up[np.minimum((even + 4) // 2, 15)], up)
    np.testing.assert_array_equal(y[1::2], np.full(16, 256.0))
    np.testing.assert_array_equal(y[::2], down)


def test_lanes_leave_one_by_one():
    """Who has left a kernel is no longer waited for, as on a GPU; the checker has its own view."""
    y = np.zeros(32, np.uint32)
    run(
        """__global__ void leaving(unsigned* y) {
        for (int r = 0; r < 40; r++) {
            if (r == (int)threadIdx.x) return;
            y[threadIdx.x] = __ballot_sync(0xffffffffu, 1);
        } }""",
        1,
        32,
        y,
    )
    # In its last round r = t - 1 a lane meets those that left later than that: lanes t .. 31.
    assert y.tolist() == [0] + [FULL << t & FULL for t in range(1, 32)]


def test_warps_do_not_wait_for_each_other(launch):
    """One warp makes many rounds of shuffles while another leaves at once."""
    y = np.zeros(96, np.int32)
    launch(
        """__global__ void apart(int* y) {
        const int t = threadIdx.x;
        int v = t;
        for (int r = 0; r < t / 32 * 20; r++) v = __shfl_sync(0xffffffffu, v, (t + 1) % 32);
        y[t] = v; }""",
        1,
        96,
        y,
    )
    expected = [np.roll(np.arange(32) + 32 * w, -20 * w) for w in range(3)]
    np.testing.assert_array_equal(y, np.concatenate(expected))
