"""tinygraph: "eager", node by node; "compiled", the same step through tg.compile, all in numpy;
"fast", the same with what numba compiles; "cuda" and "emulator", node by node through kernels.

A step that tg.compile would run as it stands, without a plan, is an error here: else the figures of
a compiled step would be those of the graph.
"""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import numpy as np

import tinygraph as tg
from benchmarks.cpu.training import NotOffered, Training, built, versions
from benchmarks.networks import Network
from benchmarks.workloads import Ops, Workload, chain

OPS: Ops = {
    "conv": lambda x, w, b, padding: tg.conv2d(x, w, b, padding=padding),
    "linear": lambda x, w, b, _: tg.linear(x, w, b),
    "relu": lambda x, _: tg.relu(x),
    "max_pool": lambda x, size: tg.max_pool2d(x, size),
    "flatten": lambda x, _: tg.flatten(x, 1),
}
KERNELS = ("cuda", "emulator")
AS_IT_STANDS = "compile: .* runs as it stands"  # how the warning begins
LOSSES: Ops = {"cross_entropy": tg.softmax_cross_entropy, "mse": tg.mse_loss}


def make(workload: Workload | Network, variant: str, threads: int) -> Training:
    if isinstance(workload, Network):
        step, inputs, labels = _of_network(workload)
    else:
        step, inputs, labels = _of_layers(workload, variant if variant in KERNELS else "cpu")
    if variant in ("compiled", "fast"):
        if not hasattr(tg, "compile"):
            raise NotOffered("this version of tinygraph has no tg.compile")
        warnings.filterwarnings("error", message=AS_IT_STANDS)
        step = tg.compile(step, fast=variant == "fast")
    about = f"tinygraph {tg.__version__}, {versions('numpy', 'numba')}, {blas()}, {threads} threads"
    return Training(lambda: step(inputs, labels), float, about)


def _of_network(network: Network) -> tuple[Any, Any, Any]:
    module, optimizer = built(network, tg, lambda array: array)
    loss_of = getattr(tg.nn.functional, network.loss)

    def step(inputs: Any, labels: Any) -> Any:
        loss = loss_of(module(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step, network.inputs, network.labels


def _of_layers(workload: Workload, device: str) -> tuple[Any, Any, Any]:
    parameters = [tg.Parameter(w, device=device) for w in workload.weights]
    optimizer = tg.optim.SGD(parameters, lr=workload.learning_rate)
    network, loss_of = chain(workload.layers, OPS), LOSSES[workload.loss]

    def step(images: Any, labels: Any) -> Any:
        loss = loss_of(network(images, parameters), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    if device == "cpu":
        return step, workload.images, workload.labels
    return (
        step,
        tg.Tensor(workload.images, device=device),
        tg.Tensor(workload.labels, device=device),
    )


def blas() -> str:
    """The BLAS of numpy, and which of its kernels run where threadpoolctl can tell.

    OpenBLAS chooses its kernels by the processor, or as OPENBLAS_CORETYPE says.
    """
    built = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    name = f"{built.get('name')} {built.get('version')}"
    if importlib.util.find_spec("threadpoolctl") is None:
        return name
    import threadpoolctl

    kernels = {
        pool["architecture"]
        for pool in threadpoolctl.threadpool_info()
        if pool.get("internal_api") == "openblas"
    }
    return f"{name} with {'/'.join(sorted(kernels))} kernels" if kernels else name
