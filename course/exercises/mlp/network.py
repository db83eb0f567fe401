"""Digits, read by the learner's network of two layers, which his `step` trains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph.engine.spec import Array
from tinygraph.optim import Optimizer
from tinygraph_course.checking.network import DigitNetwork
from tinygraph_course.checking.own import Own
from tinygraph_course.exercises.mlp.steps import SEEDS, XOR_STEPS, xor


class Forward(tg.Op):
    """The learner's `forward`; what it is differentiated for is `step`, and asks no graph."""

    def __init__(self, own: Own) -> None:
        self.own = own

    def infer(self, x: Any, W1: Any, b1: Any, W2: Any, b2: Any) -> tg.Spec:
        return tg.Spec((x.shape[0], W2.shape[0]), x.dtype)

    def forward(self, mem: Any, *arrays: Any) -> Any:
        return self.own.call("forward", *arrays)[1], None


class Network(DigitNetwork):
    """Your two layers: 64 pixels, 32 hidden units, 10 outputs; your step is what trains them."""

    batch_size: ClassVar[int] = 8
    lr: ClassVar[float] = 0.5

    def __init__(self, own: Own) -> None:
        super().__init__(own)
        self.own, self.outputs = own, Forward(own)
        hidden, last = nn.Linear(64, 32), nn.Linear(32, 10)
        self.W1, self.b1, self.W2, self.b2 = *hidden.parameters(), *last.parameters()
        for p in self.parameters():  # more than nn.Linear draws: the slope of s is 1/4 at most
            p.value = 3 * p.value

    def before(self) -> Iterator[str]:
        """XOR, which a single neuron does not learn."""
        solved = sum(self.own.call("tg_step", *xor(seed)) for seed in SEEDS)
        yield f"XOR by 4 hidden units, {XOR_STEPS} steps: {solved} of {len(SEEDS)} seeds solve it"

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.outputs(tg.flatten(x, 1), *self.parameters())

    def loss(self, logits: tg.Tensor, labels: Any) -> tg.Tensor:
        """That of the exercise, as the mean over the samples."""
        y = tg.one_hot(labels, 10).to(logits.dtype)
        return tg.half_squared_error(logits, y) / len(labels)

    def step(self, x: Any, labels: Any, optimizer: Optimizer) -> float:
        """By the learner's `step`; no gradient is asked for."""
        pixels: Array = np.asarray(x).reshape(len(x), -1)
        y = np.eye(10, dtype=pixels.dtype)[np.asarray(labels)]
        with tg.no_grad():
            loss = self.loss(self(tg.Tensor(x)), labels).item()
        before = [p.value for p in self.parameters()]
        after = self.own.call("step", pixels, y, *before, self.lr)
        for p, value in zip(self.parameters(), after, strict=True):
            p.value = value
        return loss
