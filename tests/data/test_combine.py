"""TensorDataset, Subset, ConcatDataset, random_split."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygraph import Tensor
from tinygraph.base.errors import ArgumentError, ShapeError
from tinygraph.data import (
    ArrayDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    Subset,
    TensorDataset,
    TransformedDataset,
    random_crop,
    random_split,
)

X, Y = np.arange(20, dtype=np.float32).reshape(10, 2), np.arange(10)


def test_tensor_dataset():
    data = TensorDataset(Tensor(X), Y)
    x, y = data[3]
    assert isinstance(y, Tensor) and (x.numpy().tolist(), y.item()) == ([6.0, 7.0], 3)
    assert [t.shape for t in data[2:5]] == [(3, 2), (3,)]
    for images, labels in DataLoader(data, 4, shuffle=True, seed=1):
        assert images.is_leaf and labels.is_leaf
        np.testing.assert_array_equal(images, X[labels.numpy()])
    with pytest.raises(ShapeError, match=r"tensors\[1\]: expected 10 samples.*got 9"):
        TensorDataset(X, Y[:9])
    with pytest.raises(ShapeError, match=r"tensors\[0\]: expected at least one axis"):
        TensorDataset(Tensor(1.0))
    with pytest.raises(ArgumentError, match="at least one, got none"):
        TensorDataset()


def test_a_tensor_dataset_keeps_the_graph_of_what_requires_a_gradient():
    w = Tensor(X, requires_grad=True)
    [(rows,)] = DataLoader(TensorDataset(w), batch_sampler=[[1, 1]])
    rows.sum().backward()
    assert w.grad[:3].tolist() == [[0, 0], [2, 2], [0, 0]]


def test_subset():
    data = Subset(ArrayDataset(X, Y), [7, 2, -1])
    assert len(data) == 3 and data[1][1] == 2 and data[2][1] == 9
    [(x, y)] = DataLoader(data, 3)
    assert type(x) is np.ndarray and y.tolist() == [7, 2, 9]
    np.testing.assert_array_equal(x, X[[7, 2, 9]])
    nested = Subset(Subset(list("abcdef"), [1, 3, 5]), [2, 0])
    assert [*nested] == ["f", "b"] and next(iter(DataLoader(nested, 2))) == ["f", "b"]
    with pytest.raises(IndexError):
        data[3]


@pytest.mark.parametrize("indices", [[10], [-11], [0.5], ["a"], 3])
def test_indices_that_are_refused(indices):
    with pytest.raises(ArgumentError, match="Subset: indices"):
        Subset(ArrayDataset(X, Y), indices)


def test_concat():
    data = ConcatDataset([["a", "b"], [], range(3)])
    assert [data[i] for i in range(-5, 5)] == ["a", "b", 0, 1, 2] * 2
    assert data.cumulative_sizes == [2, 2, 5]
    for outside in (5, -6):
        with pytest.raises(IndexError):
            data[outside]
    with pytest.raises(ArgumentError, match="datasets: expected at least one"):
        ConcatDataset([])


def test_datasets_inside_learn_the_epoch():
    images = np.arange(400).reshape(4, 1, 10, 10)
    inner = TransformedDataset(ArrayDataset(images, np.arange(4)), random_crop(1), seed=3)
    expected = inner.for_epoch(2)[:][0].ravel().tolist()
    for outer in (Subset(inner, range(4)), ConcatDataset([inner])):
        assert [outer.for_epoch(2)[i][0].item() for i in range(4)] == expected
    loader = DataLoader(Subset(inner, range(4)), 4)
    loader.epoch = 2
    assert next(iter(loader))[0].ravel().tolist() == expected


@given(size=st.integers(0, 40), cut=st.floats(0, 1), seed=st.integers(0, 2**64 - 1))
def test_a_split_is_a_partition_fixed_by_the_seed(size, cut, seed):
    parts = random_split(range(size), [cut, 1 - cut], seed=seed)
    assert sorted([*parts[0], *parts[1]]) == list(range(size))
    assert abs(len(parts[0]) - cut * size) < 2
    again = random_split(range(size), [len(part) for part in parts], seed=seed)
    assert [[*part] for part in again] == [[*part] for part in parts]


def test_shares_round_down_and_the_rest_goes_to_the_first():
    assert [len(p) for p in random_split(range(10), [0.33, 0.33, 0.34])] == [4, 3, 3]
    assert [len(p) for p in random_split(range(11), [0.25] * 4)] == [3, 3, 3, 2]
    assert [*random_split(range(99), [99], seed=1)[0]] != [*random_split(range(99), [99])[0]]


@pytest.mark.parametrize("lengths", [[5, 4], [0.5, 0.6], [11, -1], [1.5, -0.5], ["a"], [None]])
def test_lengths_that_are_refused(lengths):
    with pytest.raises(ArgumentError, match="random_split: lengths"):
        random_split(range(10), lengths)


def test_the_base_says_what_it_lacks():
    with pytest.raises(NotImplementedError, match=r"Dataset has no __getitem__\(index\)"):
        Dataset()[0]
