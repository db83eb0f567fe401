"""cooperative_groups.h on the emulator: sizes, ranks, exchanges, and who is in a group."""

import numpy as np
import pytest

from tinygraph.cuda import Kernel

PRELUDE = """#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
"""


def clean(body, count, block=64, grid=1, x=None):
    """`count` ints of every thread, under the checker, which finds nothing: (threads, count)."""
    x = np.arange(256, dtype=np.int32) if x is None else x
    size = int(np.prod(block)) * grid
    y = np.zeros((size, count), np.int32)
    text = f"""{PRELUDE}__global__ void k(const int* x, int* y) {{
    cg::thread_block block = cg::this_thread_block();
    const int me = cg::this_grid().thread_rank();
    int* mine = y + {count} * me;
    {body}
}}"""
    report = Kernel(text, "k").check(grid, block, x, y)
    assert report.ok, report.text()
    return y


def test_blocks_and_grids_know_their_size():
    y = clean(
        "mine[0] = block.size(); mine[1] = block.thread_rank(); mine[2] = cg::this_grid().size();"
        "mine[3] = block.group_index().x; mine[4] = block.thread_index().y; block.sync();",
        5,
        block=(8, 4),
        grid=3,
    )
    rank = np.arange(96)
    wanted = [np.full(96, 32), rank % 32, np.full(96, 96), rank // 32, rank % 32 // 8]
    np.testing.assert_array_equal(y, np.transpose(wanted))


@pytest.mark.parametrize("n", [1, 4, 16, 32])
def test_tiles(n):
    y = clean(
        f"""auto tile = cg::tiled_partition<{n}>(block);
    mine[0] = tile.size(); mine[1] = tile.thread_rank(); mine[2] = tile.meta_group_rank();
    mine[3] = tile.meta_group_size(); mine[4] = tile.shfl(me, 0);
    mine[5] = tile.shfl_down(me, 1); mine[6] = tile.shfl_up(me, 1); mine[7] = tile.shfl_xor(me, 1);
    mine[8] = cg::reduce(tile, me, cg::plus<int>());
    mine[9] = cg::reduce(tile, me, cg::greater<int>());
    mine[10] = cg::inclusive_scan(tile, 1); mine[11] = cg::exclusive_scan(tile, me);
    mine[12] = tile.any(me == 0); mine[13] = tile.all(me < 8); mine[14] = tile.ballot(me % 2);
    cg::sync(tile);""",
        15,
    )
    me = np.arange(64)
    rank, first = me % n, me // n * n
    ids = first[:, None] + np.arange(n)
    wanted = [
        *(np.full(64, n), rank, me // n, np.full(64, 64 // n), first),
        *(np.where(rank + 1 < n, me + 1, me), np.where(rank > 0, me - 1, me)),
        np.where(rank ^ 1 < n, first + (rank ^ 1), me),
        *(
            ids.sum(1),
            ids.max(1),
            rank + 1,
            [sum(range(f, m)) for f, m in zip(first, me, strict=True)],
        ),
        *(first == 0, (ids < 8).all(1), ((ids % 2) << np.arange(n)).sum(1)),
    ]
    np.testing.assert_array_equal(y, np.transpose(wanted).astype(np.int64).astype(np.int32))


def test_tiles_of_tiles_and_groups_of_a_size_known_at_run_time():
    y = clean(
        """auto warp = cg::tiled_partition<32>(block);
    auto four = cg::tiled_partition<4>(warp);
    cg::thread_group eight = cg::tiled_partition(block, 8);
    cg::thread_group two = cg::tiled_partition(eight, 2);
    mine[0] = four.meta_group_rank(); mine[1] = four.meta_group_size();
    mine[2] = eight.thread_rank(); mine[3] = two.size(); mine[4] = two.thread_rank();
    two.sync(); eight.sync();""",
        5,
    )
    me = np.arange(64)
    wanted = [me % 32 // 4, np.full(64, 8), me % 8, np.full(64, 2), me % 2]
    np.testing.assert_array_equal(y, np.transpose(wanted))


def test_the_lanes_of_a_branch_are_together():
    y = clean(
        """mine[0] = mine[1] = mine[2] = mine[3] = -1;
    if (me % 3 == 0) {
        cg::coalesced_group group = cg::coalesced_threads();
        mine[0] = group.size(); mine[1] = group.thread_rank(); mine[2] = group.shfl(me, 1);
        group.sync();
    } else {
        mine[3] = __popc(__activemask());
    }""",
        4,
        block=32,
    )
    me = np.arange(32)
    third = me % 3 == 0
    wanted = [np.where(third, v, -1) for v in (11, me // 3, 3)] + [np.where(third, -1, 21)]
    np.testing.assert_array_equal(y, np.transpose(wanted))


def test_groups_by_label():
    y = clean(
        """auto tile = cg::tiled_partition<32>(block);
    auto same = cg::labeled_partition(tile, x[me] % 5);
    auto odd = cg::binary_partition(cg::coalesced_threads(), me % 2);
    mine[0] = same.size(); mine[1] = same.thread_rank(); mine[2] = odd.size();
    mine[3] = cg::reduce(odd, me, cg::less<int>());""",
        4,
        block=32,
    )
    me = np.arange(32)
    wanted = [(me[:, None] % 5 == me % 5).sum(1), me // 5, np.full(32, 16), me % 2]
    np.testing.assert_array_equal(y, np.transpose(wanted))


COPY = """{} int shared[64];
    cg::memcpy_async(block, shared, x + 64, sizeof shared);
    {}
    mine[0] = shared[63 - me];"""


def test_copies_of_a_group_are_there_after_the_wait():
    y = clean(COPY.format("__shared__", "cg::wait(block);"), 1)
    np.testing.assert_array_equal(y[:, 0], 127 - np.arange(64))
    with pytest.raises(AssertionError, match="uninitialized"):
        clean(COPY.format("__shared__", "block.sync();"), 1)


def test_a_tile_in_which_a_lane_that_is_alive_is_missing_is_a_finding():
    tile = "auto tile = cg::tiled_partition<8>(block); *mine = 0; if (me != 3) tile.sync();"
    clean(tile, 1)  # lane 3 leaves at once
    with pytest.raises(AssertionError, match="deadlock"):
        clean(f"{tile} block.sync();", 1)
