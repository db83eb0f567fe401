"""Digits, told apart by ten neurons of the learner's, each of them one digit against the rest.

A single sample turns a neuron that was good, and the share of right ones goes up and down by ten
per cent.  The mean of the weights after each batch is steady: Freund, Schapire, "Large margin
classification using the perceptron algorithm", Machine Learning 37, 1999.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import tinygraph as tg
from tinygraph.engine.spec import Array
from tinygraph.optim import Optimizer
from tinygraph_course.checking.network import DigitNetwork
from tinygraph_course.checking.own import Own

INPUTS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
TABLES = {"NAND": np.array([1.0, 1.0, 1.0, 0.0]), "XOR": np.array([0.0, 1.0, 1.0, 0.0])}
EPOCHS = 10  # of a table, at most


class Network(DigitNetwork):
    """Ten of your neurons, one for each digit; with the mean of all their weights so far."""

    def __init__(self, own: Own) -> None:
        super().__init__(own)
        self.own, self.batches = own, 0
        self.now = np.zeros((10, 65))  # weights as the rule moves them, the bias in column 0
        self.weight = tg.Parameter(np.zeros((10, 65), np.float32))  # their mean

    def before(self) -> Iterator[str]:
        """Which of two tables can be learnt, as `learn` and `repeats` say it."""
        for name, y in TABLES.items():
            yield f"{name}: {self._ending(y)}"

    def _ending(self, y: Array) -> str:
        history: list[Array] = []
        for epochs in range(EPOCHS + 1):
            w, mistakes = self.own.call("learn", INPUTS, y, 1.0, epochs)
            if mistakes and not mistakes[-1]:
                return f"epoch {epochs} is without a mistake"
            history.append(w)
        found = self.own.call("repeats", np.stack(history))
        if found is None:
            return f"mistakes still in epoch {EPOCHS}"
        return f"after epoch {found[1]} the weights are those after epoch {found[0]}: it never ends"

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        """The sums of the ten neurons, (N, 10)."""
        return tg.linear(tg.flatten(x, 1), self.weight[:, 1:], self.weight[:, 0])

    def loss(self, logits: tg.Tensor, labels: Any) -> tg.Tensor:
        """By how much sums lie on the wrong side of 0: the rule goes down the slope of this."""
        signs = 1 - 2 * tg.one_hot(labels, 10).to(logits.dtype)  # 1 where it shall not fire
        return tg.sum(tg.relu(logits * signs)) / len(labels)

    def step(self, x: Any, labels: Any, optimizer: Optimizer) -> float:
        """By `update` of the learner, sample by sample; no gradient is asked for."""
        pixels = np.asarray(x, np.float64).reshape(len(x), -1)
        self.now = self.own.call("tg_layer", self.now, pixels, np.asarray(labels), 1.0)
        self.batches += 1
        with tg.no_grad():
            loss = self.loss(self(x), labels).item()
            before = self.weight.numpy()
            mean = before + (self.now - before) / self.batches
            self.weight.value = mean.astype(np.float32)
        return loss
