"""default_collate: how samples become a batch.

samples     ({"x": (3,)}, 0)   ({"x": (3,)}, 1)      each a nest of tuples, lists and dicts
batch       ({"x": (2, 3)}, (2,))                    the same nest, with a first axis
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, DtypeError, ShapeError, unmasked
from tinygraph.data.nested import like
from tinygraph.engine import Tensor, leaf
from tinygraph.ops import stack

_TEXT = (str, bytes)
_NUMBER = (bool, int, float, np.generic)


def default_collate(samples: Sequence[Any]) -> Any:
    """A batch of samples: the nest of a sample, with the samples of the batch on a first axis.

    ================================  ============================================
    each sample is                    the batch is
    ================================  ============================================
    an array, a Tensor: shape S       a Tensor (N, *S)
    a bool, int, float                a Tensor (N,): bool, int64, float64
    a string, bytes                   the list of them
    a dict                            a dict of batches, with the keys of a sample
    a tuple, named tuple, list        one of batches, as long as a sample
    ================================  ============================================

    Parameters
    ----------
    samples : sequence
        At least one.

    Raises
    ------
    ShapeError
        Arrays of several shapes; tuples or lists of several lengths, dicts of several keys.
    DtypeError
        Something else in a sample, such as None, or in some samples only.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> tg.data.default_collate([{"x": np.zeros(2), "name": "a"}, {"x": np.ones(2), "name": "b"}])
    {'x': Tensor([[0., 0.],
            [1., 1.]], dtype=float64), 'name': ['a', 'b']}
    """
    return collate(samples, range(len(samples)))


def pair_of(batch: Any) -> tuple[Any, Any]:
    """A batch as inputs and labels, which is what a training asks for.

    Raises
    ------
    ArgumentError
        It is something else: a dict would be taken for its keys.

    >>> pair_of([[1.0, 2.0], [0, 1]])
    ([1.0, 2.0], [0, 1])
    """
    if isinstance(batch, (tuple, list)) and len(batch) == 2:
        return batch[0], batch[1]
    kind = type(batch).__name__
    of = f" of {list(batch)}" if isinstance(batch, Mapping) else ""
    got = f"a {kind} of {len(batch)}" if isinstance(batch, (tuple, list)) else f"a {kind}{of}"
    way_out = "samples (inputs, label), made by the dataset or by collate_fn; or a loop of your own"
    raise ArgumentError("Trainer", "batch", "a pair (inputs, labels)", got, way_out)


def collate(samples: Sequence[Any], numbers: Sequence[int], where: str = "") -> Any:
    """What `default_collate` gives; errors call the samples by their numbers in the dataset."""
    if not samples:
        raise ArgumentError("default_collate", "samples", "at least one", "none")
    first = samples[0]
    for kinds, together in (
        ((Tensor,), _tensors),
        ((np.ndarray,), _arrays),
        (_NUMBER, _arrays),
        (_TEXT, lambda texts, *_: list(texts)),
        ((Mapping,), _mappings),
        ((tuple, list), _sequences),
    ):
        if isinstance(first, kinds):
            _all_of(kinds, samples, numbers, where)
            return together(samples, numbers, where)
    raise _unknown(first, numbers[0], where)


def _arrays(arrays: Sequence[Any], numbers: Sequence[int], where: str) -> Tensor:
    _one_shape([np.shape(array) for array in arrays], numbers, where)
    together = np.stack(unmasked("default_collate", f"samples{where}", arrays))
    if together.dtype.kind not in "fiub" or together.dtype.itemsize > 8:
        raise _unknown(arrays[0], numbers[0], where)
    return leaf(together)


def _tensors(tensors: Sequence[Tensor], numbers: Sequence[int], where: str) -> Tensor:
    _one_shape([tensor.shape for tensor in tensors], numbers, where)
    together = stack(tensors)
    return together if together.requires_grad else together.detach()


def _mappings(dicts: Sequence[Any], numbers: Sequence[int], where: str) -> dict[Any, Any]:
    keys = list(dicts[0])
    for number, sample in zip(numbers, dicts, strict=True):
        if set(sample) != set(keys):
            raise ShapeError(
                "default_collate",
                f"sample {number}{where}",
                f"the keys {keys} of sample {numbers[0]}",
                list(sample),
                "give every sample the same keys, or pass a collate_fn",
            )
    return {key: collate([d[key] for d in dicts], numbers, f"{where}[{key!r}]") for key in keys}


def _sequences(sequences: Sequence[Any], numbers: Sequence[int], where: str) -> Any:
    first = sequences[0]
    _one_shape([(len(sequence),) for sequence in sequences], numbers, where, "length")
    columns = enumerate(zip(*sequences, strict=True))
    return like(first, [collate(column, numbers, f"{where}[{i}]") for i, column in columns])


def _all_of(kinds: Any, samples: Sequence[Any], numbers: Sequence[int], where: str) -> None:
    for number, sample in zip(numbers, samples, strict=True):
        if not isinstance(sample, kinds):
            raise DtypeError(
                "default_collate",
                f"sample {number}{where}",
                f"what sample {numbers[0]} has there, a {type(samples[0]).__name__}",
                f"a {type(sample).__name__}",
                "give every sample the same types, or pass a collate_fn",
            )


def _one_shape(
    shapes: Sequence[Any], numbers: Sequence[int], where: str, what: str = "shape"
) -> None:
    for number, shape in zip(numbers, shapes, strict=True):
        if shape != shapes[0]:
            expected, got = (s if what == "shape" else s[0] for s in (shapes[0], shape))
            raise ShapeError(
                "default_collate",
                f"sample {number}{where}",
                f"the {what} {expected} of sample {numbers[0]}, for both are in one batch",
                got,
                "pad or crop in the dataset, or pass a collate_fn",
            )


def _unknown(found: Any, number: int, where: str) -> DtypeError:
    kind = f"an array of {found.dtype}" if hasattr(found, "dtype") else f"a {type(found).__name__}"
    return DtypeError(
        "default_collate",
        f"sample {number}{where}",
        "numbers, arrays, Tensors or strings, in tuples, lists or dicts",
        kind,
        "leave it out of the sample, or pass a collate_fn",
    )
