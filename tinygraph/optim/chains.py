"""One schedule after the other, each counting its own steps from 0."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from tinygraph.base import ArgumentError, CheckpointError, whole
from tinygraph.optim.decays import LinearLR
from tinygraph.optim.optimizer import Optimizer
from tinygraph.optim.schedules import ReduceLROnPlateau, Schedule


class SequentialLR(Schedule):
    """Schedules that take turns: the next one begins, at its step 0, where a milestone is reached.

    Parameters
    ----------
    optimizer : Optimizer
    schedulers : sequence of Schedule
        Of this optimiser, each in closed form; only this object's `step` is called.
    milestones : sequence of int
        Rising, one fewer than schedulers.

    References
    ----------
    https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.SequentialLR.html

    Examples
    --------
    >>> import tinygraph as tg
    >>> sgd = tg.optim.SGD([tg.Parameter([1.0])], lr=1.0)
    >>> warm = tg.optim.LinearLR(sgd, start_factor=0.5, total_iters=2)
    >>> fall = tg.optim.ExponentialLR(sgd, gamma=0.5)
    >>> schedule, rates = tg.optim.SequentialLR(sgd, [warm, fall], milestones=[2]), []
    >>> for epoch in range(5):
    ...     rates += schedule.get_last_lr()
    ...     schedule.step()
    >>> rates
    [0.5, 0.75, 1.0, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[Schedule], milestones: Sequence[int]
    ) -> None:
        super().__init__(optimizer)
        for each in schedulers:
            is_closed = isinstance(each, Schedule) and not isinstance(each, ReduceLROnPlateau)
            if not is_closed or each.optimizer is not optimizer:
                expected = "schedules in closed form of the same optimizer"
                raise ArgumentError(self.op, "schedulers", expected, type(each).__name__)
        self.milestones = [whole(self.op, "milestones", m) for m in milestones]
        if len(self.milestones) != len(schedulers) - 1 or self.milestones != sorted(
            set(self.milestones)
        ):
            expected = f"{max(len(schedulers) - 1, 0)} rising numbers of steps, one between two"
            raise ArgumentError(self.op, "milestones", expected, list(milestones))
        self.schedulers = list(schedulers)
        self.apply()

    def apply(self) -> None:
        at = bisect_right(self.milestones, self.steps)
        now = self.schedulers[at]
        now.steps = self.steps - (self.milestones[at - 1] if at else 0)
        now.apply()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "each": [s.state_dict() for s in self.schedulers]}

    def require_own(self, saved: Any) -> None:
        super().require_own(saved)
        if len(saved["each"]) != len(self.schedulers):
            raise CheckpointError(
                self.op, "saved", f"{len(self.schedulers)} schedules", len(saved["each"])
            )
        for schedule, own in zip(self.schedulers, saved["each"], strict=True):
            schedule.require_own(own)

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        self.require_own(saved)
        for schedule, own in zip(self.schedulers, saved["each"], strict=True):
            schedule.load_state_dict(own)
        super().load_state_dict(saved)


class LinearWarmup(LinearLR):
    """A straight line from `start_factor` times the base rate up to it, then another schedule.

    Parameters
    ----------
    optimizer : Optimizer
    total_iters : int
        How many steps the line takes.
    start_factor : float
        0 to 1.
    then : Schedule, optional
        What follows, of the same optimiser; its first step is the end of the line.  Only this
        object's `step` is called.  Without it the base rate stays.

    References
    ----------
    Goyal et al., "Accurate, large minibatch SGD: training ImageNet in 1 hour", arXiv:1706.02677.
    https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LinearLR.html

    Examples
    --------
    >>> import tinygraph as tg
    >>> sgd = tg.optim.SGD([tg.Parameter([1.0])], lr=1.0)
    >>> fall = tg.optim.StepLR(sgd, step_size=1, gamma=0.5)
    >>> schedule, rates = tg.optim.LinearWarmup(sgd, 2, start_factor=0.5, then=fall), []
    >>> for epoch in range(5):
    ...     rates.append(sgd.groups[0]["lr"])
    ...     schedule.step()
    >>> rates
    [0.5, 0.75, 1.0, 0.5, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int,
        start_factor: float = 1 / 3,
        then: Schedule | None = None,
    ) -> None:
        if then is not None and (not isinstance(then, Schedule) or then.optimizer is not optimizer):
            expected = "a Schedule of the same optimizer"
            raise ArgumentError("LinearWarmup", "then", expected, type(then).__name__)
        self.then = then
        super().__init__(optimizer, start_factor, 1.0, total_iters)
        if then is not None:
            self.base_rates = then.base_rates  # though `then` may have a warm-up of its own

    def go_on(self, metric: float | None) -> None:
        """Go on by one; after the warm-up this is a step of `then`, which gets the metric."""
        self.steps += 1
        if self.then is not None and self.steps > self.total_iters:
            self.then.step(metric)
        else:
            self.apply()

    def apply(self) -> None:
        if self.then is not None and self.steps >= self.total_iters:
            self.then.apply()
        else:
            super().apply()

    def state_dict(self) -> dict[str, Any]:
        then = None if self.then is None else self.then.state_dict()
        return {**super().state_dict(), "then": then}

    def require_own(self, saved: Any) -> None:
        super().require_own(saved)
        if self.then is not None:
            self.then.require_own(saved["then"])
        elif saved["then"] is not None:
            raise CheckpointError(self.op, "saved", "nothing after the warm-up", "then")

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        self.require_own(saved)
        if self.then is not None:
            self.then.load_state_dict(saved["then"])
        super().load_state_dict(saved)
