"""Step: how a Trainer learns from one batch.

    loss, output, labels = differentiate(inputs, labels)    gradients are left in the parameters
    update, where the loss is a finite number

`differentiate` walks the graph, or runs it through a plan; a RecordedStep is both lines as one CUDA
graph, see tinygraph/cuda/captured_step.py.  Whatever fails, a step is taken back whole (undo.py).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from tinygraph.cuda.captured_step import CapturedStep, capture
from tinygraph.errors import (
    ArgumentError,
    CaptureWarning,
    DeviceError,
    DivergenceError,
    GraphError,
)
from tinygraph.nn import Module
from tinygraph.optim import Optimizer, clip_grad_norm
from tinygraph.plan import compile as tg_compile
from tinygraph.running import here
from tinygraph.tensor import Tensor, as_tensor
from tinygraph.training.evaluation import device_of, outcome
from tinygraph.training.run import RunFolder
from tinygraph.training.taken_over import TakenOver
from tinygraph.training.undo import Undo

MOST_CHANGES = 4  # of what a graph takes over, before one could be launched

Differentiate = Callable[[Any, Any], tuple[Tensor, Tensor, Tensor]]


class Step:
    """A function of (inputs, labels) that learns from them: see `Trainer.step`."""

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        differentiate: Differentiate,
        clip_norm: float | None = None,
    ) -> None:
        self.model, self.optimizer, self.differentiate = model, optimizer, differentiate
        self.clip_norm = clip_norm
        self.undo = Undo()

    def __call__(self, inputs: Any, labels: Any) -> tuple[float, int | None]:
        with self.undo.step(self.optimizer):
            return self.learn(inputs, labels)

    def learn(self, inputs: Any, labels: Any) -> tuple[float, int | None]:
        """The step alone, within the `step` of the Undo."""
        self.undo.before_forward(self.model)
        number, right = outcome(*self.differentiate(inputs, labels))
        if math.isfinite(number):
            self.undo.before_update(self.optimizer)
            self.update()
        return number, right

    def update(self) -> None:
        """Change the parameters by their gradients, which are clipped first where asked to."""
        if self.clip_norm is not None:
            clip_grad_norm(self.optimizer.parameters.values(), self.clip_norm)
        self.optimizer.step()


class RecordedStep(Step):
    """A step on a GPU that is replayed as one CUDA graph, where a graph can repeat it.

        batches as large as the largest so far    two ordinary steps, one recorded, then replays
        a smaller one, the last of an epoch       an ordinary step, without the graph
        under a runner that watches               ordinary steps: a replay shows it nothing
        one that cannot be recorded               taken back, made again, and ordinary ones from
                                                  then on, with a CaptureWarning that says why

    What changes from step to step lies in device memory, so that losses and parameters have the
    bits of ordinary steps.  It updates even where the loss is not finite, which ends the training
    in any case.  Where the graph is `required`, what stands in its way is an error.
    """

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        differentiate: Differentiate,
        clip_norm: float | None,
        required: bool,
    ) -> None:
        super().__init__(model, optimizer, differentiate, clip_norm)
        if required and device_of(model).on_host:
            raise DeviceError(
                "Trainer",
                "capture",
                "a model on device 'cuda'",
                f"one on {str(device_of(model))!r}",
                "model.to('cuda') before optimiser and Trainer are made, or capture=False",
            )
        self.required = required
        self.reason = ""  # why there will be no graph
        self.graph: CapturedStep | None = None
        self._samples = 0  # of a batch that the graph takes
        self._taken: TakenOver | None = None
        self._changes = 0  # of these, since a graph was launched

    def __call__(self, inputs: Any, labels: Any) -> tuple[float, int | None]:
        if not self.reason:
            try:
                return super().__call__(inputs, labels)
            except Exception:
                if not self.reason:
                    raise
            self.graph = None  # with all of its memory
            told = f"Trainer: steps run without a CUDA graph: {self.reason}"
            warnings.warn(CaptureWarning(told), stacklevel=3)
        return super().__call__(inputs, labels)

    def learn(self, inputs: Any, labels: Any) -> tuple[float, int | None]:
        watched = here.top.below is not None
        if self.reason or watched or len(inputs) < self._samples:
            return super().learn(inputs, labels)
        graph = self._graph_for(inputs)
        # Numbers too are taken back, as when a recorded step turns out to be no graph.
        self.undo.keep_numbers(self.optimizer)
        try:
            found = graph(as_tensor(inputs), as_tensor(labels))
        except Exception as error:
            if not self.required and (graph.refused or isinstance(error, DeviceError)):
                self.reason = str(error)
            raise
        self._changes = 0 if graph.captured else self._changes
        return outcome(*found)

    def _graph_for(self, inputs: Any) -> CapturedStep:
        """The graph that takes a batch of this size; a new one where the model has changed."""
        taken = self._taken
        if taken is None or len(inputs) != self._samples or not taken.holds():
            self.graph, self._changes = None, self._changes + 1
            if self._changes > MOST_CHANGES and not self.required:
                times = f"{self._changes} times before a replay"
                self.reason = f"sizes or settings have changed {times}"
                raise GraphError("Trainer", "capture", "a model that stays as it is", self.reason)
            self._taken = TakenOver(self.model)
        if self.graph is None:
            self.graph, self._samples = capture(self._update), len(inputs)
        return self.graph

    def _update(self, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # While it is recorded nothing happens that could fail, and in a replay this is not called.
        runs = self.graph is None or not self.graph.is_recording
        if runs:
            self.undo.before_forward(self.model)
        found = self.differentiate(inputs, labels)
        if runs:
            self.undo.before_update(self.optimizer)
        self.update()
        return found


def make_step(
    model: Module,
    optimizer: Optimizer,
    differentiate: Differentiate,
    run: RunFolder | None,
    *,
    clip_norm: float | None,
    capture: bool | None,
    compile: bool,
    tune: bool,
) -> Step:
    """The step that a Trainer was asked for."""
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
        differentiate = compiled if run is None or not tune else _keeping_choices(compiled, run)
    if capture is False or (capture is None and device_of(model).on_host):
        return Step(model, optimizer, differentiate, clip_norm)
    return RecordedStep(model, optimizer, differentiate, clip_norm, required=capture is True)


def _keeping_choices(compiled: Any, run: RunFolder) -> Differentiate:
    """The same; tiles and threads that it measures stand in the run folder before it is learnt.

    An opened run's choices are taken up: their bits are those that the run began with.
    """
    tuning = compiled.tuning
    if run.opened:
        tuning.load(run.tuning())
    written = len(tuning.choices)

    def differentiate(inputs: Any, labels: Any) -> tuple[Tensor, Tensor, Tensor]:
        nonlocal written
        found: tuple[Tensor, Tensor, Tensor] = compiled(inputs, labels)
        if len(tuning.choices) > written:
            run.write_tuning(tuning.to_list())
            written = len(tuning.choices)
        return found

    return differentiate


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
