"""Digits: four workers compute the gradients, and the learner's ring adds them up."""

from __future__ import annotations

from typing import Any

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph_course.checking.network import DigitNetwork
from tinygraph_course.checking.own import Own

WORKERS = 4


class ShardedLinear(tg.Op):
    """x (N, I), w (O, I), b (O,): `tg.linear`, whose gw and gb come from a shard each, and a ring.

    gy is that of a mean over the whole batch, so that what the shards give has to be added only.
    """

    def __init__(self, own: Own) -> None:
        self.own = own

    def infer(self, x: Any, w: Any, b: Any) -> tg.Spec:
        return tg.Spec((x.shape[0], w.shape[0]), x.dtype)

    def forward(self, mem: Any, x: Any, w: Any, b: Any) -> Any:
        return x @ w.T + b, (x, w)

    def backward(self, mem: Any, gy: Any, saved: Any, needs: Any) -> Any:
        x, w = saved
        shards = [slice(*bounds) for bounds in self.own.call("shard", len(x), WORKERS)]
        flat = [np.append(gy[s].T @ x[s], gy[s].sum(0)) for s in shards]  # gw and gb of a shard
        sums = self.own.call("tg_sums", flat)
        here = sums[0].astype(x.dtype)  # all workers have the same
        return gy @ w if needs[0] else None, here[: w.size].reshape(w.shape), here[w.size :]


class Network(DigitNetwork):
    """Two layers. Four workers have a shard of a batch each; your ring adds up their gradients."""

    def __init__(self, own: Own) -> None:
        super().__init__(own)
        self.sharded = ShardedLinear(own)
        self.hidden, self.linear = nn.Linear(64, 32), nn.Linear(32, 10)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        h = tg.relu(self.sharded(tg.flatten(x, 1), *self.hidden.parameters()))
        return self.sharded(h, *self.linear.parameters())
