"""Our side: steps, products and convolutions of tinygraph on a device.

What depends on how the device "cuda" and the precision switch look stands here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import tinygraph as tg
from benchmarks.cpu.training import built
from benchmarks.networks import Network
from benchmarks.workloads import LEARNING_RATE, Layer, Workload

BEST = "compiled"  # of the ways in `steps`
STRICT, TF32 = "strict float32", "tf32"
NO_TF32 = "tinygraph has no tf32 switch in this version: its tf32 columns are left out"

Step = Callable[[], Any]  # returns the loss, which has .item()


def has(name: str) -> bool:
    """Whether this version can work in the precision."""
    return name == STRICT or hasattr(tg, "set_float32_matmul_precision")


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Within it our kernels work in this precision, as far as they know it."""
    if not has(TF32):
        yield
        return
    before = tg.get_float32_matmul_precision()
    tg.set_float32_matmul_precision("high" if name == TF32 else "highest")
    try:
        yield
    finally:
        tg.set_float32_matmul_precision(before)


def product(a: np.ndarray, b: np.ndarray, device: str) -> Step:
    """The product by our kernels; the step returns an array of the device."""
    left, right = tg.Tensor(a, device=device), tg.Tensor(b, device=device)

    def run() -> Any:
        with tg.no_grad():
            return tg.matmul(left, right).value

    return run


def convolution(
    x: np.ndarray, w: np.ndarray, gy: np.ndarray, padding: int, device: str
) -> tuple[Step, Step, Callable[[], list[np.ndarray]]]:
    """Forward; forward and backward; and what the latter computed: y, gx, gw."""
    upstream = tg.Tensor(gy, device=device).value
    image = tg.Tensor(x, requires_grad=True, device=device)
    weight = tg.Parameter(w, device=device)
    last: list[Any] = []

    def forward() -> Any:
        with tg.no_grad():
            return tg.conv2d(image, weight, padding=padding)

    def both() -> Any:
        image.grad = weight.grad = None
        y = tg.conv2d(image, weight, padding=padding)
        y.backward(upstream)
        last[:] = [y]
        return y

    def results() -> list[np.ndarray]:
        both()
        to_numpy = image.device.to_numpy
        return [to_numpy(array) for array in (last[0].value, image.grad, weight.grad)]

    return forward, both, results


def steps(workload: Workload | Network, device: str) -> dict[str, Step]:
    """Each way in which this version can take a training step, by name.

    On a GPU also as one CUDA graph, which is recorded by the third call.
    """
    make_step: Any = _network_step if isinstance(workload, Network) else _step
    ways = {
        "eager": lambda: make_step(workload, device),
        "compiled": lambda: tg.compile(make_step(workload, device)),
    }
    found = {name: make() for name, make in ways.items()}
    if device == "cuda":
        found |= {f"{name}, captured": tg.cuda.capture(make()) for name, make in ways.items()}
    return found


def _step(workload: Workload, device: str) -> Step:
    parameters = [tg.Parameter(w, device=device) for w in workload.weights]
    optimizer = tg.optim.SGD(parameters, lr=LEARNING_RATE)
    images = tg.Tensor(workload.images, device=device)
    labels = tg.Tensor(workload.labels, device=device)

    def step() -> Any:
        loss = tg.softmax_cross_entropy(_logits(workload.layers, images, parameters), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def _network_step(network: Network, device: str) -> Step:
    module, optimizer = built(network, tg, np.asarray, device)
    loss_of = getattr(tg.nn.functional, network.loss)
    inputs = tg.Tensor(network.inputs, device=device)
    labels = tg.Tensor(network.labels, device=device)

    def step() -> Any:
        loss = loss_of(module(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def _logits(layers: Sequence[Layer], x: Any, parameters: Sequence[Any]) -> Any:
    weights = iter(parameters)
    for kind, number in layers:
        if kind == "conv":
            x = tg.conv2d(x, next(weights), next(weights), padding=number)
        elif kind == "linear":
            x = tg.linear(x, next(weights), next(weights))
        elif kind == "max_pool":
            x = tg.max_pool2d(x, number)
        elif kind == "flatten":
            x = tg.flatten(x, 1)
        else:
            x = tg.relu(x)
    return x
