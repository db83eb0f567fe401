"""Captured: the step of a Trainer as one CUDA graph, see tinygraph/cuda/capture.py.

    batches as large as the largest so far    two eager steps, one that is recorded, then replays
    a smaller one, the last of an epoch       the Trainer's ordinary step, without the graph

Every call is one step of training.  What changes from step to step lies in device memory, so that
losses and parameters have the bits of ordinary steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinygraph.cuda.capture import CapturedStep, capture
from tinygraph.device import CPU
from tinygraph.errors import DeviceError
from tinygraph.nn import Module
from tinygraph.optim import Optimizer
from tinygraph.precision import get_float32_matmul_precision
from tinygraph.tensor import Tensor, as_tensor
from tinygraph.training.undo import Undo


class CapturedTraining:
    """Steps of one model and optimiser on a GPU.

    Parameters
    ----------
    differentiate : function of (inputs, labels)
        Leaves the gradients of a batch in the parameters, and returns loss, output and labels.  It
        may be compiled: then its plan is what the graph consists of.

    Raises
    ------
    DeviceError
        The model is not on a GPU.
    """

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        differentiate: Callable[[Any, Any], tuple[Tensor, Tensor, Tensor]],
        undo: Undo,
    ) -> None:
        parameter = next(model.parameters(), None)
        device = CPU if parameter is None else parameter.device
        if device.on_host:
            raise DeviceError(
                "Trainer",
                "capture",
                "a model on device 'cuda'",
                f"one on {str(device)!r}",
                "model.to('cuda') before optimiser and Trainer are made, or capture=False",
            )
        self.model, self.optimizer = model, optimizer
        self._differentiate, self._undo = differentiate, undo
        self._samples = 0  # of a batch that the graph takes
        self._step: CapturedStep | None = None
        self._fixed: Any = None

    def takes(self, inputs: Any) -> bool:
        """Whether a batch is no smaller than any before; the graph is for those."""
        if len(inputs) > self._samples:
            self._samples, self._step = len(inputs), None
        return len(inputs) == self._samples

    def step(self, inputs: Any, labels: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Learn from a batch: loss, output and labels, on the GPU.

        Within the `step` of the Undo.  Numbers of the optimiser's state are taken back if it fails,
        as when a recorded step turns out to be no graph.
        """
        fixed = self._settings()
        if self._step is None or not _same(fixed, self._fixed):
            self._step, self._fixed = capture(self._learn), fixed
        before = {name: dict(state) for name, state in self.optimizer.state.items()}
        try:
            found: tuple[Tensor, Tensor, Tensor] = self._step(as_tensor(inputs), as_tensor(labels))
        except BaseException:
            for name, state in self.optimizer.state.items():
                state.clear()
                state.update(before[name])
            raise
        return found

    def _learn(self, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        loss, output, labels = self._differentiate(inputs, labels)
        if (
            self._step is None or not self._step.is_recording
        ):  # while it is recorded nothing happens that could fail
            self._undo.before_update(self.optimizer)
        self.optimizer.step()
        return loss, output, labels

    def _settings(self) -> list[Any]:
        """What a graph has taken over beside the optimiser's: it is recorded anew for others."""
        learnt = [p.requires_grad for p in self.model.parameters()]
        modes = [module.training for module in self.model.modules()]
        buffers = [buffer.value for buffer in self.model.buffers()]
        return [get_float32_matmul_precision(), *learnt, *modes, *buffers]


def _same(now: list[Any], before: list[Any]) -> bool:
    """Whether these are the very same objects."""
    return len(now) == len(before) and all(a is b for a, b in zip(now, before, strict=True))
