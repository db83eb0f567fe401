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
from benchmarks.cpu.training import NotOffered, Training, versions
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


def make(workload: Workload, variant: str, threads: int) -> Training:
    device = variant if variant in KERNELS else "cpu"
    parameters = [tg.Parameter(w, device=device) for w in workload.weights]
    optimizer = tg.optim.SGD(parameters, lr=workload.learning_rate)
    network, loss_of = chain(workload.layers, OPS), LOSSES[workload.loss]

    def step(images: Any, labels: Any) -> Any:
        loss = loss_of(network(images, parameters), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    if variant in ("compiled", "fast"):
        if not hasattr(tg, "compile"):
            raise NotOffered("this version of tinygraph has no tg.compile")
        warnings.filterwarnings("error", message=AS_IT_STANDS)
        step = tg.compile(step, fast=variant == "fast")
    images, labels = workload.images, workload.labels
    if variant in KERNELS:
        images, labels = (tg.Tensor(part, device=device) for part in (images, labels))
    about = f"tinygraph {tg.__version__}, {versions('numpy', 'numba')}, {blas()}, {threads} threads"
    return Training(lambda: step(images, labels), float, about)


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
