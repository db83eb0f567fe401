"""Digits, read by a network that pools."""

from __future__ import annotations

import tinygraph as tg
from tinygraph import nn
from tinygraph_course.checking.network import DigitNetwork
from tinygraph_course.checking.own import Own


class Network(DigitNetwork):
    """A convolution with 8 filters, ReLU, your MaxPool2d of 2 by 2, and a linear layer."""

    def __init__(self, own: Own) -> None:
        super().__init__(own)
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.pool = own.op("MaxPool2d", 2, 2)
        self.linear = nn.Linear(8 * 4 * 4, 10)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.linear(tg.flatten(self.pool(tg.relu(self.conv(x))), 1))
