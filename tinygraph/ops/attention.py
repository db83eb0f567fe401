"""Scaled dot-product attention: for each query an average of values, weighted by its keys.

    L S        queries and keys               E F    features of queries and keys, of values
    q (B, L, E), k (B, S, E), v (B, S, F), o (B, L, F)      m (B or 1, L, S), or none

    s = scale * q @ k^T + m                   -inf where the key comes after a causal query
    p = exp(s - lse),  lse = log(sum of exp(s))      the softmax of each row; 0 where all is -inf
    o = p @ v

    gv = p^T @ go        gs = p * (go @ v^T - sum of go * o)
    gq = scale * gs @ k  gk = scale * gs^T @ q       gm = gs

Forward keeps lse, and backward makes p from it again.  In kernels no array (L, S) is ever written:
they go through tiles of keys, or of queries (attention.cu).

Source: Vaswani et al., "Attention is all you need", NeurIPS 2017, section 3.2.1; Dao, Fu, Ermon,
Rudra, Re, "FlashAttention: fast and memory-efficient exact attention with IO-awareness", NeurIPS
2022.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygraph.checks import number
from tinygraph.cuda import blocks, op_kernel
from tinygraph.errors import ArgumentError, ShapeError
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Needs, Op
from tinygraph.ops.dropout import dropout
from tinygraph.ops.expand import expand
from tinygraph.ops.matmul import matmul
from tinygraph.ops.reshape import reshape
from tinygraph.ops.shared.docstrings import documented
from tinygraph.ops.shared.launch import for_each
from tinygraph.ops.shared.operands import device_of
from tinygraph.ops.softmax import softmax
from tinygraph.ops.transpose import transpose
from tinygraph.ops.where import where
from tinygraph.shapes import Array, Shape, Spec, broadcast_shapes, require_float
from tinygraph.tensor import Operand, Tensor, as_tensor

BLOCK = 128  # threads; the same number stands in attention.cu
# For each dtype the most features, and the rows of a tile, of the kernels that there are.
HEADS = {"f": ((32, 32), (64, 32), (128, 16)), "d": ((32, 16), (64, 16))}
MOST_BATCHES = 65535  # of a grid's second axis


@frozen
class Attention(Op):
    """On q, k, v of three axes, and a mask of three, whose first may be 1."""

    scale: float
    causal: bool

    def infer(self, q: Spec, k: Spec, v: Spec, m: Spec | None = None) -> Spec:
        require_float(self.name, query=q, key=k, value=v, mask=m)
        return Spec((*q.shape[:2], v.shape[2]), q.dtype)

    def _scores(self, mem: Memory, q: Array, k: Array, m: Array | None) -> Array:
        s = mem.empty((*q.shape[:2], k.shape[1]), q.dtype)
        np.matmul(q, k.swapaxes(1, 2), out=s)
        s *= self.scale
        if m is not None:
            s += m
        if self.causal:
            later = np.triu(np.ones(s.shape[1:], bool), 1)
            np.copyto(s, -np.inf, where=later)
        return s

    def forward(
        self, mem: Memory, q: Array, k: Array, v: Array, m: Array | None = None
    ) -> tuple[Array, Any]:
        p = self._scores(mem, q, k, m)
        level = np.max(p, -1, keepdims=True, initial=-np.inf)
        level[level == -np.inf] = 0  # where nothing takes part
        p -= level
        np.exp(p, out=p)
        lse = np.sum(p, -1, keepdims=True, out=mem.empty((*q.shape[:2], 1), q.dtype))
        nothing = lse == 0
        lse[nothing] = 1
        p /= lse
        np.log(lse, out=lse)
        lse += level
        lse[nothing] = np.inf
        o = mem.empty((*q.shape[:2], v.shape[2]), q.dtype)
        np.matmul(p, v, out=o)
        return o, (q, k, v, m, o, lse) if True in mem.needs else None

    def backward(self, mem: Memory, go: Array, saved: Any, needs: Needs) -> Gradients:
        q, k, v, m, _, lse = saved
        p = self._scores(mem, q, k, m)
        p -= lse
        np.exp(p, out=p)
        gv = np.matmul(p.swapaxes(1, 2), go, out=mem.empty(v.shape, v.dtype)) if needs[2] else None
        gs = np.matmul(go, v.swapaxes(1, 2), out=mem.empty(p.shape, p.dtype))
        gs -= np.sum(gs * p, -1, keepdims=True)  # go * o, so summed that one key alone gives 0
        gs *= p
        gm = None
        if len(needs) > 3 and needs[3]:
            gm = mem.empty(m.shape, m.dtype)
            gm[...] = gs if len(m) == len(gs) else np.sum(gs, 0, keepdims=True)
        gs *= self.scale
        gq = np.matmul(gs, k, out=mem.empty(q.shape, q.dtype)) if needs[0] else None
        gk = np.matmul(gs.swapaxes(1, 2), q, out=mem.empty(k.shape, k.dtype)) if needs[1] else None
        return (gq, gk, gv, gm)[: len(needs)]

    def forward_kernel(
        self, mem: Memory, q: Array, k: Array, v: Array, m: Array | None = None
    ) -> tuple[Array, Any]:
        o, lse = mem.empty((*q.shape[:2], v.shape[2]), q.dtype), mem.empty(q.shape[:2], q.dtype)
        self._launch(mem, "attention_forward", q.shape[1], q, k, v, m, o, lse)
        return o, (q, k, v, m, o, lse) if True in mem.needs else None

    def backward_kernel(self, mem: Memory, go: Array, saved: Any, needs: Needs) -> Gradients:
        q, k, v, m, o, lse = saved
        if not go.size or not k.size:
            return tuple([mem.zeros(a.shape, a.dtype) if n else None
                          for a, n in zip((q, k, v, m), needs, strict=False)])  # fmt: skip
        dots = mem.empty(lse.shape, go.dtype)
        kernel = op_kernel("attention", "attention_dots", go.dtype)
        for_each(kernel, dots.size, go, o, dots, dots.size, go.shape[2])
        gq = gk = gv = None
        if needs[0]:
            gq = mem.empty(q.shape, q.dtype)
            self._launch(mem, "attention_queries", q.shape[1], q, k, v, m, go, lse, dots, gq)
        if needs[1] or needs[2]:
            gk, gv = mem.empty(k.shape, k.dtype), mem.empty(v.shape, v.dtype)
            self._launch(mem, "attention_keys", k.shape[1], q, k, v, m, go, lse, dots, gk, gv)
        return (gq, gk if needs[1] else None, gv if needs[2] else None, None)[: len(needs)]

    def _launch(
        self, mem: Memory, name: str, rows: int, q: Array, k: Array, v: Array, m: Any, *rest: Array
    ) -> None:
        """A block for each tile of rows, of queries or of keys, and each member of the batch."""
        (batch, queries, e), (keys, f) = q.shape, v.shape[1:]
        head, tile = next(kind for kind in HEADS[q.dtype.char] if kind[0] >= max(e, f))
        if not batch or not rows:
            return
        kernel = op_kernel("attention", name, q.dtype, HEAD=head, TILE=tile)
        mask = mem.empty((0,), q.dtype) if m is None else m
        steps = (0 if m is None or len(m) == 1 else queries * keys, 0, keys, 1)
        sizes = batch, queries, keys, e, f, self.scale, self.causal
        grid = blocks(rows, tile), batch
        kernel(grid, BLOCK, q, k, v, *rest, *sizes, mask, 1, *steps)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        mask_varies = len(specs) > 3 and specs[3].shape[0] != 1
        fits = all(carries[:3]) and (len(specs) < 4 or carries[3] == mask_varies)
        return "map" if fits else None


@documented()
def scaled_dot_product_attention(
    query: Operand,
    key: Operand,
    value: Operand,
    attn_mask: Operand | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """For each query the average of the values, weighted by how well their keys fit it.

    Parameters
    ----------
    query : Tensor (..., L, E)
        float32 or float64.
    key : Tensor (..., S, E)
    value : Tensor (..., S, F)
        The axes in front broadcast together.
    attn_mask : Tensor, optional
        Broadcasts to (..., L, S): bool, True where the key takes part, or numbers that are added to
        the scores.
    dropout_p : float
        The share of weights that are dropped, whatever the mode; needs the weights as an array.
    is_causal : bool
        Whether query i sees keys 0 to i alone.
    scale : float, optional
        What the products are multiplied by: 1 / sqrt(E).
    enable_gqa : bool
        Only False.

    Returns
    -------
    Tensor (..., L, F)
        0 for a query that no key takes part in.

    Raises
    ------
    ShapeError
        Features, keys or the axes in front do not fit.
    DtypeError
        The inputs are not all float32 or all float64.
    ArgumentError
        Both `attn_mask` and `is_causal`; `enable_gqa`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> q, k, v = tg.ones(1, 2, 4), tg.ones(1, 2, 4), tg.Tensor([[[1.0], [3.0]]])
    >>> tg.scaled_dot_product_attention(q, k, v, is_causal=True).value.ravel()
    array([1., 2.], dtype=float32)
    """
    op, device = "scaled_dot_product_attention", device_of(query, key, value)
    q, k, v = (as_tensor(x, device=device) for x in (query, key, value))
    if enable_gqa:
        way_out = "repeat heads: tg.repeat_interleave"
        raise ArgumentError(op, "enable_gqa", "False", True, way_out)
    if is_causal and attn_mask is not None:
        expected = "no mask, for it makes one"
        raise ArgumentError(op, "is_causal", expected, "both", "put both into attn_mask")
    front = _require_shapes(op, q.shape, k.shape, v.shape)
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else number(op, "scale", scale)
    q, k, v = (_with_front(x, front) for x in (q, k, v))
    pairs = (*front, q.shape[-2], k.shape[-2])
    mask = None if attn_mask is None else _added(op, attn_mask, q, pairs)
    p = number(op, "dropout_p", dropout_p, 0, 1)
    if p or (mask is not None and mask.requires_grad) or _beyond_kernels(q, v):
        return _by_weights(q, k, v, mask, p, is_causal, factor)
    batch = math.prod(front)
    inputs = [x if x.ndim == 3 else reshape(x, (batch, *x.shape[-2:])) for x in (q, k, v)]
    if mask is not None:
        repeats = math.prod(mask.shape[:-2]) == 1  # one mask for all
        mask = reshape(mask, mask.shape[-2:]) if repeats else mask
        mask = expand(mask, pairs[-2:] if repeats else pairs)
        inputs.append(reshape(mask, (1 if repeats else batch, *pairs[-2:])))
    o = Attention(factor, bool(is_causal))(*inputs)
    return o if len(front) == 1 else reshape(o, (*front, *o.shape[1:]))


def _with_front(x: Tensor, front: Shape) -> Tensor:
    return x if x.shape[:-2] == front else expand(x, (*front, *x.shape[-2:]))


def _beyond_kernels(q: Tensor, v: Tensor) -> bool:
    """Whether kernels have no room for so many features, or a grid for so many products."""
    widest = HEADS[q.dtype.char][-1][0] if q.dtype.char in HEADS else math.inf
    return max(q.shape[-1], v.shape[-1]) > widest or math.prod(q.shape[:-2]) > MOST_BATCHES


def _require_shapes(op: str, q: Shape, k: Shape, v: Shape) -> Shape:
    """The axes in front, broadcast together."""
    for name, shape in (("query", q), ("key", k), ("value", v)):
        if len(shape) < 2:
            raise ShapeError(op, name, "at least two axes (..., rows, features)", shape)
    if k[-1] != q[-1]:
        raise ShapeError(op, "key", f"{q[-1]} features, as query has", k)
    if v[-2] != k[-2]:
        raise ShapeError(op, "value", f"{k[-2]} rows, one for each key", v)
    return broadcast_shapes(op, q[:-2], k[:-2], v[:-2])


def _added(op: str, mask: Operand, q: Tensor, pairs: Shape) -> Tensor:
    """A mask as numbers that are added."""
    given = as_tensor(mask, device=device_of(q))
    if broadcast_shapes(op, given.shape, pairs) != pairs:
        raise ShapeError(op, "attn_mask", f"a shape that broadcasts to {pairs}", given.shape)
    if given.dtype.kind == "b":
        given = where(given, np.zeros((), q.dtype), np.full((), -np.inf, q.dtype))
    return given


def _by_weights(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float, causal: bool, scale: float
) -> Tensor:
    """The same with the weights as an array: where they are dropped, or the mask is learnt."""
    s = matmul(q * scale, transpose(k, -2, -1))
    if mask is not None:
        s = s + mask
    if causal:
        later = np.triu(np.ones(s.shape[-2:], bool), 1)
        s = where(later, np.full((), -np.inf, s.dtype), s)
    return matmul(dropout(softmax(s, -1), p, training=True), v)
