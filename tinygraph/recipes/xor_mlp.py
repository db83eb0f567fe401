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
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

import tinygraph as tg
from tinygraph import nn, show
from tinygraph.errors import ArgumentError, DivergenceError, nearest
from tinygraph.optim import SGD
from tinygraph.recipes.network_picture import beside, network_svg
from tinygraph.recipes.plain_run import (
    last_parameters,
    require_at_least,
    require_compile,
    save_run,
    through_plan,
    timed,
    writing_to,
)
from tinygraph.recipes.recipe import Recipe
from tinygraph.recipes.truth_tables import require_function, truth_table
from tinygraph.shapes import Array
from tinygraph.training import Progress, RunFolder

LOG_EVERY = 10  # epochs
RULES = ("graph", "delta_rule")


@dataclass
class Config:
    """Settings."""

    function: str = "xor"
    hidden: int = 2
    lr: float = 2.0
    momentum: float = 0.0
    tolerance: float = 0.01  # of J
    epochs: int = 5000  # at most
    gradients: Literal["graph", "delta_rule"] = "graph"
    seed: int = 0
    device: str = "cpu"
    compile: bool = False  # the graph's forward and backward through a plan
    tune: bool = False  # with compile: measure tiles and threads, and keep the fastest

    def __post_init__(self) -> None:
        require_function("xor_mlp", self.function)
        require_at_least("xor_mlp", self, hidden=1, lr=0, tolerance=0, epochs=1)
        if self.gradients not in RULES:
            raise ArgumentError(
                "xor_mlp",
                "gradients",
                f"one of {', '.join(RULES)}",
                repr(self.gradients),
                nearest(str(self.gradients), RULES),
            )
        require_compile("xor_mlp", self)
        if self.compile and self.gradients != "graph":
            raise ArgumentError(
                "xor_mlp",
                "compile",
                "gradients=graph, whose backward a plan repeats",
                f"gradients={self.gradients}",
                "leave one of them out",
            )


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


class Outcome(NamedTuple):
    """How a training ended."""

    solved: bool
    epochs: int
    loss: float


class Setting(NamedTuple):
    """What a training works on.  `differentiate` gives J, and leaves its gradient behind."""

    network: nn.Sequential
    optimizer: SGD
    x: tg.Tensor
    y: tg.Tensor
    differentiate: Callable[[tg.Tensor, tg.Tensor], tg.Tensor]

    def step(self) -> float:
        """One step of gradient descent on the whole table; J before it."""
        self.optimizer.zero_grad()
        loss = self.differentiate(self.x, self.y)
        self.optimizer.step()
        return float(loss.item())


def set_up(config: Config) -> Setting:
    """Network, optimiser and table, on the device of the config."""
    tg.manual_seed(config.seed)
    network = model(config.hidden).to(config.device)
    optimizer = SGD(network.named_parameters(), lr=config.lr, momentum=config.momentum)
    x, y = (tg.Tensor(part, device=config.device) for part in truth_table(config.function))

    def by_graph(x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
        loss = tg.half_squared_error(network(x), y)
        loss.backward()
        return loss

    def by_rule(x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
        gradients = delta_rule(network, x, y)
        for name, parameter in network.named_parameters():
            parameter.grad = gradients[name]
        return tg.half_squared_error(network(x), y)

    differentiate = by_graph if config.gradients == "graph" else by_rule
    return Setting(network, optimizer, x, y, through_plan(differentiate, config))


def fit(
    setting: Setting, config: Config, rows: list[dict[str, Any]], progress: Progress
) -> Outcome:
    """Descend until J is below the tolerance or the epochs are over.

    `rows` takes J and the accuracy after every tenth epoch and the last.
    """
    started = time.perf_counter()
    for epoch in range(1, config.epochs + 1):
        setting.step()
        measured = _measure(setting.network, setting.x, setting.y)
        if not math.isfinite(measured["loss"]):
            raise DivergenceError(
                "xor_mlp",
                "loss",
                "a finite number",
                f"{measured['loss']} in epoch {epoch}",
                "a smaller learning rate",
            )
        solved = measured["loss"] <= config.tolerance and measured["accuracy"] == 1
        if solved or epoch % LOG_EVERY == 0 or epoch == config.epochs:
            now = time.perf_counter()
            rows.append({"epoch": epoch, **measured, "seconds": now - started})
            started = now
            if solved or epoch % (10 * LOG_EVERY) == 0 or epoch == config.epochs:
                progress.epoch(rows[-1], None)
        if solved:
            break
    return Outcome(solved, epoch, measured["loss"])


def train(
    config: Config,
    run: RunFolder,
    data_dir: str | Path | None = None,
    download: bool = False,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Train, say whether it is solved, and leave everything in the run folder.

    Returns
    -------
    dict
        `loss` (J) and `accuracy` on the truth table, which is all the data there is.
    """
    progress = progress or Progress()
    setting = set_up(config)
    rows: list[dict[str, Any]] = []
    outcome = fit(setting, config, rows, progress)
    if progress.lines:
        ending = "solved" if outcome.solved else "not solved; another seed may be, or more neurons"
        print(f"{config.function}: {ending}, J {outcome.loss:.6f} after {outcome.epochs} epochs")
        for (a, b), o in zip(setting.x.numpy(), setting.network(setting.x).numpy(), strict=True):
            print(f"  {a:.0f} {b:.0f}  ->  {o[0]:.4f}")
    result = _measure(setting.network, setting.x, setting.y)
    save_run(
        run,
        "xor_mlp",
        asdict(config),
        rows,
        setting.network.state_dict(),
        {"test": result, "training": outcome._asdict()},
        setting.differentiate,
    )
    return result


def rehearse(
    config: Config, data_dir: str | Path | None = None, download: bool = False
) -> dict[str, Any]:
    """One step on the whole table, timed; nothing is kept."""
    setting = set_up(config)
    loss = _measure(setting.network, setting.x, setting.y)["loss"]
    seconds = timed(setting.step)
    return {
        "summary": setting.network.summary((2,), np.float64),
        "batch": "float64 (4, 2) and float64 (4, 1)",
        "loss": loss,
        "step_seconds": seconds,
        "batches": 1,
    }


def training_step(
    config: Config, data_dir: str | Path | None = None, download: bool = False
) -> Callable[[], Any]:
    """Descend from the whole table, again and again; nothing is written."""
    setting = set_up(config)
    return setting.step


def evaluate_run(
    run: RunFolder, data_dir: str | Path | None = None, best: bool = False, device: str = "cpu"
) -> dict[str, float]:
    """`loss` and `accuracy` of a run's parameters on the truth table."""
    config = recipe.settings_of(run)
    x, y = (tg.Tensor(part, device=device) for part in truth_table(config.function))
    return _measure(_load(run, config, best).to(device), x, y)


def _measure(network: nn.Sequential, x: tg.Tensor, y: tg.Tensor) -> dict[str, float]:
    """J, and the share of rows whose output is on the right side of one half."""
    with tg.no_grad():
        output = network(x)
        loss = tg.half_squared_error(output, y).item()
    return {"loss": float(loss), "accuracy": float(np.mean((output.numpy() > 0.5) == y.numpy()))}


def _load(run: RunFolder, config: Config, best: bool = False) -> nn.Sequential:
    network = model(config.hidden)
    network.load_state_dict(last_parameters(run, best))
    return network


def draw(run: RunFolder) -> Iterator[Path]:
    """The graph of J, the network beside it, the report, and the curves, which need matplotlib."""
    config = recipe.settings_of(run)
    network = _load(run, config)
    x, y = truth_table(config.function)
    loss = tg.half_squared_error(network(tg.Tensor(x, name="x")), tg.Tensor(y, name="y"))
    state = network.state_dict()
    layers = [(state[f"{k}.weight"], state[f"{k}.bias"]) for k in (0, 2)]
    with writing_to(run):
        graph = show.graph(loss, run.path / "graph.svg", engine="builtin")
        yield graph
        both = run.path / "network_and_graph.svg"
        picture = beside(network_svg(layers, ["x1", "x2"]), graph.read_text(encoding="utf-8"))
        both.write_text(picture, encoding="utf-8")
        yield both
        yield show.report(
            show.ReportContents(
                title=f"xor_mlp on {config.function}",
                result=run.result(),
                rows=run.rows(),
                config=run.config,
                environment=run.environment(),
                state=state,
                graph=loss,
            ),
            run.path / "report.html",
        )
        yield show.curves(run.rows(), run.path / "curves.svg")


recipe = Recipe(
    name="xor_mlp",
    summary="two layers of sigmoids learn xor by the delta rule (--set hidden=4)",
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
