"""What each recipe would send in a step, and how long one rank computes meanwhile: measured here.

Recipes whose data are not at hand are left out.  Processor time, of one thread: other programs
hardly change it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import tinygraph as tg
from benchmarks.distributed.network import noise_scale
from tinygraph.base.errors import DatasetError
from tinygraph.base.threads import one_blas_thread
from tinygraph.data import DataLoader
from tinygraph.recipes import get

STEPS = 3
# With settings: numba_cnn takes other batches for other data.
RECIPES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("numba_cnn", {"data": "digits"}),
    ("numba_cnn", {"data": "mnist"}),
    ("splice_mlp", {}),
    ("vgg_cifar", {}),
    ("resnet_cifar", {}),
    ("lstm_text", {}),
    ("char_gpt", {}),
)
SMALL, LARGE = 16, 256  # samples of the batches from which the noise scale is taken


class Sent(NamedTuple):
    """A recipe: bytes of its gradients, samples of a batch, seconds of a step on one rank."""

    name: str
    data: str
    gradient: int
    batch: int
    seconds: float


def measure(recipes: Sequence[tuple[str, dict[str, Any]]] = RECIPES) -> list[Sent]:
    """Every recipe that has its data at hand."""
    found = []
    for name, settings in recipes:
        recipe = get(name)
        config = recipe.settings(settings)
        try:
            task = recipe.prepare(config)
        except DatasetError:
            continue
        loader, trainer = recipe.loader(config, task.data.training), recipe.trainer(task)
        inputs, labels = next(iter(loader))
        seconds = []
        with one_blas_thread():
            for _ in range(1 + STEPS):
                start = time.process_time()
                trainer.step(inputs, labels)
                seconds.append(time.process_time() - start)
        size = sum(p.value.nbytes for p in task.network.parameters())
        data = getattr(config, "data", None) or ""
        found.append(Sent(name, data, size, len(inputs), median(seconds[1:])))
    return found


def noise_of(
    data: str = "digits", epochs: Sequence[int] = (0, 1, 5), batches: int = 40
) -> list[tuple[int, float]]:
    """The simple noise scale of numba_cnn's gradients after so many epochs, in samples."""
    recipe = get("numba_cnn")
    config = recipe.settings({"data": data})
    task = recipe.prepare(config)
    trainer, done, found = recipe.trainer(task, progress=False), 0, []
    loader = recipe.loader(config, task.data.training)
    for epoch in epochs:
        if epoch > done:
            trainer.fit(loader, epochs=epoch - done)
            done = epoch
        norms = [
            squared_norm(task.network, task.data.training, size, batches * LARGE // size)
            for size in (SMALL, LARGE)
        ]
        sizes = [without_replacement(n, len(task.data.training)) for n in (SMALL, LARGE)]
        found.append((epoch, noise_scale(*sizes, *norms)))
    return found


def without_replacement(size: int, samples: int) -> float:
    """The size of a batch, drawn with replacement, whose mean varies as much.

    >>> without_replacement(1, 100), without_replacement(50, 101)
    (1.0, 98.03921568627452)
    """
    return size * (samples - 1) / (samples - size)


def squared_norm(network: Any, data: Any, size: int, batches: int) -> float:
    """The mean of |g|^2 over gradients of random batches of one size."""
    network.train()
    norms: list[float] = []
    seed = 0
    while len(norms) < batches:
        for inputs, labels in DataLoader(data, size, shuffle=True, drop_last=True, seed=seed):
            network.zero_grad()
            tg.cross_entropy(network(inputs), labels).backward()
            norms.append(sum(float(np.square(p.grad).sum()) for p in network.parameters()))
        seed += 1
    network.zero_grad()
    return sum(norms[:batches]) / batches
