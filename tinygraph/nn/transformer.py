"""The encoder and the decoder of the Transformer: attention and linear layers, each part added.

    N L S    samples, elements, elements of what is attended to        E    features

    part(x)   x + f(norm(x)) with `norm_first`, else norm(x + f(x))

    encoder layer    self-attention; linear, activation, linear
    decoder layer    self-attention; attention to what was encoded; linear, activation, linear

Source: Vaswani et al., "Attention is all you need", NeurIPS 2017; with the normalization first:
Xiong et al., "On layer normalization in the Transformer architecture", ICML 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import one_of, whole
from tinygraph.engine import Operand, Tensor
from tinygraph.nn.attention import MultiheadAttention
from tinygraph.nn.containers import ModuleList
from tinygraph.nn.dropout import Dropout
from tinygraph.nn.inputs import as_input, as_inputs
from tinygraph.nn.linear import Linear
from tinygraph.nn.module import Module
from tinygraph.nn.normalization import LayerNorm
from tinygraph.ops.elementwise.gelu import gelu
from tinygraph.ops.elementwise.relu import relu

ACTIVATIONS: dict[str, Callable[..., Tensor]] = {"relu": relu, "gelu": gelu}


class _Layer(Module):
    """What encoder and decoder layers share: parts are attention, and at the end linear layers."""

    attentions: ClassVar[tuple[str, ...]]  # each a part

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
        for name in self.attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self.norm_first = bool(norm_first)
        parts = range(1, len(self.attentions) + 2)
        for i in parts:
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype))
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout))
        if isinstance(activation, str):
            one_of(type(self).__name__, "activation", activation, ACTIVATIONS)
        self.activation: Any = ACTIVATIONS.get(activation, activation)  # type: ignore[arg-type]

    def _part(self, number: int, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """x with what a part makes of it, dropped in part, normalized before or after."""
        norm, drop = vars(self)[f"norm{number}"], vars(self)[f"dropout{number}"]
        if self.norm_first:
            return x + drop(function(norm(x)))
        return norm(x + drop(function(x)))

    def _attention(
        self,
        name: str,
        mask: Operand | None,
        padding: Operand | None,
        is_causal: bool,
        memory: Tensor | None = None,
    ) -> Callable[[Tensor], Tensor]:
        """The part that attends to its own input, or to what was encoded."""

        def attend(x: Tensor) -> Tensor:
            keys = x if memory is None else memory
            given = x, keys, keys, padding, False, mask
            return vars(self)[name](*given, is_causal=is_causal)[0]

        return attend

    def _feed(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
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

    attentions = ("self_attn",)

    def forward(
        self,
        src: Operand,
        src_mask: Operand | None = None,
        src_key_padding_mask: Operand | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        attend = self._attention("self_attn", src_mask, src_key_padding_mask, is_causal)
        return self._part(2, self._part(1, as_input(self, src), attend), self._feed)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to what was encoded, and two linear layers, each added.

    Parameters
    ----------
    d_model, nhead : int
        E and H.
    dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias
        As of `TransformerEncoderLayer`.

    Notes
    -----
    It is called with `(tgt, memory)`, (L, N, E) and (S, N, E), or with `batch_first` (N, L, E) and
    (N, S, E); then with masks: `tgt_mask` (L, L), `memory_mask` (L, S), `tgt_key_padding_mask`
    (N, L), `memory_key_padding_mask` (N, S), in which True says that a key takes no part; and
    `tgt_is_causal`, `memory_is_causal` where there is no mask.

    Examples
    --------
    >>> import tinygraph as tg
    >>> layer = tg.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True).eval()
    >>> layer(tg.ones(3, 5, 8), tg.ones(3, 4, 8), tgt_is_causal=True).shape
    (3, 5, 8)
    """

    attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Operand,
        memory: Operand,
        tgt_mask: Operand | None = None,
        memory_mask: Operand | None = None,
        tgt_key_padding_mask: Operand | None = None,
        memory_key_padding_mask: Operand | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        tgt, memory = as_inputs(self, tgt, memory)
        masks = memory_mask, memory_key_padding_mask, memory_is_causal
        attend = self._attention("self_attn", tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        look = self._attention("multihead_attn", *masks, memory)
        x = self._part(1, tgt, attend)
        return self._part(3, self._part(2, x, look), self._feed)


class _Stack(Module):
    """Layers like a given one, one after the other, and a normalization at the end."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        self.num_layers = whole(type(self).__name__, "num_layers", num_layers)
        self.layers = ModuleList(deepcopy(layer) for _ in range(self.num_layers))
        self.norm = norm

    def _through(self, x: Tensor, *given: Any, **options: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, *given, **options)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
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
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: Operand,
        mask: Operand | None = None,
        src_key_padding_mask: Operand | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        return self._through(as_input(self, src), mask, src_key_padding_mask, is_causal=is_causal)


class TransformerDecoder(_Stack):
    """Layers like a given one, one after the other, each of which sees what was encoded.

    Parameters
    ----------
    decoder_layer : TransformerDecoderLayer
    num_layers, norm
        As of `TransformerEncoder`.

    Notes
    -----
    It is called as its layers are.

    Examples
    --------
    >>> import tinygraph as tg
    >>> layer = tg.nn.TransformerDecoderLayer(8, 2, 16)
    >>> decoder = tg.nn.TransformerDecoder(layer, num_layers=2).eval()
    >>> decoder(tg.ones(5, 3, 8), tg.ones(4, 3, 8)).shape
    (5, 3, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Operand,
        memory: Operand,
        tgt_mask: Operand | None = None,
        memory_mask: Operand | None = None,
        tgt_key_padding_mask: Operand | None = None,
        memory_key_padding_mask: Operand | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        masks = tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        causal = bool(tgt_is_causal), memory_is_causal
        return self._through(*as_inputs(self, tgt, memory), *masks, *causal)
