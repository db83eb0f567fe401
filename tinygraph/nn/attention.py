"""Multi-head attention, and the encoder of the Transformer.

    N L S    samples, queries, keys           E    features, H heads of E / H each

Source: Vaswani et al., "Attention is all you need", NeurIPS 2017; with the normalization first:
Xiong et al., "On layer normalization in the Transformer architecture", ICML 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np

from tinygraph.checks import number, one_of, whole
from tinygraph.errors import ArgumentError, ShapeError
from tinygraph.nn.containers import ModuleList
from tinygraph.nn.dropout import Dropout
from tinygraph.nn.init import xavier_uniform_, zeros_
from tinygraph.nn.linear import Linear
from tinygraph.nn.module import Module
from tinygraph.nn.normalization import LayerNorm
from tinygraph.ops.attention import attention_and_weights, scaled_dot_product_attention
from tinygraph.ops.gelu import gelu
from tinygraph.ops.linear import linear
from tinygraph.ops.mean import mean
from tinygraph.ops.relu import relu
from tinygraph.ops.reshape import reshape
from tinygraph.ops.transpose import transpose
from tinygraph.ops.where import where
from tinygraph.parameter import Parameter
from tinygraph.tensor import Operand, Tensor, as_tensor

ACTIVATIONS: dict[str, Callable[..., Tensor]] = {"relu": relu, "gelu": gelu}
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
        given = [as_tensor(query)]
        given += [given[0] if x is query else as_tensor(x) for x in (key, value)]
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


class TransformerEncoderLayer(Module):
    """Self-attention and two linear layers, each added to what it was given.

    Parameters
    ----------
    d_model, nhead : int
        E and H.
    dim_feedforward : int
        Features between the two linear layers.
    dropout : float
    activation : {"relu", "gelu"} or callable
    layer_norm_eps : float
    batch_first : bool
        Whether inputs and outputs are (N, L, E) instead of (L, N, E).
    norm_first : bool
        Whether each part normalizes its input, instead of the sum after it.
    bias : bool

    Examples
    --------
    >>> import tinygraph as tg
    >>> layer = tg.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> layer(tg.ones(3, 5, 8)).shape
    (3, 5, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        dtype: Any = np.float32,
    ) -> None:
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self.norm_first = bool(norm_first)
        for name in ("norm1", "norm2"):
            setattr(self, name, LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype))
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        if isinstance(activation, str):
            one_of("TransformerEncoderLayer", "activation", activation, ACTIVATIONS)
        self.activation: Any = ACTIVATIONS.get(activation, activation)  # type: ignore[arg-type]

    def forward(
        self,
        src: Operand,
        src_mask: Operand | None = None,
        src_key_padding_mask: Operand | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            y, _ = self.self_attn(
                x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal
            )
            return self.dropout1(y)

        def feed(x: Tensor) -> Tensor:
            return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))

        x, norm1, norm2 = as_tensor(src), vars(self)["norm1"], vars(self)["norm2"]
        if self.norm_first:
            x = x + attend(norm1(x))
            return x + feed(norm2(x))
        x = norm1(x + attend(x))
        return norm2(x + feed(x))


class TransformerEncoder(Module):
    """Layers like a given one, one after the other.

    Parameters
    ----------
    encoder_layer : TransformerEncoderLayer
        Copied for each layer: all begin with the same numbers.
    num_layers : int
    norm : Module, optional
        At the end.
    enable_nested_tensor, mask_check : bool
        Taken, and change nothing.

    Examples
    --------
    >>> import tinygraph as tg
    >>> layer = tg.nn.TransformerEncoderLayer(8, 2, 16)
    >>> tg.nn.TransformerEncoder(layer, num_layers=2).eval()(tg.ones(5, 3, 8)).shape
    (5, 3, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        self.num_layers = whole("TransformerEncoder", "num_layers", num_layers)
        self.layers = ModuleList(deepcopy(encoder_layer) for _ in range(self.num_layers))
        self.norm = norm

    def forward(
        self,
        src: Operand,
        mask: Operand | None = None,
        src_key_padding_mask: Operand | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        x = as_tensor(src)
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, is_causal=is_causal)
        return x if self.norm is None else self.norm(x)
