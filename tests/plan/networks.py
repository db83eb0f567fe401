"""Small networks and pictures for the tests of plans."""

import numpy as np

import tinygraph as tg
from tinygraph import nn

F = np.float32


def images(seed, n, channels=1, size=8):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, channels, size, size)).astype(F), rng.integers(0, 3, n)


def small_network():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(36, 3),
    )


def network_with_statistics():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 3),
    )


def step_of(model, rule=None):
    """A step of a training: loss and gradients of a batch; an update, where there is a rule."""
    optimizer = rule or tg.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        loss = tg.softmax_cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        if rule is not None:
            rule.step()
        return loss

    return step


class Residual(nn.Module):
    """Fan-out: the input of a block is used twice."""

    def __init__(self):
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        h = tg.flatten(x, 1)
        for _ in range(2):
            h = h + self.second(tg.tanh(self.first(h)))  # the same layers again: shared weights
        return self.head(h)


NETWORKS = {"small": small_network, "statistics": network_with_statistics, "residual": Residual}
