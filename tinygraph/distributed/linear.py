"""Linear: a layer whose weights are split among the ranks; Krizhevsky's switch.

    I O      input and output features of the layer          K    ranks
    n N      samples of this rank, of all ranks

Data parallel ranks all have the weights, and add gradients up.  Where a layer is wide that is many
bytes; here each rank has O / K of the output features (split="out") or I / K of the input features
(split="in"), and samples travel:

    split="out"   x (n, I) -> all rows (N, I) -> w_r x (N, O/K) -> own rows, all features (n, O)
    split="in"    x (n, I) -> all rows, own features (N, I/K) -> w_r x (N, O) -> sum of own rows

Backward goes the same way in reverse.  `scheme` says which rows travel at a time:

    "a"      those of all ranks at once
    "b"      those of rank 0, then those of rank 1, ...: K turns
    "c"      1/K of the rows of each rank, then the next: K turns
    "same"   none, for all ranks have the same rows: each computes its nodes, which all get

The numbers are those of one layer in one process, to rounding.  In a world of one it is that layer.

Source: Krizhevsky, "One weird trick for parallelizing convolutional neural networks",
arXiv:1404.5997 (schemes a, b, c); the project nnP, 2015, github.com/nickoppen/nnP ("same": each
core owns its part of the nodes of every layer).
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

from tinygraph import nn
from tinygraph.base import one_of
from tinygraph.distributed import functions
from tinygraph.distributed.collective_ops import Counts
from tinygraph.distributed.joined import world
from tinygraph.distributed.split import Parted, SplitParameter, owner_of
from tinygraph.distributed.tree_sum import share
from tinygraph.engine import Tensor, as_tensor
from tinygraph.ops.products.linear import linear
from tinygraph.ops.shaping.concatenate import concatenate

SPLITS, SCHEMES = ("out", "in"), ("a", "b", "c", "same")


class Linear(nn.Linear):
    """`nn.Linear` with its weights split among the ranks of a launch.

    Parameters
    ----------
    in_features, out_features : int
        Of the whole layer.
    bias : bool
    split : {"out", "in"}
        Whether a rank has some of the output features or some of the input features.
    scheme : {"a", "b", "c", "same"}
        Which samples are computed at a time: all; one rank's after the other's; a part of each
        rank's.  "same": the ranks have the same samples.  A model has either these or the others.
    dtype : dtype
        Of the parameters; the input must have it too.

    Attributes
    ----------
    weight : Parameter (O, I)
        Of several ranks this one's part: (O / K, I) or (O, I / K).  All ranks draw the whole weight
        as `nn.Linear` does, and each keeps its part: a seed gives the same numbers on any number of
        ranks.
    bias : Parameter (O,) or None
        With split="out" the part of this rank.

    Raises
    ------
    ArgumentError
        An unknown split or scheme.
    DeviceError
        When called: several ranks, and an input on a GPU.

    Notes
    -----
    Input and output are the samples of this rank, as in `nn.Linear`.  All ranks call the layer, and
    backward, together, with a loss that counts by its share of the batch: as `Trainer` and
    `data_parallel` have it.  `state_dict`, that of an optimiser, and clipping by the norm are those
    of the whole weight, and needed from all ranks.

    References
    ----------
    Krizhevsky, "One weird trick for parallelizing convolutional neural networks", arXiv:1404.5997.

    Examples
    --------
    >>> import tinygraph as tg
    >>> layer = tg.distributed.Linear(3, 4, split="out", scheme="b")
    >>> layer(tg.ones((5, 3))).shape, layer.owner_of(3)
    ((5, 4), 0)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        split: str = "out",
        scheme: str = "a",
        dtype: Any = np.float32,
    ) -> None:
        self.split = one_of("Linear", "split", split, SPLITS)
        self.scheme = one_of("Linear", "scheme", scheme, SCHEMES)
        super().__init__(in_features, out_features, bias, dtype=dtype)
        self.spans_ranks = world().size > 1
        if not self.spans_ranks:
            return
        total, axis = (out_features, 0) if split == "out" else (in_features, 1)
        self._parted = Parted(axis, total, scheme == "same")
        self.weight = SplitParameter(self.weight.value, self._parted, name="weight")
        if self.bias is not None and split == "out":
            self.bias = SplitParameter(self.bias.value, self._parted, name="bias")

    def reset_parameters(self) -> None:
        """Draw the parameters anew: the whole ones, of which each rank keeps its part."""
        if self.weight.parted is None:
            super().reset_parameters()
            return
        drawn = nn.Linear(
            self.in_features, self.out_features, self.bias is not None, dtype=self.weight.dtype
        )
        self.load_state_dict(drawn.state_dict())

    def owner_of(self, index: int) -> int:
        """The rank that has an output feature, a node; with split="in" an input feature."""
        return owner_of(index, self.out_features if self.split == "out" else self.in_features)

    def forward(self, x: Any) -> Tensor:
        x = as_tensor(x)
        if not self.spans_ranks:
            return super().forward(x)
        if self.scheme == "same":
            return self._of_the_same(x)
        rows = functions.rows_of_ranks(x.shape[0] if x.ndim else 0, "Linear")
        if self.scheme == "a":
            y = self._of_rows(x, rows)
        else:
            parts = [
                self._of_rows(x[first:stop], counts)
                for counts, (first, stop) in turns(rows, self.scheme, world().rank)
            ]
            y = concatenate(parts)
        return y + self.bias if self.split == "in" and self.bias is not None else y

    def _of_rows(self, x: Tensor, rows: Counts) -> Tensor:
        """The rows that ranks bring to one turn: (n, I) -> (n, O)."""
        sizes = tuple(self._parted.sizes)
        if self.split == "out":
            every = functions.all_gather_rows(x, rows)  # (N, I)
            y = linear(every, self.weight, self.bias)  # (N, O/K)
            return functions.columns_to_rows(y, rows, sizes)
        every = functions.rows_to_columns(x, rows, sizes)  # (N, I/K)
        return functions.reduce_scatter_rows(linear(every, self.weight), rows)

    def _of_the_same(self, x: Tensor) -> Tensor:
        """Each rank's nodes, of rows that all have: (N, I) -> (N, O)."""
        if self.split == "out":
            y = linear(x, self.weight, self.bias)  # (N, O/K)
            axes = (y.ndim - 1, *range(y.ndim - 1))
            every = functions.all_gather_rows(y.permute(axes), self._parted.sizes)  # (O, N)
            return every.permute((*range(1, y.ndim), 0))
        y = functions.all_reduce(linear(x[..., self._parted.own], self.weight))
        return y if self.bias is None else y + self.bias

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, split={self.split!r}, scheme={self.scheme!r}"


def turns(rows: Counts, scheme: str, rank: int) -> list[tuple[Counts, tuple[int, int]]]:
    """How many rows each rank brings to each turn, and which of its own this rank does.

    >>> turns((3, 2), "b", rank=1)
    [((3, 0), (0, 0)), ((0, 2), (0, 2))]
    >>> turns((3, 2), "c", rank=0)
    [((1, 1), (0, 1)), ((2, 1), (1, 3))]
    """
    size = len(rows)
    if scheme == "b":
        each = [tuple(n if r == turn else 0 for r, n in enumerate(rows)) for turn in range(size)]
    else:
        cuts = [[share(n, turn, size) for n in rows] for turn in range(size)]
        each = [tuple(stop - first for first, stop in cut) for cut in cuts]
    ends = [0, *accumulate(counts[rank] for counts in each)]
    return [(counts, (ends[i], ends[i + 1])) for i, counts in enumerate(each)]
