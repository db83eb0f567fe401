"""Multi-head attention; transformer.py makes encoders and decoders of it.

    N L S    samples, queries, keys           E    features, H heads of E / H each

Source: Vaswani et al., "Attention is all you need", NeurIPS 2017.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinygraph.base import ArgumentError, ShapeError, number, whole
from tinygraph.engine import Operand, Parameter, Tensor, as_tensor
from tinygraph.nn.init import xavier_uniform_, zeros_
from tinygraph.nn.inputs import as_inputs
from tinygraph.nn.linear import Linear
from tinygraph.nn.module import Module
from tinygraph.ops.elementwise.where import where
from tinygraph.ops.products.attention import attention_and_weights, scaled_dot_product_attention
from tinygraph.ops.products.linear import linear
from tinygraph.ops.reductions.mean import mean
from tinygraph.ops.shaping.reshape import reshape
from tinygraph.ops.shaping.transpose import transpose

SIDES = ("q", "k", "v")


class MultiheadAttention(Module):
    """Attention in several heads, between two linear layers: see `tg.scaled_dot_product_attention`.

    Parameters
    ----------
    embed_dim, num_heads : int
        E and H, which divides E.
    dropout : float
        The share of weights that are dropped in training.
    bias : bool
        Of the projections.
    kdim, vdim : int, optional
        Features of keys and values where they are not E.
    batch_first : bool
        Whether inputs and outputs are (N, L, E) instead of (L, N, E).

    Attributes
    ----------
    in_proj_weight : Parameter (3 * E, E)
        Queries, keys, values; with `kdim` or `vdim` three, `q_proj_weight` and so on.
    in_proj_bias : Parameter (3 * E,) or None
    out_proj : Linear

    Notes
    -----
    In masks True says that a key takes no part, as in PyTorch; there it is the other way round in
    `scaled_dot_product_attention`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> layer = tg.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = tg.ones(3, 5, 8)
    >>> y, weights = layer(x, x, x)
    >>> y.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    _settings: ClassVar[tuple[str, ...]] = ("embed_dim", "num_heads")
    _unusual: ClassVar[dict[str, Any]] = {"dropout": 0.0, "batch_first": False}

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        *,
        dtype: Any = np.float32,
    ) -> None:
        op = "MultiheadAttention"
        for name, asked in (("add_bias_kv", add_bias_kv), ("add_zero_attn", add_zero_attn)):
            if asked:
                way_out = "tg.cat one more key and value"
                raise ArgumentError(op, name, "False", asked, way_out)
        self.embed_dim = whole(op, "embed_dim", embed_dim)
        self.num_heads = whole(op, "num_heads", num_heads)
        if self.embed_dim % self.num_heads:
            expected = f"a number that divides {self.embed_dim}"
            raise ArgumentError(op, "num_heads", expected, num_heads)
        self.dropout = number(op, "dropout", dropout, 0, 1)
        self.batch_first = bool(batch_first)
        e = self.embed_dim
        sizes = [e, e if kdim is None else kdim, e if vdim is None else vdim]
        if sizes == [e, e, e]:
            self.in_proj_weight = Parameter(np.empty((3 * e, e), dtype))
        else:
            for side, size in zip(SIDES, sizes, strict=True):
                weight = Parameter(np.empty((e, whole(op, f"{side}dim", size)), dtype))
                setattr(self, f"{side}_proj_weight", weight)
        self.in_proj_bias = Parameter(np.zeros(3 * e, dtype)) if bias else None
        self.out_proj = Linear(e, e, bias=bias, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        for name, parameter in self.named_parameters(recurse=False):
            (zeros_ if name == "in_proj_bias" else xavier_uniform_)(parameter)
        if self.out_proj.bias is not None:
            zeros_(self.out_proj.bias)

    def _projected(self, given: tuple[Tensor, Tensor, Tensor]) -> list[Tensor]:
        """Queries, keys and values (N, H, L, E / H)."""
        own, e, found = vars(self), self.embed_dim, []
        same = given[0] is given[1] is given[2] and "in_proj_weight" in own
        if same:  # one product for all three
            whole = linear(given[0], own["in_proj_weight"], self.in_proj_bias)
            found = [whole[..., i * e : (i + 1) * e] for i in range(3)]
        else:
            for i, (side, x) in enumerate(zip(SIDES, given, strict=True)):
                rows = slice(i * e, (i + 1) * e)
                packed = "in_proj_weight" in own
                weight = own["in_proj_weight"][rows] if packed else own[f"{side}_proj_weight"]
                bias = None if self.in_proj_bias is None else self.in_proj_bias[rows]
                found.append(linear(x, weight, bias))
        heads = (self.num_heads, e // self.num_heads)
        return [transpose(reshape(x, (*x.shape[:2], *heads)), 1, 2) for x in found]

    def forward(
        self,
        query: Operand,
        key: Operand,
        value: Operand,
        key_padding_mask: Operand | None = None,
        need_weights: bool = True,
        attn_mask: Operand | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        given = as_inputs(self, query, key, value)
        single = given[0].ndim == 2
        if given[0].ndim not in (2, 3) or {x.ndim for x in given} != {given[0].ndim}:
            expected = "(N, L, E)" if self.batch_first else "(L, N, E)"
            got = [x.shape for x in given]
            raise ShapeError("MultiheadAttention", "query", f"{expected} or (L, E), all alike", got)
        first, order = given[0], (0, 1) if single or self.batch_first else (1, 0)
        turned = {id(x): _samples_first(x, single, order) for x in given}
        q, k, v = self._projected(tuple(turned[id(x)] for x in given))  # type: ignore[arg-type]
        mask = self._mask(attn_mask, key_padding_mask, q, k, single)
        share, causal = self.dropout if self.training else 0.0, is_causal and mask is None
        if need_weights:
            factor = q.shape[-1] ** -0.5
            y, weights = attention_and_weights(q, k, v, mask, share, causal, factor)
        else:
            y, weights = scaled_dot_product_attention(q, k, v, mask, share, causal), None
        y = transpose(y, 1, 2)
        y = self.out_proj(reshape(y, (*y.shape[:2], self.embed_dim)))
        if weights is not None and average_attn_weights:
            weights = mean(weights, 1)
        if single:
            return y[0], None if weights is None else weights[0]
        return (y if order == (0, 1) or first.ndim == 2 else transpose(y, 0, 1)), weights

    def _mask(self, attn: Any, padding: Any, q: Tensor, k: Tensor, single: bool) -> Tensor | None:
        """Both masks as one that is added to the scores (N, H, L, S)."""
        total = None
        samples, heads = q.shape[:2]
        if attn is not None:
            total = _added(attn, q)
            if total.ndim == 3:  # one for each sample and head
                total = reshape(total, (samples, heads, *total.shape[1:]))
        if padding is not None:
            extra = _added(padding, q)
            extra = reshape(extra, (samples, 1, 1, k.shape[2]))
            total = extra if total is None else total + extra
        return total


def _samples_first(x: Tensor, single: bool, order: tuple[int, int]) -> Tensor:
    if single:
        return x[None]
    return x if order == (0, 1) else transpose(x, 0, 1)


def _added(mask: Any, q: Tensor) -> Tensor:
    """A mask in which True takes no part, as numbers that are added."""
    given = as_tensor(mask, device=q.device)
    if given.dtype.kind != "b":
        return given
    return where(given, np.full((), -np.inf, q.dtype), np.zeros((), q.dtype))
