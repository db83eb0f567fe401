"""char_gpt: a small GPT writes a text, character by character.

    N windows of T characters, V characters, E features, H heads of E / H features each

    x = character + place                                       (N, T, E)   two tables
    B times:  x = x + attention(norm(x));  x = x + mlp(norm(x))
              attention  softmax(q k' / sqrt(E / H)) v, of the characters so far
              mlp        linear (4 E)  ->  GELU, by tanh  ->  linear (E)
    logits = norm(x) W'                                         (N, T, V)

Weights begin normal with deviation 0.02; those that end a branch are divided by sqrt(2 B), for the
sum of 2 B branches grows that way.

Sources: Radford et al., "Language models are unsupervised multitask learners", 2019 (GPT-2);
Karpathy, nanoGPT, 2022: the sizes are those of its example for a CPU.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import tinygraph as tg
import tinygraph.nn.functional as F
from tinygraph import nn
from tinygraph.base import ArgumentError, ShapeError
from tinygraph.engine import Operand, Tensor
from tinygraph.recipes.settings import Count, Layers, Share
from tinygraph.recipes.text import TextRecipe, TextSettings


@dataclass
class Config(TextSettings):
    """Settings."""

    layers: Layers = 4  # blocks
    heads: Count = 4  # of attention
    width: Count = 128  # features of a character
    dropout: Share = 0.0  # share of features that is dropped

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            expected = f"a number that divides the width, {self.width}"
            raise ArgumentError("char_gpt", "heads", expected, self.heads)


class Attention(nn.Module):
    """Each character looks at itself and at those before it."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        self.heads, self.share = heads, dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n, t, e = x.shape
        # (N, T, 3 E) -> three of (N, H, T, E / H)
        q, k, v = (
            part.view(n, t, self.heads, e // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(e, dim=2)
        )
        share = self.share if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=share, is_causal=True)
        return self.dropout(self.out(y.transpose(1, 2).reshape(n, t, e)))


class Block(nn.Module):
    """Attention and two linear layers, each added to what it was given."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(approximate="tanh"),
            nn.Linear(4 * width, width),
            nn.Dropout(dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class CharGPT(nn.Module):
    """From codes (N, T) to logits (N, T, V), for T up to `context`.

    >>> CharGPT(65, context=8, width=16, heads=2, layers=1)([[1, 2, 3]]).shape
    (1, 3, 65)
    """

    def __init__(
        self,
        characters: int,
        context: int,
        width: int = 128,
        heads: int = 4,
        layers: int = 4,
        dropout: float = 0.0,
    ) -> None:
        self.context = context
        self.characters = nn.Embedding(characters, width)
        self.places = nn.Embedding(context, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*[Block(width, heads, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters, bias=False)
        for name, parameter in self.named_parameters():
            ends_a_branch = name.endswith(("attention.out.weight", "mlp.2.weight"))
            scale = math.sqrt(2 * layers) if ends_a_branch else 1
            if parameter.ndim >= 2:
                nn.init.normal_(parameter, 0.0, 0.02 / scale)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, codes: Operand) -> Tensor:
        codes = tg.as_tensor(codes)
        length = codes.shape[-1]
        if codes.ndim != 2 or length > self.context:
            expected = f"(N, T) with T up to {self.context}"
            raise ShapeError("CharGPT", "codes", expected, codes.shape)
        places = tg.arange(length, device=codes.device)
        x = self.dropout(self.characters(codes) + self.places(places))  # (N, T, E)
        return self.head(self.norm(self.blocks(x)))


class CharGpt(TextRecipe):
    """The network on windows of a text."""

    name = "char_gpt"
    summary = "a small GPT writes a text, character by character (shakespeare, or your own)"
    config = Config

    def network(self, config: Config, characters: int) -> CharGPT:
        sizes = config.width, config.heads, config.layers
        return CharGPT(characters, config.context, *sizes, config.dropout)


recipe = CharGpt()
