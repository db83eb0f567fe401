"""Scaled dot-product attention: for each query an average of values, weighted by its keys.

    L S        queries and keys               E F    features of queries and keys, of values
    q (N, H, L, E), k (N, H, S, E), v (N, H, S, F), o (N, H, L, F); without H, or without both
    m, or none: broadcasts to (N, H, L, S)

    s = scale * q @ k^T + m                   -inf where the key comes after a causal query
    p = exp(s - lse),  lse = log(sum of exp(s))      the softmax of each row; 0 where all is -inf
    d = 1 / (1 - share), or 0 where a weight is dropped; 1 without dropout
    o = (p * d) @ v

    gv = (p * d)^T @ go  gs = p * (d * (go @ v^T) - sum of go * o)
    gq = scale * gs @ k  gk = scale * gs^T @ q       gm = gs summed where m was repeated

Forward keeps lse, and backward makes p from it again.  What is dropped follows from the place of a
weight in (N, H, L, S) and a stream (`mem.words`).  Kernels make d again too, and write no array
(L, S): they go through tiles of keys, or of queries (attention.cu).  In numpy d is kept, as one bit
for each weight: a random word takes longer than all else that a weight takes.

Source: Vaswani et al., "Attention is all you need", NeurIPS 2017, section 3.2.1; Dao, Fu, Ermon,
Rudra, Re, "FlashAttention: fast and memory-efficient exact attention with IO-awareness", NeurIPS
2022.  Dropout of weights: the Transformer's own code, tensor2tensor.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, ShapeError, frozen, number
from tinygraph.cuda import blocks, op_kernel
from tinygraph.engine import Gradients, Memory, Needs, Op, Operand, Tensor, Words, as_tensor
from tinygraph.engine.spec import Array, Shape, Spec, broadcast_shapes, require_float
from tinygraph.ops.common import device_of, documented, for_each, maxima, sums, unbroadcast
from tinygraph.ops.elementwise.comparison import equal
from tinygraph.ops.elementwise.dropout import dropout
from tinygraph.ops.elementwise.masks import masked_fill, triangle
from tinygraph.ops.elementwise.where import where
from tinygraph.ops.products.drops import least_word, write_kept
from tinygraph.ops.products.matmul import matmul
from tinygraph.ops.reductions.max import amax
from tinygraph.ops.reductions.softmax import softmax
from tinygraph.ops.shaping.expand import expand
from tinygraph.ops.shaping.reshape import reshape
from tinygraph.ops.shaping.tile import repeat_interleave
from tinygraph.ops.shaping.transpose import transpose

# For each dtype the most features, and the rows of a tile, of the kernels that there are.
HEADS = {"f": ((32, 32), (64, 32), (128, 16), (256, 8)), "d": ((32, 16), (64, 16), (128, 8))}
NO_WORDS = Words(0, 0)


@frozen
class Attention(Op):
    """On q, k, v with at most two axes in front, and a mask that broadcasts to pairs of them."""

    scale: float
    causal: bool
    share: float = 0.0  # of weights that are dropped

    def infer(self, q: Spec, k: Spec, v: Spec, m: Spec | None = None) -> Spec:
        require_float(self.name, query=q, key=k, value=v, mask=m)
        return Spec((*q.shape[:-1], v.shape[-1]), q.dtype)

    @property
    def _keep_scale(self) -> float:
        return 0.0 if self.share == 1 else 1 / (1 - self.share)

    def _words(self, mem: Memory, q: Array, k: Array) -> Words:
        """A word for each pair, which says whether its weight is dropped."""
        if not self.share:
            return NO_WORDS
        return mem.words(math.prod(q.shape[1:-1]) * k.shape[-2], q.shape[0])

    # ---- numpy ------------------------------------------------------------------------------

    def _scores(self, mem: Memory, q: Array, k: Array, m: Array | None) -> Array:
        s = mem.empty((*q.shape[:-1], k.shape[-2]), q.dtype)
        np.matmul(q, k.swapaxes(-1, -2), out=s)
        s *= self.scale
        if m is not None:
            s += m
        if self.causal:
            later = np.triu(np.ones(s.shape[-2:], bool), 1)
            np.copyto(s, -np.inf, where=later)
        return s

    def forward(
        self, mem: Memory, q: Array, k: Array, v: Array, m: Array | None = None
    ) -> tuple[Array, Any]:
        p, bits = self._scores(mem, q, k, m), None
        level = maxima(mem, p, -1)
        level[level == -np.inf] = 0  # where nothing takes part
        p -= level
        np.exp(p, out=p)
        lse = sums(mem, p, -1)
        nothing = lse == 0
        lse[nothing] = 1
        p /= lse
        np.log(lse, out=lse)
        lse += level
        lse[nothing] = np.inf
        if self.share:
            words, kept = self._words(mem, q, k), mem.empty(p.shape, bool)
            p *= write_kept(words, self.share, kept)
            bits = np.packbits(kept)
        o = mem.empty((*q.shape[:-1], v.shape[-1]), q.dtype)
        np.matmul(p, v, out=o)
        if self.share:
            o *= self._keep_scale
        return o, (q, k, v, m, lse, bits) if True in mem.needs else None

    def backward(self, mem: Memory, go: Array, saved: Any, needs: Needs) -> Gradients:
        q, k, v, m, lse, bits = saved
        p, g, kept = self._scores(mem, q, k, m), go, None
        p -= lse
        np.exp(p, out=p)
        if bits is not None:
            kept = np.unpackbits(bits, count=p.size).view(bool).reshape(p.shape)
            g = np.multiply(go, self._keep_scale, out=mem.empty(go.shape, go.dtype))
        gs = np.matmul(g, v.swapaxes(-1, -2), out=mem.empty(p.shape, p.dtype))
        if kept is not None:
            gs *= kept
        gs -= sums(mem, gs * p, -1)  # go * o, so summed that one key alone gives 0
        gs *= p
        gv = gm = None
        if needs[2]:
            if kept is not None:
                p *= kept
            gv = np.matmul(p.swapaxes(-1, -2), g, out=mem.empty(v.shape, v.dtype))
        if m is not None and needs[3]:
            gm = mem.empty(m.shape, m.dtype)
            gm[...] = unbroadcast(mem, gs, m.shape)
        gs *= self.scale
        gq = np.matmul(gs, k, out=mem.empty(q.shape, q.dtype)) if needs[0] else None
        gk = None
        if needs[1]:
            gk = np.matmul(gs.swapaxes(-1, -2), q, out=mem.empty(k.shape, k.dtype))
        return (gq, gk, gv, gm)[: len(needs)]

    # ---- kernels ----------------------------------------------------------------------------

    def forward_kernel(
        self, mem: Memory, q: Array, k: Array, v: Array, m: Array | None = None
    ) -> tuple[Array, Any]:
        o = mem.empty((*q.shape[:-1], v.shape[-1]), q.dtype)
        lse, words = mem.empty(q.shape[:-1], q.dtype), self._words(mem, q, k)
        self._launch(mem, "attention_forward", (q.shape[-2],), (q, k, v), m, words, o, lse)
        return o, (q, k, v, m, o, lse, words) if True in mem.needs else None

    def backward_kernel(self, mem: Memory, go: Array, saved: Any, needs: Needs) -> Gradients:
        q, k, v, m, o, lse, words = saved
        if not go.size or not k.shape[-2]:
            return tuple([mem.zeros(a.shape, a.dtype) if n else None
                          for a, n in zip((q, k, v, m), needs, strict=False)])  # fmt: skip
        dots = mem.empty(lse.shape, go.dtype)
        kernel = op_kernel("attention", "attention_dots", go.dtype)
        for_each(kernel, dots.size, go, o, dots, dots.size, go.shape[-1])
        gq = gk = gv = gm = None

        def launch(name: str, rows: tuple[int, ...], *gradients: Array) -> None:
            self._launch(mem, name, rows, (q, k, v), m, words, go, lse, dots, *gradients)

        if needs[0]:
            gq = mem.empty(q.shape, q.dtype)
            launch("attention_queries", (q.shape[-2],), gq)
        if needs[1] or needs[2]:
            gk, gv = mem.empty(k.shape, k.dtype), mem.empty(v.shape, v.dtype)
            launch("attention_keys", (k.shape[-2],), gk, gv)
        if m is not None and needs[3] and m.shape[-1] == 1:  # what all keys of a query share
            gm = mem.zeros(m.shape, m.dtype)
        elif m is not None and needs[3]:
            gm = mem.empty(m.shape, m.dtype)
            launch("attention_mask", (1, 1, *m.shape)[-2:], gm)
        return (gq, gk if needs[1] else None, gv if needs[2] else None, gm)[: len(needs)]

    def _launch(
        self,
        mem: Memory,
        name: str,
        rows: tuple[int, ...],
        inputs: tuple[Array, Array, Array],
        m: Array | None,
        words: Words,
        *rest: Array,
    ) -> None:
        """A block for each tile of rows, of queries or of keys, and each member of the batch; of
        the mask for each tile of its rows and columns."""
        (*front, queries, e), (keys, f) = inputs[0].shape, inputs[2].shape[-2:]
        head, tile = next(kind for kind in HEADS[inputs[0].dtype.char] if kind[0] >= max(e, f))
        members = m.shape[:-2] if m is not None and len(rows) > 1 else front
        grid = math.prod(members) * math.prod([blocks(n, tile) for n in rows])
        if not grid:
            return
        kernel = op_kernel("attention", name, inputs[0].dtype, HEAD=head, TILE=tile)
        none = mem.empty((0,), inputs[0].dtype)
        start = mem.empty((0,), np.uint64) if words.start is None else words.start
        least = least_word(self.share) if self.share else 0
        sizes = math.prod(front), queries, keys, e, f, self.scale, self.causal
        mask = none if m is None else m, *_steps(m, front)
        drops = words.seed, words.stream, words.first, least, self._keep_scale, start
        block = 128 if tile >= 16 else 8 * tile  # as in attention.cu
        kernel(grid, block, *inputs, *rest, *sizes, *mask, *drops)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        q = specs[0].shape
        varies = [len(m.shape) == len(q) and m.shape[0] != 1 for m in specs[3:]]
        return "map" if len(q) > 2 and carries == (True, True, True, *varies) else None


def _steps(m: Array | None, front: list[int]) -> tuple[int, ...]:
    """How a mask lies beside pairs (outer, inner, L, S): the members of `inner`, and how far apart
    its numbers are along each axis, 0 where it is repeated."""
    inner = front[-1] if front else 1
    if m is None:
        return inner, 0, 0, 0, 0
    steps, step = [], 1
    for size in reversed((1, 1, 1, 1, *m.shape)[-4:]):
        steps.append(step if size > 1 else 0)
        step *= size
    return inner, *reversed(steps)


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
        the scores.  Numbers may be learnt.
    dropout_p : float
        The share of weights that are dropped, whatever the mode; the others are scaled up.
    is_causal : bool
        Whether query i sees keys 0 to i alone.
    scale : float, optional
        What the products are multiplied by: 1 / sqrt(E).
    enable_gqa : bool
        Whether keys and values may have fewer heads, on the third axis from the end, than queries:
        each is then repeated for as many heads as share it.

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
        Both `attn_mask` and `is_causal`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> q, k, v = tg.ones(1, 2, 4), tg.ones(1, 2, 4), tg.Tensor([[[1.0], [3.0]]])
    >>> tg.scaled_dot_product_attention(q, k, v, is_causal=True).value.ravel()
    array([1., 2.], dtype=float32)
    """
    op = "scaled_dot_product_attention"
    device = device_of(query, key, value, attn_mask)
    q, k, v = (as_tensor(x, device=device) for x in (query, key, value))
    if enable_gqa:
        k, v = _for_each_head(op, "key", k, q.shape), _for_each_head(op, "value", v, q.shape)
    if is_causal and attn_mask is not None:
        expected = "no mask, for it makes one"
        raise ArgumentError(op, "is_causal", expected, "both", "put both into attn_mask")
    front = _require_shapes(op, q.shape, k.shape, v.shape)
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else number(op, "scale", scale)
    share = number(op, "dropout_p", dropout_p, 0, 1)
    q, k, v = (_with_front(x, front) for x in (q, k, v))
    pairs = (*front, q.shape[-2], k.shape[-2])
    mask = None if attn_mask is None else _added(op, attn_mask, q, pairs)
    if _beyond_kernels(q, v):
        return attention_and_weights(q, k, v, mask, share, is_causal, factor)[0]
    inputs = [q, k, v]
    if len(front) > 2:  # the axes behind the first one become one
        inputs = [reshape(x, (front[0], -1, *x.shape[-2:])) for x in inputs]
        if mask is not None and math.prod(mask.shape[:-2]) > 1:
            mask = expand(mask, (*front, *mask.shape[-2:]))
            mask = reshape(mask, (front[0], -1, *mask.shape[-2:]))
        elif mask is not None:
            mask = reshape(mask, mask.shape[-2:])
    if mask is not None:
        inputs.append(mask)
    o = Attention(factor, bool(is_causal), share)(*inputs)
    return o if len(front) < 3 else reshape(o, (*front, *o.shape[-2:]))


def _for_each_head(op: str, name: str, x: Tensor, query: Shape) -> Tensor:
    """Keys, or values, with as many heads as there are of queries."""
    heads = [shape[-3] if len(shape) > 2 else 0 for shape in (query, x.shape)]
    if not heads[1] or heads[0] % heads[1]:
        expected = f"heads, axis -3, that divide those of query {query}"
        raise ShapeError(op, name, expected, x.shape)
    return x if heads[0] == heads[1] else repeat_interleave(x, heads[0] // heads[1], -3)


def _with_front(x: Tensor, front: Shape) -> Tensor:
    return x if x.shape[:-2] == front else expand(x, (*front, *x.shape[-2:]))


def _beyond_kernels(q: Tensor, v: Tensor) -> bool:
    """Whether kernels have no room for so many features."""
    widest = HEADS[q.dtype.char][-1][0] if q.dtype.char in HEADS else math.inf
    return max(q.shape[-1], v.shape[-1]) > widest


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


def attention_and_weights(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    share: float,
    causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """The same by ops, and the weights as they are after dropout, an array (..., L, S)."""
    s = matmul(q * scale, transpose(k, -2, -1))
    if causal:
        s = masked_fill(s, triangle(s, least=1), -math.inf)
    if mask is None:
        weights = softmax(s, -1)
    else:
        nothing = equal(amax(mask, -1, keepdims=True), -math.inf)  # takes part
        weights = softmax(s + masked_fill(mask, nothing, 0.0), -1)
        weights = where(nothing, np.zeros((), q.dtype), weights)
    weights = dropout(weights, share, share > 0)
    return matmul(weights, v), weights
