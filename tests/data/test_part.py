"""The parts of all ranks together are the batches, and no rank reads the rows of another."""

import json
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests.data import worker_datasets
from tinygraph.base.errors import ArgumentError, ShapeError
from tinygraph.data import (
    ArrayDataset,
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    SequentialSampler,
    Subset,
    TensorDataset,
    TransformedDataset,
    random_crop,
)
from tinygraph.data.nested import parts


def arrays(size):
    return ArrayDataset(np.arange(size * 36, dtype=np.float32).reshape(size, 1, 6, 6), range(size))


def augmented(size):
    return TransformedDataset(arrays(size), random_crop(3), seed=7)


def joined(size):
    one = size // 3
    return ConcatDataset([augmented(one), Subset(augmented(size), range(one, size))])


class Dicts(Dataset):
    """Samples with an array, a number and a text, which notes what it is asked for."""

    def __init__(self, size):
        self.size, self.asked = size, []

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        self.asked.append(index)
        return {"x": np.full(3, index), "y": index / 2, "name": f"no {index}"}


MAKERS = [
    arrays,
    augmented,
    joined,
    Dicts,
    lambda size: TensorDataset(np.arange(size), np.ones(size)),
    lambda size: Subset(augmented(size + 2), range(size, 0, -1)),
]


def merged(batches):
    """The batch of which these are the rows, in their order."""
    first = batches[0]
    if isinstance(first, dict):
        return {key: merged([batch[key] for batch in batches]) for key in first}
    if isinstance(first, tuple):
        return tuple(merged(column) for column in zip(*batches, strict=True))
    if isinstance(first, list):
        return [text for batch in batches for text in batch]
    assert len({(type(part), part.dtype, part.shape[1:]) for part in batches}) == 1
    return np.concatenate([np.asarray(part) for part in batches])


def same(found, expected):
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            same(found[key], expected[key])
    elif isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, list):
        assert found == expected
    else:
        other = np.asarray(expected)
        assert (found.dtype, found.shape) == (other.dtype, other.shape)
        assert found.tobytes() == other.tobytes()


def rows_of(rank, size, shards, samples):
    """The rows of a rank, one shard after the other: what the sentence in `part` says."""
    held = [s for s in range(shards) if shards * rank // size <= s < shards * (rank + 1) // size]
    return [r for s in held for r in range(samples * s // shards, samples * (s + 1) // shards)]


@given(
    make=st.sampled_from(MAKERS),
    samples=st.integers(1, 17),
    batch=st.integers(1, 9),
    size=st.integers(1, 5),
    shards=st.integers(1, 8) | st.none(),
    seed=st.integers(0, 2**64 - 1),
    drop_last=st.booleans(),
)
def test_all_parts_together_are_the_batches(make, samples, batch, size, shards, seed, drop_last):
    def loader():
        return DataLoader(make(samples), batch, True, drop_last=drop_last, seed=seed)

    ranks = [loader().part(rank, size, shards) for rank in range(size)]
    whole = loader()
    for _ in range(2):  # epochs
        for expected, *found in zip(whole, *ranks, strict=True):
            same(merged(found), expected)
            for rank, (part, one) in enumerate(zip(ranks, found, strict=True)):
                held = rows_of(rank, size, shards or size, part.rows.samples)
                assert list(range(part.rows.first, part.rows.stop)) == held
                assert {len(array) for array in parts(one)} == {len(held)}
            assert {part.rows.samples for part in ranks} == {whole.rows.samples}
        for part in ranks:
            assert part.state_dict() == whole.state_dict()
            assert len(part) == len(whole)
            np.testing.assert_array_equal(part.order(1), whole.order(1))


@given(
    samples=st.integers(1, 17),
    batch=st.integers(1, 6),
    before=st.integers(1, 4),
    after=st.integers(1, 4),
    cut=st.integers(0, 20),
    prefetch=st.integers(0, 2),
)
def test_a_state_is_taken_up_with_another_number_of_ranks(
    samples, batch, before, after, cut, prefetch
):
    def loaders(count):
        return [
            DataLoader(augmented(samples), batch, True, seed=3, prefetch=prefetch)
            for _ in range(count)
        ]

    [one] = loaders(1)
    whole = [batch for _ in range(3) for batch in one]
    cut = min(cut, len(one) - 1)
    first = loaders(before)
    running = [iter(loader.part(rank, before, 4)) for rank, loader in enumerate(first)]
    for expected in whole[:cut]:
        same(merged([next(iterator) for iterator in running]), expected)
    [state] = {json.dumps(loader.state_dict()) for loader in first}
    for iterator in running:
        iterator.close()
    second = loaders(after)
    ranks = [loader.part(rank, after, 4) for rank, loader in enumerate(second)]
    for loader in second:  # after the part was made
        loader.load_state_dict(json.loads(state))
    found = []
    while second[0].epoch < 3:
        found += [merged(batches) for batches in zip(*ranks, strict=True)]
    for one, expected in zip(found, whole[cut:], strict=True):
        same(one, expected)


def test_a_rank_reads_its_own_rows_and_no_others():
    whole, asked = Dicts(11), []
    list(DataLoader(whole, 4, True, seed=5))
    for rank in range(3):
        data = Dicts(11)
        part = DataLoader(data, 4, True, seed=5).part(rank, 3, 3)
        found = [index for batch in part for index in batch["x"].numpy()[:, 0].tolist()]
        assert data.asked == found
        asked += found
    assert sorted(asked) == sorted(whole.asked) == list(range(11))


def test_without_a_row_one_sample_is_read_and_the_nest_is_the_same():
    data = Dicts(5)
    part = DataLoader(data, 5).part(0, 3, 2)
    [batch] = part
    assert data.asked == [0] and part.rows == (0, 0, 5)
    assert batch["x"].shape == (0, 3) and batch["x"].dtype == "int64"
    assert batch["y"].shape == (0,) and batch["name"] == []
    part.epoch = 0
    assert part.first_batch()["x"].shape == (0, 3)


class Pair(NamedTuple):
    x: object
    weight: object


def pairs(samples):
    """A collate_fn with an array without axes, and what is no array."""
    return Pair([np.stack([x for x, _ in samples])], (np.float32(2), np.array(1.0), "kept"))


def test_what_a_collate_fn_makes():
    part = DataLoader(arrays(3), 3, collate_fn=pairs).part(0, 4)
    [batch] = part
    assert part.rows == (0, 0, 3) and isinstance(batch, Pair)
    assert batch.x[0].shape == (0, 1, 6, 6) and batch.weight == (2, 1, "kept")
    [other] = DataLoader(arrays(3), 3, collate_fn=pairs).part(3, 4)
    np.testing.assert_array_equal(other.x[0], arrays(3).inputs[2:])


def test_batches_of_a_batch_sampler_and_empty_ones():
    class Given(BatchSampler):
        def __iter__(self):
            return iter([[4, 0, 2], [], [1]])

        def __len__(self):
            return 3

    def loader():
        return DataLoader(arrays(5), batch_sampler=Given(SequentialSampler(range(5)), 1))

    one, other = loader().part(0, 2), loader().part(1, 2)
    both = zip(one, other, strict=True)
    found = [(x[1].tolist(), one.rows, y[1].tolist(), other.rows) for x, y in both]
    assert found == [
        ([4], (0, 1, 3), [0, 2], (1, 3, 3)),
        ([], (0, 0, 0), [], (0, 0, 0)),
        ([], (0, 0, 1), [1], (0, 1, 1)),
    ]


@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_rows_are_those_of_the_batch_that_was_handed_out(prefetch):
    part = DataLoader(arrays(7), 3, prefetch=prefetch).part(1, 2)
    assert part.rows is None
    assert [(len(y), part.rows) for _, y in part] == [
        (2, (1, 3, 3)),
        (2, (1, 3, 3)),
        (1, (0, 1, 1)),
    ]


def test_position_is_that_of_the_loader():
    loader = DataLoader(arrays(9), 2, True, seed=1)
    part = loader.part(0, 2)
    for received, _ in enumerate(part, 1):
        assert loader.position == part.position == received
        if received == 3:
            break
    assert loader.state_dict() == part.state_dict() and loader.rows is None
    again = DataLoader(arrays(9), 2, True, seed=1)
    rest = again.part(0, 2)
    again.load_state_dict(loader.state_dict())
    assert rest.position == 3 and len(list(rest)) == 2 and again.epoch == 1
    for _ in part:  # the epoch that was left is over, as for a loader
        break
    assert (loader.epoch, part.epoch) == (1, 1)


def test_an_epoch_that_begins_elsewhere_takes_the_position():
    loader = DataLoader(arrays(4), 1)
    first = iter(loader.part(0, 2))
    next(first)
    assert len(list(loader)) == 4 and loader.epoch == 2
    assert len(list(first)) == 3 and loader.epoch == 2


def test_more_shards_than_samples_and_fewer_than_ranks():
    shards_above = [len(y) for r in range(2) for _, y in DataLoader(arrays(3), 3).part(r, 2, 8)]
    assert shards_above == [1, 2]
    fewer = [len(y) for r in range(4) for _, y in DataLoader(arrays(3), 3).part(r, 4, 2)]
    assert fewer == [0, 1, 0, 2]


@pytest.mark.parametrize("rank, size", [(2, 2), (-1, 2), (0, 0), (True, 2), (0, 1.5), ("0", 1)])
def test_ranks_that_there_are_not(rank, size):
    with pytest.raises(ArgumentError, match=r"DataLoader\.part: (rank|size): expected an int"):
        DataLoader(arrays(3), 3).part(rank, size)


def test_bad_shards_and_parts_of_parts():
    loader = DataLoader(arrays(3), 3)
    with pytest.raises(ArgumentError, match=r"shards: expected an int of at least 1, got 0"):
        loader.part(0, 2, 0)
    with pytest.raises(ArgumentError, match="whole batches, got a part"):
        loader.part(0, 2).part(0, 1)
    [batch] = loader.part(0, 1, 4).part(0, 1)  # that of one rank has whole batches
    same(batch, arrays(3)[:])


def test_a_dataset_that_gives_too_few_rows_is_told():
    class Short(tg.data.BatchedDataset):
        def __len__(self):
            return 6

        def __getitem__(self, index):
            return np.zeros(2)

    with pytest.raises(ShapeError, match="one for each index"):
        list(DataLoader(Short(), 6).part(0, 2))


# ---- where batches are made ---------------------------------------------------------------------


@pytest.mark.second
@pytest.mark.parametrize("persistent", [False, True])
def test_with_workers(persistent):
    def loader(workers=0):
        options = {"num_workers": workers, "persistent_workers": persistent} if workers else {}
        return DataLoader(worker_datasets.augmented(), 5, True, seed=2, **options)

    whole, ranks = loader(), [loader(2).part(rank, 3, 2) for rank in range(3)]
    for _ in range(2):
        for expected, *found in zip(whole, *ranks, strict=True):
            same(merged(found), expected)
            assert [part.rows.samples for part in ranks] == [whole.rows.samples] * 3
            assert [len(one[1]) for one in found] == [r.rows.stop - r.rows.first for r in ranks]


@pytest.mark.second
@pytest.mark.parametrize("prefetch", [0, 2])
def test_on_the_way_to_a_gpu(rehearsed_cuda, prefetch):
    def loader(device):
        return DataLoader(augmented(11), 4, True, seed=2, device=device, prefetch=prefetch)

    whole, ranks = loader("cpu"), [loader("cuda").part(rank, 3, 2) for rank in range(3)]
    for expected, *found in zip(whole, *ranks, strict=True):
        assert all(part.device == "cuda" for one in found for part in one)
        on_host = [tuple(part.numpy() for part in one) for one in found]
        same(merged(on_host), expected)
        assert [len(one[1]) for one in found] == [r.rows.stop - r.rows.first for r in ranks]


@pytest.mark.second
def test_left_early_no_thread_is_left():
    import threading

    part = DataLoader(arrays(9), 1, prefetch=2).part(0, 1)
    iterator = part.batches()
    next(iterator)
    iterator.close()
    assert not any(t.name == "tinygraph-prefetch" for t in threading.enumerate())
