"""linear_regression: a line through points, by gradient descent and by the closed form.

    N points; x (N, 1), y (N, 1) = intercept + slope x + noise

    o  = x @ w.T + b                    w (1, 1), b (1,)
    J  = 1/2 sum (y - o)^2              dJ/dw = (o - y).T @ x          dJ/db = sum (o - y)
    w -= lr dJ/dw,  b -= lr dJ/db       until the gradient's length is below the tolerance

J is a paraboloid, so descent ends at its only minimum, where the gradient is zero.  Solving for
that gives the normal equations, X of the columns x and 1:

    X.T @ X @ (w, b) = X.T @ y

Descent shrinks the distance from it in each epoch by |1 - lr c| along each axis of the paraboloid,
c an eigenvalue of X.T @ X: it converges for lr below 2 / largest c, and a larger one is refused.
Both answers are the same to 11 digits with the defaults.

Source: slides of a course on GPU programming, 2020; the closed form is Gauss's, 1809.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph.base import DivergenceError
from tinygraph.data import ArrayDataset
from tinygraph.engine import Array
from tinygraph.optim import SGD, clip_grad_norm
from tinygraph.recipes.quick import QuickRecipe, Row, log_column
from tinygraph.recipes.settings import NotNegative, PlanSettings, Positive, Several
from tinygraph.recipes.task import Data, Folder, Task
from tinygraph.show.figures import new_figure, save
from tinygraph.training import RunFolder
from tinygraph.training.evaluation import forward


@dataclass
class Config(PlanSettings):
    """Settings.  `points` are learnt from; as many others of the same line are for the test."""

    points: Several = 50  # how many are drawn
    slope: float = 2.0  # of the line that the points lie about
    intercept: float = -1.0  # of that line
    noise: NotNegative = 0.2  # standard deviation about the line
    lr: float = 0.01  # learning rate
    tolerance: Positive = 1e-10  # length of the gradient at which it has stopped
    epochs: int = 10_000  # steps, at most


class Line(NamedTuple):
    """intercept + slope x."""

    slope: float
    intercept: float


def closed_form(x: Array, y: Array) -> Line:
    """The line with the least J through x (N, 1) and y (N, 1), by the normal equations.

    >>> line = closed_form(np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]]))
    >>> round(line.slope, 12), round(line.intercept, 12)
    (2.0, 1.0)
    """
    columns = np.column_stack([x, np.ones(len(x))])  # (N, 2)
    slope, intercept = np.linalg.solve(columns.T @ columns, columns.T @ y[:, 0])
    return Line(float(slope), float(intercept))


def largest_rate(x: Array) -> float:
    """The learning rate below which descent converges: 2 / the largest eigenvalue of X.T @ X."""
    columns = np.column_stack([x, np.ones(len(x))])
    return float(2 / np.linalg.eigvalsh(columns.T @ columns)[-1])


def line_of(model: nn.Linear) -> Line:
    """The line that a model is."""
    state = model.state_dict()
    return Line(float(state["weight"][0, 0]), float(state["bias"][0]))


class LinearRegression(QuickRecipe):
    """Gradient descent on all points at once, beside the closed form."""

    name = "linear_regression"
    summary = "a line by gradient descent on the half squared error, beside the closed form"
    config = Config
    metric = "rmse"
    shown_every = 25
    loss = staticmethod(tg.half_squared_error)

    def data(self, config: Config, data_dir: Folder = None, download: bool = False) -> Data:
        """Points to learn from and for the test, x and y (points, 1) float64, x from -1 to 1.

        >>> found = recipe.data(Config(points=7))
        >>> found.training.inputs.shape, found.test.labels.shape
        ((7, 1), (7, 1))
        """
        rng = np.random.default_rng(config.seed)
        x = rng.uniform(-1, 1, (2 * config.points, 1))
        y = config.intercept + config.slope * x + config.noise * rng.standard_normal(x.shape)
        n = config.points
        return Data(ArrayDataset(x[:n], y[:n]), test=ArrayDataset(x[n:], y[n:]))

    def model(self, config: Config, facts: dict[str, Any]) -> nn.Linear:
        """The line with slope and intercept 0.

        >>> line_of(recipe.model(Config(), {}))
        Line(slope=0.0, intercept=0.0)
        """
        model = nn.Linear(1, 1, dtype=np.float64)
        for parameter in model.parameters():
            nn.init.zeros_(parameter)
        return model

    def optimizer(self, config: Config, network: Any) -> SGD:
        return SGD(network.named_parameters(), lr=config.lr)

    def epochs(self, task: Task) -> Iterator[Row]:
        """Descend until the gradient has stopped.

        A row holds J and the gradient at the begin of its epoch, and the line at its end.

        Raises
        ------
        DivergenceError
            The learning rate is too large; the message says which is not.
        """
        config, model = task.config, task.network
        optimizer = self.optimizer(config, model)
        inputs, targets = self.batch(task)
        differentiate = self.differentiation(task)
        first = math.inf
        for _ in range(config.epochs):
            optimizer.zero_grad()
            loss = float(differentiate(inputs, targets).item())
            gradient = clip_grad_norm(model.parameters(), math.inf)  # its length
            if not math.isfinite(gradient) or loss > 1e6 * first:
                expected = (
                    f"below {largest_rate(task.data.training.inputs):.4g}, which is 2 / the "
                    "largest eigenvalue of X.T @ X"
                )
                way_out = "a smaller learning rate"
                raise DivergenceError(self.name, "lr", expected, config.lr, way_out)
            first = min(first, loss)
            stopped = gradient <= config.tolerance
            if not stopped:
                optimizer.step()
            yield {"loss": loss, "gradient": gradient, **line_of(model)._asdict()}
            if stopped:
                return

    def ending(self, task: Task, rows: list[Row]) -> tuple[dict[str, Any], str]:
        """Whether the gradient stopped, and the line beside the closed form."""
        found, exact = line_of(task.network), closed_form(*task.data.training[:])
        difference = max(abs(a - b) for a, b in zip(found, exact, strict=True))
        last = rows[-1]["gradient"]
        stopped = last <= task.config.tolerance
        end = "stopped" if stopped else "has not stopped"
        lines = [
            f"the gradient {end} after {len(rows)} epochs, length {last:.1e}",
            f"gradient descent  {found.intercept:+.12f} {found.slope:+.12f} x",
            f"closed form       {exact.intercept:+.12f} {exact.slope:+.12f} x, "
            f"largest difference {difference:.1e}",
        ]
        ending = {
            "stopped": stopped,
            "epochs": len(rows),
            "gradient_descent": found._asdict(),
            "closed_form": exact._asdict(),
            "largest_difference": difference,
        }
        return ending, "\n".join(lines)

    def measure(self, config: Config, network: Any, test: ArrayDataset) -> dict[str, float]:
        """`loss` (J) and `rmse` (root of the mean squared error) on the test points."""
        with tg.no_grad():
            loss = float(self.loss(*forward(network, test.inputs, test.labels)).item())
        return {"loss": loss, "rmse": math.sqrt(2 * loss / len(test))}

    # ---- pictures ---------------------------------------------------------------------------

    def pictures(self, run: RunFolder, config: Config, network: Any) -> Iterator[Path]:
        yield descent(run, self.data(config).training, run.path / "descent.png")


def descent(run: RunFolder, points: ArrayDataset, path: Path) -> Path:
    """Left the points and the line after some epochs, right J and the gradient's length."""
    x, y = points.inputs, points.labels
    slopes, intercepts = (np.array(log_column(run, name)) for name in ("slope", "intercept"))
    figure = new_figure(9.6, 3.9)
    left, right = figure.subplots(1, 2)
    left.plot(x[:, 0], y[:, 0], "o", color="#808890", markersize=4, label="points")
    ends = np.array([-1.0, 1.0])
    after = [epoch for epoch in (1, 2, 4, 8, 16) if epoch < len(slopes)]
    shades = np.linspace(0.25, 0.75, len(after), endpoint=False)
    looks = [(e, f"after epoch {e}", s, 1.2) for e, s in zip(after, shades, strict=True)]
    for epoch, label, shade, width in [*looks, (0, f"after epoch {len(slopes)}, the last", 1, 2.2)]:
        line = intercepts[epoch - 1] + slopes[epoch - 1] * ends
        left.plot(ends, line, color="#2f66c4", alpha=shade, linewidth=width, label=label)
    exact = closed_form(x, y)
    line = exact.intercept + exact.slope * ends
    left.plot(ends, line, "--", color="#c4512f", linewidth=1.6, label="closed form")
    left.set(xlabel="x", ylabel="y")
    left.legend(fontsize=8)
    epochs = np.arange(1, len(slopes) + 1)
    for name, look, label in (("loss", "-", "J"), ("gradient", "--", "length of the gradient")):
        colour = "#2f66c4" if name == "loss" else "#c4512f"
        right.semilogy(epochs, log_column(run, name), look, color=colour, label=label)
    right.set(xlabel="epoch")
    right.grid(alpha=0.3)
    right.legend(fontsize=8)
    return save(figure, path)


recipe = LinearRegression()
