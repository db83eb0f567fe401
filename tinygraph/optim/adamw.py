"""AdamW: Adam with weight decay beside the gradient instead of within it.

value = value - lr * weight_decay * value
then Adam's step with g = grad
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np

from tinygraph.engine import Array, Parameter
from tinygraph.optim.adam import Adam
from tinygraph.optim.members import Group
from tinygraph.optim.options import Options


class AdamW(Adam):
    """Adam with decoupled weight decay.

    Parameters
    ----------
    params : iterable
        Parameters, pairs (name, Parameter), or groups; see `Optimizer`.
    lr, betas, eps, amsgrad
        As for `Adam`.
    weight_decay : float
        Each step takes this share, times the learning rate, off every weight.
    **options
        `maximize`, for steps that go up; `foreach`, `fused` and `capturable`, which change nothing.

    References
    ----------
    Loshchilov, Hutter, "Decoupled weight decay regularization", ICLR 2019.
    https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> w = tg.Parameter([2.0])
    >>> adamw = tg.optim.AdamW([w], lr=0.5, weight_decay=0.5)
    >>> w.grad = np.array([3.0], np.float32)
    >>> adamw.step()  # 2 - 0.5 * 0.5 * 2, then - 0.5
    >>> w.value
    array([1.], dtype=float32)
    """

    kernel = "adamw"
    scratch_arrays = 1

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)

    def prepare(self, group: Group, parameter: Parameter) -> Any:
        _, numbers, _ = super().prepare(group, parameter)
        rate = group["lr"] * group["weight_decay"]
        return group, numbers, self.scalar(1 - rate, parameter) if rate else None

    def changing(self, group: Group, state: dict[str, Any]) -> tuple[float, ...]:
        """Adam's, and what is left of a value after its decay."""
        return *super().changing(group, state), 1 - group["lr"] * group["weight_decay"]

    def kernel_arguments(self, group: Group, changing: Array) -> tuple[Any, ...]:
        return super().kernel_arguments(group, changing)[:-1]  # the decay is among `changing`

    def decayed(self, value: Array, grad: Array, decay: Array | None, out: Array) -> Array:
        if decay is not None:
            np.multiply(value, decay, out=value)
        return grad
