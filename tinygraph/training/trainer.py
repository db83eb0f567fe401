"""Trainer: epochs of forward, backward and update; and how good a model is on held-out data.

    for each epoch:  for each batch:  loss = L(model(x), t);  gradients;  one step of the optimiser
                     mean loss and accuracy over the samples; the same on the validation data
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tinygraph.data import DataLoader
from tinygraph.device import CPU
from tinygraph.errors import ArgumentError, TinygraphError, explain
from tinygraph.nn import Module
from tinygraph.optim import Optimizer
from tinygraph.shapes import Array
from tinygraph.tensor import Tensor, as_tensor, no_grad
from tinygraph.training.metrics import correct
from tinygraph.training.progress import Progress
from tinygraph.training.run import RunFolder

Loss = Callable[[Tensor, Tensor], Tensor]


class DivergenceError(TinygraphError, ArithmeticError):
    """A loss that is no longer a finite number."""


class Trainer:
    """Train a model with an optimiser.

    Parameters
    ----------
    model : Module
    optimizer : Optimizer
        Over the model's parameters.
    loss : function of (output, labels)
        The mean over the batch as a Tensor of one element, such as `tg.softmax_cross_entropy`.
    run : RunFolder, optional
        Where each epoch is logged and the parameters are saved after it.
    progress : Progress or bool, optional
        What is shown on the way; by default lines, and a bar on a terminal.  False: nothing.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> x = np.array([[0.0], [1.0], [2.0]], np.float32)
    >>> data = tg.data.DataLoader(tg.data.ArrayDataset(x, 3 * x), batch_size=3)
    >>> model = tg.nn.Linear(1, 1)
    >>> sgd = tg.optim.SGD(model.parameters(), lr=0.2)
    >>> trainer = tg.training.Trainer(model, sgd, tg.mse_loss, progress=False)
    >>> rows = trainer.fit(data, epochs=200)
    >>> round(model.weight.item(), 3)
    3.0
    """

    def __init__(
        self, model: Module, optimizer: Optimizer, loss: Loss, *, run: RunFolder | None = None,
        progress: Progress | bool | None = None,
    ) -> None:  # fmt: skip
        self.model = model
        self.optimizer = optimizer
        self.loss = loss
        self.run = run
        if isinstance(progress, Progress):
            self.progress = progress
        else:
            self.progress = Progress(lines=False, bar=False) if progress is False else Progress()
        self.epoch = 0  # epochs done so far

    def fit(
        self, train_loader: DataLoader, validation_loader: DataLoader | None = None, epochs: int = 1
    ) -> list[dict[str, Any]]:
        """Train for some epochs, more if called again.

        Parameters
        ----------
        train_loader : DataLoader
        validation_loader : DataLoader, optional
            Looked at after each epoch, never learnt from.
        epochs : int
            At least 1.

        Returns
        -------
        list of dict
            One for each epoch: `epoch` (from 1), `loss` and `accuracy` while training,
            `validation_loss` and `validation_accuracy` with a validation loader, and `seconds`, the
            time of the training part.  Accuracies are there where labels are integers.

        Raises
        ------
        DivergenceError
            The loss is not finite.  In the run folder are the parameters of the epoch before.
        ArgumentError
            No batch to train on, or a bad number of epochs.
        CheckpointError
            The run folder cannot be written.
        """
        if not isinstance(epochs, int) or isinstance(epochs, bool) or epochs < 1:
            raise ArgumentError(explain("fit", "epochs", "an int of at least 1", repr(epochs)))
        if not len(train_loader):
            raise ArgumentError(
                explain("fit", "train_loader", "at least one batch", "none",
                        "give more samples, or a smaller batch size where drop_last is set")
            )  # fmt: skip
        last = self.epoch + epochs
        rows = []
        self.progress.start(epochs * len(train_loader))
        try:
            for _ in range(epochs):
                rows.append(self._epoch(train_loader, validation_loader))
                self.progress.epoch(rows[-1], last)
        finally:
            self.progress.close()
        return rows

    def _epoch(self, train_loader: DataLoader, held_out: DataLoader | None) -> dict[str, Any]:
        """One epoch: its row of the log."""
        started = time.perf_counter()
        means = Means()
        with _mode(self.model, training=True):
            for batch, (inputs, labels) in enumerate(train_loader):
                loss, hits = self.step(inputs, labels)
                if not math.isfinite(loss):
                    raise DivergenceError(
                        explain("Trainer", "loss", "a finite number", f"{loss} in epoch "
                                f"{self.epoch + 1}, batch {batch + 1}", "use a smaller learning "
                                "rate, and look for NaN in the data")
                    )  # fmt: skip
                means.add(loss, hits, len(inputs))
                self.progress.advance()
        self.epoch += 1
        seconds = time.perf_counter() - started
        row: dict[str, Any] = {"epoch": self.epoch, **means.result()}
        if held_out is not None:
            validation = evaluate(self.model, held_out, self.loss)
            row |= {f"validation_{name}": value for name, value in validation.items()}
        row["seconds"] = seconds
        if self.run is not None:
            self.run.append(row)
            self.run.save_parameters(self.model.state_dict())
        return row

    def step(self, inputs: Array, labels: Array) -> tuple[float, int | None]:
        """Learn from one batch: its mean loss and its number of right answers, None for no classes.

        A method of its own, so that the batch's graph is gone when it returns.  Nothing is learnt
        from a loss that is not finite.
        """
        output, target = _forward(self.model, inputs, labels)
        loss = self.loss(output, target)
        number = float(loss.item())
        if math.isfinite(number):
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return number, _hits(output, target)


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
    means = Means()
    with _mode(model, training=False), no_grad():
        for inputs, labels in loader:
            output, target = _forward(model, inputs, labels)
            means.add(float(loss(output, target).item()), _hits(output, target), len(inputs))
    if not means.samples:
        raise ArgumentError(explain("evaluate", "loader", "at least one sample", "none"))
    return means.result()


class Means:
    """Means over samples from means over batches of different sizes."""

    def __init__(self) -> None:
        self.samples = self.labels = self.hits = 0
        self.loss = 0.0

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


def _forward(model: Module, inputs: Array, labels: Array) -> tuple[Tensor, Tensor]:
    """The model's output and the labels, both on the device of the model."""
    parameter = next(model.parameters(), None)
    device = CPU if parameter is None else parameter.device
    return model(as_tensor(inputs, device=device)), as_tensor(labels, device=device)


def _hits(output: Tensor, target: Tensor) -> int | None:
    """The right answers of a classification: one integer for each sample."""
    classes = output.ndim == 2 and target.ndim == 1 and target.dtype.kind in "iu"
    return correct(output.numpy(), target.numpy()) if classes else None


@contextmanager
def _mode(model: Module, training: bool) -> Iterator[None]:
    """The model in a mode for a while."""
    before = model.training
    model.train(training)
    try:
        yield
    finally:
        model.train(before)
