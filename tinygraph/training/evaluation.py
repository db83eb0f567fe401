"""How good a model is on some data: the mean loss and the share of right answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError
from tinygraph.data import DataLoader
from tinygraph.data.collate import pair_of
from tinygraph.engine import CPU, Array, Device, Tensor, as_tensor, no_grad
from tinygraph.nn import Module
from tinygraph.ops.common.to import to
from tinygraph.training.metrics import correct
from tinygraph.watch.anomaly import raise_for_bad_values

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass
class Means:
    """Means over samples from means over batches of different sizes."""

    samples: int = 0
    labels: int = 0
    hits: int = 0
    loss: float = 0.0

    def add(self, loss: float, hits: int | None, samples: int) -> None:
        """A batch of `samples` with this mean loss and so many right answers."""
        self.samples += samples
        self.loss += loss * samples
        if hits is not None:
            self.hits += hits
            self.labels += samples

    def result(self) -> dict[str, float]:
        """The means over everything added."""
        means = {"loss": self.loss / self.samples}
        return means | {"accuracy": self.hits / self.labels} if self.labels else means


def evaluate(model: Module, loader: DataLoader, loss: Loss) -> dict[str, float]:
    """Mean loss and accuracy over all samples, in evaluation mode and without making a graph.

    Parameters
    ----------
    model : Module
        Left in the mode that it was in.
    loader : DataLoader
        Each sample counts the same, also those of a smaller last batch.
    loss : function of (output, labels)
        The mean over a batch.

    Returns
    -------
    dict
        `loss`, and `accuracy` where labels are integers.

    Raises
    ------
    ArgumentError
        The loader has no sample.

    Examples
    --------
    >>> import tinygraph as tg
    >>> data = tg.data.ArrayDataset([[1.0], [2.0], [3.0]], [[1.0], [2.0], [6.0]])
    >>> tg.training.evaluate(tg.nn.Sequential(), tg.data.DataLoader(data, 2), tg.mse_loss)
    {'loss': 3.0}
    """
    with mode(model, training=False), no_grad():
        return mean_of(look(model, *batch, loss) for batch in batches(model, loader))


def look(model: Module, inputs: Any, labels: Any, loss: Loss) -> tuple[float, int | None, int]:
    """Mean loss, right answers and samples of a batch."""
    output, target = forward(model, inputs, labels)
    return *outcome(loss(output, target), output, target), len(inputs)


def mean_of(found: Iterable[tuple[float, int | None, int]]) -> dict[str, float]:
    """The means over all samples, from those of batches; ArgumentError for no sample."""
    means = Means()
    for each in found:
        means.add(*each)
    if not means.samples:
        raise ArgumentError("evaluate", "loader", "at least one sample", "none")
    return means.result()


def forward(model: Module, inputs: Any, labels: Any) -> tuple[Tensor, Tensor]:
    """The model's output and the labels, both on the device of the model."""
    device = device_of(model)
    inputs, labels = _named(inputs, "inputs", device), _named(labels, "targets", device)
    return model(to(inputs, device)), to(labels, device)


def _named(part: Any, name: str, device: Device) -> Tensor:
    """A part of a batch as a leaf, called by its name in pictures."""
    node = as_tensor(part, device=device)
    if node is not part:
        node.name = name
    return node


def device_of(model: Module) -> Device:
    """Where its parameters lie; the cpu for a model without any."""
    return next((parameter.device for parameter in model.parameters()), CPU)


def batches(model: Module, loader: DataLoader) -> Iterator[tuple[Any, Any]]:
    """The batches of an epoch; for a model on a GPU they are copied ahead, see data/feed.py."""
    ahead = isinstance(loader, DataLoader)
    return map(pair_of, loader.batches(device_of(model)) if ahead else loader)


def first_batch(loader: DataLoader) -> tuple[Array, Array]:
    """Inputs and labels of the first batch of an epoch; the loader stays where it is."""
    inputs, labels = (np.asarray(part) for part in pair_of(loader.first_batch()))
    return inputs, labels


def outcome(loss: Tensor, output: Tensor, target: Tensor) -> tuple[float, int | None]:
    """The loss as a number, and the right answers of a classification: one integer for each sample.

    The only place of a step that waits for a GPU, and it waits once.  Where the loss is not finite
    there, an op that was given a value that it does not take says so now.
    """
    if not (output.ndim == 2 and target.ndim == 1 and target.dtype.kind in "iu"):
        return float(loss.item()), None
    number, *classes = loss.device.to_host(loss.value, output.value, target.value)
    if not math.isfinite(number.item()):
        raise_for_bad_values(loss)
    return float(number.item()), correct(*classes)


@contextmanager
def mode(model: Module, training: bool) -> Iterator[None]:
    """The model in a mode for a while."""
    before = model.training
    model.train(training)
    try:
        yield
    finally:
        model.train(before)
