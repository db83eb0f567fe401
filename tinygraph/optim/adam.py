"""Adam: running means of the gradient and of its square, corrected for their start at 0.

    g  = grad + weight_decay * value
    m  = beta1 * m + (1 - beta1) * g                0 at first
    v  = beta2 * v + (1 - beta2) * g^2              0 at first; amsgrad: then the largest v so far
    value = value - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)       t = 1, 2, ...

It is computed as value - a * m / (sqrt(v) + eps * r) with r = sqrt(1 - beta2^t) and
a = lr * r / (1 - beta1^t), which spares two passes over the array.

Source: Kingma, Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1; Reddi,
Kale, Kumar, "On the convergence of Adam and beyond", ICLR 2018 (amsgrad); the formula published at
https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tinygraph.cuda import op_kernel
from tinygraph.device import Device
from tinygraph.errors import ArgumentError
from tinygraph.optim.members import Group
from tinygraph.optim.optimizer import Optimizer
from tinygraph.optim.parts import Part, launch, state_of
from tinygraph.shapes import Array
from tinygraph.tensor import Parameter


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

    Raises
    ------
    ArgumentError
        Parameters or hyper-parameters that cannot be.

    References
    ----------
    Kingma, Ba, "Adam: a method for stochastic optimization", ICLR 2015.
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
    scratch_arrays = 2

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(
            params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad
        )

    def check(self, group: Group) -> None:
        for name in ("lr", "eps", "weight_decay"):
            self.require(name, group[name])
        betas = group["betas"]
        if not isinstance(betas, tuple) or len(betas) != 2:
            raise ArgumentError(self.op, "betas", "two numbers", repr(betas))
        for beta in betas:
            self.require_fraction("betas", beta)

    def prepare(self, group: Group, parameter: Parameter) -> Any:
        beta1, beta2 = group["betas"]
        numbers = (beta1, 1 - beta1, beta2, 1 - beta2, 0.0, 0.0)  # the last two change with t
        decay = self.scalar_or_none(group["weight_decay"], parameter)
        return group, [self.scalar(number, parameter) for number in numbers], decay

    def update(
        self, value: Array, grad: Array, state: dict[str, Any], scratch: list[Array], hyper: Any
    ) -> None:
        group, _, decay = hyper
        g = self.penalized(value, grad, decay, out=scratch[1])
        self.advance(value, g, state, scratch[0], group, hyper[1])

    def advance(
        self,
        value: Array,
        g: Array,
        state: dict[str, Any],
        d: Array,
        group: Group,
        numbers: list[Array],
    ) -> None:
        """The step along g, which AdamW shares; `d` is scratch."""
        beta1, fresh1, beta2, fresh2, size, eps = numbers
        if not state:
            state.update(step=0, exp_avg=np.zeros_like(value), exp_avg_sq=np.zeros_like(value))
        t = state["step"] = state["step"] + 1
        m, v = state["exp_avg"], state["exp_avg_sq"]
        np.multiply(g, fresh1, out=d)
        np.multiply(m, beta1, out=m)
        np.add(m, d, out=m)
        np.multiply(g, g, out=d)
        np.multiply(d, fresh2, out=d)
        np.multiply(v, beta2, out=v)
        np.add(v, d, out=v)
        if group["amsgrad"]:
            v = self._largest(state, v)
        size[...], eps[...] = self._corrected(group, t)
        np.sqrt(v, out=d)
        np.add(d, eps, out=d)
        np.divide(m, d, out=d)
        np.multiply(d, size, out=d)
        np.subtract(value, d, out=value)

    @staticmethod
    def _corrected(group: Group, t: int) -> tuple[float, float]:
        """Learning rate and eps of step t, with the corrections for the start at 0."""
        root = math.sqrt(1 - group["betas"][1] ** t)
        return group["lr"] * root / (1 - group["betas"][0] ** t), group["eps"] * root

    @staticmethod
    def _largest(state: dict[str, Any], v: Array) -> Array:
        """The elementwise maximum of v over all steps."""
        if "max_exp_avg_sq" not in state:
            state["max_exp_avg_sq"] = np.zeros_like(v)
        return np.maximum(state["max_exp_avg_sq"], v, out=state["max_exp_avg_sq"])

    def operations(self, group: Group, first: bool) -> int:
        """g 2 with a decay; m 3, v 4, root, sum and quotient 3, value 2; no maximum counts."""
        return 12 + (2 if group["weight_decay"] else 0)

    def update_kernels(self, device: Device, parts: Sequence[Part]) -> None:
        self.launch("adam", device, parts, self._corrected, parts[0].group["weight_decay"])

    def launch(
        self,
        stem: str,
        device: Device,
        parts: Sequence[Part],
        rates_at: Callable[[Group, int], tuple[float, ...]],
        *numbers: float,
    ) -> None:
        """The kernel of `<stem>.cu`; `rates_at` gives what step t changes, `numbers` the rest."""

        def rates() -> tuple[float, ...]:
            for p in parts:
                p.state["step"] += 1
            return tuple([x for p in parts for x in rates_at(p.group, p.state["step"])])

        group, value = parts[0].group, parts[0].value
        for p in parts:
            p.state.setdefault("step", 0)
        state = [state_of(device, parts, key) for key in self.arrays[: 2 + group["amsgrad"]]]
        if not group["amsgrad"]:
            state.append([device.empty((0,), value.dtype)] * len(parts))  # null pointers
        beta1, beta2 = group["betas"]
        launch(
            op_kernel(stem, f"{stem}_update", value.dtype),
            device,
            ([p.value for p in parts], [p.grad for p in parts], *state),
            beta1,
            1 - beta1,
            beta2,
            1 - beta2,
            self.rates(device, value, rates),
            *numbers,
        )
