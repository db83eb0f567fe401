"""Schedules of one line each, in closed form (see schedules.py):

    LambdaLR        lr = base * f(t)
    MultiStepLR     lr = base * gamma^(how many milestones are at t or before)
    ExponentialLR   lr = base * gamma^t
    LinearLR        lr = base * (start + (end - start) * min(t / total_iters, 1))
    ConstantLR      lr = base * factor up to total_iters, then base
    PolynomialLR    lr = base * (1 - min(t / total_iters, 1))^power

Source: https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tinygraph.base import ArgumentError, number, whole
from tinygraph.optim.optimizer import Optimizer
from tinygraph.optim.schedules import Schedule


class LambdaLR(Schedule):
    """The base rate times a function of the number of steps.

    Parameters
    ----------
    optimizer : Optimizer
    lr_lambda : callable, or one for each group
        From t = 0, 1, 2, ... to a factor.  It is not saved.
    last_epoch : int
        As for `Schedule`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> sgd = tg.optim.SGD([tg.Parameter([1.0])], lr=0.5)
    >>> schedule = tg.optim.LambdaLR(sgd, lambda t: 1 / (1 + t))
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        super().__init__(optimizer, last_epoch)
        groups = len(self.base_rates)
        several = lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        factors: list[Any] = [*several]
        if len(factors) != groups or not all(map(callable, factors)):
            expected = f"a function, or {groups}, one for each group"
            raise ArgumentError(self.op, "lr_lambda", expected, lr_lambda)
        self.factors = factors
        self.apply()

    def apply(self) -> None:
        groups = zip(self.optimizer.groups, self.base_rates, self.factors, strict=True)
        for group, base, factor in groups:
            group["lr"] = base * float(factor(self.steps))


class MultiStepLR(Schedule):
    """The learning rate times `gamma` at each of some steps.

    Parameters
    ----------
    optimizer : Optimizer
    milestones : iterable of int
        Numbers of steps; one that comes twice counts twice.
    gamma : float
    last_epoch : int
        As for `Schedule`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> sgd = tg.optim.SGD([tg.Parameter([1.0])], lr=0.5)
    >>> schedule, rates = tg.optim.MultiStepLR(sgd, milestones=[1, 3], gamma=0.5), []
    >>> for epoch in range(4):
    ...     rates += schedule.get_last_lr()
    ...     schedule.step()
    >>> rates
    [0.5, 0.25, 0.25, 0.125]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        super().__init__(optimizer, last_epoch)
        self.milestones = sorted(whole(self.op, "milestones", m, 0) for m in milestones)
        self.gamma = number(self.op, "gamma", gamma, 0)
        if 0 in self.milestones:
            self.apply()
        self.begin()

    def rate(self, base: float, t: int) -> float:
        return base * self.gamma ** bisect_right(self.milestones, t)


class ExponentialLR(Schedule):
    """The learning rate times `gamma` at every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        super().__init__(optimizer, last_epoch)
        self.gamma = number(self.op, "gamma", gamma, 0)
        self.begin()

    def rate(self, base: float, t: int) -> float:
        return base * self.gamma**t


class LinearLR(Schedule):
    """A straight line between two factors of the base rate, and what it has come to after that."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        super().__init__(optimizer, last_epoch)
        self.start_factor = number(self.op, "start_factor", start_factor, 0, 1)
        self.end_factor = number(self.op, "end_factor", end_factor, 0, 1)
        self.total_iters = whole(self.op, "total_iters", total_iters)
        self.apply()

    def rate(self, base: float, t: int) -> float:
        share = min(t / self.total_iters, 1.0)
        return base * (self.start_factor + (self.end_factor - self.start_factor) * share)


class ConstantLR(Schedule):
    """A factor of the base rate for some steps, then the base rate."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        super().__init__(optimizer, last_epoch)
        self.factor = number(self.op, "factor", factor, 0, 1)
        self.total_iters = whole(self.op, "total_iters", total_iters)
        self.apply()

    def rate(self, base: float, t: int) -> float:
        return base * (self.factor if t < self.total_iters else 1.0)


class PolynomialLR(Schedule):
    """A power of the share of steps that are left, down to 0."""

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        super().__init__(optimizer, last_epoch)
        self.total_iters = whole(self.op, "total_iters", total_iters)
        self.power = number(self.op, "power", power, 0)
        self.begin()

    def rate(self, base: float, t: int) -> float:
        return base * float((1 - min(t / self.total_iters, 1.0)) ** self.power)
