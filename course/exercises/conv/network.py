"""Digits, read by a network that convolves."""

from __future__ import annotations

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph_course.checking.network import DigitNetwork
from tinygraph_course.checking.own import Own


class Network(DigitNetwork):
    """Your Conv2d with 8 filters of 3 by 3, ReLU, max-pooling, and a linear layer."""

    def __init__(self, own: Own) -> None:
        super().__init__(own)
        self.w = nn.Conv2d(1, 8, 3, padding=1).weight  # as the framework draws it
        self.b = tg.Parameter(np.zeros(8, np.float32))
        self.conv = own.op("Conv2d", (1, 1), (1, 1))
        self.linear = nn.Linear(8 * 4 * 4, 10)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        y = tg.max_pool2d(tg.relu(self.conv(x, self.w, self.b)), 2)
        return self.linear(tg.flatten(y, 1))
