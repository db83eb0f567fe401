"""DeZero: define-by-run over numpy."""

from __future__ import annotations

from typing import Any

import dezero.functions as F
from dezero import Parameter
from dezero import optimizers as optim

from benchmarks.cpu.training import Training, versions
from benchmarks.workloads import Ops, Workload, chain

OPS: Ops = {
    "conv": lambda x, w, b, padding: F.conv2d(x, w, b, stride=1, pad=padding),
    "linear": lambda x, w, b, _: F.linear(x, w.T, b),
    "relu": lambda x, _: F.relu(x),
    "max_pool": lambda x, size: F.pooling(x, size, size, 0),
    "flatten": lambda x, _: F.flatten(x),
}
LOSSES: Ops = {"cross_entropy": F.softmax_cross_entropy, "mse": F.mean_squared_error}


class _Parameters:
    """What DeZero's optimisers ask of a model: its parameters."""

    def __init__(self, parameters: list[Any]) -> None:
        self._parameters = parameters

    def params(self) -> list[Any]:
        return self._parameters


def make(workload: Workload, variant: str, threads: int) -> Training:
    network, loss_of = chain(workload.layers, OPS), LOSSES[workload.loss]
    parameters = [Parameter(w.copy()) for w in workload.weights]
    optimizer = optim.SGD(lr=workload.learning_rate).setup(_Parameters(parameters))

    def step() -> Any:
        loss = loss_of(network(workload.images, parameters), workload.labels)
        for parameter in parameters:
            parameter.cleargrad()
        loss.backward()
        optimizer.update()
        return loss

    about = f"{versions('dezero', 'numpy')}, {threads} threads of BLAS"
    return Training(step, lambda loss: float(loss.data), about)
