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
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tinygraph as tg
from tinygraph import nn, show
from tinygraph.errors import DivergenceError
from tinygraph.optim import SGD
from tinygraph.recipes.plain_run import (
    last_parameters,
    log_column,
    require_at_least,
    require_compile,
    save_run,
    through_plan,
    timed,
    writing_to,
)
from tinygraph.recipes.recipe import Recipe
from tinygraph.shapes import Array
from tinygraph.training import Progress, RunFolder

Differentiation = Callable[[tg.Tensor, tg.Tensor], tg.Tensor]


@dataclass
class Config:
    """Settings.  `points` are learnt from; as many others of the same line are for the test."""

    points: int = 50
    slope: float = 2.0
    intercept: float = -1.0
    noise: float = 0.2  # standard deviation
    lr: float = 0.01
    tolerance: float = 1e-10  # length of the gradient at which it has stopped
    epochs: int = 10_000  # at most
    seed: int = 0
    device: str = "cpu"
    compile: bool = False  # forward and backward through a plan
    tune: bool = False  # with compile: measure tiles and threads, and keep the fastest

    def __post_init__(self) -> None:
        require_at_least("linear_regression", self, points=2, lr=0, tolerance=0, epochs=1)
        require_compile("linear_regression", self)


class Line(NamedTuple):
    """intercept + slope x."""

    slope: float
    intercept: float


def data(config: Config) -> tuple[Array, Array, Array, Array]:
    """Training x and y, test x and y, each (points, 1) float64; x is uniform on -1 to 1.

    >>> [part.shape for part in data(Config(points=7))]
    [(7, 1), (7, 1), (7, 1), (7, 1)]
    """
    rng = np.random.default_rng(config.seed)
    x = rng.uniform(-1, 1, (2 * config.points, 1))
    y = config.intercept + config.slope * x + config.noise * rng.standard_normal(x.shape)
    return x[: config.points], y[: config.points], x[config.points :], y[config.points :]


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


def descend(
    model: nn.Linear,
    config: Config,
    x: Array,
    y: Array,
    rows: list[dict[str, Any]],
    progress: Progress,
    differentiate: Differentiation | None = None,
) -> bool:
    """Gradient descent on all points at once; whether the gradient stopped within the epochs.

    `rows` takes one row of the log for each epoch, with J and the gradient at its begin and the
    line at its end.
    """
    inputs, targets = tg.Tensor(x, device=config.device), tg.Tensor(y, device=config.device)
    optimizer = SGD(model.named_parameters(), lr=config.lr)
    differentiate = differentiate or _differentiation(model, config)
    for epoch in range(1, config.epochs + 1):
        started = time.perf_counter()
        optimizer.zero_grad()
        loss = differentiate(inputs, targets)
        gradient = _length(model)
        first = rows[0]["loss"] if rows else math.inf
        if not math.isfinite(gradient) or loss.item() > 1e6 * first:
            raise DivergenceError(
                "linear_regression",
                "lr",
                f"below {largest_rate(x):.4g}, which is 2 / the largest eigenvalue of X.T @ X",
                config.lr,
                "a smaller learning rate",
            )
        stopped = gradient <= config.tolerance
        if not stopped:
            optimizer.step()
        row = {"epoch": epoch, "loss": loss.item(), "gradient": gradient}
        row |= line_of(model)._asdict()
        rows.append({**row, "seconds": time.perf_counter() - started})
        if stopped or epoch % 25 == 0:
            progress.epoch(rows[-1], None)
        if stopped:
            return True
    return False


def _differentiation(model: nn.Linear, config: Config) -> Differentiation:
    """J of inputs and targets; its gradient is left in the model."""

    def differentiate(inputs: tg.Tensor, targets: tg.Tensor) -> tg.Tensor:
        loss = tg.half_squared_error(model(inputs), targets)
        loss.backward()
        return loss

    return through_plan(differentiate, config)


def _length(model: nn.Linear) -> float:
    """The Euclidean length of the gradient of all parameters."""
    squares = [
        float((gradient * gradient).sum())
        for gradient in (parameter.grad for parameter in model.parameters())
        if gradient is not None
    ]
    return math.sqrt(sum(squares))


def line_of(model: nn.Linear) -> Line:
    """The line that a model is."""
    state = model.state_dict()
    return Line(float(state["weight"][0, 0]), float(state["bias"][0]))


def make_model(config: Config) -> nn.Linear:
    """The model at its start, on the device: slope and intercept 0.

    >>> line_of(make_model(Config()))
    Line(slope=0.0, intercept=0.0)
    """
    model = nn.Linear(1, 1, dtype=np.float64)
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    return model.to(config.device)


def train(
    config: Config,
    run: RunFolder,
    data_dir: str | Path | None = None,
    download: bool = False,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Descend, compare with the closed form, test, and leave everything in the run folder.

    Returns
    -------
    dict
        `loss` (J) and `rmse` (root of the mean squared error) on the test points.

    Raises
    ------
    DivergenceError
        The learning rate is too large; the message says which is not.
    """
    progress = progress or Progress()
    x, y, *_ = data(config)
    model = make_model(config)
    rows: list[dict[str, Any]] = []
    differentiate = _differentiation(model, config)
    stopped = descend(model, config, x, y, rows, progress, differentiate)
    found, exact = line_of(model), closed_form(x, y)
    difference = max(abs(a - b) for a, b in zip(found, exact, strict=True))
    end = "stopped" if stopped else "has not stopped"
    if progress.lines:
        print(f"the gradient {end} after {len(rows)} epochs, length {rows[-1]['gradient']:.1e}")
        print(f"gradient descent  {found.intercept:+.12f} {found.slope:+.12f} x")
        print(
            f"closed form       {exact.intercept:+.12f} {exact.slope:+.12f} x, "
            f"largest difference {difference:.1e}"
        )
    result = _test(model, config)
    training = {
        "stopped": stopped,
        "epochs": len(rows),
        "gradient_descent": found._asdict(),
        "closed_form": exact._asdict(),
        "largest_difference": difference,
    }
    save_run(
        run,
        "linear_regression",
        asdict(config),
        rows,
        model.state_dict(),
        {"test": result, "training": training},
        differentiate,
    )
    return result


def rehearse(
    config: Config, data_dir: str | Path | None = None, download: bool = False
) -> dict[str, Any]:
    """One pass over the points forward and backward, timed; nothing is kept."""
    x, y, *_ = data(config)
    model = make_model(config)
    inputs, targets = tg.Tensor(x, device=config.device), tg.Tensor(y, device=config.device)
    loss = tg.half_squared_error(model(inputs), targets).item()
    seconds = timed(lambda: tg.half_squared_error(model(inputs), targets).backward())
    return {
        "summary": model.summary((1,), np.float64),
        "batch": f"float64 {x.shape} and float64 {y.shape}",
        "loss": float(loss),
        "step_seconds": seconds,
        "batches": 1,
    }


def training_step(
    config: Config, data_dir: str | Path | None = None, download: bool = False
) -> Callable[[], Any]:
    """Descend from all points at once, again and again; nothing is written."""
    x, y, *_ = data(config)
    model = make_model(config)
    inputs, targets = tg.Tensor(x, device=config.device), tg.Tensor(y, device=config.device)
    optimizer = SGD(model.named_parameters(), lr=config.lr)
    differentiate = _differentiation(model, config)

    def step() -> None:
        optimizer.zero_grad()
        differentiate(inputs, targets)
        optimizer.step()

    return step


def evaluate_run(
    run: RunFolder, data_dir: str | Path | None = None, best: bool = False, device: str = "cpu"
) -> dict[str, float]:
    """`loss` and `rmse` of a run's line on the test points."""
    model = nn.Linear(1, 1, dtype=np.float64)
    model.load_state_dict(last_parameters(run, best))
    return _test(model.to(device), recipe.settings_of(run), device)


def _test(model: nn.Linear, config: Config, device: str | None = None) -> dict[str, float]:
    *_, x, y = data(config)
    place = device or config.device
    with tg.no_grad():
        output = model(tg.Tensor(x, device=place))
        loss = float(tg.half_squared_error(output, tg.Tensor(y, device=place)).item())
    return {"loss": loss, "rmse": math.sqrt(2 * loss / len(x))}


# ---- pictures -----------------------------------------------------------------------------------


def draw(run: RunFolder) -> Iterator[Path]:
    """The graph of J and the report, then the points, lines and curves, which need matplotlib."""
    config = recipe.settings_of(run)
    x, y, *_ = data(config)
    model = nn.Linear(1, 1, dtype=np.float64)
    model.load_state_dict(run.load_parameters())
    loss = tg.half_squared_error(model(tg.Tensor(x, name="x")), tg.Tensor(y, name="y"))
    with writing_to(run):
        yield show.graph(loss, run.path / "graph.svg")
        yield show.report(
            show.ReportContents(
                title="linear_regression",
                result=run.result(),
                rows=run.rows(),
                config=run.config,
                environment=run.environment(),
                state=model.state_dict(),
                graph=loss,
            ),
            run.path / "report.html",
        )
        yield descent(run, run.path / "descent.png")


def descent(run: RunFolder, path: Path) -> Path:
    """Left the points and the line after some epochs, right J and the gradient's length."""
    from matplotlib.figure import Figure

    x, y, *_ = data(recipe.settings_of(run))
    slopes, intercepts = (np.array(log_column(run, name)) for name in ("slope", "intercept"))
    figure = Figure(figsize=(9.6, 3.9), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    left.plot(x[:, 0], y[:, 0], "o", color="#808890", markersize=4, label="points")
    ends = np.array([-1.0, 1.0])
    after = [epoch for epoch in (1, 2, 4, 8, 16) if epoch < len(slopes)]
    for k, epoch in enumerate(after):
        shade = 0.25 + 0.5 * k / len(after)
        left.plot(
            ends,
            intercepts[epoch - 1] + slopes[epoch - 1] * ends,
            color="#2f66c4",
            alpha=shade,
            linewidth=1.2,
            label=f"after epoch {epoch}",
        )
    left.plot(
        ends,
        intercepts[-1] + slopes[-1] * ends,
        color="#2f66c4",
        linewidth=2.2,
        label=f"after epoch {len(slopes)}, the last",
    )
    exact = closed_form(x, y)
    left.plot(
        ends,
        exact.intercept + exact.slope * ends,
        "--",
        color="#c4512f",
        linewidth=1.6,
        label="closed form",
    )
    left.set(xlabel="x", ylabel="y")
    left.legend(fontsize=8)
    epochs = np.arange(1, len(slopes) + 1)
    right.semilogy(epochs, log_column(run, "loss"), color="#2f66c4", label="J")
    right.semilogy(
        epochs, log_column(run, "gradient"), "--", color="#c4512f", label="length of the gradient"
    )
    right.set(xlabel="epoch")
    right.grid(alpha=0.3)
    right.legend(fontsize=8)
    figure.savefig(path, dpi=150)
    return path


recipe = Recipe(
    name="linear_regression",
    summary="a line by gradient descent on the half squared error, beside the closed form",
    config=Config,
    train=train,
    rehearse=rehearse,
    training_step=training_step,
    evaluate=evaluate_run,
    metric="rmse",
    draw=draw,
    resumable=False,
    data_files=False,
)
