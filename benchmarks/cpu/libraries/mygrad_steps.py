"""MyGrad: tensors over numpy; its update is written by hand, since it has no optimisers."""

from __future__ import annotations

from typing import Any

import mygrad as mg
import numpy as np
from mygrad.nnet import layers, losses, relu

from benchmarks.cpu.training import Training, versions
from benchmarks.workloads import Ops, Workload, chain

OPS: Ops = {
    "conv": lambda x, w, b, padding: (
        layers.conv_nd(x, w, stride=1, padding=padding) + b.reshape(1, -1, 1, 1)
    ),
    "linear": lambda x, w, b, _: mg.matmul(x, w.T) + b,
    "relu": lambda x, _: relu(x),
    "max_pool": lambda x, size: layers.max_pool(x, (size, size), size),
    "flatten": lambda x, _: x.reshape(x.shape[0], -1),
}
LOSSES: Ops = {
    "cross_entropy": losses.softmax_crossentropy,
    "mse": lambda x, y: mg.mean((x - y) ** 2),
}


def make(workload: Workload, variant: str, threads: int) -> Training:
    network, loss_of = chain(workload.layers, OPS), LOSSES[workload.loss]
    parameters = [mg.tensor(w) for w in workload.weights]
    rate = np.float32(workload.learning_rate)

    def step() -> Any:
        loss = loss_of(network(workload.images, parameters), workload.labels)
        loss.backward()
        for parameter in parameters:
            parameter.data -= rate * parameter.grad
        return loss

    about = f"{versions('mygrad', 'numpy')}, {threads} threads of BLAS"
    return Training(step, lambda loss: float(loss.data), about)
