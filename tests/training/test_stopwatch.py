"""The stopwatch: who gets which time, what is counted, and that nothing is changed."""

import threading
import time

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import GraphError
from tinygraph.engine.running import Eager, here, inherit
from tinygraph.watch.stopwatch import SUMS, Stopwatch, _swept, bytes_of

A, B, C = ("forward", "a"), ("forward", "b"), ("backward", "c")


@pytest.mark.parametrize(
    "marks, wall, added",
    [
        ([(1, 0, A), (3, 0, None), (4, 0, B), (5, 0, None)], {A: 2, B: 1}, {A: 2, B: 1}),
        ([(0, 0, A), (1, 0, B), (3, 0, None), (6, 0, None)], {A: 4, B: 2}, {A: 4, B: 2}),  # b in a
        ([(0, 0, A), (2, 1, B), (4, 0, None), (5, 1, None)], {A: 3, B: 2}, {A: 4, B: 3}),
        (
            [(0, 0, A), (0, 1, A), (0, 2, C), (6, 0, None), (6, 1, None), (6, 2, None)],
            {A: 4, C: 2},
            {A: 12, C: 6},
        ),
        ([], {}, {}),
    ],
)
def test_time_of_ops_on_several_threads(marks, wall, added):
    found = _swept(marks)
    assert found[:2] == (wall, added)
    assert sum(wall.values()) <= 6
    assert found[2] == len({thread for _, thread, _ in marks})


def watched(step):
    with Stopwatch() as lap:
        step()
    assert type(here.top) is Eager
    return lap


def test_counts_of_a_step_by_hand():
    x = tg.Tensor(np.ones((4, 3), np.float32))
    w, b = tg.Parameter(np.ones((2, 3), np.float32)), tg.Parameter(np.ones(2, np.float32))
    lap = watched(lambda: tg.sum(tg.relu(tg.linear(x, w, b)).reshape(8)).backward())
    forward, backward = lap.costs["forward", "linear"], lap.costs["backward", "linear"]
    assert forward.calls == backward.calls == 1
    assert forward.bytes == 4 * (4 * 3 + 2 * 3 + 2 + 4 * 2)
    assert (forward.arrays, forward.new_arrays, forward.new_bytes) == (1, 1, 4 * 8)
    assert backward.bytes == 4 * (8 + 4 * 3 + 2 * 3 + 2 * 3 + 2)  # gy, x, w; gw, gb
    assert (backward.new_arrays, backward.new_bytes) == (2, 4 * 8)
    assert lap.costs["forward", "reshape"].bytes == lap.costs["backward", "reshape"].bytes == 0
    assert lap.costs["backward", "sum"].bytes == 0  # repeats the upstream gradient, in a view
    assert SUMS not in lap.costs  # gw and gb are handed over; what is only passed on is no sum
    assert forward.operations is None  # of ops they are not stated
    assert sum(cost.seconds for cost in lap.costs.values()) + lap.outside == pytest.approx(lap.wall)
    assert [call.op.name for call in lap.calls if call.op] == [
        "linear",
        "relu",
        "reshape",
        "sum",
        "sum",
        "reshape",
        "relu",
        "linear",
    ]


def test_a_gradient_that_is_copied_by_hand():
    """Of a sum it is a view of the upstream gradient, whose one element stands for all."""
    w = tg.Parameter(np.ones((2, 3), np.float32))
    sums = watched(lambda: tg.sum(w).backward()).costs[SUMS]
    assert (sums.calls, sums.operations) == (1, 0)
    assert (sums.bytes, sums.new_arrays, sums.new_bytes) == (4 * (1 + 6), 1, 4 * 6)


def test_gradients_that_are_added_up_by_hand():
    x = tg.Parameter(np.ones((4, 3)), dtype=np.float64)
    x.grad = np.ones((4, 3))
    a, b, c = (x * s for s in (2.0, 3.0, 4.0))
    lap = watched(lambda: (tg.sum(a) + tg.sum(b) + tg.sum(c)).backward())
    np.testing.assert_array_equal(x.grad, np.full((4, 3), 10.0))
    # Three gradients of x: the second makes a new sum (2 read, 1 written), the third is added to it
    # (2 touched), and that to what was in x.grad (2 touched).
    sums = lap.costs[SUMS]
    assert (sums.bytes, sums.new_arrays, sums.new_bytes) == (8 * 12 * (3 + 2 + 2), 1, 8 * 12)
    assert sums.operations == 3 * 12


def test_random_numbers_and_gradients_are_those_without_it():
    def gradient():
        tg.manual_seed(5)
        x = tg.Parameter(np.ones((50, 4)), dtype=np.float64)
        tg.sum(tg.dropout(x, 0.5) * x).backward()
        return x.grad

    found = []
    lap = watched(lambda: found.append(gradient()))
    np.testing.assert_array_equal(found[0], gradient())
    assert lap.costs["forward", "dropout"].new_arrays >= 2  # the random numbers are one


def test_an_op_inside_of_an_op_has_its_own_time():
    class Slow(tg.Op):
        def forward(self, mem, x):
            tg.relu(tg.Tensor(x))
            time.sleep(0.004)
            return np.negative(x, out=mem.empty(x.shape, x.dtype)), None

    lap = watched(lambda: Slow()([1.0, 2.0]))
    slow, inner = (lap.costs["forward", name].seconds for name in ("slow", "relu"))
    assert slow >= 0.004 and inner > 0 and slow + inner <= lap.wall


def test_threads_that_compute_at_once_share_the_time():
    both_are_here = threading.Barrier(2, timeout=60)

    class Sleep(tg.Op):
        def forward(self, mem, x):
            both_are_here.wait()
            time.sleep(0.02)
            return x, None

    def step():
        threads = [threading.Thread(target=inherit(Sleep()), args=([1.0],)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    lap = watched(step)
    assert lap.threads == 2 and lap.costs["forward", "sleep"].calls == 2
    assert lap.costs["forward", "sleep"].thread_seconds >= 0.04
    assert lap.costs["forward", "sleep"].seconds <= lap.wall
    assert lap.processor < 0.02  # nobody computes


def test_an_error_goes_through_and_the_next_lap_is_whole():
    class Fails(tg.Op):
        def forward(self, mem, x):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"), Stopwatch():
        Fails()([1.0])
    lap = watched(lambda: tg.relu(tg.Tensor([1.0])))
    assert list(lap.costs) == [("forward", "relu")]
    with pytest.raises(GraphError, match="a new one"), lap:
        pass


def test_bytes_of_views_and_strides():
    x = np.zeros((6, 4), np.float32)
    assert bytes_of([x[:3], x[3:]]) == 96
    assert bytes_of([x, x[2], {"y": [x.T]}]) == 96
    assert bytes_of([np.broadcast_to(x[:, :1], (6, 9)), None, 3, "word"]) == 24
    assert bytes_of([np.zeros((0, 3))]) == 0
