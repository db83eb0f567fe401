"""The embedding layer: a table of rows, one for each index."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import whole
from tinygraph.engine import Operand, Parameter, Tensor
from tinygraph.nn.init import normal_
from tinygraph.nn.module import Module
from tinygraph.ops.shaping.embedding import embedding


class Embedding(Module):
    """Rows of a table, one for each index: see `tg.embedding`.

    Parameters
    ----------
    num_embeddings : int
        V: indices are 0 to V - 1.
    embedding_dim : int
        D: the length of a row.
    padding_idx : int, optional
        An index that stands for nothing: its row is 0 at first and gets no gradient.
    sparse : bool
        Taken for PyTorch's sake: the gradient is an array of all rows.
    dtype : dtype
        Of the table, and of the output.

    Attributes
    ----------
    weight : Parameter (V, D)
        Normal with mean 0 and standard deviation 1 at first.

    Examples
    --------
    >>> from tinygraph import nn
    >>> nn.Embedding(10, 4)([[1, 2, 3]]).shape
    (1, 3, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        sparse: bool = False,
        dtype: Any = np.float32,
    ) -> None:
        self.num_embeddings = whole("Embedding", "num_embeddings", num_embeddings)
        self.embedding_dim = whole("Embedding", "embedding_dim", embedding_dim)
        self.padding_idx = padding_idx
        if padding_idx is not None:
            last = self.num_embeddings - 1
            padding = whole("Embedding", "padding_idx", padding_idx, -last - 1, last)
            self.padding_idx = padding % self.num_embeddings
        shape = (self.num_embeddings, self.embedding_dim)
        self.weight = Parameter(np.empty(shape, dtype), name="weight")
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.value[self.padding_idx] = 0

    def forward(self, indices: Operand) -> Tensor:
        return embedding(indices, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
