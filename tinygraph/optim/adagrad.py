"""Adagrad: the gradient divided by the root of the sum of its squares so far.

g  = grad + weight_decay * value
s  = s + g^2                                    initial_accumulator_value at first
value = value - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)              t = 1, 2, ...
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np

from tinygraph.engine import Array, Parameter
from tinygraph.optim.members import Group
from tinygraph.optim.optimizer import Optimizer
from tinygraph.optim.options import Options, hyper_parameters


class Adagrad(Optimizer):
    """Adagrad.

    Parameters
    ----------
    params : iterable
        Parameters, pairs (name, Parameter), or groups; see `Optimizer`.
    lr : float
        Learning rate.
    lr_decay : float
        By how much the learning rate falls: after t steps it is divided by 1 + t * lr_decay.
    weight_decay : float
        Factor of the L2 penalty, whose gradient is added to the gradient.
    initial_accumulator_value : float
        Where the sum of squares starts.
    eps : float
        Added to the denominator.
    **options
        `maximize`, for steps that go up; `foreach`, `fused` and `capturable`, which change nothing.

    References
    ----------
    Duchi, Hazan, Singer, "Adaptive subgradient methods for online learning and stochastic
    optimization", JMLR 12, 2011.
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Adagrad.html

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> w = tg.Parameter([1.0])
    >>> adagrad = tg.optim.Adagrad([w], lr=0.5, initial_accumulator_value=16.0)
    >>> w.grad = np.array([3.0], np.float32)
    >>> adagrad.step()  # s = 16 + 9, so 1 - 0.5 * 3 / 5
    >>> w.value
    array([0.7], dtype=float32)
    """

    arrays = ("sum",)
    numbers = ("step",)
    nonnegative = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")
    kernel = "adagrad"
    scratch_arrays = 2

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
            **hyper_parameters(type(self), options),
        )

    def start(self, group: Group) -> dict[str, float]:
        return {"step": 0, "sum": group["initial_accumulator_value"]}

    def changing(self, group: Group, state: dict[str, Any]) -> tuple[float, ...]:
        """The learning rate of one more step."""
        state["step"] += 1
        return (group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"]),)

    def kernel_arguments(self, group: Group, changing: Array) -> tuple[Any, ...]:
        return changing, group["eps"], group["weight_decay"]

    def prepare(self, group: Group, parameter: Parameter) -> Any:
        decay = self.scalar_or_none(group["weight_decay"], parameter)
        rate = self.scalar(group["lr"], parameter)  # changes with t
        return group, rate, self.scalar(group["eps"], parameter), decay

    def update(
        self, value: Array, grad: Array, state: dict[str, Any], scratch: list[Array], hyper: Any
    ) -> None:
        group, rate, eps, decay = hyper
        s, d = state["sum"], scratch[0]
        g = self.penalized(value, grad, decay, out=scratch[1])
        rate[...] = self.changing(group, state)[0]
        np.multiply(g, g, out=d)
        np.add(s, d, out=s)
        np.sqrt(s, out=d)
        np.add(d, eps, out=d)
        np.divide(g, d, out=d)
        np.multiply(d, rate, out=d)
        np.subtract(value, d, out=value)
