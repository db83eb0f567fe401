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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tinygraph as tg
from tinygraph import nn, show
from tinygraph.recipes.plain_run import (
    last_parameters,
    log_column,
    require_at_least,
    save_run,
    timed,
    writing_to,
)
from tinygraph.recipes.recipe import Recipe
from tinygraph.recipes.truth_tables import INPUTS, require_function, truth_table
from tinygraph.shapes import Array
from tinygraph.training import Progress, RunFolder

WEIGHTS = ("bias", "weight_1", "weight_2")  # columns of the log
PANELS = 12  # in the picture


@dataclass
class Config:
    """Settings.  Powers of two as learning rates keep all weights free of rounding."""

    function: str = "nand"
    lr: float = 0.5
    epochs: int = 100  # at most
    device: str = "cpu"

    def __post_init__(self) -> None:
        require_function("perceptron", self.function)
        require_at_least("perceptron", self, epochs=1, lr=0)


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


class Outcome(NamedTuple):
    """How a training ended."""

    converged: bool
    epochs: int
    text: str


def with_ones(inputs: Array) -> Array:
    """A first column of ones for the bias: (N, F) -> (N, F+1)."""
    return np.column_stack([np.ones(len(inputs)), inputs])


def fit(
    network: Perceptron, config: Config, rows: list[dict[str, Any]], progress: Progress
) -> Outcome:
    """Train until an epoch has no mistake, the weights repeat, or the epochs are over.

    `rows` takes one row of the log after each epoch.
    """
    inputs, labels = truth_table(config.function)
    samples = [
        (tg.Tensor(x[None], device=config.device), tg.Tensor(y, device=config.device))
        for x, y in zip(with_ones(inputs), labels, strict=True)
    ]
    seen = {tuple(network.weight.numpy()): 0}
    for epoch in range(1, config.epochs + 1):
        started = time.perf_counter()
        mistakes = sum(network.learn(x, y, config.lr) for x, y in samples)
        weights = tuple(map(float, network.weight.numpy()))
        row = {"epoch": epoch, "mistakes": mistakes, "accuracy": _accuracy(network, config)}
        row |= dict(zip(WEIGHTS, weights, strict=True))
        rows.append({**row, "seconds": time.perf_counter() - started})
        progress.epoch(rows[-1], None)
        if not mistakes:
            text = f"{config.function}: converged, epoch {epoch} was without a mistake"
            return Outcome(True, epoch, text)
        if weights in seen:
            text = (
                f"{config.function}: does not converge. The weights after epoch {epoch} are "
                f"those after epoch {seen[weights]}: it goes round for ever, since no line "
                "separates the classes"
            )
            return Outcome(False, epoch, text)
        seen[weights] = epoch
    text = f"{config.function}: not converged after {config.epochs} epochs"
    return Outcome(False, config.epochs, text)


def train(
    config: Config,
    run: RunFolder,
    data_dir: str | Path | None = None,
    download: bool = False,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Train, say how it ended, and leave everything in the run folder.

    Returns
    -------
    dict
        `accuracy` on the truth table, which is all the data there is.
    """
    progress = progress or Progress()
    network = Perceptron(2).to(config.device)
    rows: list[dict[str, Any]] = []
    outcome = fit(network, config, rows, progress)
    if progress.lines:
        print(outcome.text, flush=True)
    result = {"accuracy": _accuracy(network, config)}
    save_run(
        run,
        "perceptron",
        asdict(config),
        rows,
        network.state_dict(),
        {"test": result, "training": outcome._asdict()},
    )
    return result


def rehearse(
    config: Config, data_dir: str | Path | None = None, download: bool = False
) -> dict[str, Any]:
    """One sample, timed; nothing is kept."""
    network = Perceptron(2).to(config.device)
    inputs, labels = truth_table(config.function)
    x = tg.Tensor(with_ones(inputs)[:1], device=config.device)
    y = tg.Tensor(labels[0], device=config.device)
    loss = tg.half_squared_error(network(x), y).item()
    seconds = timed(lambda: network.learn(x, y, config.lr))
    summary = network.summary((3,), np.float64)
    return {
        "summary": summary,
        "batch": f"float64 {x.shape} and float64 {y.shape}",
        "loss": float(loss),
        "step_seconds": seconds,
        "batches": len(inputs),
    }


def training_step(
    config: Config, data_dir: str | Path | None = None, download: bool = False
) -> Callable[[], Any]:
    """Learn from one sample, again and again; nothing is written."""
    network = Perceptron(2).to(config.device)
    inputs, labels = truth_table(config.function)
    x = tg.Tensor(with_ones(inputs)[:1], device=config.device)
    y = tg.Tensor(labels[0], device=config.device)
    return lambda: network.learn(x, y, config.lr)


def evaluate_run(
    run: RunFolder, data_dir: str | Path | None = None, best: bool = False, device: str = "cpu"
) -> dict[str, float]:
    """`accuracy` of a run's parameters on the truth table."""
    network = Perceptron(2)
    network.load_state_dict(last_parameters(run, best))
    return {"accuracy": _accuracy(network.to(device), recipe.settings_of(run), device)}


def _accuracy(network: Perceptron, config: Config, device: str | None = None) -> float:
    inputs, labels = truth_table(config.function)
    with tg.no_grad():
        outputs = network(tg.Tensor(with_ones(inputs), device=device or config.device))
    return float(np.mean(outputs.numpy() == labels[:, 0]))


# ---- pictures -----------------------------------------------------------------------------------


def draw(run: RunFolder) -> Iterator[Path]:
    """The graph of the neuron and the report, then the decision lines, which need matplotlib."""
    config = recipe.settings_of(run)
    network = Perceptron(2)
    network.load_state_dict(run.load_parameters())
    inputs, _ = truth_table(config.function)
    output = network(tg.Tensor(with_ones(inputs), name="x"))
    with writing_to(run):
        yield show.graph(output, run.path / "graph.svg")
        yield show.report(
            show.ReportContents(
                title=f"perceptron on {config.function}",
                result=run.result(),
                rows=run.rows(),
                config=run.config,
                environment=run.environment(),
                state=network.state_dict(),
                graph=output,
            ),
            run.path / "report.html",
        )
        yield decision_lines(run, run.path / "decision_lines.png")


def decision_lines(run: RunFolder, path: Path) -> Path:
    """The line w.x = 0 after every epoch (of many epochs: after some), and what it gets wrong."""
    from matplotlib.figure import Figure

    labels = truth_table(recipe.settings_of(run).function)[1][:, 0]
    weights = np.array([log_column(run, name) for name in WEIGHTS]).T  # (epochs, 3)
    shown = np.unique(np.linspace(1, len(weights), min(PANELS, len(weights))).round().astype(int))
    columns = min(4, len(shown))
    lines = -(-len(shown) // columns)
    size = 2.6 * columns, 2.9 * lines + 0.4
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, epoch in zip(panels, shown, strict=False):
        _panel(axes, weights[epoch - 1], labels)
        axes.set_title(f"epoch {epoch}", fontsize=10)
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    figure.supxlabel("filled: 1, hollow: 0; blue: taken for 1; crossed: wrong", fontsize=9)
    figure.savefig(path, dpi=150)
    return path


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


recipe = Recipe(
    name="perceptron",
    summary="one neuron with a step: nand converges, xor cannot (--set function=xor)",
    config=Config,
    train=train,
    rehearse=rehearse,
    training_step=training_step,
    evaluate=evaluate_run,
    metric="accuracy",
    draw=draw,
    resumable=False,
    data_files=False,
)
