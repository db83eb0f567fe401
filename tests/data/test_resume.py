"""A loader that is taken up again gives the batches that an uninterrupted one would have given."""

import json
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygraph.base.errors import CheckpointError
from tinygraph.data import ArrayDataset, DataLoader, TransformedDataset, random_crop


def dataset(size):
    images = np.arange(size * 36, dtype=np.float32).reshape(size, 1, 6, 6)
    return TransformedDataset(ArrayDataset(images, np.arange(size)), random_crop(3), seed=7)


def batches(loader, epochs):
    """(inputs, labels) of whole epochs, as bytes."""
    return [(x.tobytes(), y.tobytes()) for _ in range(epochs) for x, y in loader]


def left_at(loader, cut):
    """Take that many batches, over as many epochs as needed, and return the state as a file does.

    Where the cut is at the end of an epoch, its `for` is left before it has ended.
    """
    taken = []
    while len(taken) < cut:
        taken += [(x.tobytes(), y.tobytes()) for x, y in islice(loader, cut - len(taken))]
    return taken, json.loads(json.dumps(loader.state_dict()))


@given(
    size=st.integers(1, 17),
    batch=st.integers(1, 7),
    cut=st.integers(0, 40),
    seed=st.integers(0, 2**64 - 1),
    shuffle=st.booleans(),
    before=st.integers(0, 3),
    after=st.integers(0, 3),
)
def test_any_cut_gives_the_uninterrupted_sequence(size, batch, cut, seed, shuffle, before, after):
    data = dataset(size)
    whole = batches(DataLoader(data, batch, shuffle, seed=seed), 4)
    cut = min(cut, len(whole))
    taken, state = left_at(DataLoader(data, batch, shuffle, seed=seed, prefetch=before), cut)
    assert taken == whole[:cut]
    resumed = DataLoader(data, batch, shuffle, seed=seed, prefetch=after)
    resumed.load_state_dict(state)
    rest = []
    while resumed.epoch < 4:
        rest += batches(resumed, 1)
    assert rest == whole[cut:]


def test_position_counts_received_batches():
    loader = DataLoader(dataset(9), 2, prefetch=3)
    iterator = iter(loader)
    for received in range(1, 4):
        next(iterator)
        assert loader.state_dict()["position"] == received
    iterator.close()


def test_the_state_is_plain():
    loader = DataLoader(dataset(9), np.int64(2), np.True_, seed=np.uint64(3))
    expected = {
        "seed": 3,
        "epoch": 0,
        "position": 0,
        "shuffle": True,
        "batch_size": 2,
        "drop_last": False,
        "length": 9,
    }
    assert loader.state_dict() == expected
    assert {type(value) for value in loader.state_dict().values()} == {int, bool}


def test_a_state_after_the_last_batch_has_an_empty_for_left():
    loader = DataLoader(dataset(4), 2)
    _, state = left_at(loader, 2)
    assert (state["epoch"], state["position"]) == (0, 2)
    loader.load_state_dict(state)
    assert list(loader) == []
    assert loader.epoch == 1


def test_only_the_first_for_after_loading_begins_in_the_middle():
    loader = DataLoader(dataset(6), 2)
    loader.load_state_dict({**loader.state_dict(), "epoch": 3, "position": 2})
    assert [len(list(loader)) for _ in range(2)] == [1, 3]
    assert loader.epoch == 5


def test_loading_stops_an_iterator_under_way_from_counting():
    loader = DataLoader(dataset(6), 2)
    older = iter(loader)
    next(older)
    state = {**loader.state_dict(), "epoch": 2, "position": 1}
    loader.load_state_dict(state)
    list(older)
    assert loader.state_dict() == state


def test_a_state_of_another_loader_is_refused_with_what_differs():
    state = DataLoader(dataset(9), 2, True, seed=1).state_dict()
    other = DataLoader(dataset(8), 4, True, seed=2)
    with pytest.raises(CheckpointError) as error:
        other.load_state_dict(state)
    assert "expected seed 2, batch_size 4, length 8, got seed 1, batch_size 2, length 9" in str(
        error.value
    )
    assert "shuffle" not in str(error.value)
    assert other.epoch == other.position == 0


@pytest.mark.parametrize(
    "name, value",
    [("seed", 9), ("batch_size", 3), ("length", 8), ("shuffle", True), ("drop_last", True)],
)
def test_each_setting_matters(name, value):
    loader = DataLoader(dataset(9), 2)
    with pytest.raises(CheckpointError, match=f"expected {name} .*, got {name} {value}"):
        loader.load_state_dict({**loader.state_dict(), name: value})


@pytest.mark.parametrize(
    "name, value",
    [
        ("epoch", -1),
        ("epoch", 1.0),
        ("epoch", True),
        ("position", 6),
        ("position", "1"),
        ("position", None),
    ],
)
def test_bad_numbers_are_refused(name, value):
    loader = DataLoader(dataset(9), 2)
    with pytest.raises(CheckpointError, match="expected an int from 0 to"):
        loader.load_state_dict({**loader.state_dict(), name: value})


def test_an_incomplete_state_is_refused():
    loader = DataLoader(dataset(9), 2)
    state = loader.state_dict()
    del state["length"], state["position"]
    with pytest.raises(CheckpointError, match="got none named length, position"):
        loader.load_state_dict(state)
