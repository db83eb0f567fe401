"""The rule of a hand-written SRCNN: momentum over whole steps, which the batch size divides last.

    d  = momentum * d + lr * grad + weight_decay * value            d = 0 at first
    value = value - d / batch_size

`grad` is the gradient of a sum over the batch.  Three things differ from SGD: the decay is not
multiplied by the learning rate; the learning rate stands inside the momentum, so that a new one
does not reach the steps before it; and what is remembered is the step before the division, so that
momentum carries sums over batches.  With an unchanging learning rate it equals SGD on the mean
gradient with weight decay weight_decay / (lr * batch_size).

Source: the update rule of the OpenCL program described in "Neural networks: implementation tips",
2015 (github.com/Scthe/cnn-Super-Resolution, update_parameters.cl), which decays weights and not
biases: give biases a group with weight_decay=0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tinygraph.errors import ArgumentError
from tinygraph.optim.members import Group
from tinygraph.optim.optimizer import Optimizer
from tinygraph.shapes import Array
from tinygraph.tensor import Parameter


class SrcnnSGD(Optimizer):
    """Gradient descent as an SRCNN of 2015 did it: the batch size divides after momentum.

    Parameters
    ----------
    params : iterable
        Parameters, pairs (name, Parameter), or groups; see `Optimizer`.
    lr : float
        Learning rate, of the gradient of a sum over the batch (`reduction="sum"`).
    batch_size : int
        By what each step is divided.  For a short batch assign `groups[i]["batch_size"]`.
    momentum : float
        How much of the last step is kept.
    weight_decay : float
        The share of every weight that is added to each step; the learning rate has no part in it.

    References
    ----------
    Dong, Loy, He, Tang, "Image super-resolution using deep convolutional networks", TPAMI 2016
    (the network); "Neural networks: implementation tips", 2015 (the rule).

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> w = tg.Parameter([8.0])
    >>> rule = tg.optim.SrcnnSGD([w], lr=0.5, batch_size=4, momentum=0.5, weight_decay=0.25)
    >>> w.grad = np.array([4.0], np.float32)
    >>> rule.step()  # d = 0.5 * 4 + 0.25 * 8 = 4
    >>> w.value
    array([7.], dtype=float32)
    """

    arrays = ("previous_step",)
    kernel = "srcnn_sgd"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        batch_size: int,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(
            params, lr=lr, batch_size=batch_size, momentum=momentum, weight_decay=weight_decay
        )

    def check(self, group: Group) -> None:
        for name in ("lr", "momentum", "weight_decay"):
            self.require(name, group[name])
        size = group["batch_size"]
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ArgumentError(self.op, "batch_size", "an int of at least 1", repr(size))

    def start(self, group: Group) -> dict[str, float]:
        return {"previous_step": 0.0}

    def kernel_arguments(self, group: Group, changing: Array) -> tuple[Any, ...]:
        return changing, group["momentum"], group["weight_decay"], group["batch_size"]

    def prepare(self, group: Group, parameter: Parameter) -> Any:
        return (
            self.scalar(group["lr"], parameter),
            self.scalar(group["momentum"], parameter),
            self.scalar_or_none(group["weight_decay"], parameter),
            self.scalar(group["batch_size"], parameter),
        )

    def update(
        self, value: Array, grad: Array, state: dict[str, Any], scratch: list[Array], hyper: Any
    ) -> None:
        lr, momentum, decay, batch_size = hyper
        d, term = state["previous_step"], scratch[0]
        np.multiply(d, momentum, out=d)
        np.multiply(grad, lr, out=term)
        np.add(d, term, out=d)
        if decay is not None:
            np.multiply(value, decay, out=term)
            np.add(d, term, out=d)
        np.divide(d, batch_size, out=term)
        np.subtract(value, term, out=value)
