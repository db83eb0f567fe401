"""Samplers: pure functions of seed and epoch, with the odds that they promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygraph.base.errors import ArgumentError
from tinygraph.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from tinygraph.engine.random import Generator

SEEDS = st.integers(0, 2**64 - 1)
KINDS = {
    "random": lambda seed: RandomSampler(range(9), seed=seed),
    "replacement": lambda seed: RandomSampler(range(9), True, 12, seed=seed),
    "subset": lambda seed: SubsetRandomSampler([5, 3, 8, 1, 0], seed=seed),
    "weighted": lambda seed: WeightedRandomSampler(np.arange(9), 12, seed=seed),
    "weighted once": lambda seed: WeightedRandomSampler(np.arange(9), 8, False, seed=seed),
}


@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS, epoch=SEEDS)
def test_an_order_is_a_pure_function_of_seed_and_epoch(kind, seed, epoch):
    sampler = KINDS[kind](seed)
    now = sampler.for_epoch(epoch)
    assert list(now) == list(now) == list(KINDS[kind](seed).for_epoch(epoch))
    assert len(list(now)) == len(now) == len(sampler)
    assert sampler.epoch == 0 and {type(i) for i in now} == {int}


@pytest.mark.parametrize("kind", KINDS)
def test_epochs_and_seeds_differ(kind):
    orders = [list(KINDS[kind](s).for_epoch(e)) for s, e in ((0, 0), (0, 1), (1, 0))]
    assert orders[0] != orders[1] != orders[2] != orders[0]
    loader = DataLoader(list(range(9)), sampler=KINDS[kind](0))
    assert [[b.item() for b in loader] for _ in range(2)] == orders[:2]


@given(size=st.integers(0, 30), seed=SEEDS)
def test_without_replacement_each_comes_once(size, seed):
    assert sorted(RandomSampler(range(size), seed=seed)) == list(range(size))
    indices = [i * i for i in range(size)]
    assert sorted(SubsetRandomSampler(indices, seed=seed)) == indices
    once = WeightedRandomSampler(np.ones(size + 1), size + 1, False, seed=seed)
    assert sorted(once) == list(range(size + 1))
    assert len(set(RandomSampler(range(size + 3), num_samples=2, seed=seed))) == 2


def squared_error(counts, expected):
    return ((counts - expected) ** 2 / expected).sum()


def test_weights_are_odds():
    """Chi-squared, 3 degrees, 99.9% quantile 16.3; what has no weight never comes."""
    weights = np.array([0, 1, 2, 0, 3, 4, 0])
    drawn = np.bincount(list(WeightedRandomSampler(weights, 10_000)), minlength=7)
    assert drawn[weights == 0].sum() == 0
    assert squared_error(drawn[weights > 0], 1000 * weights[weights > 0]) < 16.3
    sampler = WeightedRandomSampler(weights, 1, replacement=False)
    first = np.bincount([next(iter(sampler.for_epoch(e))) for e in range(2000)], minlength=7)
    assert first[weights == 0].sum() == 0
    assert squared_error(first[weights > 0], 200 * weights[weights > 0]) < 16.3


def test_the_second_of_two_without_replacement():
    """P(2 then 1) = p2 * p1 / (1 - p2), by hand, for weights 1, 2, 3; 5 degrees: 20.5."""
    p = np.array([1, 2, 3]) / 6
    pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
    expected = np.array([p[i] * p[j] / (1 - p[i]) for i, j in pairs]) * 3000
    sampler = WeightedRandomSampler([1, 2, 3], 2, replacement=False)
    found = [tuple(sampler.for_epoch(e)) for e in range(3000)]
    assert squared_error(np.array([found.count(pair) for pair in pairs]), expected) < 20.5


def test_with_replacement_all_are_as_likely():
    drawn = np.bincount(list(RandomSampler(range(10), True, 10_000)), minlength=10)
    assert squared_error(drawn, np.full(10, 1000.0)) < 27.9


@given(size=st.integers(0, 20), batch=st.integers(1, 7), drop_last=st.booleans())
def test_batches_of_a_sampler(size, batch, drop_last):
    batches = list(BatchSampler(SequentialSampler(range(size)), batch, drop_last))
    expected = [list(range(size))[i : i + batch] for i in range(0, size, batch)]
    if drop_last:
        expected = [b for b in expected if len(b) == batch]
    assert batches == expected
    assert len(BatchSampler(SequentialSampler(range(size)), batch, drop_last)) == len(expected)


def test_a_batch_sampler_takes_the_sampler_along_to_its_epoch():
    inner = RandomSampler(range(6), seed=2)
    batches = BatchSampler(inner, 2).for_epoch(5)
    assert [i for batch in batches for i in batch] == list(inner.for_epoch(5))


def test_a_sampler_of_ones_own():
    class EveryOther(Sampler):
        def __len__(self):
            return 3

        def __iter__(self):
            return iter(range(self.epoch % 2, 6, 2))

    loader = DataLoader(list(range(6)), 3, sampler=EveryOther())
    assert [b.numpy().tolist() for _ in range(2) for b in loader] == [[0, 2, 4], [1, 3, 5]]


def test_batches_of_ones_own():
    class Pairs(BatchSampler):
        def __iter__(self):
            return iter([[5, 5], [self.epoch]])

    loader = DataLoader(list(range(6)), batch_sampler=Pairs(range(6), 2))
    assert [b.numpy().tolist() for _ in range(2) for b in loader] == [[5, 5], [0], [5, 5], [1]]


def test_a_generator_gives_the_seed():
    assert list(RandomSampler(range(9), generator=Generator(seed=3))) == list(
        RandomSampler(range(9), seed=3)
    )


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: RandomSampler(range(3), num_samples=4),
            "num_samples: expected an int from 1 to 3",
        ),
        (lambda: RandomSampler(range(3), True, 0), "num_samples: expected an int of at least 1"),
        (lambda: RandomSampler(range(3), seed=-1), "seed"),
        (lambda: SubsetRandomSampler([0.5]), "indices: expected an iterable of ints"),
        (lambda: WeightedRandomSampler([1, -1], 1), "weights: expected finite numbers"),
        (lambda: WeightedRandomSampler([1, np.nan], 1), "weights: expected finite numbers"),
        (lambda: WeightedRandomSampler([[1.0]], 1), "weights: expected finite numbers"),
        (lambda: WeightedRandomSampler([0, 0], 1), "at least one above 0"),
        (lambda: WeightedRandomSampler([], 1), "at least one above 0"),
        (lambda: WeightedRandomSampler([1, 0], 2, False), "from 1 to 1"),
        (lambda: BatchSampler(range(3), 0), "batch_size"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_the_bases_say_what_they_lack():
    with pytest.raises(NotImplementedError, match="Sampler has no __iter__"):
        iter(Sampler())
