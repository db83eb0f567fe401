"""Digits, told apart by ten lines of the learner's: 1 at its digit, -1 elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

import tinygraph as tg
from tinygraph.data import digits
from tinygraph.engine.spec import Array
from tinygraph.optim import Optimizer
from tinygraph_course.checking.network import DigitNetwork
from tinygraph_course.checking.own import Own

PART = 0.8  # of the largest learning rate, in the training
PARTS, SAMPLES, STEPS = (0.01, 0.1, 0.5, 0.9, 1.1), 100, 50  # of what is said before


def pixels(images: Any) -> Array:
    """Digits as rows, (N, 64)."""
    return np.asarray(images, np.float64).reshape(len(images), -1)


def targets(labels: Any) -> Array:
    """For each label a row of ten: 1 at the label, -1 elsewhere."""
    return 2.0 * (np.asarray(labels)[:, None] == np.arange(10)) - 1


class Network(DigitNetwork):
    """Ten of your lines, by your gradient: each shall be 1 at its digit, -1 at all others."""

    batch_size: ClassVar[int] = 64

    def __init__(self, own: Own) -> None:
        super().__init__(own)
        self.own = own
        self.weight = tg.Parameter(np.zeros((10, 65), np.float32))  # the bias in column 0

    def before(self) -> Iterator[str]:
        """The loss that is left after some steps, against the learning rate."""
        images, labels = digits("train")[:SAMPLES]
        x, y, call = pixels(images), targets(labels)[:, 0], self.own.call
        limit, begin = call("lr_limit", x), np.zeros(65)
        yield f"Is it a 0? {SAMPLES} digits, {STEPS} steps, lr as a part of lr_limit, {limit:.3g}:"
        yield f"  no step      loss {call('loss', x, y, begin):.4g}"
        for part in PARTS:
            w = call("descend", x, y, begin, part * limit, STEPS)
            yield f"  lr {part:4.2f}      loss {call('loss', x, y, w):.4g}"
        yield f"  closed form  loss {call('loss', x, y, call('closed_form', x, y)):.4g}"

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        """What the ten lines predict, (N, 10)."""
        return tg.linear(tg.flatten(x, 1), self.weight[:, 1:], self.weight[:, 0])

    def loss(self, logits: tg.Tensor, labels: Any) -> tg.Tensor:
        """Half the squared errors, of a sample."""
        wanted = tg.Tensor(targets(labels).astype(np.float32))
        return tg.half_squared_error(logits, wanted) / len(labels)

    def step(self, x: Any, labels: Any, optimizer: Optimizer) -> float:
        """By `descend` and `lr_limit` of the learner; no other gradient is asked for."""
        before = self.weight.numpy().astype(np.float64)
        after = self.own.call("tg_layer", before, pixels(x), targets(labels), PART)
        with tg.no_grad():
            loss = self.loss(self(x), labels).item()
            self.weight.value = after.astype(np.float32)
        return loss
