"""Schedules: the learning rate as a function of how often `step` was called, t = 0, 1, 2, ...

    StepLR              lr = base * gamma^(t // step_size)
    CosineAnnealingLR   lr = eta_min + (base - eta_min) * (1 + cos(pi * t / T_max)) / 2
    ReduceLROnPlateau   lr = max(lr * factor, min_lr) when a metric has stopped to improve

`base` is a group's learning rate when the optimiser's first schedule was made.  All but the last
are closed forms: a rate does not depend on the rates before it.  More of them stand in decays.py,
one_cycle.py and chains.py.  What a step is, an epoch or a batch, the caller says
by calling `schedule.step()` after each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any

from tinygraph.base import ArgumentError, CheckpointError, number, one_of, whole
from tinygraph.engine import here
from tinygraph.optim.optimizer import Optimizer


class Schedule:
    """The base of schedules in closed form: a subclass writes `rate(base, t)`.

    Parameters
    ----------
    optimizer : Optimizer
        Its groups' learning rates are the base rates.
    last_epoch : int
        How many steps lie behind, less 1, for a run that goes on; -1 for one that begins.  The base
        rates are the "initial_lr" of the groups then, or those of an earlier schedule.

    Attributes
    ----------
    steps, last_epoch : int
        How often `step` was called.
    base_rates : list of float
        One for each group.

    Examples
    --------
    >>> import tinygraph as tg
    >>> class Halving(tg.optim.Schedule):
    ...     def rate(self, base, t):
    ...         return base / 2**t
    >>> sgd = tg.optim.SGD([tg.Parameter([1.0])], lr=1.0)
    >>> schedule = Halving(sgd)
    >>> schedule.step()
    >>> sgd.groups[0]["lr"]
    0.5
    """

    numbers: tuple[str, ...] = ()  # attributes that are saved beside `steps` and `base_rates`

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.op = type(self).__name__
        if not isinstance(optimizer, Optimizer) or not all("lr" in g for g in optimizer.groups):
            raise ArgumentError(
                self.op, "optimizer", "an Optimizer with a learning rate", type(optimizer).__name__
            )
        self.optimizer = optimizer
        self.steps = whole(self.op, "last_epoch", last_epoch, -1) + 1
        if self.steps and not optimizer.knows_base_rates():
            expected = "-1, or 'initial_lr' in each group of the optimizer: its rate at first"
            way_out = "schedule.load_state_dict(saved) goes on where state_dict() was taken"
            raise ArgumentError(self.op, "last_epoch", expected, last_epoch, way_out)
        self.base_rates = optimizer.base_rates()

    @property
    def last_epoch(self) -> int:
        """`steps`, under PyTorch's name."""
        return self.steps

    def rate(self, base: float, t: int) -> float:
        """The learning rate after t steps, for a group whose rate was `base` at first."""
        raise ArgumentError(f"{self.op}: no rate. Way out: define rate(self, base, t) in the class")

    def get_last_lr(self) -> list[float]:
        """The learning rates as they are now, one for each group."""
        return [float(group["lr"]) for group in self.optimizer.groups]

    def step(self, metric: float | None = None) -> None:
        """Go on by one epoch (or batch), and set the learning rates of all groups.

        Only `ReduceLROnPlateau` looks at the metric.
        """
        value = None if metric is None else float(metric)
        here.top.do(partial(self.go_on, value), "the schedule's step")

    def go_on(self, metric: float | None) -> None:
        """What `step` does."""
        self.steps += 1
        self.apply()

    def begin(self) -> None:
        """Set the learning rates of a step after 0, at which they are the base rates."""
        if self.steps:
            self.apply()

    def apply(self) -> None:
        """Set the learning rates that belong to the present number of steps."""
        for group, base in zip(self.optimizer.groups, self.base_rates, strict=True):
            group["lr"] = self.rate(base, self.steps)

    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed run needs, as plain numbers."""
        own = {name: getattr(self, name) for name in self.numbers}
        return {"schedule": self.op, "steps": self.steps, "base_rates": [*self.base_rates], **own}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken, and set the learning rates.

        Settings such as `step_size` are not in there: they are those of this schedule.

        Raises
        ------
        CheckpointError
            The state is another class's, or of another number of groups.  Nothing was changed.
        """
        self.require_own(saved)
        for name in ("steps", "base_rates", *self.numbers):
            value = saved[name]
            setattr(self, name, list(value) if isinstance(value, (list, tuple)) else value)
        self.apply()

    def require_own(self, saved: Any) -> None:
        """Raise CheckpointError unless `saved` came from a schedule like this one."""
        mine = self.state_dict()
        if not isinstance(saved, Mapping) or set(saved) != set(mine):
            got = sorted(map(str, saved)) if isinstance(saved, Mapping) else type(saved).__name__
            raise CheckpointError(self.op, "saved", f"the keys {sorted(mine)}", got)
        faults = [fault for name in sorted(mine) if (fault := self._fault(name, saved[name]))]
        if faults:
            raise CheckpointError(self.op, "saved", *faults[0])
        groups = {len(saved[name]) for name in ("base_rates", "rates") if name in mine}
        if saved["schedule"] != self.op or groups != {len(self.base_rates)}:
            raise CheckpointError(
                self.op,
                "saved",
                f"a {self.op} of {len(self.base_rates)} groups",
                f"a {saved['schedule']} of {', '.join(map(str, sorted(groups)))}",
            )

    def _fault(self, name: str, value: Any) -> tuple[str, str] | None:
        """What a piece of state is expected to be, and what it is; None where it is that."""
        got = f"{value!r:.60}"
        if name == "schedule":
            return None if isinstance(value, str) else ("schedule: a name", got)
        if name == "each":
            return None if isinstance(value, (list, tuple)) else ("each: a list of states", got)
        if name in ("base_rates", "rates"):
            several = isinstance(value, (list, tuple)) and all(map(_is_rate, value))
            return None if several else (f"{name}: finite numbers of at least 0", got)
        if name == "best":
            number = value is None or (isinstance(value, Real) and not isinstance(value, bool))
            return None if number else ("best: a number, or none", got)
        if name not in ("steps", "bad_steps", "cooling"):
            return None  # of a class of the user's own
        count = isinstance(value, Integral) and not isinstance(value, bool)
        return None if count and 0 <= int(value) < 2**63 else (f"{name}: an int of at least 0", got)


def _is_rate(value: Any) -> bool:
    real = isinstance(value, Real) and not isinstance(value, bool)
    return real and math.isfinite(value) and value >= 0


class StepLR(Schedule):
    """The learning rate times `gamma` after every `step_size` steps.

    Parameters
    ----------
    optimizer : Optimizer
    step_size : int
    gamma : float
    last_epoch : int
        As for `Schedule`.

    References
    ----------
    https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.StepLR.html

    Examples
    --------
    >>> import tinygraph as tg
    >>> sgd = tg.optim.SGD([tg.Parameter([1.0])], lr=0.5)
    >>> schedule, rates = tg.optim.StepLR(sgd, step_size=2, gamma=0.5), []
    >>> for epoch in range(5):
    ...     rates.append(sgd.groups[0]["lr"])
    ...     schedule.step()
    >>> rates
    [0.5, 0.5, 0.25, 0.25, 0.125]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        super().__init__(optimizer, last_epoch)
        self.step_size = whole(self.op, "step_size", step_size)
        self.gamma = number(self.op, "gamma", gamma, 0)
        self.begin()

    def rate(self, base: float, t: int) -> float:
        return base * self.gamma ** (t // self.step_size)


class CosineAnnealingLR(Schedule):
    """A cosine from the base rate down to `eta_min`, and up again after that.

    Parameters
    ----------
    optimizer : Optimizer
    T_max : int
        How many steps the way down takes; the way up takes as many.
    eta_min : float
    last_epoch : int
        As for `Schedule`.

    References
    ----------
    Loshchilov, Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017.
    https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CosineAnnealingLR.html

    Examples
    --------
    >>> import tinygraph as tg
    >>> sgd = tg.optim.SGD([tg.Parameter([1.0])], lr=1.0)
    >>> schedule = tg.optim.CosineAnnealingLR(sgd, T_max=2)
    >>> schedule.step()
    >>> round(sgd.groups[0]["lr"], 6)
    0.5
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        super().__init__(optimizer, last_epoch)
        self.T_max = whole(self.op, "T_max", T_max)
        self.eta_min = number(self.op, "eta_min", eta_min, 0)
        self.begin()

    def rate(self, base: float, t: int) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * t / self.T_max)) / 2


class ReduceLROnPlateau(Schedule):
    """The learning rate times `factor` when a metric has not improved for more than `patience`.

    Parameters
    ----------
    optimizer : Optimizer
    mode : {"min", "max"}
        Whether a smaller or a larger metric is better.
    factor : float
        Below 1.
    patience : int
        How many steps without an improvement are borne.
    threshold : float
        By how much a metric must be better than the best, to count as an improvement.
    threshold_mode : {"rel", "abs"}
        Whether the threshold is a share of the best metric or a difference.
    cooldown : int
        How many steps after a reduction are not counted.
    min_lr : float
        No rate goes below it.
    eps : float
        A change of a rate by no more than this is not made.

    References
    ----------
    https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ReduceLROnPlateau.html

    Examples
    --------
    >>> import tinygraph as tg
    >>> sgd = tg.optim.SGD([tg.Parameter([1.0])], lr=0.5)
    >>> schedule = tg.optim.ReduceLROnPlateau(sgd, factor=0.5, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     schedule.step(loss)
    >>> sgd.groups[0]["lr"]
    0.25
    """

    numbers = ("rates", "best", "bad_steps", "cooling")

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        super().__init__(optimizer)
        self.mode = one_of(self.op, "mode", mode, ("min", "max"))
        self.threshold_mode = one_of(self.op, "threshold_mode", threshold_mode, ("rel", "abs"))
        self.factor = number(self.op, "factor", factor, 0, below=1)
        self.patience = int(number(self.op, "patience", patience, 0))
        self.threshold = number(self.op, "threshold", threshold, 0)
        self.cooldown = int(number(self.op, "cooldown", cooldown, 0))
        self.min_lr = number(self.op, "min_lr", min_lr, 0)
        self.eps = number(self.op, "eps", eps, 0)
        self.rates = [*self.base_rates]
        self.best: float | None = None
        self.bad_steps = self.cooling = 0

    def go_on(self, metric: float | None) -> None:
        """Look at the metric of one more epoch."""
        if metric is None:
            raise ArgumentError(self.op, "metric", "a number", "none", "step(metric)")
        self.steps += 1
        if self.best is None or self._is_better(metric, self.best):
            self.best, self.bad_steps = metric, 0
        else:
            self.bad_steps += 1
        if self.cooling:
            self.cooling, self.bad_steps = self.cooling - 1, 0
        if self.bad_steps > self.patience:
            self.rates = [self._reduced(rate) for rate in self.rates]
            self.cooling, self.bad_steps = self.cooldown, 0
            self.apply()

    def apply(self) -> None:
        for group, rate in zip(self.optimizer.groups, self.rates, strict=True):
            group["lr"] = rate

    def _is_better(self, value: float, best: float) -> bool:
        margin = self.threshold * (abs(best) if self.threshold_mode == "rel" else 1.0)
        return value < best - margin if self.mode == "min" else value > best + margin

    def _reduced(self, rate: float) -> float:
        new = max(rate * self.factor, self.min_lr)
        return new if rate - new > self.eps else rate
