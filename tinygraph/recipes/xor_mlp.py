"""xor_mlp: two layers of sigmoids learn what one neuron cannot.

    N samples, F inputs, M hidden neurons, one output; s(a) = 1 / (1 + exp(-a)), s' = s (1 - s)

    h = s(x @ W1.T + b1)      x (N, F), W1 (M, F), h (N, M)
    o = s(h @ W2.T + b2)      W2 (1, M), o (N, 1)
    J = 1/2 sum (y - o)^2

The delta rule: the gradient of a layer is what came in, times the delta of what went out.

    delta2 = (o - y) o (1 - o)             (N, 1)      dJ/dW2 = delta2.T @ h     dJ/db2 = sum delta2
    delta1 = (delta2 @ W2) h (1 - h)       (N, M)      dJ/dW1 = delta1.T @ x     dJ/db1 = sum delta1

(With a weight stored as (inputs, outputs) this reads X.T @ delta.)  `--set gradients=delta_rule`
trains by these lines, `graph` by the backward of the graph; the gradients are the same, to
rounding.  The four rows of the table are one batch; descent ends where J is below the tolerance.

Seeds 0 to 99: two hidden neurons solve xor for 88, after 536 epochs in the median, and not within
5000 for the other 12; four solve it for all 100, after 451.

Source: slides of a course on GPU programming, 2020; Rumelhart, Hinton, Williams, "Learning
representations by back-propagating errors", Nature 323, 1986.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph.base import ArgumentError, DivergenceError
from tinygraph.base.page_paths import write
from tinygraph.data import ArrayDataset
from tinygraph.engine import Array, Tensor
from tinygraph.optim import SGD
from tinygraph.recipes.network_picture import beside, network_svg
from tinygraph.recipes.quick import Differentiate, QuickRecipe, Row
from tinygraph.recipes.settings import Count, PlanSettings, Positive, Share
from tinygraph.recipes.task import Data, Folder, Task
from tinygraph.recipes.truth_tables import Function, truth_table
from tinygraph.training import RunFolder
from tinygraph.training.evaluation import forward


@dataclass
class Config(PlanSettings):
    """Settings."""

    function: Function = "xor"  # truth table that is learnt
    hidden: Count = 2  # hidden neurons
    lr: float = 2.0  # learning rate
    momentum: Share = 0.0  # of gradient descent
    tolerance: Positive = 0.01  # of J: below it, it has learnt
    epochs: int = 5000  # passes over the table, at most
    gradients: Literal["graph", "delta_rule"] = "graph"  # whose they are

    def __post_init__(self) -> None:
        if self.compile and self.gradients != "graph":
            expected = "gradients=graph, whose backward a plan repeats"
            got = f"gradients={self.gradients}"
            way_out = "leave one of them out"
            raise ArgumentError("xor_mlp", "compile", expected, got, way_out)


def model(hidden: int = 2) -> nn.Sequential:
    """The network, float64, with weights drawn anew.

    >>> model(3)(tg.zeros((4, 2), dtype="float64")).shape
    (4, 1)
    """
    return nn.Sequential(
        nn.Linear(2, hidden, dtype=np.float64),
        nn.Sigmoid(),
        nn.Linear(hidden, 1, dtype=np.float64),
        nn.Sigmoid(),
    )


def delta_rule(network: nn.Sequential, x: tg.Tensor, y: tg.Tensor) -> dict[str, Array]:
    """The gradients of J by name, worked out layer by layer without the graph's backward.

    Parameters
    ----------
    network : Sequential
        As `model` makes it.
    x, y : Tensor (N, 2) and (N, 1)
        float64.

    Examples
    --------
    >>> x, y = (tg.Tensor(part) for part in truth_table("xor"))
    >>> {name: gradient.shape for name, gradient in delta_rule(model(2), x, y).items()}
    {'0.weight': (2, 2), '0.bias': (2,), '2.weight': (1, 2), '2.bias': (1,)}
    """
    weights = dict(network.named_parameters())
    with tg.no_grad():
        h = tg.sigmoid(tg.linear(x, weights["0.weight"], weights["0.bias"]))  # (N, M)
        o = tg.sigmoid(tg.linear(h, weights["2.weight"], weights["2.bias"]))  # (N, 1)
        delta2 = (o - y) * o * (1 - o)  # (N, 1)
        delta1 = (delta2 @ weights["2.weight"]) * h * (1 - h)  # (N, M)
        gradients = {
            "0.weight": delta1.T @ x,  # (M, N) @ (N, F) -> (M, F)
            "0.bias": delta1.sum(axis=0),
            "2.weight": delta2.T @ h,  # (1, N) @ (N, M) -> (1, M)
            "2.bias": delta2.sum(axis=0),
        }
    return {name: gradient.value for name, gradient in gradients.items()}


class XorMlp(QuickRecipe):
    """Gradient descent on the whole table, until J is below the tolerance."""

    name = "xor_mlp"
    summary = "two layers of sigmoids learn xor by the delta rule (--set hidden=4)"
    config = Config
    logged_every, shown_every = 10, 100
    loss = staticmethod(tg.half_squared_error)

    def data(self, config: Config, data_dir: Folder = None, download: bool = False) -> Data:
        """The table is all the data there is."""
        table = ArrayDataset(*truth_table(config.function))
        return Data(table, test=table)

    def model(self, config: Config, facts: dict[str, Any]) -> nn.Sequential:
        return model(config.hidden)

    def optimizer(self, config: Config, network: Any) -> SGD:
        return SGD(network.named_parameters(), lr=config.lr, momentum=config.momentum)

    def differentiation(self, task: Task) -> Differentiate:
        """By the backward of the graph, or by the lines of the delta rule."""
        if task.config.gradients == "graph":
            return super().differentiation(task)

        def by_rule(x: Tensor, y: Tensor) -> Tensor:
            gradients = delta_rule(task.network, x, y)
            for name, parameter in task.network.named_parameters():
                parameter.grad = gradients[name]
            return self.loss(task.network(x), y)

        return by_rule

    def epochs(self, task: Task) -> Iterator[Row]:
        """Descend; J and the accuracy are those after an epoch."""
        config, network, table = task.config, task.network, task.data.training
        step = self.step(task)
        for epoch in range(1, config.epochs + 1):
            step()
            measured = self.measure(config, network, table)
            if not math.isfinite(measured["loss"]):
                got = f"{measured['loss']} in epoch {epoch}"
                way_out = "a smaller learning rate"
                raise DivergenceError(self.name, "loss", "a finite number", got, way_out)
            yield measured
            if self.solved(config, measured):
                return

    def solved(self, config: Config, measured: Row) -> bool:
        return bool(measured["loss"] <= config.tolerance and measured["accuracy"] == 1)

    def ending(self, task: Task, rows: list[Row]) -> tuple[dict[str, Any], str]:
        """Whether it is solved, and the output for each row of the table."""
        last, table = rows[-1], task.data.training
        solved = self.solved(task.config, last)
        words = "solved" if solved else "not solved; another seed may be, or more neurons"
        text = f"{task.config.function}: {words}, J {last['loss']:.6f} after {last['epoch']} epochs"
        outputs = forward(task.network, *table[:])[0].numpy()
        for (a, b), o in zip(table.inputs, outputs, strict=True):
            text += f"\n  {a:.0f} {b:.0f}  ->  {o[0]:.4f}"
        return {"solved": solved, "epochs": last["epoch"], "loss": last["loss"]}, text

    def measure(self, config: Config, network: Any, test: ArrayDataset) -> dict[str, float]:
        """J, and the share of rows whose output is on the right side of one half."""
        with tg.no_grad():
            output, target = forward(network, test.inputs, test.labels)
            loss = float(self.loss(output, target).item())
        right = (output.numpy() > 0.5) == test.labels
        return {"loss": loss, "accuracy": float(np.mean(right))}

    # ---- pictures ---------------------------------------------------------------------------

    def pictures(self, run: RunFolder, config: Config, network: Any) -> Iterator[Path]:
        """The network beside its graph, and the curves."""
        state = network.state_dict()
        layers = [(state[f"{k}.weight"], state[f"{k}.bias"]) for k in (0, 2)]
        graph = (run.path / "graph.svg").read_text(encoding="utf-8")
        both = run.path / "network_and_graph.svg"
        yield write("show", both, beside(network_svg(layers, ["x1", "x2"]), graph))
        yield from super().pictures(run, config, network)


recipe = XorMlp()
