"""PyTorch's side, the yardstick: the only file that imports it.

strict float32: TF32 off for matrix products and for cuDNN.  tf32: on for both.  cuDNN may search
for its fastest algorithm (`cudnn.benchmark`), as its users let it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.cpu.training import built
from benchmarks.networks import Network
from benchmarks.workloads import LEARNING_RATE, Workload

Step = Callable[[], Any]

COMPILED = {"compiled": "default", "compiled, CUDA graphs": "reduce-overhead"}  # torch.compile


def find(gpu: bool) -> TorchSide | None:
    """PyTorch where it is installed; on a machine with a GPU only if it can use that."""
    try:
        import torch
    except ImportError:
        return None
    if gpu and not torch.cuda.is_available():
        return None
    return TorchSide(torch, "cuda" if gpu else "cpu")


class TorchSide:
    """Steps and convolutions of PyTorch on one device."""

    def __init__(self, torch: Any, device: str) -> None:
        self._torch, self._device = torch, device
        torch.backends.cudnn.benchmark = True

    def about(self) -> str:
        torch = self._torch
        return (
            f"{torch.__version__}, CUDA {torch.version.cuda}, "
            f"cuDNN {torch.backends.cudnn.version()}, on {self._device}"
        )

    @contextmanager
    def precision(self, tf32: bool) -> Iterator[None]:
        """Within it products and convolutions may use TF32, or may not."""
        backends = self._torch.backends
        before = backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32
        backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = tf32
        try:
            yield
        finally:
            backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32 = before

    def convolution(
        self, x: np.ndarray, w: np.ndarray, gy: np.ndarray, padding: int
    ) -> tuple[Step, Step, Callable[[], list[np.ndarray]]]:
        """Forward; forward and backward; and what the latter computed: y, gx, gw."""
        image, weight = self._tensor(x).requires_grad_(), self._tensor(w).requires_grad_()
        upstream = self._tensor(gy)
        convolve = self._torch.nn.functional.conv2d
        last: list[Any] = []

        def forward() -> Any:
            with self._torch.no_grad():
                return convolve(image, weight, padding=padding)

        def both() -> Any:
            image.grad = weight.grad = None
            y = convolve(image, weight, padding=padding)
            y.backward(upstream)
            last[:] = [y]
            return y

        def results() -> list[np.ndarray]:
            both()
            return [t.detach().cpu().numpy() for t in (last[0], image.grad, weight.grad)]

        return forward, both, results

    def step(self, workload: Workload | Network, mode: str | None) -> Step:
        """A training step; with a mode of COMPILED, forward and loss go through torch.compile."""
        of = self._of_network if isinstance(workload, Network) else self._of_workload
        loss_of, optimizer = of(workload)
        if mode is not None:
            # All closures of this function share one code object, and dynamo runs code eagerly, in
            # silence, once it has compiled it several times: each begins afresh.
            self._torch._dynamo.reset()
            loss_of = self._torch.compile(loss_of, mode=mode)

        def step() -> Any:
            loss = loss_of()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return step

    def _of_workload(self, workload: Any) -> tuple[Step, Any]:
        parameters = [self._tensor(w).requires_grad_() for w in workload.weights]
        images, labels = self._tensor(workload.images), self._tensor(workload.labels)
        cross_entropy = self._torch.nn.functional.cross_entropy
        optimizer = self._torch.optim.SGD(parameters, lr=LEARNING_RATE)
        return lambda: cross_entropy(self._logits(workload, images, parameters), labels), optimizer

    def _of_network(self, network: Any) -> tuple[Step, Any]:
        module, optimizer = built(network, self._torch, self._torch.tensor, self._device)
        inputs, labels = self._tensor(network.inputs), self._tensor(network.labels)
        loss = getattr(self._torch.nn.functional, network.loss)
        return lambda: loss(module(inputs), labels), optimizer

    def _logits(self, workload: Workload, x: Any, parameters: list[Any]) -> Any:
        f, weights = self._torch.nn.functional, iter(parameters)
        for kind, number in workload.layers:
            if kind == "conv":
                x = f.conv2d(x, next(weights), next(weights), padding=number)
            elif kind == "linear":
                x = f.linear(x, next(weights), next(weights))
            elif kind == "max_pool":
                x = f.max_pool2d(x, number)
            else:
                x = {"relu": f.relu, "flatten": lambda h: h.flatten(1)}[kind](x)
        return x

    def _tensor(self, array: np.ndarray) -> Any:
        return self._torch.tensor(array, device=self._device)
