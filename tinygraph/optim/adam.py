"""Adam: running means of the gradient and of its square, corrected for their start at 0.

    g  = grad + weight_decay * value
    m  = beta1 * m + (1 - beta1) * g                0 at first
    v  = beta2 * v + (1 - beta2) * g^2              0 at first; amsgrad: then the largest v so far
    value = value - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)       t = 1, 2, ...

It is computed as value - a * m / (sqrt(v) + eps * r) with r = sqrt(1 - beta2^t) and
a = lr * r / (1 - beta1^t), which spares two passes over the array.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np

from tinygraph.engine import Array, Parameter
from tinygraph.optim.members import Group
from tinygraph.optim.optimizer import Optimizer
from tinygraph.optim.options import Options, hyper_parameters


class Adam(Optimizer):
    """Adam.

    Parameters
    ----------
    params : iterable
        Parameters, pairs (name, Parameter), or groups; see `Optimizer`.
    lr : float
        Learning rate: about the size of one step of one weight.
    betas : (float, float)
        How much is kept of the running means of the gradient and of its square; 0 to below 1.
    eps : float
        Added to the denominator.
    weight_decay : float
        Factor of the L2 penalty, whose gradient is added to the gradient; see `AdamW`.
    amsgrad : bool
        Divide by the largest running mean of the square so far.
    **options
        `maximize`, for steps that go up; `foreach`, `fused` and `capturable`, which change nothing.

    References
    ----------
    Kingma, Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1.
    Reddi, Kale, Kumar, "On the convergence of Adam and beyond", ICLR 2018 (amsgrad).
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> w = tg.Parameter([1.0, 1.0])
    >>> adam = tg.optim.Adam([w], lr=0.25)
    >>> w.grad = np.array([100.0, -0.01], np.float32)
    >>> adam.step()  # the first step is lr in the direction of the gradient's sign
    >>> w.value.round(4)
    array([0.75, 1.25], dtype=float32)
    """

    arrays = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    numbers = ("step",)
    nonnegative = ("lr", "eps", "weight_decay")
    fractions = pairs = ("betas",)
    kernel = "adam"
    scratch_arrays = 2

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            **hyper_parameters(type(self), options),
        )

    def prepare(self, group: Group, parameter: Parameter) -> Any:
        beta1, beta2 = group["betas"]
        numbers = (beta1, 1 - beta1, beta2, 1 - beta2, 0.0, 0.0)  # the last two change with t
        decay = self.scalar_or_none(group["weight_decay"], parameter)
        return group, [self.scalar(number, parameter) for number in numbers], decay

    def start(self, group: Group) -> dict[str, float]:
        largest = {"max_exp_avg_sq": 0.0} if group["amsgrad"] else {}
        return {"step": 0, "exp_avg": 0.0, "exp_avg_sq": 0.0, **largest}

    def changing(self, group: Group, state: dict[str, Any]) -> tuple[float, ...]:
        """Learning rate and eps of one more step, with the corrections for the start at 0."""
        t = state["step"] = state["step"] + 1
        root = math.sqrt(1 - group["betas"][1] ** t)
        return group["lr"] * root / (1 - group["betas"][0] ** t), group["eps"] * root

    def kernel_arguments(self, group: Group, changing: Array) -> tuple[Any, ...]:
        beta1, beta2 = group["betas"]
        return beta1, 1 - beta1, beta2, 1 - beta2, changing, group["weight_decay"]

    def decayed(self, value: Array, grad: Array, decay: Array | None, out: Array) -> Array:
        """The gradient that the step follows, with its weight decay; `out` is scratch."""
        return self.penalized(value, grad, decay, out=out)

    def update(
        self, value: Array, grad: Array, state: dict[str, Any], scratch: list[Array], hyper: Any
    ) -> None:
        group, (beta1, fresh1, beta2, fresh2, size, eps), decay = hyper
        g, d = self.decayed(value, grad, decay, scratch[-1]), scratch[0]
        m, v = state["exp_avg"], state["exp_avg_sq"]
        np.multiply(g, fresh1, out=d)
        np.multiply(m, beta1, out=m)
        np.add(m, d, out=m)
        np.multiply(g, g, out=d)
        np.multiply(d, fresh2, out=d)
        np.multiply(v, beta2, out=v)
        np.add(v, d, out=v)
        if group["amsgrad"]:
            v = np.maximum(state["max_exp_avg_sq"], v, out=state["max_exp_avg_sq"])
        size[...], eps[...] = self.changing(group, state)[:2]
        np.sqrt(v, out=d)
        np.add(d, eps, out=d)
        np.divide(m, d, out=d)
        np.multiply(d, size, out=d)
        np.subtract(value, d, out=value)
