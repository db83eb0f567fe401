"""Batches of the same samples: those of PyTorch's DataLoader, where PyTorch is installed."""

from collections import namedtuple

import numpy as np
import pytest

import tinygraph as tg

torch = pytest.importorskip("torch", reason="compares with PyTorch")

Point = namedtuple("Point", "x y")

SAMPLES = {
    "int": lambda i: i,
    "float": lambda i: i + 0.5,
    "bool": lambda i: i > 3,
    "numpy float": np.float32,
    "array": lambda i: np.full((2, 3), i, np.float32),
    "array without axes": np.array,
    "bytes": lambda i: b"x",
    "tuple": lambda i: (i, np.zeros(2), str(i)),
    "named tuple": lambda i: Point(i, float(i)),
    "dict": lambda i: {"a": i, "b": [i, (i, {"c": np.ones(1, np.uint8)})]},
}
OPTIONS = [
    {},
    {"batch_size": 3},
    {"batch_size": 3, "drop_last": True},
    {"batch_size": 2, "sampler": [5, 1, 1]},
    {"batch_sampler": [[0, 1], [6]]},
    {"batch_size": 4, "collate_fn": len},
]


class Made:
    def __init__(self, make):
        self.make = make

    def __len__(self):
        return 7

    def __getitem__(self, index):
        return self.make(index)


def plain(batch):
    """Dtypes and numbers; PyTorch makes a list of a tuple."""
    if isinstance(batch, (torch.Tensor, tg.Tensor)):
        return str(batch.dtype).removeprefix("torch."), batch.numpy().tolist()
    if isinstance(batch, dict):
        return {key: plain(part) for key, part in batch.items()}
    if isinstance(batch, (tuple, list)):
        return [plain(part) for part in batch]
    return batch


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("make", SAMPLES.values(), ids=SAMPLES)
def test_the_same_batches(make, options):
    ours = tg.data.DataLoader(Made(make), **options)
    theirs = torch.utils.data.DataLoader(Made(make), **options)
    assert len(ours) == len(theirs)
    assert [plain(batch) for batch in ours] == [plain(batch) for batch in theirs]


@pytest.mark.parametrize("lengths", [[3, 4], [0.3, 0.7], [0.5, 0.25, 0.25]])
def test_parts_as_long(lengths):
    ours = tg.data.random_split(range(7), lengths)
    theirs = torch.utils.data.random_split(range(7), lengths)
    assert [len(part) for part in ours] == [len(part) for part in theirs]
