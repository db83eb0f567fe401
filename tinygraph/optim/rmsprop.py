"""RMSprop: the gradient divided by the root of a running mean of its square.

g  = grad + weight_decay * value
v  = alpha * v + (1 - alpha) * g^2              0 at first
a  = alpha * a + (1 - alpha) * g                0 at first; centered only, else a stays 0
d  = g / (sqrt(v - a^2) + eps)
b  = momentum * b + d                           0 at first; d takes its value (momentum only)
value = value - lr * d
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np

from tinygraph.engine import Array, Parameter
from tinygraph.optim.members import Group
from tinygraph.optim.optimizer import Optimizer
from tinygraph.optim.options import Options, hyper_parameters


class RMSprop(Optimizer):
    """RMSprop.

    Parameters
    ----------
    params : iterable
        Parameters, pairs (name, Parameter), or groups; see `Optimizer`.
    lr : float
        Learning rate.
    alpha : float
        How much of the running means is kept, from 0 to below 1.
    eps : float
        Added to the denominator.
    weight_decay : float
        Factor of the L2 penalty, whose gradient is added to the gradient.
    momentum : float
        How much of the last step is kept.
    centered : bool
        Divide by an estimate of the standard deviation instead of the root mean square.
    **options
        `maximize`, for steps that go up; `foreach`, `fused` and `capturable`, which change nothing.

    References
    ----------
    Tieleman, Hinton, "Lecture 6.5: rmsprop", Neural networks for machine learning, 2012.
    Graves, "Generating sequences with recurrent neural networks", arXiv:1308.0850 (centered).
    https://docs.pytorch.org/docs/stable/generated/torch.optim.RMSprop.html

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> w = tg.Parameter([1.0])
    >>> rmsprop = tg.optim.RMSprop([w], lr=0.25, alpha=0.75, eps=0.0)
    >>> w.grad = np.array([4.0], np.float32)
    >>> rmsprop.step()  # v = 4, d = 2
    >>> w.value
    array([0.5], dtype=float32)
    """

    arrays = ("square_avg", "grad_avg", "momentum_buffer")
    nonnegative = ("lr", "eps", "weight_decay", "momentum")
    fractions = ("alpha",)
    kernel = "rmsprop"
    scratch_arrays = 2

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            alpha=alpha,
            eps=eps,
            weight_decay=weight_decay,
            momentum=momentum,
            centered=centered,
            **hyper_parameters(type(self), options),
        )

    def start(self, group: Group) -> dict[str, float]:
        used = {
            "square_avg": True,
            "grad_avg": group["centered"],
            "momentum_buffer": group["momentum"],
        }
        return {key: 0.0 for key, is_used in used.items() if is_used}

    def kernel_arguments(self, group: Group, changing: Array) -> tuple[Any, ...]:
        alpha, eps = group["alpha"], group["eps"]
        return changing, alpha, 1 - alpha, eps, group["weight_decay"], group["momentum"]

    def prepare(self, group: Group, parameter: Parameter) -> Any:
        numbers = (group["lr"], group["alpha"], 1 - group["alpha"], group["eps"])
        return (
            [self.scalar(number, parameter) for number in numbers],
            self.scalar_or_none(group["weight_decay"], parameter),
            self.scalar_or_none(group["momentum"], parameter),
            group["centered"],
        )

    def update(
        self, value: Array, grad: Array, state: dict[str, Any], scratch: list[Array], hyper: Any
    ) -> None:
        (lr, alpha, fresh, eps), decay, momentum, centered = hyper
        d, other = scratch
        g = self.penalized(value, grad, decay, out=other)
        v = state["square_avg"]
        np.multiply(g, g, out=d)
        np.multiply(d, fresh, out=d)
        np.multiply(v, alpha, out=v)
        np.add(v, d, out=v)
        if centered:
            a = state["grad_avg"]
            np.multiply(g, fresh, out=d)
            np.multiply(a, alpha, out=a)
            np.add(a, d, out=a)
            np.multiply(a, a, out=d)
            np.subtract(v, d, out=d)
            np.sqrt(d, out=d)
        else:
            np.sqrt(v, out=d)
        np.add(d, eps, out=d)
        np.divide(g, d, out=d)
        if momentum is not None:
            b = state["momentum_buffer"]
            np.multiply(b, momentum, out=b)
            np.add(b, d, out=b)
            np.multiply(b, lr, out=d)
        else:
            np.multiply(d, lr, out=d)
        np.subtract(value, d, out=value)
