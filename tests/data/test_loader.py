"""ArrayDataset and DataLoader."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygraph.base.errors import ArgumentError, ShapeError
from tinygraph.data import ArrayDataset, DataLoader
from tinygraph.data.dataset import SHUFFLE_STREAM, permutation

SIZES = st.integers(0, 40)
BATCHES = st.integers(1, 50)
SEEDS = st.integers(0, 2**64 - 1)


def numbered(size):
    """A dataset whose labels are the indices of its samples, and its inputs minus those."""
    return ArrayDataset(-np.arange(size, dtype=np.float32)[:, None], np.arange(size))


def epoch(loader):
    return [labels.tolist() for _, labels in loader]


def flat(batches):
    return [label for batch in batches for label in batch]


@given(size=SIZES, batch=BATCHES, seed=SEEDS, shuffle=st.booleans())
def test_every_sample_once_per_epoch(size, batch, seed, shuffle):
    loader = DataLoader(numbered(size), batch, shuffle, seed=seed)
    for _ in range(2):
        batches = epoch(loader)
        assert sorted(flat(batches)) == list(range(size))
        assert len(batches) == len(loader)
        assert all(len(b) == batch for b in batches[:-1])


@given(size=SIZES, batch=BATCHES, seed=SEEDS)
def test_drop_last_keeps_whole_batches_only(size, batch, seed):
    loader = DataLoader(numbered(size), batch, True, seed=seed, drop_last=True)
    batches = epoch(loader)
    assert [len(b) for b in batches] == [batch] * (size // batch)
    assert len(set(flat(batches))) == size // batch * batch


@given(batch=BATCHES, seed=SEEDS)
def test_inputs_stay_with_their_labels(batch, seed):
    for inputs, labels in DataLoader(numbered(20), batch, True, seed=seed):
        np.testing.assert_array_equal(inputs[:, 0], -labels)


def test_order_depends_on_seed_and_epoch_alone():
    a, b = (DataLoader(numbered(50), 7, True, seed=3) for _ in range(2))
    first, second = epoch(a), epoch(a)
    assert first != second
    assert epoch(b) == first
    b.epoch = 0
    assert epoch(b) == first
    assert epoch(DataLoader(numbered(50), 7, True, seed=4)) != first


def test_order_is_the_ranks_of_philox_words():
    """The same numbers from numpy's Philox, with the counter placed by hand."""
    key = (SHUFFLE_STREAM << 64) | 5
    generator = np.random.Philox(key=key, counter=(2 << 128) - 1)
    expected = np.argsort(generator.random_raw(30))
    np.testing.assert_array_equal(permutation(30, 5, SHUFFLE_STREAM, 2), expected)
    loader = DataLoader(numbered(30), 30, True, seed=5)
    loader.epoch = 2
    assert epoch(loader) == [expected.tolist()]


def test_first_positions_of_shuffles_are_uniform():
    """Chi-squared over which sample comes first: 10 classes, 2,000 epochs, 99.9% quantile 27.9."""
    loader = DataLoader(numbered(10), 10, True, seed=0)
    counts = np.bincount([loader.order(e)[0] for e in range(2000)], minlength=10)
    assert ((counts - 200) ** 2 / 200).sum() < 27.9


def test_epoch_counts_up_when_an_epoch_ends():
    loader = DataLoader(numbered(4), 2, True)
    places = [(loader.epoch, loader.position) for _ in loader]
    assert places == [(0, 1), (0, 2)]
    assert (loader.epoch, loader.position) == (1, 0)


def test_a_for_after_one_left_early_starts_the_next_epoch():
    loader = DataLoader(numbered(9), 2, True, seed=1)
    for _ in loader:
        break
    assert (loader.epoch, loader.position) == (0, 1)
    expected = DataLoader(numbered(9), 2, True, seed=1)
    expected.epoch = 1
    assert epoch(loader) == epoch(expected)
    assert loader.epoch == 2


def test_two_iterators_go_through_two_epochs_and_the_newer_one_is_the_state():
    loader, other = (DataLoader(numbered(6), 2, True, seed=1) for _ in range(2))
    pairs = list(zip(loader, loader, strict=True))
    first, second = ([pair[i][1].tolist() for pair in pairs] for i in range(2))
    assert [first, second] == [epoch(other), epoch(other)]
    assert loader.epoch == 2
    older, newer = iter(loader), iter(loader)
    next(newer)
    place = loader.epoch, loader.position
    list(older)
    assert (loader.epoch, loader.position) == place


def test_assigning_the_epoch_starts_it_anew():
    loader, other = (DataLoader(numbered(9), 2, True, seed=1) for _ in range(2))
    for _ in loader:
        break
    loader.epoch = 0
    assert loader.position == 0
    assert epoch(loader) == epoch(other)
    with pytest.raises(ArgumentError, match="epoch: expected an int of at least 0, got -1"):
        loader.epoch = -1


def test_batches_are_copies():
    data = numbered(4)
    for inputs, _ in DataLoader(data, 2):
        inputs[...] = 9
    assert data.inputs.max() == 0


@pytest.mark.parametrize("bad", [0, -1, 2.0, "3", None])
def test_bad_batch_size(bad):
    with pytest.raises(ArgumentError, match="batch_size: expected an int of at least 1"):
        DataLoader(numbered(3), bad)


@pytest.mark.parametrize("bad", [-1, 1 << 64, 0.5, "a"])
def test_bad_seed(bad):
    with pytest.raises(ArgumentError, match="seed"):
        DataLoader(numbered(3), 1, True, seed=bad)
    with pytest.raises(ArgumentError, match="seed"):
        numbered(3).split(0.5, bad)


# ---- ArrayDataset ---------------------------------------------------------------------------


def test_indexing():
    data = numbered(5)
    assert data[2][1] == 2 and data[-1][1] == 4
    assert data[1:3][1].tolist() == [1, 2]
    assert data[np.array([4, 0])][0].ravel().tolist() == [-4.0, 0.0]
    with pytest.raises(IndexError):
        data[5]


@given(size=SIZES, fraction=st.floats(0, 1), seed=SEEDS)
def test_split_is_a_partition_fixed_by_the_seed(size, fraction, seed):
    first, second = numbered(size).split(fraction, seed)
    assert len(first) == round(fraction * size)
    assert sorted([*first.labels, *second.labels]) == list(range(size))
    again, _ = numbered(size).split(fraction, seed)
    assert again.labels.tolist() == first.labels.tolist()


def test_split_differs_between_seeds_and_keeps_names():
    data = ArrayDataset(np.zeros(100), np.arange(100), "hundred", ["a", "b"])
    (a, _), (b, rest) = data.split(0.5, 0), data.split(0.5, 1)
    assert a.labels.tolist() != b.labels.tolist()
    assert rest.name == "hundred" and rest.classes == ("a", "b")


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_bad_fraction(bad):
    with pytest.raises(ArgumentError, match="fraction"):
        numbered(3).split(bad, 0)


def test_lengths_must_agree():
    with pytest.raises(ShapeError, match="expected 3, one for each sample, got 2"):
        ArrayDataset(np.zeros((3, 2)), [0, 1])
    with pytest.raises(ShapeError, match="at least one axis"):
        ArrayDataset(1.0, [0])
