"""Matrix product, with numpy's rules for vectors and stacks of matrices.

    M K N      rows of x, summed axis, columns of w           ... batch axes, which broadcast

    y  = x @ w               x (..., M, K), w (..., K, N), y (..., M, N)
    gx = gy @ w^T            gw = x^T @ gy       each summed over batch axes that were repeated

A vector x (K,) counts as one row, a vector w (K,) as one column; that axis is dropped from y.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import ShapeError, frozen
from tinygraph.engine import Array, Gradients, Memory, Needs, Op, Operand, Shape, Spec, Tensor
from tinygraph.ops.common import ALL, broadcast_claim, promote, require_one_dtype, unbroadcast
from tinygraph.ops.common.blocks import product
from tinygraph.ops.common.launch import remembered
from tinygraph.ops.products.gemm import Axis, broadcast_steps, gemm


def _as_matrices(x: Shape, w: Shape) -> tuple[Shape, Shape]:
    """The shapes with a vector x as one row and a vector w as one column."""
    return (1, *x) if len(x) == 1 else x, (*w, 1) if len(w) == 1 else w


class _Stacks(NamedTuple):
    """Sizes of one product, batch axes of y, and along each the steps of x, w and y."""

    m: int
    k: int
    n: int
    batch: Shape
    x: list[int]
    w: list[int]
    y: list[int]
    factors: tuple[Axis, ...]  # the batch axes, with the steps of x and w

    @staticmethod
    @remembered
    def of(x: Shape, w: Shape) -> _Stacks:
        rows, columns = _as_matrices(x, w)
        (m, k), n = rows[-2:], columns[-1]
        batch = np.broadcast_shapes(rows[:-2], columns[:-2])
        of_x = broadcast_steps(rows[:-2], batch, m * k)
        of_w = broadcast_steps(columns[:-2], batch, k * n)
        of_y = broadcast_steps(batch, batch, m * n)
        factors = tuple(Axis(*each) for each in zip(batch, of_x, of_w, strict=True))
        return _Stacks(m, k, n, batch, of_x, of_w, of_y, factors)

    def axes(self, a: list[int], b: list[int], target: list[int]) -> tuple[list[Axis], list[Axis]]:
        """Axes with the steps of two factors: those that the target has, and those summed over.

        An axis of size 1 may stand in either list.
        """
        both = [(Axis(*steps), to) for *steps, to in zip(self.batch, a, b, target, strict=True)]
        return [axis for axis, to in both if to], [axis for axis, to in both if not to]


@remembered
def _shape(op: str, x: Shape, w: Shape) -> Shape:
    """The shape of x @ w."""
    for name, shape in (("x", x), ("w", w)):
        if not shape:
            got, way_out = f"x.shape {x}, w.shape {w}", "multiply by a single number with *"
            raise ShapeError(op, name, "at least one axis", got, way_out)
    rows, columns = _as_matrices(x, w)
    if rows[-1] != columns[-2]:
        place = f"axis {max(len(w) - 2, 0)}, as on the last axis of x"
        got = f"{columns[-2]}: x.shape {x}, w.shape {w}"
        way_out = "transpose or reshape one of the two"
        raise ShapeError(op, "w", f"{rows[-1]} elements on {place}", got, way_out)
    try:
        batch = np.broadcast_shapes(rows[:-2], columns[:-2])
    except ValueError:
        expected = "batch axes, all but the last two, that broadcast together"
        got = f"{rows[:-2]} and {columns[:-2]}: x.shape {x}, w.shape {w}"
        way_out = "insert axes of size 1 with reshape"
        raise ShapeError(op, "w", expected, got, way_out) from None
    m = () if len(x) == 1 else (x[-2],)
    n = () if len(w) == 1 else (w[-1],)
    return (*batch, *m, *n)


@frozen
class Matmul(Op):
    def infer(self, x: Spec, w: Spec) -> Spec:
        if x.dtype != w.dtype or x.dtype.char not in ALL:
            require_one_dtype(self.name, ALL, x=x, w=w)
        return Spec(_shape(self.name, x.shape, w.shape), x.dtype)

    def forward(self, mem: Memory, x: Array, w: Array) -> tuple[Array, Any]:
        y = mem.empty(_shape(self.name, x.shape, w.shape), x.dtype)
        if w.ndim == 2 < x.ndim:  # one product for all matrices in x
            many, n = math.prod(x.shape[:-1]), w.shape[1]
            product(x.reshape(many, w.shape[0]), w, y.reshape(many, n))
        else:
            product(x, w, y)
        x_needs, w_needs = mem.needs
        return y, (x.shape, w.shape, x if w_needs else None, w if x_needs else None)

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x_shape, w_shape, x, w = saved
        rows, columns = _as_matrices(x_shape, w_shape)
        (m, k), n = rows[-2:], columns[-1]
        batch = gy.shape[: gy.ndim - (len(x_shape) > 1) - (len(w_shape) > 1)]
        if len(columns) == 2 and len(rows) > 2:  # one product for all matrices in x
            batch, rows = (), (math.prod(rows[:-1]), k)
            m = rows[0]
        gy = gy.reshape(*batch, m, n)  # (..., M, N)
        gx = gw = None
        if needs[0]:
            w = w.reshape(columns)  # (..., K, N)
            gx = product(gy, w.swapaxes(-1, -2), mem.empty((*batch, m, k), gy.dtype))
            gx = unbroadcast(mem, gx, rows).reshape(x_shape)
        if needs[1]:
            x = x.reshape(rows)  # (..., M, K)
            gw = product(x.swapaxes(-1, -2), gy, mem.empty((*batch, k, n), gy.dtype))
            gw = unbroadcast(mem, gw, columns).reshape(w_shape)
        return gx, gw

    def forward_kernel(self, mem: Memory, x: Array, w: Array) -> tuple[Array, Any]:
        y = mem.empty(_shape(self.name, x.shape, w.shape), x.dtype)
        at = _Stacks.of(x.shape, w.shape)
        m, n, k = at.m, at.n, at.k
        if x.dtype.kind == "f" or x.dtype in (np.int32, np.int64):
            gemm("nn", x, w, y, m, n, k, at.factors, mem=mem if x.dtype.kind == "f" else None)
        else:  # 64 bits wrap around to the same low bits; a bool is whether any pair is True
            wide = mem.empty(y.shape, np.int64)
            gemm("nn", x.astype(np.int64), w.astype(np.int64), wide, m, n, k, at.factors)
            y[...] = wide.astype(y.dtype)
        x_needs, w_needs = mem.needs
        return y, (x.shape, w.shape, x if w_needs else None, w if x_needs else None)

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x_shape, w_shape, x, w = saved
        at = _Stacks.of(x_shape, w_shape)
        m, n, k = at.m, at.n, at.k
        gx = gw = None
        if needs[0]:  # (..., M, N) @ (..., K, N)^T, added up where x was repeated
            gx = mem.empty(x_shape, gy.dtype)
            gemm("nt", gy, w, gx, m, k, n, *at.axes(at.y, at.w, at.x), mem=mem)
        if needs[1]:  # (..., M, K)^T @ (..., M, N), added up where w was repeated
            gw = mem.empty(w_shape, gy.dtype)
            kept, summed = at.axes(at.x, at.y, at.w)
            if not kept and x.size == math.prod(at.batch) * m * k:  # whole: one sum over all rows
                gemm("tn", x, gy, gw, k, n, math.prod(at.batch) * m, mem=mem)
            else:
                gemm("tn", x, gy, gw, k, n, m, kept, summed, mem)
        return gx, gw

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        x, w = (spec.shape for spec in specs)
        rows, columns = _as_matrices(x, w)
        if len(rows) > 2 or len(columns) > 2:  # axis 0 of the output is the first batch axis
            batches = rows[:-2], columns[:-2]
            return broadcast_claim(batches, np.broadcast_shapes(*batches), carries)
        if len(x) == 1 and carries == (True, True):  # the summed axis
            return "sum"
        return "map" if len(x) == 2 and carries == (True, False) else None


def matmul(x: Operand, w: Operand) -> Tensor:
    """The matrix product `x @ w`.

    Parameters
    ----------
    x : Tensor (..., M, K) or (K,)
    w : Tensor (..., K, N) or (K,)
        The batch axes `...` broadcast together; dtypes promote as in PyTorch.

    Returns
    -------
    Tensor (..., M, N)
        Without M where `x` is a vector, without N where `w` is one.  Integers and bools are
        multiplied as in numpy, without a gradient.

    Raises
    ------
    ShapeError
        An operand is a single number, the summed axes differ in size, or the batch axes do not
        broadcast together.

    References
    ----------
    Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
    differentiation", Advances in Automatic Differentiation, Springer 2008.

    Examples
    --------
    >>> import tinygraph as tg
    >>> (tg.Tensor([[1.0, 2.0], [3.0, 4.0]]) @ [1.0, 10.0]).value
    array([21., 43.], dtype=float32)
    """
    return Matmul()(*promote("matmul", x, w))
