"""SequentialLR: one schedule after the other, each counting its own steps from 0."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from tinygraph.checks import whole
from tinygraph.errors import ArgumentError, CheckpointError
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
