"""lstm_text: an LSTM writes a text, character by character.

    N windows of T characters, V characters, E features, H hidden features

    x = the row of each character in a table                    (N, T, E)
    h = LSTM layers, one on the other, from a state of zeros    (N, T, H)
    logits = h W' + b                                           (N, T, V)

Sources: Hochreiter, Schmidhuber, "Long short-term memory", Neural Computation 1997; Karpathy, "The
unreasonable effectiveness of recurrent neural networks", 2015 (char-rnn).
"""

from __future__ import annotations

from dataclasses import dataclass

from tinygraph import nn
from tinygraph.engine import Operand, Tensor
from tinygraph.recipes.settings import Count, Layers, Share
from tinygraph.recipes.text import TextRecipe, TextSettings


@dataclass
class Config(TextSettings):
    """Settings."""

    layers: Layers = 2  # LSTM layers
    hidden: Count = 128  # features of a state
    width: Count = 64  # features of a character
    dropout: Share = 0.0  # share of features that is dropped between layers
    lr: float = 3e-3  # highest learning rate


class LstmLM(nn.Module):
    """From codes (N, T) to logits (N, T, V).

    >>> LstmLM(65, width=8, hidden=16, layers=1)([[1, 2, 3]]).shape
    (1, 3, 65)
    """

    def __init__(
        self,
        characters: int,
        width: int = 64,
        hidden: int = 128,
        layers: int = 2,
        dropout: float = 0.0,
    ) -> None:
        self.characters = nn.Embedding(characters, width)
        self.lstm = nn.LSTM(width, hidden, layers, batch_first=True, dropout=dropout)
        self.head = nn.Linear(hidden, characters)

    def forward(self, codes: Operand) -> Tensor:
        h, _ = self.lstm(self.characters(codes))
        return self.head(h)


class LstmText(TextRecipe):
    """The network on windows of a text."""

    name = "lstm_text"
    summary = "an LSTM writes a text, character by character (shakespeare, or your own)"
    config = Config

    def network(self, config: Config, characters: int) -> LstmLM:
        return LstmLM(characters, config.width, config.hidden, config.layers, config.dropout)


recipe = LstmText()
