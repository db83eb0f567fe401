"""Step: how a Trainer learns from one batch.

    loss, output, labels = differentiate(inputs, labels)    gradients are left in the parameters
    update, where the loss is a finite number

`differentiate` walks the graph, or runs it through a plan; a RecordedStep is both lines as one CUDA
graph, see tinygraph/cuda/capture.py.  Whatever fails, a step is taken back whole (undo.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tinygraph.cuda.capture import CapturedStep, capture
from tinygraph.errors import ArgumentError, DeviceError, DivergenceError
from tinygraph.nn import Module
from tinygraph.optim import Optimizer
from tinygraph.plan import compile as tg_compile
from tinygraph.precision import get_float32_matmul_precision
from tinygraph.tensor import Tensor, as_tensor
from tinygraph.training.evaluation import device_of, outcome
from tinygraph.training.run import RunFolder
from tinygraph.training.undo import Undo

Differentiate = Callable[[Any, Any], tuple[Tensor, Tensor, Tensor]]


class Step:
    """A function of (inputs, labels) that learns from them: see `Trainer.step`."""

    def __init__(self, model: Module, optimizer: Optimizer, differentiate: Differentiate) -> None:
        self.model, self.optimizer, self.differentiate = model, optimizer, differentiate
        self.undo = Undo()

    def __call__(self, inputs: Any, labels: Any) -> tuple[float, int | None]:
        with self.undo.step(self.model, self.optimizer):
            return self.learn(inputs, labels)

    def learn(self, inputs: Any, labels: Any) -> tuple[float, int | None]:
        """The step alone, within the `step` of the Undo."""
        number, right = outcome(*self.differentiate(inputs, labels))
        if math.isfinite(number):
            self.undo.before_update(self.optimizer)
            self.optimizer.step()
        return number, right


class RecordedStep(Step):
    """A step on a GPU that is replayed as one CUDA graph.

        batches as large as the largest so far    two eager steps, one recorded, then replays
        a smaller one, the last of an epoch       the ordinary step, without the graph

    What changes from step to step lies in device memory, so that losses and parameters have the
    bits of ordinary steps.  It updates even where the loss is not finite, which ends the training
    in any case.
    """

    def __init__(self, model: Module, optimizer: Optimizer, differentiate: Differentiate) -> None:
        super().__init__(model, optimizer, differentiate)
        if device_of(model).on_host:
            raise DeviceError(
                "Trainer",
                "capture",
                "a model on device 'cuda'",
                f"one on {str(device_of(model))!r}",
                "model.to('cuda') before optimiser and Trainer are made, or capture=False",
            )
        self._samples = 0  # of a batch that the graph takes
        self.graph: CapturedStep | None = None
        self._fixed: list[Any] = []

    def learn(self, inputs: Any, labels: Any) -> tuple[float, int | None]:
        if len(inputs) < self._samples:
            return super().learn(inputs, labels)
        fixed = self._settings()
        same = len(inputs) == self._samples and len(fixed) == len(self._fixed)
        if not same or any(a is not b for a, b in zip(fixed, self._fixed, strict=True)):
            self.graph = None
        if self.graph is None:
            self.graph, self._samples, self._fixed = capture(self._update), len(inputs), fixed
        # Numbers too are taken back, as when a recorded step turns out to be no graph.
        self.undo.keep_numbers(self.optimizer)
        return outcome(*self.graph(as_tensor(inputs), as_tensor(labels)))

    def _update(self, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found = self.differentiate(inputs, labels)
        # While it is recorded nothing happens that could fail.
        if self.graph is None or not self.graph.is_recording:
            self.undo.before_update(self.optimizer)
        self.optimizer.step()
        return found

    def _settings(self) -> list[Any]:
        """What a graph has taken over beside the optimiser's: it is recorded anew for others."""
        learnt = [p.requires_grad for p in self.model.parameters()]
        modes = [module.training for module in self.model.modules()]
        buffers = [buffer.value for buffer in self.model.buffers()]
        return [get_float32_matmul_precision(), *learnt, *modes, *buffers]


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
    return (RecordedStep if capture else Step)(model, optimizer, differentiate)


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
