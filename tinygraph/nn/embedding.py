"""The embedding layer: a table of rows, one for each index."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.checks import whole
from tinygraph.nn.init import normal_
from tinygraph.nn.module import Module
from tinygraph.ops.embedding import embedding
from tinygraph.parameter import Parameter
from tinygraph.tensor import Operand, Tensor


class Embedding(Module):
    """Rows of a table, one for each index: see `tg.embedding`.

    Parameters
    ----------
    num_embeddings : int
        V: indices are 0 to V - 1.
    embedding_dim : int
        D: the length of a row.
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

    def __init__(self, num_embeddings: int, embedding_dim: int, *, dtype: Any = np.float32) -> None:
        self.num_embeddings = whole("Embedding", "num_embeddings", num_embeddings)
        self.embedding_dim = whole("Embedding", "embedding_dim", embedding_dim)
        shape = (self.num_embeddings, self.embedding_dim)
        self.weight = Parameter(np.empty(shape, dtype), name="weight")
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        normal_(self.weight)

    def forward(self, indices: Operand) -> Tensor:
        return embedding(indices, self.weight)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"
