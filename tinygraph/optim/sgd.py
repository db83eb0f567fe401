"""Stochastic gradient descent, with momentum, Nesterov's variant and weight decay.

    g = grad + weight_decay * value
    b = g at the first step, else momentum * b + (1 - dampening) * g         (with momentum only)
    d = g without momentum, b with it, g + momentum * b for Nesterov
    value = value - lr * d

Source: the formula published at https://docs.pytorch.org/docs/stable/generated/torch.optim.SGD.html;
Polyak, "Some methods of speeding up the convergence of iteration methods", 1964; Sutskever,
Martens, Dahl, Hinton, "On the importance of initialization and momentum in deep learning", ICML
2013.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tinygraph.cuda import op_kernel
from tinygraph.device import Device
from tinygraph.errors import ArgumentError
from tinygraph.optim.members import Group
from tinygraph.optim.optimizer import Optimizer
from tinygraph.optim.parts import Part, launch, learning_rates
from tinygraph.shapes import Array
from tinygraph.tensor import Parameter


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
    weight_decay : float
        Factor of the L2 penalty, whose gradient is added to the gradient.
    dampening : float
        What is taken off the weight of a new gradient in the momentum.
    nesterov : bool
        Look ahead by one momentum step; needs a momentum and no dampening.

    Raises
    ------
    ArgumentError
        Parameters or hyper-parameters that cannot be.

    References
    ----------
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
    scratch_arrays = 2

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        dampening: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
            dampening=dampening,
            nesterov=nesterov,
        )

    def check(self, group: Group) -> None:
        for name in ("lr", "momentum", "weight_decay", "dampening"):
            self.require(name, group[name])
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

    def operations(self, group: Group, first: bool) -> int:
        """g 2 with a decay; b 2, and 1 more with dampening, none at first; Nesterov 2; value 2."""
        count = 2 + (2 if group["weight_decay"] else 0)
        if group["momentum"]:
            count += 0 if first else 3 if group["dampening"] else 2
            count += 2 if group["nesterov"] else 0
        return count

    def update_kernels(self, device: Device, parts: Sequence[Part]) -> None:
        group, dtype = parts[0].group, parts[0].value.dtype
        values, grads = [p.value for p in parts], [p.grad for p in parts]
        if group["momentum"] == 0:
            lr = self.rates(device, values[0], lambda: learning_rates(parts))
            kernel = op_kernel("sgd", "sgd_update", dtype)
            launch(kernel, device, (values, grads), lr, group["weight_decay"])
            return
        old = [p for p in parts if "momentum_buffer" in p.state]
        new = [p for p in parts if "momentum_buffer" not in p.state]
        for some, first in ((old, False), (new, True)):
            if some:
                self._launch_momentum(device, some, first)

    def _launch_momentum(self, device: Device, parts: list[Part], first: bool) -> None:
        """A step with momentum of parts that all have a buffer, or none of which has one."""
        group, dtype = parts[0].group, parts[0].value.dtype
        if first:
            for part in parts:
                part.state["momentum_buffer"] = device.empty(part.value.shape, dtype)
        buffers = [p.state["momentum_buffer"] for p in parts]
        values, grads = [p.value for p in parts], [p.grad for p in parts]
        launch(
            op_kernel("sgd", "sgd_momentum_update", dtype),
            device,
            (values, grads, buffers),
            self.rates(device, values[0], lambda: learning_rates(parts)),
            group["momentum"],
            group["weight_decay"],
            1 - group["dampening"],
            int(group["nesterov"]),
            int(first),
        )
