"""Digits, read by a network with the learner's batch norm and dropout, trained by his Adam."""

from __future__ import annotations

from typing import Any

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph.optim import Optimizer
from tinygraph_course.checking.network import DigitNetwork
from tinygraph_course.checking.own import Own

P, EPS, MOMENTUM, RATE = 0.2, 1e-5, 0.1, 0.01
HIDDEN = 32


class Dropped(tg.Op):
    """The learner's dropout: both ways ask for both, with the same random numbers."""

    def __init__(self, own: Own) -> None:
        self.own = own

    def infer(self, x: Any) -> Any:
        return x

    def forward(self, mem: Any, x: Any) -> Any:
        numbers = np.array(mem.random(x.shape))
        return self.own.call("tg_dropout", x, P, [numbers], x)[0], (x, numbers)

    def backward(self, mem: Any, grad: Any, saved: Any, needs: Any) -> Any:
        x, numbers = saved
        return (self.own.call("tg_dropout", x, P, [numbers], np.array(grad))[1],)


class Network(DigitNetwork):
    """A layer of 32, your BatchNorm, ReLU, your dropout, a linear layer; your adam moves them."""

    def __init__(self, own: Own) -> None:
        super().__init__(own)
        self.own, self.learning, self.t = own, False, 0
        self.hidden, self.linear = nn.Linear(64, HIDDEN, bias=False), nn.Linear(HIDDEN, 10)
        self.w, self.b = tg.Parameter(np.ones(HIDDEN, "f4")), tg.Parameter(np.zeros(HIDDEN, "f4"))
        self.mean, self.var = np.zeros(HIDDEN, "f4"), np.ones(HIDDEN, "f4")
        self.means = {name: [0 * p.numpy(), 0 * p.numpy()] for name, p in self.named_parameters()}

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        h = self.hidden(tg.flatten(x, 1))
        if self.learning:
            statistics = self.mean, self.var, h.numpy(), MOMENTUM
            self.mean, self.var = self.own.call("running", *statistics)
        running = None if self.learning else (tuple(self.mean.tolist()), tuple(self.var.tolist()))
        h = tg.relu(self.own.op("BatchNorm", EPS, running)(h, self.w, self.b))
        return self.linear(Dropped(self.own)(h) if self.learning else h)

    def step(self, x: Any, labels: Any, optimizer: Optimizer) -> float:
        self.learning, self.t = True, self.t + 1
        optimizer.zero_grad()
        loss = self.loss(self(x), labels)
        loss.backward()
        self.learning = False
        for name, p in self.named_parameters():
            state = p.numpy(), p.grad, *self.means[name], self.t, RATE
            value, *self.means[name] = self.own.call("adam", *state)
            p.value = value
        return loss.item()
