"""Digits, read by a network whose layers are fused kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph.cuda import Out
from tinygraph_course.checking.network import DigitNetwork
from tinygraph_course.checking.own import Own

BLOCK = 64


class Stage(tg.Op):
    """`conv_relu_pool` of images that need no gradient; w (D, C, 3, 3), b (D)."""

    def __init__(self, own: Own) -> None:
        self.own = own

    def infer(self, x: Any, w: Any, b: Any) -> tg.Spec:
        return tg.Spec((x.shape[0], w.shape[0], *((n - 2) // 2 for n in x.shape[2:])), x.dtype)

    def forward(self, mem: Any, x: Any, w: Any, b: Any) -> Any:
        y = np.empty(self.infer(x, w, b).shape, x.dtype)
        argmax, sizes = np.empty(y.shape, np.int32), (*x.shape, len(w), *y.shape[2:])
        blocks = -(-y.size // BLOCK)
        self.own.launch("conv_relu_pool", blocks, BLOCK, x, w, b, Out(y), Out(argmax), *sizes)
        return y, (x, w, y, argmax)

    def backward(self, mem: Any, gy: Any, saved: Any, needs: Any) -> Any:
        x, w, y, argmax = saved
        passed, (OH, OW) = gy * (y > 0), (n - 2 for n in x.shape[2:])
        gz = np.zeros((*y.shape[:2], OH, OW), gy.dtype)
        for q in range(4):
            at = slice(q // 2, 2 * y.shape[2], 2), slice(q % 2, 2 * y.shape[3], 2)
            gz[(..., *at)] = passed * (argmax == q)
        gw = np.empty_like(w)
        for r, s in np.ndindex(3, 3):
            gw[:, :, r, s] = np.einsum("ndhw,nchw->dc", gz, x[:, :, r : r + OH, s : s + OW])
        return None, gw, gz.sum((0, 2, 3))


class TwoLayers(tg.Op):
    """relu(x @ w1^T + b1) @ w2^T: forward `bias_relu` between the products, backward `delta`."""

    def __init__(self, own: Own) -> None:
        self.own = own

    def infer(self, x: Any, w1: Any, b1: Any, w2: Any) -> tg.Spec:
        return tg.Spec((x.shape[0], w2.shape[0]), x.dtype)

    def forward(self, mem: Any, x: Any, w1: Any, b1: Any, w2: Any) -> Any:
        z = x @ w1.T
        h, blocks = np.empty_like(z), -(-z.size // BLOCK)
        self.own.launch("bias_relu", blocks, BLOCK, z, b1, Out(h), *z.shape, 1)
        return h @ w2.T, (x, w1, w2, h)

    def backward(self, mem: Any, gy: Any, saved: Any, needs: Any) -> Any:
        x, w1, w2, h = saved
        d, blocks, sizes = np.empty_like(h), -(-h.size // BLOCK), (*gy.shape, h.shape[1])
        self.own.launch("delta", blocks, BLOCK, np.ascontiguousarray(gy), w2, h, Out(d), *sizes)
        return d @ w1, d.T @ x, d.sum(0), gy.T @ h


class Network(DigitNetwork):
    """Your conv_relu_pool with 8 filters, and two linear layers with your bias_relu and delta."""

    hidden: ClassVar[int] = 64

    def __init__(self, own: Own) -> None:
        super().__init__(own)
        self.own, self.filters = own, nn.Conv2d(1, 8, 3)
        self.first = nn.Linear(8 * 3 * 3, self.hidden)
        self.second = nn.Linear(self.hidden, 10, bias=False)
        self.stage, self.layers = Stage(own), TwoLayers(own)

    def before(self) -> Iterator[str]:
        """Launches of the framework with and without fusion, and what the learner predicts."""
        x = tg.zeros((self.batch_size, 1, 8, 8), device="emulator")
        w, b = [a.detach().to("emulator") for a in self.filters.parameters()]
        with tg.cuda.recording(execute=False) as apart:
            tg.max_pool2d(tg.relu(tg.conv2d(x, w, b)), 2)
        with tg.cuda.recording(execute=False) as fused:
            tg.conv2d_relu_max_pool2d(x, w, b)
        for words, launches in (("one after the other", apart), ("in one launch", fused)):
            count = f"{len(launches)} launch{'es' if len(launches) > 1 else ''}"
            moved = sum(launch.bytes for launch in launches)
            yield f"The framework's first stage {words}: {count}, arrays of {moved:,} bytes."
        predicted = np.empty(1)
        for words, one in (("in two launches", 0), ("as yours", 1)):
            sizes = one, self.batch_size, 10, self.hidden
            self.own.launch("tg_step_4", 1, 1, Out(predicted), *sizes)
            yield f"Your prediction for delta {words}: {predicted[0]:,.0f} bytes."

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        y = tg.flatten(self.stage(x, *self.filters.parameters()), 1)
        return self.layers(y, *self.first.parameters(), self.second.weight)
