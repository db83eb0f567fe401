"""Datasets with very many samples: what is asked for costs, and not how many there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygraph.data import Dataset, TransformedDataset, dataset, image_folder, random_split
from tinygraph.data.dataset import SHUFFLE_STREAM, chosen, permutation

INDICES = st.one_of(
    st.integers(-9, 9),
    st.integers(-9, 9).map(np.int8),
    st.lists(st.integers(-9, 9), max_size=8),
    st.lists(st.integers(0, 9), max_size=8).map(lambda found: np.array(found, np.uint8)),
    st.lists(st.booleans(), min_size=7, max_size=7).map(np.array),
    st.slices(7),
)


@given(index=INDICES)
def test_places_are_those_of_numpy(index):
    try:
        expected = np.arange(7)[index]
    except IndexError:
        with pytest.raises(IndexError, match="sample -?[0-9] of 7"):
            chosen(index, 7)
        return
    found = chosen(index, 7)
    assert (found.dtype, found.shape) == (np.int64, expected.shape)
    np.testing.assert_array_equal(found, expected)


class Endless(Dataset):
    """More samples than a list could have."""

    def __len__(self):
        return 1 << 60

    def __getitem__(self, index):
        return np.int64(index), 0


def test_a_sample_costs_the_same_however_many_there_are():
    data = TransformedDataset(Endless(), lambda inputs, target, draws: (inputs + 1, target))
    assert data[1 << 59] == ((1 << 59) + 1, 0) and data[-1][0] == 1 << 60
    assert data[[7, -2]][0].tolist() == [8, (1 << 60) - 1]
    assert data[5:7][0].tolist() == [6, 7]


class Words:
    """In the place of Philox: few different words, so that many are equal."""

    def __init__(self, seed, stream, step):
        self.rng = np.random.default_rng((seed, step))

    def random_raw(self, size):
        return self.rng.integers(0, 50, size, np.uint64)


@pytest.mark.parametrize("size", [0, 1, 2, 40, 1000])
def test_equal_words_stand_in_the_order_in_which_they_were_drawn(size, monkeypatch):
    monkeypatch.setattr(dataset, "philox", Words)
    words = Words(3, SHUFFLE_STREAM, 5).random_raw(size).tolist()
    expected = sorted(range(size), key=lambda i: (words[i], i))
    assert permutation(size, 3, SHUFFLE_STREAM, 5).tolist() == expected


def test_a_split_holds_its_indices_once():
    part, other = random_split(range(1000), [900, 100], seed=4)
    assert type(part.indices) is list and type(part.indices[0]) is int
    assert [part[i] for i in range(900)] == part.indices == part.for_epoch(3).indices
    assert sorted(part.indices + other.indices) == list(range(1000))
    held = [value.nbytes for value in vars(part).values() if isinstance(value, np.ndarray)]
    assert held == [900 * 8] and not any(isinstance(value, list) for value in vars(part).values())


def test_an_image_folder_decodes_what_is_asked_for(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for number in range(3):
        image.new("L", (2, 2), number).save(tmp_path / f"{number}.png")
    data = image_folder(tmp_path, mode="L")
    for number in (0, 2):
        (tmp_path / f"{number}.png").write_bytes(b"no image")
    assert data[1][0].max() == data[[1, -2]][0].max() == np.float32(1 / 255)
