"""Step: how a Trainer learns from one batch.

    loss, output, labels = differentiate(inputs, labels)    gradients are left in the parameters
    update, where the loss is a finite number

`differentiate` walks the graph, or runs it through a plan; a RecordedStep is both lines as one CUDA
graph.  Whatever fails, a step is taken back whole (undo.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tinygraph.errors import ArgumentError, DivergenceError
from tinygraph.nn import Module
from tinygraph.optim import Optimizer
from tinygraph.plan import compile as tg_compile
from tinygraph.plan.tuning import Tuning
from tinygraph.tensor import Tensor
from tinygraph.training.captured import CapturedTraining
from tinygraph.training.evaluation import outcome
from tinygraph.training.run import RunFolder
from tinygraph.training.undo import Undo

Differentiate = Callable[[Any, Any], tuple[Tensor, Tensor, Tensor]]


class Step:
    """A function of (inputs, labels) that learns from them.

    It returns the mean loss and the number of right answers, None for no classes.

    Raises
    ------
    DeviceError
        Memory does not suffice.  The step is taken back whole: parameters, running statistics, the
        optimiser's state and the random numbers are as before, whatever it was that failed.
    """

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        differentiate: Differentiate,
        choices: KeptChoices | None = None,
    ) -> None:
        self.model, self.optimizer = model, optimizer
        self.differentiate, self._choices = differentiate, choices
        self.undo = Undo()

    def __call__(self, inputs: Any, labels: Any) -> tuple[float, int | None]:
        with self.undo.step(self.model, self.optimizer):
            return self.learn(inputs, labels)

    def learn(self, inputs: Any, labels: Any) -> tuple[float, int | None]:
        """The step alone, within the `step` of the Undo."""
        number, right = outcome(*self.keep_choices(self.differentiate(inputs, labels)))
        if math.isfinite(number):
            self.undo.before_update(self.optimizer)
            self.optimizer.step()
        return number, right

    def keep_choices(self, found: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """The same; new tiles and threads stand in the run folder before anything is learnt."""
        if self._choices is not None:
            self._choices.write()
        return found


class RecordedStep(Step):
    """A step that is replayed as one CUDA graph; batches that are too small go without it.

    It updates even where the loss is not finite, which ends the training in any case.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.captured = CapturedTraining(self.model, self.optimizer, self.differentiate, self.undo)

    def learn(self, inputs: Any, labels: Any) -> tuple[float, int | None]:
        if not self.captured.takes(inputs):
            return super().learn(inputs, labels)
        return outcome(*self.keep_choices(self.captured.step(inputs, labels)))


class KeptChoices:
    """Tiles and threads that a plan has measured, in the run folder.

    An opened run's choices are taken up: their bits are those that the run began with.
    """

    def __init__(self, tuning: Tuning, run: RunFolder) -> None:
        self.tuning, self.run = tuning, run
        if run.opened:
            tuning.load(run.tuning())
        self._written = len(tuning.choices)

    def write(self) -> None:
        """Write tuning.json where there are choices that it lacks."""
        if len(self.tuning.choices) > self._written:
            self.run.write_tuning(self.tuning.to_list())
            self._written = len(self.tuning.choices)


def make_step(
    model: Module,
    optimizer: Optimizer,
    differentiate: Differentiate,
    run: RunFolder | None,
    *,
    capture: bool,
    compile: bool,
    tune: bool,
) -> Step:
    """The step that a Trainer was asked for."""
    choices = None
    if tune and not compile:
        raise ArgumentError(
            "Trainer",
            "tune",
            "False where compile is not set",
            True,
            "compile=True: what is tuned is a plan",
        )
    if compile:
        compiled = tg_compile(differentiate, tune=tune)
        if run is not None and compiled.tuning is not None:
            choices = KeptChoices(compiled.tuning, run)
        differentiate = compiled
    return (RecordedStep if capture else Step)(model, optimizer, differentiate, choices)


def require_finite(loss: float, epoch: int, batch: int) -> None:
    """DivergenceError for the loss of a batch that is no finite number."""
    if not math.isfinite(loss):
        raise DivergenceError(
            "Trainer",
            "loss",
            "a finite number",
            f"{loss} in epoch {epoch}, batch {batch}",
            "use a smaller learning rate, look for NaN in the data, and train under "
            "tg.detect_anomaly() to see which op made it",
        )
