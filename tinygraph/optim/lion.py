"""Lion: the sign of an interpolation between the gradient and its running mean.

    c  = beta1 * m + (1 - beta1) * grad
    value = value - lr * weight_decay * value - lr * sign(c)            sign(0) = 0
    m  = beta2 * m + (1 - beta2) * grad             0 at first

Each weight moves by lr at each step, so that the paper takes a rate three to ten times less than
that of AdamW, and as much more weight decay.  One array is kept, where Adam keeps two.

Source: Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023, algorithm 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np

from tinygraph.engine import Array, Parameter
from tinygraph.optim.members import Group
from tinygraph.optim.optimizer import Optimizer
from tinygraph.optim.options import Options, hyper_parameters


class Lion(Optimizer):
    """Lion, evolved sign momentum.

    Parameters
    ----------
    params : iterable
        Parameters, pairs (name, Parameter), or groups; see `Optimizer`.
    lr : float
        Learning rate: the size of each step of each weight.
    betas : (float, float)
        How much of the running mean is in the direction, and is kept; 0 to below 1.
    weight_decay : float
        Each step takes this share, times the learning rate, off every weight.
    **options
        `maximize`, for steps that go up; `foreach`, `fused` and `capturable`, which change nothing.

    References
    ----------
    Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> w = tg.Parameter([1.0, 1.0, 1.0])
    >>> lion = tg.optim.Lion([w], lr=0.25)
    >>> w.grad = np.array([100.0, -0.01, 0.0], np.float32)
    >>> lion.step()
    >>> w.value
    array([0.75, 1.25, 1.  ], dtype=float32)
    """

    arrays = ("exp_avg",)
    nonnegative = ("lr", "weight_decay")
    fractions = pairs = ("betas",)
    kernel = "lion"
    scratch_arrays = 2

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            betas=betas,
            weight_decay=weight_decay,
            **hyper_parameters(type(self), options),
        )

    def start(self, group: Group) -> dict[str, float]:
        return {"exp_avg": 0.0}

    def changing(self, group: Group, state: dict[str, Any]) -> tuple[float, ...]:
        """The learning rate, and what is left of a value after its decay."""
        return group["lr"], 1 - group["lr"] * group["weight_decay"]

    def kernel_arguments(self, group: Group, changing: Array) -> tuple[Any, ...]:
        beta1, beta2 = group["betas"]
        return beta1, 1 - beta1, beta2, 1 - beta2, changing

    def prepare(self, group: Group, parameter: Parameter) -> Any:
        beta1, beta2 = group["betas"]
        lr, remaining = self.changing(group, {})
        numbers = (beta1, 1 - beta1, beta2, 1 - beta2, lr)
        decayed = None if remaining == 1 else self.scalar(remaining, parameter)
        return [self.scalar(number, parameter) for number in numbers], decayed

    def update(
        self, value: Array, grad: Array, state: dict[str, Any], scratch: list[Array], hyper: Any
    ) -> None:
        (beta1, fresh1, beta2, fresh2, lr), remaining = hyper
        m, (d, part) = state["exp_avg"], scratch
        np.multiply(m, beta1, out=d)
        np.multiply(grad, fresh1, out=part)
        np.add(d, part, out=d)
        np.sign(d, out=d)
        np.multiply(d, lr, out=d)
        if remaining is not None:
            np.multiply(value, remaining, out=value)
        np.subtract(value, d, out=value)
        np.multiply(m, beta2, out=m)
        np.multiply(grad, fresh2, out=part)
        np.add(m, part, out=m)
