"""Recorded: a part of a training step as one CUDA graph, where a graph can repeat it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tinygraph.base import CaptureWarning, DeviceError, GraphError
from tinygraph.engine import here
from tinygraph.nn import Module
from tinygraph.plan.captured_step import CapturedStep, capture
from tinygraph.training.evaluation import device_of
from tinygraph.training.taken_over import TakenOver

MOST_CHANGES = 4  # of what a graph takes over, before one could be launched


class Recorded:
    """A function of arrays that is launched as a graph; recorded anew where the model has changed.

        batches as large as the largest so far    two ordinary calls, one recorded, then replays
        a smaller one, the last of an epoch       is not taken: an ordinary step, without the graph
        under a runner that watches               the same: a replay shows it nothing
        one that cannot be recorded               an error, and none is taken from then on

    Attributes
    ----------
    reason : str
        Why there will be no graph; empty while there may be one.
    graph : CapturedStep or None
        The one that was used last.

    Raises
    ------
    DeviceError
        The graph is required, and the model lies on the host.
    """

    def __init__(self, model: Module, function: Callable[..., Any], required: bool) -> None:
        if required and device_of(model).on_host:
            raise DeviceError(
                "Trainer",
                "capture",
                "a model on device 'cuda'",
                f"one on {str(device_of(model))!r}",
                "model.to('cuda') before optimiser and Trainer are made, or capture=False",
            )
        self.model, self.function, self.required = model, function, required
        self.reason = ""
        self.graph: CapturedStep | None = None
        self._samples = 0  # of a batch that the graph takes
        self._like: Any = None
        self._taken: TakenOver | None = None
        self._changes = 0  # of these, since a graph was launched

    def takes(self, samples: int) -> bool:
        """Whether a batch of so many samples may be a matter of the graph."""
        watched = here.top.below is not None
        return not (self.reason or watched or samples < self._samples)

    def __call__(self, samples: int, *inputs: Any, like: Any = None) -> Any:
        """What the function gives; another `like` than before makes another graph."""
        graph = self._graph_for(samples, like)
        try:
            found = graph(*inputs)
        except Exception as error:
            if not self.required and (graph.refused or isinstance(error, DeviceError)):
                self.reason = str(error)
            raise
        self._changes = 0 if graph.captured else self._changes
        return found

    def give_up(self) -> None:
        """Free all of its memory, and say why there is no graph."""
        self.graph = None
        told = f"Trainer: steps run without a CUDA graph: {self.reason}"
        warnings.warn(CaptureWarning(told), stacklevel=4)

    def _graph_for(self, samples: int, like: Any) -> CapturedStep:
        """The graph that takes a batch of this size; a new one where the model has changed."""
        taken = self._taken
        same = samples == self._samples and like == self._like
        if taken is None or not same or not taken.holds():
            self.graph, self._changes = None, self._changes + 1
            if self._changes > MOST_CHANGES and not self.required:
                times = f"{self._changes} times before a replay"
                self.reason = f"sizes or settings have changed {times}"
                raise GraphError("Trainer", "capture", "a model that stays as it is", self.reason)
            self._taken = TakenOver(self.model)
        if self.graph is None:
            self.graph, self._samples = capture(self.function), samples
            self._like = like
        return self.graph
