"""PyTorch: "eager", "channels_last", "compiled", and "bare", without an optimiser object."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.cpu.training import Training, built
from benchmarks.networks import Network
from benchmarks.workloads import Ops, Workload, chain

F = torch.nn.functional
OPS: Ops = {
    "conv": lambda x, w, b, padding: F.conv2d(x, w, b, padding=padding),
    "linear": lambda x, w, b, _: F.linear(x, w, b),
    "relu": lambda x, _: F.relu(x),
    "max_pool": lambda x, size: F.max_pool2d(x, size),
    "flatten": lambda x, _: torch.flatten(x, 1),
}
LOSSES: Ops = {"cross_entropy": F.cross_entropy, "mse": F.mse_loss}


def make(workload: Workload | Network, variant: str, threads: int) -> Training:
    torch.set_num_threads(threads)
    about = f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads"
    if isinstance(workload, Network):
        return Training(_network_step(workload, variant), lambda loss: loss.item(), about)
    network, loss_of = chain(workload.layers, OPS), LOSSES[workload.loss]
    images, labels = torch.tensor(workload.images), torch.tensor(workload.labels)
    weights = [torch.tensor(w) for w in workload.weights]
    if variant == "channels_last":
        images = images.to(memory_format=torch.channels_last)
        weights = [w.to(memory_format=torch.channels_last) if w.ndim == 4 else w for w in weights]
    parameters = [torch.nn.Parameter(w) for w in weights]

    def forward(x: Any, y: Any) -> Any:
        return loss_of(network(x, parameters), y)

    if variant == "compiled":
        forward = torch.compile(forward)
    optimizer = torch.optim.SGD(parameters, lr=workload.learning_rate)

    def step() -> Any:
        loss = forward(images, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def bare_step() -> Any:
        loss = forward(images, labels)
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.sub_(gradient, alpha=workload.learning_rate)
        return loss

    return Training(bare_step if variant == "bare" else step, lambda loss: loss.item(), about)


def _network_step(network: Network, variant: str) -> Any:
    module, optimizer = built(network, torch, torch.tensor)
    inputs, labels = torch.tensor(network.inputs), torch.tensor(network.labels)
    loss_of = getattr(F, network.loss)

    def forward(x: Any, y: Any) -> Any:
        return loss_of(module(x), y)

    if variant == "compiled":
        forward = torch.compile(forward)

    def step() -> Any:
        loss = forward(inputs, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step
