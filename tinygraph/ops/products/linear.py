"""Linear layer, an affine map of the last axis.

    I O        number of input and output features        x (..., I), w (O, I), b (O,), y (..., O)

    y  = x @ w^T + b
    gx = gy @ w        gw = gy^T @ x        gb = sum of gy over all but the last axis

All axes of x but the last stand for samples.
"""

from __future__ import annotations

import math
from typing import Any

from tinygraph.base import ShapeError, frozen
from tinygraph.base.precision import get_float32_matmul_precision
from tinygraph.cuda import blocks, op_kernel
from tinygraph.engine import Array, Gradients, Needs, Op, Operand, Spec, Tensor, require_float
from tinygraph.engine.memory import Memory
from tinygraph.ops.common import THREADS, ChunkedLaunch, column_sums, remembered, total
from tinygraph.ops.common.arguments import require_bias, require_ndim
from tinygraph.ops.common.blocks import product
from tinygraph.ops.products.gemm import MOST_BLOCKS, choose_gemm, gemm, tile_grid

FEW_OUTPUTS = 16
CHUNK, ROWS = 2048, 32  # features and rows of a block; the numbers of linear_few_outputs.cu


@remembered
def _output(op: str, x: Spec, w: Spec, b: Spec | None) -> Spec:
    """Shape and dtype of y."""
    require_float(op, x=x, w=w, b=b)
    require_ndim(op, "w", w, 2, "(O, I)")
    features_out, features_in = w.shape
    if not x.shape or x.shape[-1] != features_in:
        expected = f"{features_in} features on the last axis, as w has"
        way_out = "w is (out, in); flatten images first with tg.flatten(x, 1)"
        got = f"x.shape {x.shape}, w.shape {w.shape}"
        raise ShapeError(op, "x", expected, got, way_out)
    require_bias(op, b, features_out)
    return Spec((*x.shape[:-1], features_out), x.dtype)


@frozen
class Linear(Op):
    def infer(self, x: Spec, w: Spec, b: Spec | None = None) -> Spec:
        return _output(self.name, x, w, b)

    def forward(self, mem: Memory, x: Array, w: Array, b: Array | None = None) -> tuple[Array, Any]:
        (o, i), rows = w.shape, math.prod(x.shape[:-1])
        y = mem.empty((*x.shape[:-1], o), x.dtype)
        product(x.reshape(rows, i), w.T, y.reshape(rows, o))  # one product for all samples
        if b is not None:
            y += b
        return y, (x, w)

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x, w = saved
        (o, i), rows = w.shape, math.prod(x.shape[:-1])
        gx = gw = gb = None
        gy = gy.reshape(rows, o)
        if needs[0]:
            gx = mem.empty(x.shape, x.dtype)
            product(gy, w, gx.reshape(rows, i))
        if needs[1]:
            gw = product(gy.T, x.reshape(rows, i), mem.empty(w.shape, w.dtype))
        if True in needs[2:]:
            gb = total(gy, (0,), mem.empty((o,), w.dtype))
        return (gx, gw, gb)[: len(needs)]

    def forward_kernel(
        self, mem: Memory, x: Array, w: Array, b: Array | None = None
    ) -> tuple[Array, Any]:
        (o, i), rows = w.shape, math.prod(x.shape[:-1])
        y = mem.empty((*x.shape[:-1], o), x.dtype)
        if b is None and not _has_few_outputs(rows, o, i):
            gemm("nt", x, w, y, rows, o, i, mem=mem)
        elif y.size:
            bias = mem.empty((0,), x.dtype) if b is None else b
            affine = _affine(rows, o, i, x.dtype, get_float32_matmul_precision())
            affine.write(mem, y, x, w, bias)
        return y, (x, w)

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x, w = saved
        (o, i), rows = w.shape, math.prod(x.shape[:-1])
        gx = gw = gb = None
        if needs[0]:
            gx = mem.empty(x.shape, x.dtype)
            gemm("nn", gy, w, gx, rows, i, o, mem=mem)
        if needs[1]:
            gw = mem.empty(w.shape, w.dtype)
            gemm("tn", gy, x, gw, o, i, rows, mem=mem)
        if True in needs[2:]:
            gb = mem.empty((o,), w.dtype)
            column_sums(mem, gy.reshape(rows, o), gb)
        return (gx, gw, gb)[: len(needs)]

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        several = len(specs[0].shape) > 1  # axis 0 of a single vector holds features, not samples
        return "map" if several and carries[0] and not any(carries[1:]) else None


def _has_few_outputs(rows: int, o: int, i: int) -> bool:
    """Whether rows of x are so long, and outputs so few, that memory is what limits."""
    return o <= FEW_OUTPUTS and i >= CHUNK and rows <= ROWS * MOST_BLOCKS


@remembered
def _affine(rows: int, o: int, i: int, dtype: Any, precision: str) -> ChunkedLaunch:
    """The launch that takes x, w and b; `precision` is what choose_gemm finds set."""
    if _has_few_outputs(rows, o, i):  # reads x once
        chunks, stem = blocks(i, CHUNK), "linear_few_outputs"
        kernel = op_kernel(stem, stem, dtype, OUTPUTS=o)
        return ChunkedLaunch(kernel.bind((chunks, blocks(rows, ROWS)), THREADS, rows, i), chunks)
    choice = choose_gemm(rows, o, i, dtype)
    kernel = op_kernel("linear", "linear_forward", dtype, **choice.macros)
    grid = tile_grid(choice.tile, rows, o, choice.chunks, dtype)
    return ChunkedLaunch(kernel.bind(grid, THREADS, rows, o, i, choice.chunks), choice.chunks)


def linear(x: Operand, w: Operand, b: Operand | None = None) -> Tensor:
    """Affine map of the last axis, `x @ w.T + b`.

    Parameters
    ----------
    x : Tensor (..., I)
        float32 or float64.
    w : Tensor (O, I)
        Weights, out x in, of the dtype of `x`.
    b : Tensor (O,), optional
        Bias.

    Returns
    -------
    Tensor (..., O)

    Raises
    ------
    ShapeError
        The features of `x`, `w` and `b` do not fit.
    DtypeError
        The inputs are not all float32 or all float64.

    References
    ----------
    Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, section 6.5.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.linear([1.0, 2.0], [[1.0, 1.0], [0.0, 3.0]], [0.5, 0.5]).value
    array([3.5, 6.5], dtype=float32)
    """
    return Linear()(x, w) if b is None else Linear()(x, w, b)
