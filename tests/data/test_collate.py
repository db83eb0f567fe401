"""default_collate, compared with nests written out by hand."""

from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest

from tinygraph import Tensor, tensor
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.data import DataLoader, default_collate

Point = namedtuple("Point", "x y")


def plain(batch):
    """(class, dtype, numbers) for each Tensor of a batch, in the nest that it is in."""
    if isinstance(batch, Tensor):
        return str(batch.dtype), batch.numpy().tolist()
    if isinstance(batch, dict):
        return {key: plain(part) for key, part in batch.items()}
    if isinstance(batch, (tuple, list)) and not all(isinstance(x, (str, bytes)) for x in batch):
        parts = [plain(part) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch


@pytest.mark.parametrize(
    "samples, batch",
    [
        ([1, 2], ("int64", [1, 2])),
        ([1, 2.5], ("float64", [1.0, 2.5])),
        ([True, False], ("bool", [True, False])),
        ([np.float32(1), np.float32(2)], ("float32", [1.0, 2.0])),
        ([np.zeros(2, "f4"), np.ones(2, "f4")], ("float32", [[0.0, 0.0], [1.0, 1.0]])),
        ([tensor([1, 2]), tensor([3, 4])], ("int64", [[1, 2], [3, 4]])),
        (["a", "b"], ["a", "b"]),
        ([b"a", b"b"], [b"a", b"b"]),
        ([(1, "a"), (2, "b")], (("int64", [1, 2]), ["a", "b"])),
        ([[1, 2.0], [3, 4.0]], [("int64", [1, 3]), ("float64", [2.0, 4.0])]),
        ([Point(1, 2), Point(3, 4)], Point(("int64", [1, 3]), ("int64", [2, 4]))),
        ([{"x": 1, "n": {"y": 2}}] * 2, {"x": ("int64", [1, 1]), "n": {"y": ("int64", [2, 2])}}),
        ([()] * 2, ()),
    ],
)
def test_nests(samples, batch):
    found = plain(default_collate(samples))
    assert found == batch and type(found) is type(batch)


def test_a_batch_shares_no_memory_and_keeps_a_graph_where_there_is_one():
    array = np.zeros(2)
    batch = default_collate([array, array])
    batch.numpy()[...] = 1
    assert array.max() == 0 and batch.is_leaf
    w = Tensor([1.0, 2.0], requires_grad=True)
    default_collate([w, w]).sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]
    assert default_collate([Tensor([1.0])] * 2).is_leaf


class Ragged:
    """Sample 5 is longer than the others."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return {"audio": np.zeros(4 if index == 5 else 3), "label": index}


def test_a_ragged_batch_names_the_sample_and_the_shapes():
    batches = iter(DataLoader(Ragged(), batch_size=2))
    assert [next(batches)["audio"].shape for _ in range(2)] == [(2, 3)] * 2
    message = r"sample 5\['audio'\]: expected the shape \(3,\) of sample 4.*got \(4,\).*collate_fn"
    with pytest.raises(ShapeError, match=message):
        next(batches)


@pytest.mark.parametrize(
    "samples, error, message",
    [
        ([], ArgumentError, "at least one, got none"),
        ([None, None], DtypeError, "sample 0: expected numbers.*got a NoneType"),
        ([(1, object())] * 2, DtypeError, r"sample 0\[1\]: expected numbers.*got a object"),
        ([SimpleNamespace()], DtypeError, "got a SimpleNamespace"),
        ([np.array(["a"])] * 2, DtypeError, "got an array of <U1"),
        ([np.array([1j])] * 2, DtypeError, "got an array of complex128"),
        ([1, "a"], DtypeError, "sample 1: expected what sample 0 has there, a int, got a str"),
        ([(1, 2), (1, 2), (1,)], ShapeError, "sample 2: expected the length 2.*got 1"),
        ([{"x": 1}, {"y": 1}], ShapeError, r"sample 1: expected the keys \['x'\].*got \['y'\]"),
        ([Tensor([1.0]), Tensor([1.0, 2.0])], ShapeError, r"shape \(1,\) of sample 0.*got \(2,\)"),
        ([Tensor([1.0]), np.ones(1)], DtypeError, "a Tensor, got a ndarray"),
    ],
)
def test_samples_that_do_not_go_together(samples, error, message):
    with pytest.raises(error, match=message):
        default_collate(samples)
