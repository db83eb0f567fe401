"""perceptron: one neuron with a step, and the first rule by which a machine learnt.

    N samples of F inputs; the first column of x is 1, so that w[0] is the bias

    o  = heaviside(x @ w)                      x (N, F+1), w (F+1,), o (N,)
    w += (y - heaviside(w.x)) * eta * x        after each sample; nothing changes where o = y

For each row of a truth table in turn, until an epoch passes without a mistake.  If a line separates
the classes (nand), that comes after finitely many mistakes.  If none does (xor), it never comes.
The weights begin at 0 and the order is fixed, so the weights after an epoch determine all that
follow: as soon as they repeat, the training is proved to go round for ever, and says so.

Epochs with the defaults: nand 6, without a mistake; xor 3, after which weights repeat.

Source: slides of a course on GPU programming, 2020.  The rule: Rosenblatt, "The perceptron: a
probabilistic model for information storage and organization in the brain", Psychological Review 65,
1958.  It ends: Novikoff, "On convergence proofs for perceptrons", 1962.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph.data import ArrayDataset, DataLoader
from tinygraph.engine import Array, Tensor
from tinygraph.recipes.quick import QuickRecipe, Row, log_column
from tinygraph.recipes.task import Data, Folder, Task
from tinygraph.recipes.truth_tables import INPUTS, Function, truth_table
from tinygraph.show.figures import new_figure, save
from tinygraph.training import RunFolder
from tinygraph.training.evaluation import forward

WEIGHTS = ("bias", "weight_1", "weight_2")  # columns of the log
PANELS = 12  # in the picture


@dataclass
class Config:
    """Settings.  Powers of two as learning rates keep all weights free of rounding."""

    function: Function = "nand"  # truth table that is learnt
    lr: float = 0.5  # learning rate
    epochs: int = 100  # passes over the table, at most
    device: str = "cpu"  # where it is computed


class Perceptron(nn.Module):
    """One neuron with a step.

    >>> network = Perceptron(2)
    >>> network([[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]]).shape
    (2,)
    """

    def __init__(self, features: int) -> None:
        self.weight = tg.Parameter(np.zeros(features + 1), name="weight")

    def forward(self, x: Any) -> tg.Tensor:
        x = x if isinstance(x, tg.Tensor) else tg.Tensor(x, dtype="float64")
        return tg.heaviside(x @ self.weight)  # (N, F+1) @ (F+1,) -> (N,)

    def learn(self, x: tg.Tensor, y: tg.Tensor, lr: float) -> bool:
        """Learn from one sample, x (1, F+1) and y (1,); whether it was taken for the other class.

        >>> network = Perceptron(1)
        >>> x = tg.Tensor([[1.0, 2.0]], dtype="float64")
        >>> network.learn(x, tg.zeros(1, dtype="float64"), 0.5)
        True
        >>> network.weight.numpy()
        array([-0.5, -1. ])
        """
        with tg.no_grad():
            error = y - self(x)  # (1,)
            self.weight.value = (self.weight + error * lr * x[0]).value
        return bool(error.item())


def with_ones(inputs: Array) -> Array:
    """A first column of ones for the bias: (N, F) -> (N, F+1)."""
    return np.column_stack([np.ones(len(inputs)), inputs])


class PerceptronRecipe(QuickRecipe):
    """The rule on a truth table, until it is right or goes round."""

    name = "perceptron"
    summary = "one neuron with a step: nand converges, xor cannot (--set function=xor)"
    config = Config
    loss = staticmethod(tg.half_squared_error)

    def data(self, config: Config, data_dir: Folder = None, download: bool = False) -> Data:
        """The table, with a first column of ones; it is all the data there is."""
        inputs, labels = truth_table(config.function)
        table = ArrayDataset(with_ones(inputs), labels[:, 0])
        return Data(table, test=table)

    def model(self, config: Config, facts: dict[str, Any]) -> Perceptron:
        return Perceptron(2)

    def loader(self, config: Config, training: Any) -> DataLoader:
        """One row of the table at a time."""
        return DataLoader(training, 1, device=config.device)

    def step(self, task: Task) -> Callable[[], bool]:
        """Learn from the first row."""
        x, y = self.batch(task)
        return lambda: bool(task.network.learn(x, y, task.config.lr))

    def rehearse(
        self, config: Config, data_dir: Folder = None, download: bool = False
    ) -> dict[str, Any]:
        """One row, timed; there is no backward that a Trainer could try."""
        task = self.prepare(config)
        x, y = self.batch(task)
        loss = self.loss(task.network(x), y).item()
        started = time.perf_counter()
        self.step(task)()
        return {
            "summary": self.summary_of(task.network, x),
            "batch": f"{x.dtype} {x.shape} and {y.dtype} {y.shape}",
            "loss": float(loss),
            "step_seconds": time.perf_counter() - started,
            "batches": len(task.data.training),
        }

    def epochs(self, task: Task) -> Iterator[Row]:
        """Until an epoch has no mistake, the weights repeat, or the epochs are over."""
        config, network, table = task.config, task.network, task.data.training
        samples = [
            (Tensor(x, device=config.device), Tensor(y, device=config.device))
            for x, y in self.loader(config, table)
        ]
        seen = {tuple(network.weight.numpy())}
        for _ in range(config.epochs):
            mistakes = sum(network.learn(x, y, config.lr) for x, y in samples)
            weights = tuple(map(float, network.weight.numpy()))
            columns = dict(zip(WEIGHTS, weights, strict=True))
            yield {"mistakes": mistakes, **self.measure(config, network, table), **columns}
            if not mistakes or weights in seen:
                return
            seen.add(weights)

    def ending(self, task: Task, rows: list[Row]) -> tuple[dict[str, Any], str]:
        """Whether it converged, goes round for ever, or was not done within the epochs."""
        weights = [(0.0, 0.0, 0.0), *(tuple(row[name] for name in WEIGHTS) for row in rows)]
        epochs, converged = len(rows), not rows[-1]["mistakes"]
        text = f"not converged after {epochs} epochs"
        if converged:
            text = f"converged, epoch {epochs} was without a mistake"
        elif (since := weights.index(weights[-1])) < epochs:
            text = (
                f"does not converge. The weights after epoch {epochs} are those after epoch "
                f"{since}: it goes round for ever, since no line separates the classes"
            )
        text = f"{task.config.function}: {text}"
        return {"converged": converged, "epochs": epochs, "text": text}, text

    def measure(self, config: Config, network: Any, test: ArrayDataset) -> dict[str, float]:
        """`accuracy` on the truth table."""
        with tg.no_grad():
            output, labels = forward(network, test.inputs, test.labels)
        return {"accuracy": float(np.mean(output.numpy() == labels.numpy()))}

    # ---- pictures ---------------------------------------------------------------------------

    def pictures(self, run: RunFolder, config: Config, network: Any) -> Iterator[Path]:
        yield decision_lines(run, config.function, run.path / "decision_lines.png")


def decision_lines(run: RunFolder, function: str, path: Path) -> Path:
    """The line w.x = 0 after every epoch (of many epochs: after some), and what it gets wrong."""
    labels = truth_table(function)[1][:, 0]
    weights = np.array([log_column(run, name) for name in WEIGHTS]).T  # (epochs, 3)
    shown = np.unique(np.linspace(1, len(weights), min(PANELS, len(weights))).round().astype(int))
    columns = min(4, len(shown))
    lines = -(-len(shown) // columns)
    figure = new_figure(2.6 * columns, 2.9 * lines + 0.4)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, epoch in zip(panels, shown, strict=False):
        _panel(axes, weights[epoch - 1], labels)
        axes.set_title(f"epoch {epoch}", fontsize=10)
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    figure.supxlabel("filled: 1, hollow: 0; blue: taken for 1; crossed: wrong", fontsize=9)
    return save(figure, path)


def _panel(axes: Any, w: Array, labels: Array) -> None:
    """The four points, the half-plane that is taken for 1, and its border."""
    low, high = -1.3, 2.3
    side = np.linspace(low, high, 300)
    across, up = np.meshgrid(side, side)
    activation = w[0] + w[1] * across + w[2] * up
    axes.contourf(across, up, activation >= 0, levels=[0.5, 1.5], colors=["#d9e8ff"])
    if w[1] or w[2]:
        axes.contour(across, up, activation, levels=[0.0], colors=["#2f66c4"], linewidths=1.6)
    for (x1, x2), label in zip(INPUTS, labels, strict=True):
        right = (w[0] + w[1] * x1 + w[2] * x2 >= 0) == bool(label)
        axes.plot(
            x1,
            x2,
            "o",
            markersize=9,
            markeredgewidth=1.6,
            markeredgecolor="#1b1f24",
            markerfacecolor="#1b1f24" if label else "white",
        )
        if not right:
            axes.plot(x1, x2, "x", markersize=17, markeredgewidth=1.8, color="#c4512f")
    axes.set(xlim=(low, high), ylim=(low, high), xticks=[0, 1], yticks=[0, 1], aspect="equal")


recipe = PerceptronRecipe()
