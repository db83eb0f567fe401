"""Stochastic gradient descent, with momentum, Nesterov's variant and weight decay.

g = grad + weight_decay * value
b = g at the first step, else momentum * b + (1 - dampening) * g         (with momentum only)
d = g without momentum, b with it, g + momentum * b for Nesterov
value = value - lr * d
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Unpack

import numpy as np

from tinygraph.base import ArgumentError
from tinygraph.engine import Array, Device, Parameter
from tinygraph.optim.members import Group
from tinygraph.optim.optimizer import Optimizer
from tinygraph.optim.options import Options, hyper_parameters
from tinygraph.optim.parts import Part


class SGD(Optimizer):
    """Stochastic gradient descent.

    Parameters
    ----------
    params : iterable
        Parameters, pairs (name, Parameter), or groups; see `Optimizer`.
    lr : float
        Learning rate, at least 0.
    momentum : float
        How much of the last direction is kept; 0 is plain descent.
    dampening : float
        What is taken off the weight of a new gradient in the momentum.
    weight_decay : float
        Factor of the L2 penalty, whose gradient is added to the gradient.
    nesterov : bool
        Look ahead by one momentum step; needs a momentum and no dampening.
    **options
        `maximize`, for steps that go up; `foreach`, `fused` and `capturable`, which change nothing.

    References
    ----------
    Polyak, "Some methods of speeding up the convergence of iteration methods", 1964.
    https://docs.pytorch.org/docs/stable/generated/torch.optim.SGD.html (the update formula).
    Sutskever, Martens, Dahl, Hinton, "On the importance of initialization and momentum in deep
    learning", ICML 2013.

    Examples
    --------
    >>> import tinygraph as tg
    >>> w = tg.Parameter([1.0, -2.0])
    >>> sgd = tg.optim.SGD([w], lr=0.25)
    >>> tg.mse_loss(w, [0.0, 0.0], reduction="sum").backward()  # the gradient is 2 * w
    >>> sgd.step()
    >>> w.value
    array([ 0.5, -1. ], dtype=float32)
    """

    arrays = ("momentum_buffer",)
    nonnegative = ("lr", "momentum", "weight_decay", "dampening")
    kernel = "sgd"
    scratch_arrays = 2

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            **hyper_parameters(type(self), options),
        )

    def check(self, group: Group) -> None:
        super().check(group)
        if group["nesterov"] and (group["momentum"] == 0 or group["dampening"] != 0):
            raise ArgumentError(
                "SGD",
                "nesterov",
                "False without momentum, or with dampening",
                f"True with momentum {group['momentum']}, dampening {group['dampening']}",
            )

    def prepare(self, group: Group, parameter: Parameter) -> Any:
        """The numbers as 0-d arrays; None for those that change nothing."""
        fresh = 1 - group["dampening"]
        return (
            self.scalar(group["lr"], parameter),
            self.scalar_or_none(group["momentum"], parameter),
            self.scalar_or_none(group["weight_decay"], parameter),
            None if fresh == 1 else self.scalar(fresh, parameter),
            group["nesterov"],
        )

    def update(
        self, value: Array, grad: Array, state: dict[str, Any], scratch: list[Array], hyper: Any
    ) -> None:
        lr, momentum, decay, fresh, nesterov = hyper
        d = scratch[0]
        g = self.penalized(value, grad, decay, out=scratch[1])
        if momentum is not None:
            b = state.get("momentum_buffer")
            if b is None:
                b = state["momentum_buffer"] = np.empty_like(value)
                b[...] = g
            else:
                np.multiply(b, momentum, out=b)
                np.add(b, g if fresh is None else np.multiply(g, fresh, out=d), out=b)
            if nesterov:
                np.multiply(b, momentum, out=d)
                g = np.add(d, g, out=d)
            else:
                g = b
        np.multiply(g, lr, out=d)
        np.subtract(value, d, out=value)

    def update_kernels(self, device: Device, parts: Sequence[Part]) -> None:
        """Without momentum one launch; with it one for parts that go on, one for those that begin:
        these have no buffer yet, it begins as g."""
        group, key = parts[0].group, "momentum_buffer"
        decay = group["weight_decay"]
        if group["momentum"] == 0:
            rates = self.changing_of(device, parts)
            self.launch(device, parts, "sgd_update", [], rates, decay)
            return
        new = [part for part in parts if key not in part.state]
        old = [part for part in parts if key in part.state]
        for part in new:
            part.state[key] = device.empty(part.value.shape, part.value.dtype)
        rest = group["momentum"], decay, 1 - group["dampening"], int(group["nesterov"])
        for some in filter(None, (old, new)):
            rates = self.changing_of(device, some)
            self.launch(device, some, "sgd_momentum_update", [key], rates, *rest, int(some is new))
