"""Digits, read by networks that the learner's loss has trained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tinygraph as tg
from tinygraph import nn
from tinygraph_course.checking.network import DigitNetwork
from tinygraph_course.checking.own import Own
from tinygraph_course.exercises.softmax.steps import DIGITS


class Network(DigitNetwork):
    """A layer of 32, ReLU, a linear layer; the loss is your SoftmaxCrossEntropy."""

    def __init__(self, own: Own) -> None:
        super().__init__(own)
        self.own, self.of_logits = own, own.op("SoftmaxCrossEntropy")
        self.hidden, self.linear = nn.Linear(64, 32), nn.Linear(32, 10)

    def before(self) -> Iterator[str]:
        shares = self.own.call("tg_learn", *DIGITS)
        told = " ".join(f"{share:.1%}" for share in shares)
        yield f"Your learn, from {len(shares)} starting weights: {told} of the test digits right."

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.linear(tg.relu(self.hidden(tg.flatten(x, 1))))

    def loss(self, logits: tg.Tensor, labels: Any) -> tg.Tensor:
        return self.of_logits(logits, labels)
