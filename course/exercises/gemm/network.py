"""Digits, read by a network whose products are kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph.cuda import Out
from tinygraph.engine.spec import Array
from tinygraph_course.checking.network import DigitNetwork
from tinygraph_course.checking.own import Own

TILE = 16


class Product(tg.Op):
    """`double_buffered`: C = A @ B, and two more of them backwards, gC @ B^T and A^T @ gC."""

    def __init__(self, own: Own) -> None:
        self.own = own

    def infer(self, a: Any, b: Any) -> tg.Spec:
        return tg.Spec((a.shape[0], b.shape[1]), a.dtype)

    def forward(self, mem: Any, a: Any, b: Any) -> Any:
        return self.product(a, b), (a, b)

    def backward(self, mem: Any, grad: Any, saved: Any, needs: Any) -> Any:
        a, b = saved
        ga = self.product(grad, b.T) if needs[0] else None
        return ga, self.product(a.T, grad) if needs[1] else None

    def product(self, a: Array, b: Array) -> Array:
        (M, K), N = a.shape, b.shape[1]
        c = np.empty((M, N), a.dtype)
        rows, columns = -(-M // (4 * TILE)), -(-N // (4 * TILE))
        arguments = np.ascontiguousarray(a), np.ascontiguousarray(b), Out(c), M, N, K
        self.own.launch("double_buffered", (columns, rows), (TILE, TILE), *arguments, TILE=TILE)
        return c


class Network(DigitNetwork):
    """Two linear layers; all their products are your kernel's, on the emulator."""

    def __init__(self, own: Own) -> None:
        super().__init__(own)
        self.hidden, self.linear, self.product = nn.Linear(64, 32), nn.Linear(32, 10), Product(own)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        h = tg.relu(self.apply_to(self.hidden, tg.flatten(x, 1)))
        return self.apply_to(self.linear, h)

    def apply_to(self, layer: nn.Linear, x: tg.Tensor) -> tg.Tensor:
        """x @ w^T + b."""
        return self.product(x, layer.weight.T) + layer.bias
