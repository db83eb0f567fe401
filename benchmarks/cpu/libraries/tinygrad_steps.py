"""tinygrad on its CPU device, the whole step under TinyJit."""

from __future__ import annotations

from typing import Any

from tinygrad import Device, Tensor, TinyJit
from tinygrad.helpers import Context
from tinygrad.nn.optim import SGD

from benchmarks.cpu.libraries.tinygrad_modules import library
from benchmarks.cpu.training import Training, built, versions
from benchmarks.networks import Network
from benchmarks.workloads import Ops, Workload, chain

OPS: Ops = {
    "conv": lambda x, w, b, padding: x.conv2d(w, b, padding=padding),
    "linear": lambda x, w, b, _: x.linear(w.T, b),
    "relu": lambda x, _: x.relu(),
    "max_pool": lambda x, size: x.max_pool2d((size, size)),
    "flatten": lambda x, _: x.flatten(1),
}
LOSSES: Ops = {
    "cross_entropy": lambda x, y: x.sparse_categorical_crossentropy(y),
    "mse": lambda x, y: ((x - y) ** 2).mean(),
}


def make(workload: Workload | Network, variant: str, threads: int) -> Training:
    forward, optimizer = (_of_network if isinstance(workload, Network) else _of_layers)(workload)

    @TinyJit
    @Context(TRAINING=1)
    def step() -> Any:
        optimizer.zero_grad()
        loss = forward()
        loss.backward()
        return loss.realize(*optimizer.schedule_step())

    def value(loss: Any) -> float:
        Device[Device.DEFAULT].synchronize()
        return float(loss.item())

    return Training(step, value, f"{versions('tinygrad')}, device {Device.DEFAULT}")


def _of_layers(workload: Workload) -> tuple[Any, Any]:
    """What gives the loss, and the optimiser."""
    network, loss_of = chain(workload.layers, OPS), LOSSES[workload.loss]
    images, labels = Tensor(workload.images).realize(), Tensor(workload.labels).realize()
    parameters = [Tensor(w).realize() for w in workload.weights]
    optimizer = SGD(parameters, lr=workload.learning_rate)
    return lambda: loss_of(network(images, parameters), labels), optimizer


def _of_network(network: Network) -> tuple[Any, Any]:
    module, optimizer = built(network, library, Tensor)
    loss_of = LOSSES[network.loss.removesuffix("_loss")]
    inputs, labels = Tensor(network.inputs).realize(), Tensor(network.labels).realize()
    return lambda: loss_of(module(inputs), labels), optimizer
