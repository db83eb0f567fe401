"""Digits, read by a network whose convolution and pooling are kernels."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph.cuda import Out
from tinygraph_course.checking.network import DigitNetwork
from tinygraph_course.checking.own import Own

BLOCK = 64


class Conv(tg.Op):
    """A convolution that moves by 1, with zeros on either side; w (D, C, KH, KW), b (D)."""

    def __init__(self, own: Own, padding: int) -> None:
        self.own, self.padding = own, padding

    def infer(self, x: Any, w: Any, b: Any) -> tg.Spec:
        return tg.Spec((x.shape[0], w.shape[0], *self.sizes(x, w)[-2:]), x.dtype)

    def sizes(self, x: Any, w: Any) -> tuple[int, ...]:
        """C, H, W, D, KH, KW, S, P, OH, OW."""
        (C, H, W), (D, _, KH, KW), P = x.shape[1:], w.shape, self.padding
        return C, H, W, D, KH, KW, 1, P, H + 2 * P - KH + 1, W + 2 * P - KW + 1

    def forward(self, mem: Any, x: Any, w: Any, b: Any) -> Any:
        """The twin in numpy."""
        C, _, _, D, KH, KW, _, P, OH, OW = self.sizes(x, w)
        wide = np.pad(x, ((0, 0), (0, 0), (P, P), (P, P)))
        cols = np.empty((len(x), C, KH, KW, OH, OW), x.dtype)
        for i, j in np.ndindex(KH, KW):
            cols[:, :, i, j] = wide[:, :, i : i + OH, j : j + OW]
        cols = cols.reshape(len(x), C * KH * KW, OH * OW)
        y = w.reshape(D, -1) @ cols + b[:, None]
        return y.reshape(len(x), D, OH, OW), (cols, x, w)

    def forward_kernel(self, mem: Any, x: Any, w: Any, b: Any) -> Any:
        sizes = C, _, _, D, KH, KW, _, _, OH, OW = self.sizes(x, w)
        cols = mem.empty((len(x), C * KH * KW, OH * OW), x.dtype)
        y = mem.empty((len(x), D, OH, OW), x.dtype)
        self.own.launch("conv", len(x), BLOCK, x, w, b, Out(cols), Out(y), *sizes)
        return y, (cols, x, w)

    def backward(self, mem: Any, gy: Any, saved: Any, needs: Any) -> Any:
        cols, x, w = saved
        _, H, W, _, KH, KW, _, P, OH, OW = self.sizes(x, w)
        gcols, gw, gb = self.products(gy, cols, w)
        gcols = gcols.reshape(len(x), -1, KH, KW, OH, OW)
        wide = np.pad(np.zeros_like(x), ((0, 0), (0, 0), (P, P), (P, P)))
        for i, j in np.ndindex(KH, KW):
            wide[:, :, i : i + OH, j : j + OW] += gcols[:, :, i, j]
        return wide[:, :, P : P + H, P : P + W], gw, gb

    def backward_kernel(self, mem: Any, gy: Any, saved: Any, needs: Any) -> Any:
        cols, x, w = saved
        C, H, W, _, KH, KW, S, P, OH, OW = self.sizes(x, w)
        gcols, gw, gb = self.products(gy, cols, w)
        if not needs[0]:  # digits
            return None, gw, gb
        gx = mem.empty(x.shape, x.dtype)
        sizes = len(x), C, H, W, KH, KW, S, P, OH, OW
        self.own.launch("col2im", -(-gx.size // BLOCK), BLOCK, gcols, Out(gx), *sizes)
        return gx, gw, gb

    def products(self, gy: Any, cols: Any, w: Any) -> tuple[Any, Any, Any]:
        """The gradients of cols, w and b: those of a linear layer."""
        gy, rows = gy.reshape(*gy.shape[:2], -1), w.reshape(len(w), -1)
        gw = (gy @ cols.transpose(0, 2, 1)).sum(0).reshape(w.shape)
        return rows.T @ gy, gw, gy.sum((0, 2))


class Pool(tg.Op):
    """The largest of each 2 x 2 pixels."""

    def __init__(self, own: Own) -> None:
        self.own = own

    def infer(self, x: Any) -> tg.Spec:
        return tg.Spec((*x.shape[:2], x.shape[2] // 2, x.shape[3] // 2), x.dtype)

    def sizes(self, x: Any, y: Any) -> tuple[int, ...]:
        """planes, H, W, K, S, OH, OW."""
        return x[0] * x[1], *x[2:], 2, 2, *y[2:]

    def forward_kernel(self, mem: Any, x: Any) -> Any:
        y = mem.empty(self.infer(x).shape, x.dtype)
        argmax = mem.empty(y.shape, np.int32)
        sizes, blocks = self.sizes(x.shape, y.shape), -(-y.size // BLOCK)
        self.own.launch("pool_forward", blocks, BLOCK, x, Out(y), Out(argmax), *sizes)
        return y, (argmax, x.shape)

    def backward_kernel(self, mem: Any, gy: Any, saved: Any, needs: Any) -> Any:
        argmax, shape = saved
        gx = mem.empty(shape, gy.dtype)
        sizes, blocks = self.sizes(shape, gy.shape), -(-gx.size // BLOCK)
        self.own.launch("pool_backward", blocks, BLOCK, gy, argmax, Out(gx), *sizes)
        return (gx,)


class Network(DigitNetwork):
    """Convolution, pooling and convolution by your kernels, then ReLU and a linear layer."""

    epochs: ClassVar[int] = 4

    def __init__(self, own: Own) -> None:
        super().__init__(own)
        self.first, self.second = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.conv, self.pool, self.linear = Conv(own, 1), Pool(own), nn.Linear(16 * 4 * 4, 10)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        y = self.pool(self.convolved(tg.Tensor(x).to("emulator"), self.first))
        y = self.convolved(y, self.second).to("cpu")
        return self.linear(tg.flatten(tg.relu(y), 1))

    def convolved(self, x: tg.Tensor, layer: nn.Conv2d) -> tg.Tensor:
        """On the emulator forward_kernel and backward_kernel are called."""
        return self.conv(x, *(a.to("emulator") for a in layer.parameters()))
