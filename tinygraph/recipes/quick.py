"""QuickRecipe: a recipe that trains in a moment, from data that it makes.

It has a loop of its own in the place of a Trainer, and saves no checkpoints: everything is written
at the end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import tinygraph as tg
from tinygraph.base import CheckpointError
from tinygraph.base.streams import say
from tinygraph.data import DataLoader
from tinygraph.engine import Tensor
from tinygraph.plan import CompiledFunction
from tinygraph.recipes.recipe import Recipe
from tinygraph.recipes.task import Task
from tinygraph.show.figures import drawable
from tinygraph.training import Progress, RunFolder

Differentiate = Callable[[Tensor, Tensor], Tensor]
Row = dict[str, Any]


class QuickRecipe(Recipe):
    """A recipe whose subclass overrides `epochs` and `ending`; all its data are one batch.

    `logged_every` and `shown_every` say of which epochs the log has a row and the screen a line;
    both have the last one.
    """

    resumable: ClassVar[bool] = False
    data_files: ClassVar[bool] = False
    alone: ClassVar[str] = "it trains in a moment"
    logged_every: ClassVar[int] = 1
    shown_every: ClassVar[int] = 1

    def epochs(self, task: Task) -> Iterator[Row]:
        """Learn for an epoch and yield its row of the log, until the training is over."""
        raise NotImplementedError(f"{type(self).__name__}.epochs")

    def ending(self, task: Task, rows: list[Row]) -> tuple[dict[str, Any], str]:
        """How it ended: `training` of result.json, and what is said about it."""
        raise NotImplementedError(f"{type(self).__name__}.ending")

    def learn(self, task: Task, rows: list[Row], progress: Progress) -> dict[str, Any]:
        """Train, add rows of the log, and say how it ended."""
        started, row, epoch = time.perf_counter(), {}, 0
        for epoch, columns in enumerate(self.epochs(task), start=1):
            row = {"epoch": epoch, **columns}
            if epoch % self.logged_every == 0:
                now = time.perf_counter()
                rows.append({**row, "seconds": now - started})
                started = now
            if epoch % self.shown_every == 0:
                progress.epoch(rows[-1], None)
        if epoch % self.logged_every:
            rows.append({**row, "seconds": time.perf_counter() - started})
        if epoch % self.shown_every:
            progress.epoch(rows[-1], None)
        ending, text = self.ending(task, rows)
        if progress.lines:
            say(text, sys.stdout)
        return ending

    def loader(self, config: Any, training: Any) -> DataLoader:
        """All data as one batch, in the order in which they were made."""
        return DataLoader(training, len(training), device=config.device)

    def batch(self, task: Task) -> tuple[Tensor, Tensor]:
        """Inputs and targets of that batch, on the device."""
        inputs, targets = next(iter(self.loader(task.config, task.data.training)))
        device = task.config.device
        named = Tensor(inputs, device=device, name="inputs")
        return named, Tensor(targets, device=device, name="targets")

    def differentiation(self, task: Task) -> Differentiate:
        """The loss of a batch, whose gradients are left in the network; compiled where set."""

        def differentiate(inputs: Tensor, targets: Tensor) -> Tensor:
            loss = self.loss(task.network(inputs), targets)
            loss.backward()
            return loss

        if not task.config.compile:
            return differentiate
        task.compiled = tg.compile(differentiate, tune=task.config.tune)
        compiled: Differentiate = task.compiled
        return compiled

    def step(self, task: Task) -> Callable[[], Any]:
        """A step on all data; the loss before it."""
        optimizer = self.optimizer(task.config, task.network)
        inputs, targets = self.batch(task)
        differentiate = self.differentiation(task)

        def step() -> Tensor:
            optimizer.zero_grad()
            loss = differentiate(inputs, targets)
            optimizer.step()
            return loss

        return step

    def graph(self, config: Any, network: Any, facts: dict[str, Any]) -> Tensor:
        """The loss of all data."""
        x, y = self.data(config).training[:]
        return self.loss(network(Tensor(x, name="x")), Tensor(y, name="y"))

    def fit(self, task: Task, run: RunFolder, progress: Progress) -> dict[str, Any]:
        """Learn, then write: a training that fails leaves nothing."""
        rows: list[Row] = []
        ending = self.learn(task, rows, progress)
        self.begin(task, run)
        self.write_environment(task.config, run)
        for row in rows:
            run.append(row)
        if isinstance(task.compiled, CompiledFunction) and task.compiled.tuning is not None:
            run.write_tuning(task.compiled.tuning.to_list())
        run.save_parameters(task.network.state_dict())
        return {"training": ending}


def log_column(run: RunFolder, name: str) -> list[float]:
    """The numbers of one column of the log; CheckpointError where there are none."""
    values = [row.get(name) if isinstance(row, dict) else None for row in run.rows()]
    if not values or not all(isinstance(value, (int, float)) for value in values):
        expected = f"a number {name} in each row"
        got = next((v for v in values if not isinstance(v, (int, float))), "no row")
        raise CheckpointError("run folder", str(run.path / "log.jsonl"), expected, got)
    return [float(drawable(value)) for value in values if value is not None]
