"""Steps of warps, put together from what single threads did; and what a request costs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tinygraph.cuda.emulator.lockstep import Lanes
from tinygraph.cuda.emulator.requests import Cost, sectors, turns

NONE = -1


def steps(runs, meetings=None, epochs=None):
    """(warp, lanes, place) of each step; `runs` has the places of each thread, in order."""
    threads = [thread for thread, places in runs.items() for _ in places]
    places = [(place,) * 2 for run in runs.values() for place in run]
    met = meetings or [NONE] * len(threads)
    when = epochs or [0] * len(threads)
    lanes = Lanes(threads, when, places, met)
    return [(s.warp, s.lanes, places[s.events[0]][0]) for s in lanes.steps()]


def test_lanes_at_one_place_go_on_together():
    assert steps({0: [1, 2], 1: [1, 2], 2: [1, 2]}) == [(0, [0, 1, 2], 1), (0, [0, 1, 2], 2)]


def test_a_branch_comes_together_behind_it():
    """if (t < 2) 2; else 3; then 4"""
    runs = {0: [1, 2, 4], 1: [1, 2, 4], 2: [1, 3, 4]}
    assert steps(runs) == [(0, [0, 1, 2], 1), (0, [0, 1], 2), (0, [2], 3), (0, [0, 1, 2], 4)]


def test_a_loop_is_left_together():
    runs = {0: [1, 2, 1, 2, 1, 3], 1: [1, 2, 1, 3], 2: [1, 3]}
    assert steps(runs) == [
        *[(0, [0, 1, 2], 1), (0, [0, 1], 2)],
        *[(0, [0, 1], 1), (0, [0], 2)],
        *[(0, [0], 1), (0, [0, 1, 2], 3)],
    ]


def test_a_lane_that_skips_a_turn_waits_in_the_loop():
    """for (;;) { 1; if (odd turn, or lane 0) 2; 3; } 4"""
    runs = {0: [1, 2, 3, 1, 2, 3, 4], 1: [1, 3, 1, 2, 3, 4]}
    assert [(lanes, place) for _, lanes, place in steps(runs)] == [
        *[([0, 1], 1), ([0], 2), ([0, 1], 3), ([0, 1], 1), ([0, 1], 2), ([0, 1], 3), ([0, 1], 4)],
    ]


def test_warps_go_to_the_barrier_one_after_the_other():
    runs = {0: [1, 2, 3], 32: [1, 2, 3]}
    found = steps(runs, epochs=[0, 0, 1, 0, 0, 1])
    assert found == [
        *[(0, [0], 1), (0, [0], 2), (1, [0], 1), (1, [0], 2)],
        *[(0, [0], 3), (1, [0], 3)],
    ]


def test_a_call_of_the_warp_waits_for_all_of_its_lanes():
    """Lane 1 comes later, though the place of the call is the smallest."""
    runs = {0: [1, 1, 9], 1: [5, 1, 9]}
    assert steps(runs, meetings=[NONE, 0, NONE, NONE, 0, NONE]) == [
        *[(0, [0], 1), (0, [1], 5), (0, [0, 1], 1), (0, [0, 1], 9)],
    ]


@given(st.lists(st.lists(st.integers(0, 5), max_size=6), min_size=1, max_size=40))
def test_every_event_is_in_one_step_and_threads_keep_their_order(runs):
    threads = [thread for thread, run in enumerate(runs) for _ in run]
    places = [(place, 0) for run in runs for place in run]
    lanes = Lanes(threads, [0] * len(threads), places, [NONE] * len(threads))
    seen = []
    for step in lanes.steps():
        assert len({places[event] for event in step.events}) == 1
        assert [threads[event] for event in step.events] == [32 * step.warp + n for n in step.lanes]
        seen += step.events
    assert sorted(seen) == list(range(len(threads)))
    for thread in set(threads):
        mine = [event for event in seen if threads[event] == thread]
        assert mine == sorted(mine)


# ---- requests ------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=32),
    st.sampled_from([1, 2, 4, 8, 16]),
)
def test_sectors_are_those_that_bytes_lie_in(indices, size):
    addresses = [index * size for index in indices]
    moved = np.zeros(400 * 16 // 32 + 1, bool)
    for address in addresses:
        for byte in range(address, address + size):
            moved[byte // 32] = True
    least = -(-len(set(addresses)) * size // 32)
    assert sectors(addresses, size) == Cost(int(moved.sum()), least)


@given(st.lists(st.integers(0, 400), min_size=1, max_size=32))
def test_turns_are_the_words_that_the_fullest_bank_has(indices):
    wanted = {bank: {i for i in indices if i % 32 == bank} for bank in range(32)}
    fullest = max(len(words) for words in wanted.values())
    assert turns([4 * index for index in indices], 4) == Cost(fullest, 1)


def test_turns_of_wide_accesses_are_counted_by_half_and_quarter_warps():
    doubles, vectors = [8 * lane for lane in range(32)], [16 * lane for lane in range(32)]
    assert turns(doubles, 8) == Cost(2, 2)
    assert turns([2 * a for a in doubles], 8) == Cost(4, 2)
    assert turns(vectors, 16) == Cost(4, 4)
    assert turns([8], 8) == Cost(1, 1)
