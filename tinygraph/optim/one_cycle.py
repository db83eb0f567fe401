"""OneCycleLR: up to a maximum and down far below the start, in one training of known length.

    t                        0 ... p*T - 1 ... T - 1             p = pct_start, T = total_steps
    lr        max / div_factor  ->  max  ->  max / div_factor / final_div_factor
    momentum  max_momentum  ->  base_momentum  ->  max_momentum

Each arrow is half a period of a cosine, or a line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tinygraph.base import ArgumentError, number, one_of, whole
from tinygraph.optim.optimizer import Optimizer
from tinygraph.optim.schedules import Schedule


class OneCycleLR(Schedule):
    """A learning rate that rises and falls once, `step` by batch; the momentum goes the other way.

    Parameters
    ----------
    optimizer : Optimizer
    max_lr : float, or one for each group
    total_steps : int, optional
        Or `epochs` and `steps_per_epoch`, whose product it is.
    pct_start : float
        The share of the steps in which the rate rises.
    anneal_strategy : {"cos", "linear"}
    cycle_momentum : bool
        Whether "momentum", or the first of "betas", goes from `max_momentum` to `base_momentum`
        and back.
    base_momentum, max_momentum : float
    div_factor, final_div_factor : float
        The rate at first is max_lr / div_factor, the last one that / final_div_factor.
    three_phase : bool
        Whether it falls to the rate of the beginning first, as long as it rose.
    last_epoch : int
        As for `Schedule`.

    Raises
    ------
    ArgumentError
        No length, an optimiser without momentum, a setting out of range; a step too many.

    References
    ----------
    Smith, Topin, "Super-convergence: very fast training of neural networks using large learning
    rates", arXiv:1708.07120.
    https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.OneCycleLR.html

    Examples
    --------
    >>> import tinygraph as tg
    >>> sgd = tg.optim.SGD([tg.Parameter([1.0])], lr=1.0, momentum=0.9)
    >>> schedule, rates = tg.optim.OneCycleLR(sgd, max_lr=1.0, total_steps=10), []
    >>> for batch in range(9):
    ...     schedule.step()
    ...     rates.append(round(schedule.get_last_lr()[0], 2))
    >>> rates
    [0.52, 1.0, 0.95, 0.81, 0.61, 0.39, 0.19, 0.05, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        super().__init__(optimizer, last_epoch)
        if total_steps is None and epochs is not None and steps_per_epoch is not None:
            total_steps = whole(self.op, "epochs", epochs) * whole(
                self.op, "steps_per_epoch", steps_per_epoch
            )
        if total_steps is None:
            expected = "total_steps, or epochs and steps_per_epoch"
            raise ArgumentError(self.op, "total_steps", expected, None)
        self.total_steps = whole(self.op, "total_steps", total_steps)
        self.strategy = one_of(self.op, "anneal_strategy", anneal_strategy, ("cos", "linear"))
        groups = len(self.base_rates)
        highest = list(max_lr) if isinstance(max_lr, Sequence) else [max_lr] * groups
        if len(highest) != groups:
            expected = f"one number, or {groups}, one for each group"
            raise ArgumentError(self.op, "max_lr", expected, max_lr)
        start = number(self.op, "div_factor", div_factor, above=0)
        end = number(self.op, "final_div_factor", final_div_factor, above=0)
        tops = [number(self.op, "max_lr", rate, 0) for rate in highest]
        self.rates = [(top / start, top, top / start / end) for top in tops]
        self.momenta = (
            number(self.op, "max_momentum", max_momentum, 0, 1),
            number(self.op, "base_momentum", base_momentum, 0, 1),
        )
        self.key = _momentum_key(self.op, optimizer) if cycle_momentum else None
        self.ends = self._phases(number(self.op, "pct_start", pct_start, 0, 1), three_phase)
        self.apply()

    def _phases(self, share: float, three: bool) -> list[float]:
        """The steps at which the way up, the way back if there is one, and the end are reached."""
        up = share * self.total_steps - 1
        return [up, 2 * up, self.total_steps - 1] if three else [up, self.total_steps - 1]

    def apply(self) -> None:
        if self.steps >= self.total_steps:
            expected = f"at most {self.total_steps - 1} steps, as total_steps says"
            raise ArgumentError(self.op, "step", expected, f"step {self.steps}")
        most, least = self.momenta
        for group, (start, top, end) in zip(self.optimizer.groups, self.rates, strict=True):
            group["lr"] = self._at([start, top, end])
            if self.key == "momentum":
                group["momentum"] = self._at([most, least, most])
            elif self.key == "betas":
                group["betas"] = (self._at([most, least, most]), *group["betas"][1:])

    def _at(self, corners: list[float]) -> float:
        """Where a number stands that goes from the first corner by the second to the third."""
        if len(self.ends) == 3:
            corners = [*corners[:2], corners[0], corners[2]]
        begin = 0.0
        for i, end in enumerate(self.ends):
            if self.steps <= end or i == len(self.ends) - 1:
                share = (self.steps - begin) / (end - begin) if end > begin else 1.0
                return self._between(corners[i], corners[i + 1], share)
            begin = end
        return corners[-1]

    def _between(self, a: float, b: float, share: float) -> float:
        if self.strategy == "linear":
            return a + (b - a) * share
        return b + (a - b) / 2 * (1 + math.cos(math.pi * share))


def _momentum_key(op: str, optimizer: Optimizer) -> str:
    for key in ("betas", "momentum"):
        if all(key in group for group in optimizer.groups):
            return key
    raise ArgumentError(
        op, "cycle_momentum", "an optimizer with momentum or betas", optimizer.op, "pass False"
    )
