"""Prefetching changes nothing but when batches are made; and its thread always ends."""

import gc
import subprocess
import sys
import textwrap
import threading
import time
import traceback

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygraph.base.errors import ArgumentError
from tinygraph.data import ArrayDataset, BatchedDataset, DataLoader
from tinygraph.data.prefetch import ahead


def threads():
    return [t for t in threading.enumerate() if t.name == "tinygraph-prefetch"]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    gc.collect()
    assert not threads()


def eventually(condition):
    """Whether a condition comes true within ten seconds."""
    limit = time.monotonic() + 10
    while not condition() and time.monotonic() < limit:
        time.sleep(0.001)
    return condition()


class Counting(BatchedDataset):
    """Sample i is i; counts the batches that were begun, and fails at one if asked to."""

    def __init__(self, size, fails_at=None):
        self.size, self.fails_at, self.begun = size, fails_at, 0

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        self.begun += 1
        if self.fails_at is not None and self.fails_at in index:
            raise OSError(f"sample {self.fails_at} cannot be read")
        return index, index


@pytest.mark.second
@given(
    size=st.integers(0, 30),
    batch=st.integers(1, 9),
    depth=st.integers(1, 12),
    seed=st.integers(0, 2**64 - 1),
)
def test_same_batches_in_the_same_order(size, batch, depth, seed):
    data = ArrayDataset(np.arange(size) * 2, np.arange(size))
    plain = DataLoader(data, batch, True, seed=seed)
    ahead_of = DataLoader(data, batch, True, seed=seed, prefetch=depth)
    for _ in range(2):
        for (x, y), (px, py) in zip(plain, ahead_of, strict=True):
            np.testing.assert_array_equal(x, px)
            np.testing.assert_array_equal(y, py)
    assert plain.epoch == ahead_of.epoch == 2


@pytest.mark.second
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_back_pressure(depth):
    """The producer fills up to `depth` batches ahead of the consumer, then waits."""
    data = Counting(20)
    for received, _ in enumerate(DataLoader(data, 1, prefetch=depth), 1):
        assert eventually(lambda: data.begun == min(20, received + depth))  # noqa: B023
        time.sleep(0.005)  # long enough for a producer that does not wait
        assert data.begun <= received + depth


@pytest.mark.second
def test_never_more_than_depth_ahead_at_any_speed():
    excess = []
    received = [0]

    def numbers():
        for i in range(2000):
            excess.append(i + 1 - received[0])
            yield i

    items = ahead(numbers(), 3)
    for i, item in enumerate(items):
        received[0] = i + 1
        assert item == i
    # Item i is begun after item i - 3 was taken from the queue, which is just before it is counted.
    assert max(excess) <= 3 + 1


@pytest.mark.second
def test_batches_are_made_while_the_consumer_is_busy():
    data = Counting(3)
    batches = iter(DataLoader(data, 1, prefetch=2))
    next(batches)
    assert eventually(lambda: data.begun == 3)
    batches.close()


@pytest.mark.second
def test_no_thread_before_the_first_batch():
    batches = iter(DataLoader(Counting(3), 1, prefetch=2))
    assert not threads()
    next(batches)
    assert len(threads()) == 1
    batches.close()


@pytest.mark.second
def test_an_error_comes_in_its_place_with_its_origin():
    loader = DataLoader(Counting(9, fails_at=5), 2, prefetch=4)
    received = []
    with pytest.raises(OSError, match="sample 5 cannot be read") as error:
        for _, labels in loader:
            received.append(labels.tolist())
    assert received == [[0, 1], [2, 3]]
    assert loader.position == 2
    assert "__getitem__" in [f.name for f in traceback.extract_tb(error.value.__traceback__)]
    assert error.value.__notes__ == ["raised in the thread that prefetches, at epoch 0, batch 2"]
    assert not threads()


@pytest.mark.second
def test_an_error_without_prefetching_leaves_the_same_state():
    states = []
    for depth in (0, 3):
        loader = DataLoader(Counting(9, fails_at=5), 2, prefetch=depth)
        with pytest.raises(OSError):
            list(loader)
        states.append(loader.state_dict())
    assert states[0] == states[1]


@pytest.mark.second
def test_an_error_after_the_consumer_has_left_is_nobodys():
    for _ in DataLoader(Counting(9, fails_at=3), 1, prefetch=5):
        break
    assert eventually(lambda: not threads())


@pytest.mark.second
def test_the_thread_ends_with_the_epoch():
    list(DataLoader(Counting(5), 2, prefetch=3))
    assert not threads()


@pytest.mark.second
def test_the_thread_ends_when_the_iterator_is_closed_or_dropped():
    batches = iter(DataLoader(Counting(500), 2, prefetch=3))
    next(batches)
    batches.close()
    assert not threads()
    batches = iter(DataLoader(Counting(500), 2, prefetch=3))
    next(batches)
    del batches
    assert eventually(lambda: not threads())


@pytest.mark.second
def test_the_thread_ends_when_the_loop_is_left():
    for _ in DataLoader(Counting(500), 2, prefetch=3):
        break
    assert eventually(lambda: not threads())
    with pytest.raises(ZeroDivisionError):
        for _ in DataLoader(Counting(500), 2, prefetch=3):
            1 / 0
    gc.collect()
    assert eventually(lambda: not threads())


@pytest.mark.second
def test_an_iterator_in_a_cycle_is_collected():
    class Holder:
        pass

    holder = Holder()
    holder.itself, holder.batches = holder, iter(DataLoader(Counting(500), 2, prefetch=3))
    next(holder.batches)
    del holder
    gc.collect()
    assert eventually(lambda: not threads())


@pytest.mark.second
def test_a_program_that_ends_in_the_middle_of_an_epoch_ends():
    program = """
        import numpy as np, tinygraph as tg
        data = tg.data.ArrayDataset(np.arange(100), np.arange(100))
        batches = iter(tg.data.DataLoader(data, 2, prefetch=3))
        next(batches)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], timeout=60, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.second
@pytest.mark.parametrize("bad", [-1, 1.5, "2", None])
def test_bad_prefetch(bad):
    with pytest.raises(ArgumentError, match="prefetch: expected an int of at least 0"):
        DataLoader(Counting(3), prefetch=bad)
