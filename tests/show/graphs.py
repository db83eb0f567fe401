"""Small graphs for the tests of pictures."""

from __future__ import annotations

import numpy as np

import tinygraph as tg


class Join(tg.Op):
    """An op with any number of inputs; the pictures do not care what it computes."""

    def forward(self, mem, *arrays):
        return arrays[0].copy(), None


def network() -> tg.Tensor:
    """linear, relu, linear, loss: 5 leaves, 4 ops and 8 edges, as the tests say."""
    x = tg.Tensor(np.zeros((4, 2), np.float32), name="x")
    target = tg.Tensor(np.zeros((4, 1), np.float32), name="target")
    w1 = tg.Parameter(np.zeros((8, 2), np.float32), name="w1")
    b1 = tg.Parameter(np.zeros(8, np.float32), name="b1")
    w2 = tg.Parameter(np.zeros((1, 8), np.float32), name="w2")
    hidden = tg.relu(tg.linear(x, w1, b1))
    return tg.mse_loss(tg.linear(hidden, w2), target)


def chain(length: int) -> tg.Tensor:
    node = tg.Tensor([1.0], name="start")
    for _ in range(length):
        node = tg.relu(node)
    return node


def residual(blocks: int) -> tg.Tensor:
    """Each block has a short cut around three ops, which the edge must pass without touching."""
    node = tg.Tensor([1.0], name="x")
    for _ in range(blocks):
        weight = tg.Parameter([2.0], name="a long name of a parameter")
        node = Join()(Join()(tg.relu(tg.relu(node)), weight), node)
    return node


def random_graph(seed: int, nodes: int = 30) -> tg.Tensor:
    """Every node is an op on one to three earlier nodes, or a leaf."""
    generator = np.random.default_rng(seed)
    made: list[tg.Tensor] = [tg.Tensor([1.0, 2.0], name="first")]
    for k in range(nodes):
        if generator.random() < 0.3:
            made.append(tg.Parameter([1.0, 2.0], name=f"leaf {k}"))
        else:
            picks = generator.integers(0, len(made), generator.integers(1, 4))
            made.append(Join()(*[made[int(p)] for p in picks]))
    return Join()(*made)
