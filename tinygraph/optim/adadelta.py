"""ADADELTA: steps as large as earlier steps were, in units that cancel.

g  = grad + weight_decay * value
v  = rho * v + (1 - rho) * g^2                  running mean of squared gradients, 0 at first
d  = sqrt(u + eps) / sqrt(v + eps) * g
u  = rho * u + (1 - rho) * d^2                  running mean of squared steps, 0 at first
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


class Adadelta(Optimizer):
    """ADADELTA.

    Parameters
    ----------
    params : iterable
        Parameters, pairs (name, Parameter), or groups; see `Optimizer`.
    lr : float
        Factor of the step; 1 is the published method.
    rho : float
        How much of the running means is kept, from 0 to below 1.
    eps : float
        Added to the running means; sqrt(eps) is the size of the first steps.
    weight_decay : float
        Factor of the L2 penalty, whose gradient is added to the gradient.
    **options
        `maximize`, for steps that go up; `foreach`, `fused` and `capturable`, which change nothing.

    References
    ----------
    Zeiler, "ADADELTA: an adaptive learning rate method", arXiv:1212.5701.
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Adadelta.html

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> w = tg.Parameter([1.0])
    >>> adadelta = tg.optim.Adadelta([w], rho=0.75, eps=0.25)
    >>> w.grad = np.array([2.0], np.float32)
    >>> adadelta.step()  # v = 1, d = 0.5 / sqrt(1.25) * 2
    >>> w.value.round(4)
    array([0.1056], dtype=float32)
    """

    arrays = ("square_avg", "acc_delta")
    nonnegative = ("lr", "eps", "weight_decay")
    fractions = ("rho",)
    kernel = "adadelta"
    scratch_arrays = 2

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            rho=rho,
            eps=eps,
            weight_decay=weight_decay,
            **hyper_parameters(type(self), options),
        )

    def start(self, group: Group) -> dict[str, float]:
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def kernel_arguments(self, group: Group, changing: Array) -> tuple[Any, ...]:
        rho = group["rho"]
        return changing, rho, 1 - rho, group["eps"], group["weight_decay"]

    def prepare(self, group: Group, parameter: Parameter) -> Any:
        numbers = (group["lr"], group["rho"], 1 - group["rho"], group["eps"])
        decay = self.scalar_or_none(group["weight_decay"], parameter)
        return (*[self.scalar(number, parameter) for number in numbers], decay)

    def update(
        self, value: Array, grad: Array, state: dict[str, Any], scratch: list[Array], hyper: Any
    ) -> None:
        lr, rho, fresh, eps, decay = hyper
        v, u, (d, square) = state["square_avg"], state["acc_delta"], scratch
        g = self.penalized(value, grad, decay, out=d)
        np.multiply(g, g, out=square)
        np.multiply(square, fresh, out=square)
        np.multiply(v, rho, out=v)
        np.add(v, square, out=v)
        np.add(v, eps, out=square)
        np.sqrt(square, out=square)
        np.divide(g, square, out=d)
        np.add(u, eps, out=square)
        np.sqrt(square, out=square)
        np.multiply(d, square, out=d)
        np.multiply(d, d, out=square)
        np.multiply(square, fresh, out=square)
        np.multiply(u, rho, out=u)
        np.add(u, square, out=u)
        np.multiply(d, lr, out=d)
        np.subtract(value, d, out=value)
