"""Digits, read by a network whose gradients the learner's walk finds: graph and walk are in his
process, and what comes back are arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph.data import digits
from tinygraph.optim import Optimizer
from tinygraph_course.checking.network import DigitNetwork
from tinygraph_course.checking.own import Own


class Network(DigitNetwork):
    """Three layers, the second one added to its input. Your backward finds all the gradients."""

    lr: ClassVar[float] = 0.05

    def __init__(self, own: Own) -> None:
        super().__init__(own)
        self.own = own
        self.first, self.second, self.last = nn.Linear(64, 32), nn.Linear(32, 32), nn.Linear(32, 10)

    def before(self) -> Iterator[str]:
        images, labels = digits("train")[:32]
        nodes, passed = self._asked(images, labels)[2]
        yield f"The graph of a batch has {nodes} nodes; a gradient goes through {passed} of them."

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        """What `tg_network` of harness.py builds too, there for the learner's walk."""
        h = tg.relu(self.first(tg.flatten(x, 1)))
        h = h + tg.relu(self.second(h))
        return self.last(h)

    def step(self, x: Any, labels: Any, optimizer: Optimizer) -> float:
        """By gradients of the learner's `backward`; the optimizer is the framework's."""
        loss, gradients, _ = self._asked(x, labels)
        for p, gradient in zip(self.parameters(), gradients, strict=True):
            p.grad = gradient
        optimizer.step()
        return float(loss)

    def _asked(self, x: Any, labels: Any) -> Any:
        pixels = np.asarray(x).reshape(len(x), -1)
        values = [p.value for p in self.parameters()]
        return self.own.call("tg_network", pixels, np.asarray(labels), *values)
