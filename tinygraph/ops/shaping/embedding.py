"""Embedding: a table of vectors, looked up by number.

    V D        vocabulary size, features        indices (...), weight (V, D), y (..., D)

    y[..., d]  = weight[indices[...], d]
    gw[v, d]   = sum of gy[..., d] over all positions whose index is v, in the order of positions

Source: Bengio, Ducharme, Vincent, Jauvin, "A neural probabilistic language model", JMLR 3, 2003.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import frozen, whole
from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Memory, Operand, Spec, Tensor, as_tensor, require_float
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.ops.common import add_where, as_int64, device_of, documented, for_each
from tinygraph.ops.common.arguments import require_indices, require_ndim, require_range
from tinygraph.ops.common.scatter import sum_by_row
from tinygraph.ops.elementwise.comparison import equal
from tinygraph.ops.elementwise.where import where
from tinygraph.ops.shaping.reshape import unsqueeze


@frozen
class Embedding(Op):
    def infer(self, indices: Spec, weight: Spec) -> Spec:
        require_indices(self.name, indices, "the indices come first, then the weight")
        require_float(self.name, weight=weight)
        require_ndim(self.name, "weight", weight, 2, "(V, D)")
        return Spec((*indices.shape, weight.shape[1]), weight.dtype)

    def check(self, indices: Array, weight: Array) -> None:
        last = len(weight) - 1
        expected = f"numbers from 0 to {last}, the rows of weight"
        if last < 0:
            expected = "none, for weight has no rows"
        way_out = (
            "use a larger weight, or number the rows from 0; "
            "negative numbers do not count from the end"
        )
        require_range(self.name, "indices", indices, 0, last, expected, way_out)

    def forward(self, mem: Memory, indices: Array, weight: Array) -> tuple[Array, Any]:
        y = mem.empty((*indices.shape, weight.shape[1]), weight.dtype)
        rows = indices
        if indices.dtype != np.intp:
            rows = mem.empty(indices.shape, np.intp)
            np.copyto(rows, indices, casting="unsafe")  # `check` has seen that they fit
        np.take(weight, rows, axis=0, out=y, mode="clip")  # "raise" would go through a buffer
        return y, (rows, weight.shape) if mem.needs[1] else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        rows, (vocabulary, features) = saved
        if not needs[1]:
            return None, None
        gw = mem.zeros((vocabulary, features), gy.dtype)
        add_where(mem, gw, rows.reshape(-1), gy.reshape(-1, features))
        return None, gw

    def forward_kernel(self, mem: Memory, indices: Array, weight: Array) -> tuple[Array, Any]:
        rows = as_int64(mem, indices)
        y = mem.empty((*indices.shape, weight.shape[1]), weight.dtype)
        kernel = op_kernel("embedding", "embedding_forward", weight.dtype)
        for_each(kernel, y.size, rows, weight, y, y.size, *weight.shape)
        return y, (rows, weight.shape) if mem.needs[1] else None

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        rows, (vocabulary, features) = saved
        return None, sum_by_row(mem, rows, gy, vocabulary, features) if needs[1] else None

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if carries[0] and not carries[1] else None


@documented()
def embedding(indices: Operand, weight: Operand, padding_idx: int | None = None) -> Tensor:
    """Rows of a table, one for each index.

    Parameters
    ----------
    indices : Tensor (...)
        Integers from 0 to V - 1, any shape.  Negative numbers are refused.
    weight : Tensor (V, D)
        One row of features for each index; float32 or float64.
    padding_idx : int, optional
        An index whose row gets no gradient: it stands where there is nothing to learn.  A negative
        one counts from the end.

    Returns
    -------
    Tensor (..., D)
        Of the dtype of `weight`.  The gradient of `weight` is dense: rows that nobody looked up
        have zeros, and a row that was looked up several times has the sum.

    Raises
    ------
    DtypeError
        `indices` are not integers, or `weight` is not of a float dtype.
    ShapeError
        `weight` has not two axes.
    ArgumentError
        An index is negative or not below V; the message names it and where it stands.  Or
        `padding_idx` is not from -V to V - 1.

    Examples
    --------
    >>> import tinygraph as tg
    >>> table = tg.Tensor([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]])
    >>> tg.embedding([2, 0], table).value
    array([[2. , 2.5],
           [0. , 0.5]], dtype=float32)
    """
    if padding_idx is None:
        return Embedding()(indices, weight)
    device = device_of(indices, weight)
    indices, weight = as_tensor(indices, device=device), as_tensor(weight, device=device)
    y, rows = Embedding()(indices, weight), weight.shape[0]
    padding = whole("embedding", "padding_idx", padding_idx, -rows, rows - 1) % rows
    is_padding = unsqueeze(equal(indices, padding), -1)  # (..., 1)
    return where(is_padding, y.detach(), y)
