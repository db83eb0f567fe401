"""Step: how a Trainer learns from one batch.

    loss, output, labels = differentiate(inputs, labels)    gradients are left in the parameters
    update, where the loss is a finite number

`differentiate` walks the graph, or runs it through a plan; a RecordedStep is both lines as one CUDA
graph, see tinygraph/plan/captured_step.py.  Whatever fails, a step is taken back whole (undo.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tinygraph.base import DivergenceError
from tinygraph.data import DataLoader
from tinygraph.engine import Tensor, as_tensor
from tinygraph.nn import Module
from tinygraph.optim import Optimizer, clip_grad_norm
from tinygraph.plan.captured_step import CapturedStep
from tinygraph.training.evaluation import Loss, batches, evaluate, outcome
from tinygraph.training.recorded import Recorded
from tinygraph.training.undo import Undo

if TYPE_CHECKING:
    from tinygraph.plan import CompiledFunction

Differentiate = Callable[[Any, Any], tuple[Tensor, Tensor, Tensor]]


class Step:
    """A function of (inputs, labels) that learns from them: see `Trainer.step`.

    Attributes
    ----------
    samples : int
        Of the whole batch of the last step.
    plan : CompiledFunction or None
        What `differentiate` runs through, on the cpu.
    """

    samples = 0
    plan: CompiledFunction | None = None

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

    def begin(self, loader: DataLoader) -> None:
        """A training on the batches of a loader begins."""

    def begin_epoch(self) -> None:
        """What has changed since the last one is seen by a plan too."""
        if self.plan is not None:
            self.plan.look_again()

    def batches(self, loader: DataLoader) -> Iterator[tuple[Any, Any]]:
        """What is left of an epoch, as this rank takes it."""
        return batches(self.model, loader)

    def evaluate(self, loader: DataLoader, loss: Loss) -> dict[str, float]:
        """How good the model is, after an epoch."""
        return evaluate(self.model, loader, loss)

    def learn(self, inputs: Any, labels: Any) -> tuple[float, int | None]:
        """The step alone, within the `step` of the Undo."""
        self.undo.before_forward(self.model)
        number, right = self.measure(inputs, labels)
        if math.isfinite(number):
            self.undo.before_update(self.optimizer)
            self.update()
        return number, right

    def measure(self, inputs: Any, labels: Any) -> tuple[float, int | None]:
        """Loss and right answers of a batch, and the gradients in the parameters."""
        self.samples = len(inputs)
        return outcome(*self.differentiate(inputs, labels))

    def update(self) -> None:
        """Change the parameters by their gradients, which are clipped first where asked to."""
        if self.clip_norm is not None:
            clip_grad_norm(self.optimizer.parameters.values(), self.clip_norm)
        self.optimizer.step()


class RecordedStep(Step):
    """A step on a GPU that is replayed as one CUDA graph, where a graph can repeat it.

    A step that cannot be recorded is taken back and made again, and ordinary ones follow, with a
    CaptureWarning that says why.  What changes from step to step lies in device memory, so that
    losses and parameters have the bits of ordinary steps.  It updates even where the loss is not
    finite, which ends the training in any case.  Where the graph is `required`, what stands in its
    way is an error.
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
        self.recorded = Recorded(model, self._update, required)

    @property
    def graph(self) -> CapturedStep | None:
        """The graph, where there is one."""
        return self.recorded.graph

    def __call__(self, inputs: Any, labels: Any) -> tuple[float, int | None]:
        if not self.recorded.reason:
            try:
                return super().__call__(inputs, labels)
            except Exception:
                if not self.recorded.reason:
                    raise
            self.recorded.give_up()
        return super().__call__(inputs, labels)

    def learn(self, inputs: Any, labels: Any) -> tuple[float, int | None]:
        if not self.recorded.takes(len(inputs)):
            return super().learn(inputs, labels)
        # Numbers too are taken back, as when a recorded step turns out to be no graph.
        self.undo.keep_numbers(self.optimizer)
        found = self.recorded(len(inputs), as_tensor(inputs), as_tensor(labels))
        self.samples = len(inputs)
        return outcome(*found)

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
